-- SPDX-License-Identifier: Apache-2.0
-- What tensors of a graph are called, and where they were recorded: the same in print, dot, placement, errors, fetches.

local pg = require "perigee"
local nn = pg.nn

local function has(t, text, part) t.ok(text:find(part, 1, true), ("%q is not in\n%s"):format(part, text)) end

test("names that the recorder makes up are nobody else's", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "add_1", shape = { 2 } }
    local a = x + 1
    local b = a + 1 -- would be add_1
    return { y = b + 1, b = b }
  end)
  local s = pg.Session { g }
  t.equal(s:run("y", { add_1 = pg.zeros { 2 } }), { 3, 3 })
  t.equal(s:run("add_1", { add_1 = pg.zeros { 2 } }), { 0, 0 })
  t.equal(s:run("add", { add_1 = pg.zeros { 2 } }), { 1, 1 })
  t.equal(s:run({ "b" }, { add_1 = pg.zeros { 2 } }).b, { 2, 2 })
end)

test("a node and its first output share a name, everywhere", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 4 } }
    local values, indices = (x * 2):topk(2)
    return { values = values, indices = indices }
  end)
  local s = pg.Session { g }
  has(t, g:text(), "mul = mul(x, 2)")
  has(t, g:text(), "values, indices = topk(mul, k=2)")
  has(t, g:dot(), "\"values\\ntopk(mul, k=2)")
  has(t, s:placement(), "values: (Topk): ")
  has(t, s:placement(), "mul: (Mul): ")
  t.equal(s:run("mul", { x = { 1, 2, 3, 4 } }), { 2, 4, 6, 8 })
end)

test("names that are given twice", function(t)
  local function refuses(fn, pattern) t.raises(function() pg.graph(fn) end, pattern) end
  local function x(g) return g:placeholder { "x", shape = { 2 } } end
  refuses(function(g) return { x(g), g:constant(1, { name = "x" }) } end, "already has a tensor named 'x'")
  refuses(function(g) return { x(g), g:variable { "x", shape = { 2 } } } end, "already has a tensor named 'x'")
  refuses(function(g) return { x(g) + 1, g:placeholder { "add", shape = { 2 } } } end, "has a tensor named 'add'")
  local g = pg.graph(function(g) -- a made-up name that has been replaced is free again
    local y = x(g) + 1
    return { y = y }
  end)
  t.raises(function() g:find("add") end, "no tensor named 'add'")
end)

test("name scopes", function(t)
  local outside = pg.ones { 2 }
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 } }
    local y, w = pg.name_scope("encoder", function()
      local w = g:variable { "w", shape = { 2 }, init = "ones" }
      return pg.name_scope("attention", function(z) return z * w end, x), w
    end)
    local again = pg.name_scope("encoder", function() return y + g:placeholder { "x", shape = { 2 } } end)
    local captured = pg.name_scope("encoder", function() return x + outside end)
    g.of = g:gradients(again:sum(), { w })[1]
    return { y = again, captured = captured }
  end)
  for _, part in ipairs { "encoder/w = variable", "encoder/attention/mul = mul(x, encoder/w)",
                          "encoder/x = placeholder",
                          "y = add(encoder/attention/mul, encoder/x)", "encoder/captured = constant", "gradients/" } do
    has(t, g:text(), part)
  end
  local s = pg.Session { g }
  t.equal(s:run("y", { x = { 2, 3 }, ["encoder/x"] = { 1, 1 } }), { 3, 4 })
  t.equal(s:run("encoder/w"), { 1, 1 })
  t.equal(s:state()["encoder/w"], { 1, 1 })
  t.equal(s:run(g.of, { x = { 2, 3 }, ["encoder/x"] = { 1, 1 } }), { 2, 3 })
  t.equal(pg.name_scope("eager", function(a, b) return a + b end, 1, 2), 3, "eager code runs as it is")
  for _, wrong in ipairs { "", "a b", "/a", 1, {} } do
    t.raises(function() pg.name_scope(wrong, function() end) end, "name_scope: needs a name")
  end
  t.raises(function() pg.name_scope("a") end, "name_scope")
  local failed = pcall(pg.name_scope, "left", function() error("of the script") end)
  t.ok(not failed)
  has(t, pg.graph(function(h) return h:placeholder { "x", shape = { 2 } }:relu():exp() end):text(), "\nrelu = relu(x)")
end)

test("layers name what they record and what they hold by their path", function(t)
  local Net = nn.class("Net")
  function Net:init()
    self.blocks = nn.ModuleList { nn.Linear { 3, 4 }, nn.Linear { 4, 2 } }
    self.scale = nn.Parameter(pg.ones { 1 })
  end
  function Net:forward(x) return self.blocks[2](self.blocks[1](x):relu()) * self.scale end
  local net = Net {}
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 3 } }
    return { y = net(x), z = pg.name_scope("twice", function() return net(x) end) }
  end)
  for _, part in ipairs { "blocks.0.weight = variable  float32 [4, 3]", "\nscale = variable",
                          "blocks.0/linear = linear(x, blocks.0.weight, blocks.0.bias)",
                          "\nrelu = relu(blocks.0/linear)",
                          "twice/blocks.1/linear = linear(twice/relu, blocks.1.weight, blocks.1.bias)" } do
    has(t, g:text(), part)
  end
  local x = pg.rand { 5, 3 }
  t.equal(pg.Session { g }:run("z", { x = x }), net(x):detach())
end)

test("nodes tell where they were recorded; what fails in a run says it, once", function(t)
  local function build(g)
    local x = g:placeholder { "x", shape = { "n", 3 } }
    return { y = x:reshape(2, -1) }
  end
  local g, line = pg.graph(build), debug.getinfo(build, "S").linedefined + 2
  has(t, g:text(), ("graph_names_test.lua:%d\n"):format(line))
  local s = pg.Session { g }
  local err = t.raises(function() s:run("y", { x = pg.ones { 3, 3 } }) end)
  local here = debug.getinfo(1, "l").currentline
  has(t, err.message, ("graph_names_test.lua:%d: Session:run: y (reshape): x [3, 3]"):format(here - 1))
  has(t, err.message, ("; recorded at %s:%d"):format(err.message:match("^(.-):%d"), line))
  local _, count = err.message:gsub("run: ", "")
  t.equal(count, 1, err.message)
  local model = nn.Sequential { nn.Identity {}, nn.Flatten {}, nn.Reshape { 2, -1 } }
  g = pg.graph(function(h) return model(h:placeholder { "x", shape = { "n", 3 } }) end)
  err = t.raises(function() pg.Session { g }:run("output", { x = pg.ones { 5, 3 } }) end)
  has(t, err.message, " in Sequential.2 (Reshape)")
  t.ok(not pg.config.get().origins, "lines are told while something is recorded only")
end)

test("numbers, axes, strides and writes are seen in print and in dot", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 1, 1, 8, 8 } }
    local w = g:variable { "w", shape = { 1, 1, 3, 3 }, init = "ones" }
    local y = pg.conv2d(x, w, nil, { stride = 2 })
    w:add_(0.5)
    return { y = (y * 2.5):sum { axis = { 1, -1 }, keepdim = true }, z = x:gt(1), w2 = w }
  end)
  for _, text in ipairs { g:text(), g:dot() } do
    for _, part in ipairs { "conv2d(x, w, stride={2, 2})", "mul(y, 2.5)", "axes={1, -1}, keepdim=true", "gt(x, 1)",
                            "add(w, 0.5)" } do
      if part == "mul(y, 2.5)" then part = "(conv2d, 2.5)" end
      has(t, text, part)
    end
    has(t, text, "  writes w")
  end
end)

test("constants keep their shape", function(t)
  local outside = pg.ones { 2, 3 }
  pg.graph(function(g)
    t.equal(g:constant({ 5 }).shape, { 1 })
    t.equal(g:constant { { 1, 2 } }.shape, { 1, 2 })
    t.equal(g:constant { 1, 2, 3 }.shape, { 3 })
    t.equal(g:constant({ 1, 2, 3 }, { name = "a" }).shape, { 3 })
    t.equal(g:constant { { 1, 2, 3 }, name = "b", dtype = "int64" }.dtype, "int64")
    t.equal(g:constant { { 1, 2, 3 }, name = "c" }.shape, { 3 })
    t.equal(g:constant(5).shape, {})
    t.equal(g:constant(true).dtype, "bool")
    t.equal(g:constant(outside).shape, { 2, 3 })
    t.raises(function() g:constant() end, "constant")
    t.raises(function() g:constant { { 1 }, nmae = "x" } end, "did you mean")
    return g:constant(1)
  end)
end)

test("a node that only writes has a name, and nothing to fetch", function(t)
  local g = pg.graph(function(g)
    local w = g:variable { "w", shape = { 2 }, init = pg.tensor { -1, 3 } }
    pg.clamp_all({ w }, { min = 0 })
    return { train = w }
  end)
  t.raises(function() g:find("clamp_all") end, "has no output")
  t.raises(function() g:find("nope") end, "no tensor named 'nope'")
  t.equal(pg.Session { g }:run("train"), { 0, 3 })
end)
