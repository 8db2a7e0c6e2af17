-- SPDX-License-Identifier: Apache-2.0
-- Runs of graphs whose nodes are joined into one kernel: the bits of runs that join nothing, what is never given
-- memory, and what is left alone. PERIGEE_GRAPHS says how many random graphs; PERIGEE_GRAPH runs that one.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local fuses = require "fusing"()
local generator = require("draws").generator -- not of numbers that are compared

local text = require "bits"

-- Runs a graph with and without joining, with the same numbers drawn, and demands the same results, errors and
-- variables. Answers the session that joins, and the plan of its last run.
local function compare(name, g, fetches, feeds, runs)
  local joins, apart = pg.Session { g }, pg.Session { g, fuse = false }
  local plan
  for i = 1, runs or 4 do
    local fed = feeds(i)
    local seen = {}
    for k, s in ipairs { joins, apart } do
      pg.manual_seed(i)
      local ok, r = pcall(s.run, s, fetches, fed)
      if k == 1 then plan = s:plan() end
      local parts = {}
      for _, f in ipairs(fetches) do parts[#parts + 1] = ok and text(r[f]) or tostring(r) end
      local state = s:state()
      local names = {}
      for n in pairs(state) do names[#names + 1] = n end
      table.sort(names)
      for _, n in ipairs(names) do if pg.is_tensor(state[n]) then parts[#parts + 1] = n .. " " .. text(state[n]) end end
      seen[k] = table.concat(parts, "\n")
    end
    if seen[1] ~= seen[2] then
      error(("%s, run %d:\n%s\n-- instead of\n%s\n%s"):format(name, i, seen[1]:sub(1, 2000), seen[2]:sub(1, 2000),
                                                              plan), 0)
    end
  end
  return joins, plan
end

local function counts(plan)
  local steps, kernels = plan:match "^(%d+) steps: (%d+) kernels"
  return tonumber(steps), tonumber(kernels), tonumber(plan:match "%((%d+) of several steps%)" or 0)
end

test("a chain is one kernel, and what lies between has no memory", function(t)
  local g = pg.graph(function(g)
    local x, y = g:placeholder { "x", shape = { 50, 70 } }, g:placeholder { "y", shape = { 70 } }
    local a = (x * 2 + y):relu() - 0.5
    return { z = (a * a):abs():sqrt():minimum(y):neg() }
  end)
  local _, plan = compare("chain", g, { "z" }, function() return { x = pg.randn { 50, 70 }, y = pg.randn { 70 } } end)
  local steps, kernels, regions = counts(plan)
  t.equal(steps, 9, plan)
  if not fuses then return t.equal({ kernels, regions }, { steps, 0 }, plan) end
  t.equal({ kernels, regions }, { 1, 1 }, plan)
  t.ok(plan:find("memory 0 bytes for 0 values", 1, true), plan)
  t.ok(plan:find("within step 9", 1, true) and plan:find("as one kernel of 9 steps by", 1, true), plan)
end)

test("nothing is joined where it is not wanted", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 30 } }
    return { y = (x * 2 + 1):exp():neg() }
  end)
  local s = pg.Session { g, fuse = false }
  for _ = 1, 3 do s:run("y", { x = pg.randn { 30 } }) end
  local steps, kernels, regions = counts(s:plan())
  t.equal({ kernels, regions }, { steps, 0 })
  t.raises(function() pg.Session { g, fuse = 1 } end, "fuse")
end)

test("what is fetched on the way is made", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 6, 5 } }
    local a = x * 3 + 1
    local b = a:exp()
    return { a = a, b = b, c = (b - a):relu() * 0.5, view = a:t(), row = b[2] }
  end)
  local fetches = { "a", "b", "c", "view", "row" }
  local _, plan = compare("fetched", g, fetches, function() return { x = pg.randn { 6, 5 } } end)
  if fuses then t.equal(select(3, counts(plan)), 1, plan) end
  compare("two", g, { "c", "row" }, function() return { x = pg.randn { 6, 5 } } end)
  compare("a view", g, { "view" }, function() return { x = pg.randn { 6, 5 } } end)
end)

test("other sizes are joined anew", function()
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 4 } }
    local h = ((x + 1) * 2):relu()
    return { y = (h - h:mean { axis = 1, keepdim = true }):exp(), z = h:sum() }
  end)
  local sizes = { 3, 3, 3, 7, 7, 0, 0, 0, 3, 1, 1 }
  compare("sizes", g, { "y", "z" }, function(i) return { x = pg.randn { sizes[i], 4 } } end, #sizes)
end)

test("feeds in another order of axes", function()
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 5, 5 } }
    return { y = ((x + 1) * 2):tanh() * x }
  end)
  compare("strides", g, { "y" }, function(i)
    local x = pg.randn { 5, 5 }
    return { x = i % 3 == 0 and x:t() or i % 4 == 0 and pg.randn { 5 }:expand(5, 5) or x }
  end, 12)
end)

test("variables that are read and written on the way", function()
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 8 } }
    local w, m = g:variable { "w", shape = { 8 } }, g:variable { "m", shape = { 8 }, init = "ones" }
    local before = (w * 2 + x):relu()
    local h = (before + m):exp():neg()
    local u = m:mul_(0.9):add_(h * 0.1)
    local v = w:add_((u - before) * 0.01)
    return { h = h, v = v, after = (v + w):square() }
  end)
  compare("written", g, { "h", "v", "after" }, function() return { x = pg.randn { 8 } } end, 6)
end)

test("a value that is written where it lies is read before that", function()
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 16 } }
    local a = x * 2
    local b = a + 1 -- joined with what comes last, but a changes in between
    a:mul_(3)
    local c = b:exp() + a
    a[2]:zero_()
    return { c = c, d = (c * a):neg() + b }
  end)
  compare("in place", g, { "c", "d" }, function() return { x = pg.randn { 16 } } end, 5)
end)

test("bodies of branches and loops", function()
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 4 } }
    local looped = pg.while_loop {
      state = { i = pg.tensor(0), s = x }, cond = function(v) return v.i:lt(5) end,
      body = function(v) return { i = v.i + 1, s = ((v.s * 0.5 + 1):tanh() - 0.25):abs() } end,
    }
    local c = pg.cond(x:sum():gt(0), function() return (x * 2 + 1):relu():neg() end, function() return x - 1 end)
    return { i = looped.i, s = looped.s, c = (c + looped.s):exp() * 2 }
  end)
  compare("bodies", g, { "i", "s", "c" }, function() return { x = pg.randn { 4 } } end, 6)
end)

test("an error in the middle leaves variables as they were, and the next run works", function(t)
  if t.device and t.device ~= "cpu" then t.skip("there the run has succeeded before the index is looked at") end
  local g = pg.graph(function(g)
    local x, i = g:placeholder { "x", shape = { 6 } }, g:placeholder { "i", shape = { 1 }, dtype = "int64" }
    local w = g:variable { "w", shape = { 6 } }
    local h = (x * 2 + w):relu()
    local picked = h:index_select(1, i)
    return { u = w:add_(h * 0.5), y = (picked + h):exp():neg() }
  end)
  compare("error", g, { "u", "y" }, function(i)
    return { x = pg.randn { 6 }, i = pg.tensor({ i == 4 and 9 or 2 }, { dtype = "int64" }) }
  end, 7)
end)

test("lines are joined with what makes and reads them", function(t)
  local g = pg.graph(function(g)
    local x, m = g:placeholder { "x", shape = { 512, 512 } }, g:placeholder { "m", shape = { 512, 512 } }
    return { y = ((x * 0.125 + m):softmax(-1) * m):relu() }
  end)
  local _, plan = compare("lines", g, { "y" }, function()
    return { x = pg.randn { 512, 512 }, m = pg.randn { 512, 512 } }
  end)
  if fuses and pg.device() == "cpu" then t.equal(select(2, counts(plan)), 1, plan) end
end)

test("layers and gradients", function(t)
  local nn = pg.nn
  local model = nn.Sequential { nn.Linear { 8, 16 }, nn.GELU {}, nn.LayerNorm { 16 }, nn.Linear { 16, 4 } }
  local g = pg.graph(function(g)
    local x, y = g:placeholder { "x", shape = { "n", 8 } }, g:placeholder { "y", shape = { "n", 4 } }
    local out = model(x)
    local loss = ((out - y):abs() + 1):log():mean()
    return { loss = loss, out = out, train = pg.optim.Adam { model:parameters(), lr = 0.01 }:minimize(loss) }
  end)
  local _, plan = compare("training", g, { "loss", "out" }, function(i)
    return { x = pg.randn { i < 5 and 6 or 9, 8 }, y = pg.randn { i < 5 and 6 or 9, 4 } }
  end, 8)
  if fuses then t.ok(select(3, counts(plan)) > 0, plan) end
  local one, other = pg.Session { g }, pg.Session { g, fuse = false }
  for i = 1, 6 do
    local fed = { x = pg.full({ 6, 8 }, i / 7), y = pg.full({ 6, 4 }, -i / 5) }
    one:run("train", fed)
    other:run("train", fed)
    t.equal(text(one:run("out", fed)), text(other:run("out", fed)))
  end
end)

test("anomalies are told of by the node that makes them", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 3 } }
    return { y = ((x - 1):log() * 2 + 1):neg() }
  end)
  local s = pg.Session { g }
  local good, bad = pg.tensor { 2, 3, 4 }, pg.tensor { 0, 3, 4 }
  for _ = 1, 3 do s:run("y", { x = good }) end
  local y = s:run("y", { x = bad }):totable()
  t.ok(y[1] ~= y[1] and y[2] == y[2], y[1])
  pg.detect_anomaly(function()
    t.raises(function() s:run("y", { x = bad }) end, "log")
  end)
  t.equal(text(s:run("y", { x = good })), text(pg.Session { g, fuse = false }:run("y", { x = good })))
end)

-- ---- random graphs ----

local unary = { "relu", "tanh", "sigmoid", "exp", "neg", "abs", "square", "clone", "contiguous" }
local binary = { "add", "sub", "mul", "maximum", "div", "minimum" }
local dtypes = { "float64", "bfloat16", "float16" }
local N = 4

local instructions = {
  function(draw, s) s.push(s.pick()[unary[draw(#unary)]](s.pick())) end,
  function(draw, s) local x = s.pick() s.push(x[unary[draw(#unary)]](x)) end,
  function(draw, s) local x = s.pick() s.push(x[unary[draw(#unary)]](x)) end,
  function(draw, s) local x, y = s.pick(), s.pick() s.push(x[binary[draw(#binary)]](x, y)) end,
  function(draw, s) local x, y = s.pick(), s.pick() s.push(x[binary[draw(#binary)]](x, y)) end,
  function(draw, s) s.push(s.pick() * draw(5) + 0.5) end,
  function(_, s) local x = s.pick() s.push(x:matmul(x:t()):tanh()) end,
  function(draw, s) local x = s.pick() s.push(x - x:sum(draw(2), true) * 0.1) end,
  function(_, s) s.push(s.pick():t()) end,
  function(_, s) s.push(s.pick():t():contiguous():reshape { N, N }) end,
  function(draw, s) s.push(s.pick() + s.pick()[draw(N)]) end,
  function(_, s) s.push(s.pick():softmax(-1)) end,
  function(draw, s) s.push(s.pick():to(dtypes[draw(#dtypes)]):exp():neg():to "float32") end,
  function(_, s) s.push(pg.cat({ s.pick()[{ { 1, 2 } }], s.pick()[{ { 3, N } }] }, 1)) end,
  function(draw, s) s.written()[({ "add_", "mul_", "sub_" })[draw(3)]](s.last, s.pick() * 0.5) end,
  function(draw, s) s.written()[draw(N)]:mul_(0.5) end,
  function(_, s) s.push(pg.dropout(s.pick(), 0.3, true)) end,
  function(draw, s) s.push(pg.ones_like(s.pick()) * draw(4)) end,
  function(_, s) s.push(s.pick():sum { axis = 1 }:expand_as(s.pick())) end,
  function(_, s)
    local x, y = s.pick(), s.pick()
    s.push(pg.cond(x:sum():gt(0), function() return (y * 2 + x):tanh() end, function() return y end))
  end,
}

local function random_graph(seed)
  local draw = generator(seed)
  local fetches = {}
  local g = pg.graph(function(g)
    local w = g:variable { "w", shape = { N, N }, init = "ones" }
    local values = { g:placeholder { "x", shape = { N, N } }, g:placeholder { "y", shape = { N, N } }, w * 1 }
    local s = {}
    function s.pick() return values[draw(#values)] end
    function s.push(x) values[#values + 1] = x:clamp(-4, 4) end
    -- What may be written into: no placeholder; the variable now and then.
    function s.written()
      s.last = draw(4) == 1 and w or #values > 3 and values[3 + draw(#values - 3)] or w
      return s.last
    end
    for _ = 1, 5 + draw(20) do instructions[draw(#instructions)](draw, s) end
    local out = {}
    for k = 1, draw(3) do
      local name = "out" .. k
      out[name], fetches[k] = values[#values + 1 - draw(math.min(#values, 5))] + 0, name
    end
    if draw(2) == 1 then out.last, fetches[#fetches + 1] = values[#values], "last" end
    return out
  end)
  return g, fetches
end

test("random graphs give the bits of runs that join nothing", function(t)
  local one = tonumber(os.getenv "PERIGEE_GRAPH")
  local joined, graphs = 0, 0
  for seed = one or 1, one or tonumber(os.getenv "PERIGEE_GRAPHS") or 300 do
    local made, g, fetches = pcall(random_graph, seed)
    if made then
      graphs = graphs + 1
      local _, plan = compare("graph " .. seed, g, fetches, function(i)
        pg.manual_seed(100 + i)
        local x = pg.randn { N, N }
        return { x = i == 3 and x:t() or x, y = pg.randn { N, N } }
      end, 6)
      joined = joined + select(3, counts(plan))
    elseif one then
      error(g, 0)
    end
  end
  if one then return end
  t.ok(graphs > 100, graphs .. " graphs")
  if fuses then t.ok(joined > 100, joined .. " regions") end
end)
