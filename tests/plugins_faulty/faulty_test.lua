-- SPDX-License-Identifier: Apache-2.0
-- What comes of operators that break their promises: an error that names operator and output.

local pg = require "perigee"

local x = pg.tensor { 1, 2, 3 }

local function plain(text) return (text:gsub("%p", "%%%0")) end

local function fails(t, fn, text) t.equal(t.raises(fn, plain(text)).code, "internal") end

-- In eager code, twice (a refusal is not remembered as a success), and in a graph, as it is recorded or run.
local function fails_everywhere(t, name, options, text)
  for _ = 1, 2 do fails(t, function() return pg[name](x, options) end, name .. ": " .. text) end
  fails(t, function()
    local g = pg.graph(function(g)
      return { y = pg[name](g:placeholder { "x", shape = { "n" }, dtype = "float32" }, options) }
    end)
    return pg.Session { g }:run("y", { x = x })
  end, text)
end

test("a shape rule describes every output, with a dtype", function(t)
  fails_everywhere(t, "faulty_half", {}, "its shape rule says nothing of output 'z'")
  fails_everywhere(t, "faulty_dtype", {}, "its shape rule says dtype none of output 'y'")
  fails_everywhere(t, "faulty_dtype", { code = 77 * 65536 + 7 },
                   "its shape rule says dtype kind 77 of 7 bits of output 'y'")
  fails_everywhere(t, "faulty_dtype", { code = 4 }, "its shape rule says dtype kind 0 of 4 bits of output 'y'")
  -- A number that is no size: what computes with sizes is asked first, and does not know who gave it.
  local problem = t.raises(function() return pg.faulty_symbol(x) end,
                           plain "faulty_symbol: -4611686018428387904 is less than")
  t.equal(problem.code, "invalid_argument")
end)

test("a view stays within its input, in its dtype", function(t)
  local beyond = "its shape rule goes beyond the 3 elements that its input reaches with output 'y'"
  fails_everywhere(t, "faulty_view", { start = 2 ^ 28 }, beyond)
  fails_everywhere(t, "faulty_view", { start = 3 }, beyond)
  fails_everywhere(t, "faulty_view", { start = -1 }, beyond)
  fails_everywhere(t, "faulty_view", { size = 3, stride = 2 }, beyond)
  fails_everywhere(t, "faulty_view", { size = 2 ^ 40, stride = 2 ^ 40 }, beyond)
  fails_everywhere(t, "faulty_view", { size = 2, stride = -1, start = 2 },
                   "its shape rule says a negative stride of output 'y'")
  fails_everywhere(t, "faulty_view_dtype", {},
                   "its shape rule says dtype float64, where the input that it is a view of has float32, of output 'y'")
  t.equal(pg.faulty_view(x, { size = 2, stride = 2 }), { 1, 3 })
  t.equal(pg.faulty_view(x[{ { 2, 3 } }], { size = 2 }), { 2, 3 })
  fails(t, function() return pg.faulty_view(x[{ { 1, 2 } }], { size = 3 }) end, "goes beyond the 2 elements")
  t.equal(pg.faulty_view(x, { size = 0, start = 7 }).shape, { 0 })
end)

test("a view has strides, and what is none has none", function(t)
  fails_everywhere(t, "faulty_view_bare", {}, "its shape rule says no strides of output 'y'")
  fails_everywhere(t, "faulty_view_copy", {}, "its shape rule wants a dense input, which it has, for output 'y'")
  fails(t, function() return pg.faulty_no_view(x) end,
        "faulty_no_view: its shape rule makes a view, which it is not, of output 'y'")
end)

test("a dynamic output is no larger than its bound", function(t)
  for _, count in ipairs { 4, 1000000, -1 } do
    fails(t, function() return pg.faulty_extents(x, { count = count }) end,
          ("faulty_extents: its kernel says that axis 0 of output 'y' has %d elements; at most 3 fit"):format(count))
  end
  t.equal(pg.faulty_extents(x, { count = 2 }).shape, { 2 })
end)

test("a decomposition gives what the shape rule says", function(t)
  fails_everywhere(t, "faulty_parts", {},
                   "its decomposition gave float32 [] for output 'y'; its shape rule says float32 [3]")
  fails_everywhere(t, "faulty_parts_dtype", {},
                   "its decomposition gave float64 [3] for output 'y'; its shape rule says float32 [3]")
end)

test("a gradient rule that returns what it did not save", function(t)
  for _, size in ipairs { 3, 3, 0 } do
    local w = pg.ones({ size }, { requires_grad = true })
    fails(t, function() return w:faulty_unsaved():sum():backward() end, "gradient of faulty_unsaved: input 1 got a " ..
          "tensor that has no contents here: the operator did not declare it as saved")
    t.equal(w.grad, nil)
  end
end)

test("a failure without a message says its code", function(t)
  t.raises(function() return pg.faulty_code(x) end, "faulty_code: failed with code 8 and no message")
  fails(t, function() return pg.faulty_code(x, { code = 10 }) end,
        "faulty_code: answered PG_E_RETRY, which only the host says")
  local w = pg.ones({ 3 }, { requires_grad = true })
  t.raises(function() return w:faulty_silent_grad():sum():backward() end,
           "gradient of faulty_silent_grad: failed with code 3 and no message")
  t.raises(function() return pg.faulty_result(x) end, "makes float32; its result is to be int32")
end)

test("options of one name: axis and axes are both there", function(t)
  local m = pg.ones { 2, 3 }
  t.equal(pg.faulty_axes(m), { 1, 0 })
  t.equal(pg.faulty_axes(m, { axis = 1 }), { 0, 0 })
  t.equal(pg.faulty_axes(m, { axes = { 1 } }), { 1, 1 })
  t.equal(pg.faulty_axes(m, { axis = 1, axes = { 1, 2 } }), { 0, 2 })
end)

test("what a kernel does not write in place is computed apart and copied back", function(t)
  local w = pg.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, { requires_grad = true })
  local a = w * 1
  local view = a:t()[{ { 1, 2 }, { 1, 3, 2 } }] -- {{1, 5}, {2, 6}}
  view:faulty_dense_(view)
  t.equal(a, { { 2, 6 }, { 3, 4 }, { 30, 42 } })
  a = (a * pg.tensor { { 1, 10 }, { 100, 1000 }, { 10000, 100000 } }):sum()
  a:backward()
  t.equal(w.grad, { { 3, 50 }, { 100, 1000 }, { 110000, 1300000 } })

  local leaf = pg.ones({ 2, 2 }, { requires_grad = true })
  t.raises(function() leaf:t():faulty_dense_(leaf) end, "requires gradients")
  local kept = pg.ones { 2, 3 }
  local product = kept:t() * pg.ones({ 3, 2 }, { requires_grad = true })
  kept:t():faulty_dense_(kept:t())
  t.equal(kept, { { 2, 2, 2 }, { 2, 2, 2 } })
  t.raises(function() product:sum():backward() end, "modified in place")
end)

test("what a kernel does not write into is written into a copy, and copied back", function(t)
  local counts = pg.zeros { 4 }
  t.equal(pg.faulty_dense_count(counts):item(), 4)
  t.equal(pg.faulty_dense_count(counts[{ { 1, 4, 2 } }]):item(), 2)
  t.equal(counts, { 2, 1, 2, 1 })
end)

test("a kernel is asked for the strides that are there, whatever was offered to the one before", function(t)
  t.equal(pg.faulty_first_refuses(pg.tensor({ { 1, 2 }, { 3, 4 } }):t()[1]), { 1, 3 })
end)

for _, device in ipairs { "cpu", "sim" } do
  test("in place where there is only a decomposition, on " .. device, function(t)
    local w = pg.tensor({ { 1, 2 }, { 3, 4 } }, { requires_grad = true, device = device })
    local a = w * 1
    a:t()[1]:faulty_composed_()
    t.equal(a, { { 2, 2 }, { 6, 4 } })
    a:faulty_composed_()
    t.equal(a, { { 4, 4 }, { 12, 8 } })
    a:sum():backward()
    t.equal(w.grad, { { 4, 2 }, { 4, 2 } })
  end)
end

test("what nothing computes is named, in place, in backward, and the reason is given", function(t)
  local lacking = "faulty_lacking: no kernel for float32 %[3%] on cpu:0; no device has one"
  t.raises(function() return pg.faulty_lacking(x) end, lacking)
  t.raises(function() return x:clone():faulty_lacking_() end, "faulty_lacking_: no kernel for float32 %[3%] on cpu:0")
  local w = pg.ones({ 3 }, { requires_grad = true })
  t.raises(function() w:faulty_lacking_grad():sum():backward() end, "gradient of faulty_lacking_grad: .*" .. lacking)
  t.raises(function() pg.ones({ 2 }, { dtype = "float64" }):faulty_dense_(pg.ones({ 2 }, { dtype = "float64" })) end,
           "no kernel for .*takes float32")
end)

test("inputs that an emission leaves out are absent where they may be", function(t)
  t.equal(pg.faulty_few(x), { 1, 1, 0, 1, 1 })
  t.equal(pg.faulty_few(x, { count = 2 }), { 1, 1, 0, 1, 2 })
  t.equal(pg.faulty_few(x, { count = 3 }), { 1, 1, 2, 1, 4 })
  t.equal(pg.faulty_few(x, { count = 4 }), { 1, 1, 2, 1, 5 })
  t.raises(function() return pg.faulty_few(x, { count = 0 }) end, "faulty_given: argument 1 %(x%) is missing")
  fails(t, function() return pg.faulty_few(x, { count = 5 }) end,
        "faulty_given: more inputs than the 4 that are declared: x, y, more, z")
end)

test("an attribute that is not there is answered with those that are", function(t)
  t.equal(pg.faulty_attr(x), { 1, 2, 3 })
  fails(t, function() return pg.faulty_attr(x, { where = 1 }) end,
        "faulty_attr has no attribute 'wher'; it has: where, factor")
  fails(t, function() return pg.faulty_attr(x, { where = 2 }) end,
        "faulty_attr has no attribute 'were'; it has: where, factor")
  fails(t, function() return pg.faulty_attr(x, { where = 3 }) end,
        "faulty_attr has no attribute 'here'; it has: where, factor")
  fails(t, function() return pg.faulty_attr(x, { where = 4 }) end, "faulty_given has no attribute 'axis'; it has none")
end)

test("a name that is not found may be that of a plugin that cannot be used", function(t)
  local reason = "plugin 'broken' is unavailable: was built for major version 2"
  t.raises(function() return pg.faulty_nothing_like_this end, plain(reason))
  t.raises(function() return pg.nn.NothingLikeThis end, plain(reason))
  t.raises(function() return pg.optim.NothingLikeThis end, plain(reason))
end)

test("what an operator writes into has a place for every element", function(t)
  local counts = pg.zeros { 4 }
  t.equal(pg.faulty_count(counts):item(), 4)
  t.equal(pg.faulty_count(counts[{ { 1, 4, 2 } }]):item(), 2)
  t.equal(counts, { 2, 1, 2, 1 })
  local one = pg.zeros { 1 }
  t.raises(function() return pg.faulty_count(one:expand(3)) end, "faulty_count: cannot write into an expanded tensor")
  t.equal(one, { 0 })
end)

test("a kernel for what is no operator is told of", function(t)
  for _, plugin in ipairs(pg.plugins { load = true }) do
    if plugin.name == "faulty" then t.equal(plugin.unknown_ops, { "faulty_resullt" }) end
    if plugin.name == "cpu" then t.equal(plugin.unknown_ops, nil) end
  end
end)

test("kernels that come late serve shapes seen before", function(t)
  t.equal(pg.faulty_late(x), { 2, 4, 6 })
  for _, plugin in ipairs(pg.plugins()) do
    if plugin.name == "faulty" then pg.load_plugin((plugin.path:gsub("faulty%.so$", "late/faulty_late.so"))) end
  end
  t.equal(pg.faulty_late(x), { 42, 42, 42 })
  t.equal(pg.faulty_late(pg.ones { 5 }), { 42, 42, 42, 42, 42 })
end)

test("a layer with an operator that is no part of a plan is built at every call of a compiled function", function(t)
  local layer, one = pg.nn.FaultyCounted {}, pg.tensor { -2 }
  local function count() return pg.faulty_calls(one):item() end
  local f = pg.compile(function(v) return layer(v) end)
  local before = count()
  for _ = 1, 8 do t.equal(f(one), { 0 }) end
  t.equal(count() - before, 9)
  t.ok(f:stats().hits > 0, f:explain())
end)

test("an update that computes with its step's number cannot be recorded once for all steps", function(t)
  local function trained(opt, w)
    local g = pg.graph(function(g)
      local v = g:variable { "v", init = w }
      return { train = opt:minimize((v * v):sum()), v = v }
    end)
    return pg.Session { g }
  end
  for _, first in ipairs { false, true } do
    local problem = t.raises(function() trained(pg.optim.FaultySteps { lr = 0.1, first = first }, x) end,
                             "FaultySteps: the plugin's update depends on the number of the step")
    t.equal(problem.code, "not_supported")
  end
  local w = pg.tensor { 1, 2, 3 }
  w.requires_grad = true
  local eager = pg.optim.FaultySteps { { w }, lr = 0.1 }
  for _ = 1, 2 do
    eager:zero_grad();
    (w * w):sum():backward()
    eager:step()
  end
  t.ok(pg.allclose(w, x * (0.8 * 0.9)))
  local s = trained(pg.optim.FaultyConstant { lr = 0.25 }, x)
  s:run "train"
  t.equal(s:run { "train", "v" }.v, x * 0.25)
end)
