-- SPDX-License-Identifier: Apache-2.0
-- Graphs and sessions as scripts hold them: names, results, feeds, first values of variables, mistakes.

local pg = require "perigee"

local function session(fn) return pg.Session { pg.graph(fn) } end

-- The message of what f raises, without the script line.
local function message(t, f)
  return (t.raises(f).message:gsub("^[^:]+:%d+: ", ""))
end

test("methods of graphs and sessions need a colon", function(t)
  local s = session(function(g) return { y = g:placeholder { "x", shape = { 2 } } * 2 } end)
  local g = s.graph
  t.equal(message(t, function() s.run("y", { x = pg.ones { 2 } }) end),
          "run: self must be a session, got string \"y\" (call it with a colon: session:run())")
  t.equal(message(t, function() g.dot("a.dot") end),
          "dot: self must be a graph, got string \"a.dot\" (call it with a colon: graph:dot())")
  for _, name in ipairs { "find", "gradients", "text", "print", "placeholder", "variable", "constant", "dot" } do
    t.equal(message(t, function() g[name]() end),
            ("%s: self must be a graph, got nil (call it with a colon: graph:%s())"):format(name, name))
    t.raises(function() g[name](s, "x") end, "self must be a graph, got a table")
  end
  t.raises(function() s.placement {} end, "self must be a session")
end)

test("graphs and sessions tell what they are", function(t)
  local s = session(function(g)
    local x, w = g:placeholder { "x", shape = { 2 } }, g:variable { "w", shape = { 2 } }
    return { loss = (x * w):sum(), y = x * 1 }
  end)
  t.equal(tostring(s.graph), "Graph(x, w -> loss, y)")
  t.equal(pg.Session(s.graph):run("loss", { x = { 1, 2 } }), 0)
  t.equal(tostring(s), "Session(Graph(x, w -> loss, y))")
  t.equal(message(t, function() s.graph:gradient("loss", { "w" }) end),
          "a graph has no \"gradient\" (did you mean graph:gradients()?)")
  t.equal(message(t, function() s:runn("loss") end), "a session has no \"runn\" (did you mean session:run()?)")
end)

test("a list of results is fetched by position", function(t)
  local s = session(function(g)
    local x = g:placeholder { "x", shape = { 2 } }
    return { x * 2, (x * x):sum() }
  end)
  local x = pg.tensor { 1, 2 }
  t.equal(s:run(1, { x = x }), { 2, 4 })
  local all = s:run({ 1, 2 }, { x = x })
  t.equal(all[1], { 2, 4 })
  t.equal(all[2], 5)
  t.equal(s:run(s.graph:gradients(2, { "x" })[1], { x = x }), { 2, 4 })
  t.equal(message(t, function() s:run(3, { x = x }) end), "graph: the graph has no result 3 (its results are: 1, 2)")
end)

test("a placeholder that is a result keeps its name", function(t)
  local s = session(function(g) return { out = g:placeholder { "x", shape = { 2 } } } end)
  t.equal(s:run("out", { x = { 1, 2 } }), { 1, 2 })
  t.raises(function() s:run "out" end, "placeholder 'x' was not fed")
  t.ok(s.graph:text():find "x = placeholder")
  t.equal(message(t, function()
    pg.graph(function(g)
      local x = g:placeholder { "x", shape = { 2 } }
      g:placeholder { "z", shape = { 2 } }
      return { z = x }
    end)
  end), "graph: result \"z\": the graph already has a tensor of that name")
end)

test("eager tensors are results", function(t)
  local layer, index = pg.nn.Linear { 2, 2 }, pg.tensor({ 3, 4 }, { dtype = "int64" })
  local s = session(function(g)
    local y = layer(g:placeholder { "x", shape = { "n", 2 } })
    return { y = y, loss = y:sum(), w = layer.weight, index = index, line = pg.linspace(0, 1, 3), z = pg.zeros { 2 } }
  end)
  t.equal(s:run "w", layer.weight:detach())
  t.equal(s:run "index", index)
  t.equal(s:run("index").dtype, "int64")
  t.equal(s:run { "line", "z" }.line, { 0, 0.5, 1 })
  index:fill_(5)
  t.equal(s:run "index", { 5, 5 }, "as it is at the run")
  pg.no_grad(function() layer.weight:fill_(3) end)
  t.equal(pg.Session { s.graph }:run "w", pg.full({ 2, 2 }, 3), "a parameter is a variable")
  t.equal(s:run(s.graph:gradients("loss", { "w" })[1], { x = { { 1, 2 } } }), { { 1, 2 }, { 1, 2 } })
  t.equal(message(t, function() pg.graph(function(g)
    g:variable { "w", shape = { 1 } }
    return { w = pg.ones { 1 } * 2 }
  end) end), "graph: result \"w\": the graph already has a tensor named 'w'")
end)

test("feeds of numbers take the placeholder's dtype", function(t)
  local s = session(function(g)
    return { more = g:placeholder { "i", shape = {}, dtype = "int64" } + 1,
             none = g:placeholder { "b", shape = { "n" }, dtype = "bool" }:logical_not(),
             rows = pg.ones { 3, 2 }[g:placeholder { "at", shape = { "n" }, dtype = "int64" }] }
  end)
  t.equal(s:run("more", { i = 3 }), 4)
  t.equal(s:run("more", { i = 3 }).dtype, "int64")
  t.equal(s:run("none", { b = { 1, 0 } }):totable(), { false, true })
  t.equal(s:run("rows", { at = { 0, 2 } }).shape, { 2, 2 })
  t.raises(function() s:run("more", { i = 0.5 }) end, "int64 cannot hold 0.5")
end)

test("first values of variables", function(t)
  local function first(o)
    o[1] = "w"
    return session(function(g) return g:variable(o) * 1 end):run "output"
  end
  t.equal(first { init = { 1, 2 } }, { 1, 2 })
  t.equal(first { init = { 1, 2 }, dtype = "int64" }.dtype, "int64")
  t.equal(first { shape = { 2 }, init = 0.5 }, { 0.5, 0.5 })
  t.equal(first { shape = {}, init = "ones" }, 1)
  t.equal(first { shape = { 2 }, init = function(shape) return pg.ones(shape) * 3 end }, { 3, 3 })
  local bound = math.sqrt(6 / ((64 + 3) * 49)) -- of kernels the window counts
  local largest = first { shape = { 64, 3, 7, 7 }, init = "glorot_uniform" }:abs():max():item()
  t.ok(largest <= bound and largest > 0.99 * bound, largest)
  local std = first { shape = { 64, 3, 7, 7 }, init = "glorot_normal" }:std():item()
  t.ok(math.abs(std / (bound / math.sqrt(3)) - 1) < 0.1, std)
  local function refuses(o, expected) t.equal(message(t, function() first(o) end), expected) end
  refuses({ shape = { 2 }, init = function() end }, "variable: init must give a tensor, got nil")
  refuses({ shape = { 2 }, init = function() return 3 end }, "variable: init must give a tensor, got number 3")
  refuses({ shape = { 2 }, init = function() return pg.ones { 3 } end }, "variable: init is {3}, but the shape {2}")
  refuses({ shape = { 3 }, init = pg.ones { 2 } }, "variable: init is {2}, but the shape {3}")
  refuses({ shape = { "n", 2 }, init = "ones" },
          "variable: shape[1] must be a number, got string \"n\" (a variable has its size at once)")
  refuses({ shape = {}, init = "glorot_uniform" },
          "nn.init.xavier_uniform_: needs a tensor of two axes or more, got {}")
  refuses({}, "variable: needs a shape, or init as a tensor")
  refuses({ shape = { 2 }, init = true }, "variable: init must be a tensor, numbers, a function of the shape or one " ..
          "of glorot_normal, glorot_uniform, normal, ones, uniform, zeros, got boolean true")
end)

test("constants of tensors take a dtype", function(t)
  local ones = pg.ones { 2 }
  t.equal(session(function(g) return g:constant(ones, { dtype = "int64" }) end):run("output").dtype, "int64")
  t.equal(message(t, function() pg.graph(function(g) return g:constant(pg.ones { 2 }) end) end),
          "constant: the value is a tensor of a graph, which has no contents yet (make it outside of pg.graph, or " ..
          "give numbers)")
end)

test("gradients of what does not matter", function(t)
  local g = pg.graph(function(g)
    local x, w = g:placeholder { "x", shape = { 2 } }, g:placeholder { "w", shape = { 2 } }
    return { loss = (w * w):sum(), y = x * 1 }
  end)
  t.equal(message(t, function() g:gradients("loss", { "w", "x" }) end),
          "gradients: the target does not depend on source 2 (\"x\") (allow_unused=true gives nil for it)")
  local d = g:gradients("loss", { "x", "w" }, { allow_unused = true })
  t.equal(d[1], nil)
  t.equal(pg.Session { g }:run(d[2], { w = { 1, 2 } }), { 2, 4 })
  t.raises(function() g:gradients("loss", { "w" }, { allow_unsued = true }) end, "did you mean \"allow_unused\"")
end)

test("options of TensorFlow's sessions are settings of the process", function(t)
  local g = pg.graph(function(g) return g:placeholder { "x", shape = { 2 } } * 2 end)
  local s = pg.Session { g, log_device_placement = false, allow_soft_placement = true,
                         gpu_options = { allow_growth = true } }
  t.equal(s:run("output", { x = { 1, 2 } }), { 2, 4 })
  t.raises(function() pg.Session { g, gpu_options = { alow_growth = true } } end, "did you mean \"allow_growth\"")
  t.raises(function() pg.Session { g, gpu_options = { allow_growth = 1 } } end, "allow_growth must be true or false")
end)

test("recompute in a graph draws once", function(t)
  local s = session(function(g)
    local x = g:placeholder { "x", shape = { 64 } }
    local y = pg.recompute(function(z) return pg.dropout(z, 0.5) end, x)
    return { y = y, dx = pg.grad(y:sum(), { x }) }
  end)
  local r = s:run({ "y", "dx" }, { x = pg.ones { 64 } })
  t.equal(r.y, r.dx)
end)
