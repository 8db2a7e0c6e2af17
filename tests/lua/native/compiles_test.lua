-- SPDX-License-Identifier: Apache-2.0
-- Loops that call operators compile, whatever form their arguments have: nothing that a call does keeps LuaJIT from it.

local pg = require "perigee"

local x = pg.rand { 4, 4 }
local rows = pg.tensor({ 1, 0 }, { dtype = "int64" })
local function add_one(v) return v + 1 end
local function add(v, w) return v + w end
local function add_to_x() return x + 1 end
local nn = pg.nn
local layer = nn.Linear { 4, 4 }
local sequence = nn.Sequential { nn.Linear { 4, 4 }, nn.ReLU {}, nn.LayerNorm { 4 }, nn.Tanh {} }

local calls = {
  ["of -x"] = function() return -x end,
  ["of x:sort"] = function() return x:sort(2) end,
  ["of x:topk"] = function() return x:topk(2) end,
  ["of x:argmax"] = function() return x:argmax(2) end,
  ["of x:clamp"] = function() return x:clamp(0, 1) end,
  ["of x:index_select"] = function() return x:index_select(1, rows) end,
  ["of pg.zeros with a dtype"] = function() return pg.zeros({ 2, 2 }, { dtype = "float64" }) end,
  ["with a number"] = function() return x + 1 end,
  ["without arguments"] = function() return x:relu() end,
  ["with an axis"] = function() return x:sum(1) end,
  ["with a list"] = function() return x:reshape { 2, 8 } end,
  ["with a list of numbers apart"] = function() return x:permute(2, 1) end,
  ["with options"] = function() return x:sum { axis = 1, keepdim = true } end,
  ["with options, one of them a list"] = function() return x:sum { axis = { 1, 2 } } end,
  ["of x.shape"] = function() return x.shape end,
  ["of x:to"] = function() return x:to "float64" end,
  ["of x:zero_"] = function() return x:zero_() end,
  ["of x:fill_"] = function() return x:fill_(2) end,
  ["of x:max"] = function() return x:max(2) end,
  ["of x:max over all"] = function() return x:max() end,
  ["of x:transpose"] = function() return x:transpose(1, 2) end,
  ["of a compiled function"] = (function()
    local step = pg.compile(function(v) return v + 1 end)
    return function() return step(x) end
  end)(),
  ["of a compiled function without arguments"] = pg.compile(function() return x + 1 end),
  ["of a compiled function of two arguments"] = (function()
    local step = pg.compile(function(v, w) return v + w end)
    return function() return step(x, x) end
  end)(),
  ["of a frozen function"] = (function()
    local step = pg.compile(function(v) return v + 1 end, { frozen = true })
    return function() return step(x) end
  end)(),
  ["under no_grad"] = function() return pg.no_grad(add_one, x) end,
  ["within a scope"] = function() return pg.no_grad(pg.scope, add_one, x) end,
  ["under no_grad, with two arguments"] = function() return pg.no_grad(add, x, x) end,
  ["within a scope with two arguments"] = function() return pg.scope(add, x, x) end,
  ["within a scope without arguments"] = function() return pg.scope(add_to_x) end,
  ["of a layer"] = function() return layer(x) end,
  ["of layers in sequence"] = function() return sequence(x) end,
  ["of pg.zeros"] = function() return pg.zeros { 2, 2, 2 } end,
  ["of x[1]"] = function() return x[1] end,
}

-- Whether LuaJIT compiles a loop of such calls, and why it gave up where not. Loops stay: the next one has another
-- address, by which its counter is found.
local loops = {}
local function compiles_once(call)
  local loop = assert(loadstring "local call = ... for _ = 1, 400 do call() end")
  loops[#loops + 1] = loop
  local started, whole, aborted = {}, false, {}
  local function watch(what, trace, fn, _, code, reason)
    if what == "start" then started[trace] = fn
    elseif what == "stop" and started[trace] == loop then whole = true
    elseif what == "abort" and started[trace] == loop then aborted[#aborted + 1] = tostring(reason or code) end
  end
  jit.flush() -- what other tests' traces make of the functions on the way
  jit.opt.start "hotloop=56" -- LuaJIT's default: all counters start anew, penalties of others that share one too
  jit.attach(watch, "trace")
  local ok, problem = pcall(loop, call)
  jit.attach(watch)
  if not ok then error(problem, 0) end
  return whole, table.concat(aborted, ", ")
end

-- A counter is shared by whatever has its place among 64. What keeps a loop from being compiled does so always.
local function compiles(call)
  local whole, reasons
  for _ = 1, 10 do
    whole, reasons = compiles_once(call)
    if whole then break end
  end
  return whole, reasons
end

for name, call in pairs(calls) do
  test("a loop of calls " .. name, function(t)
    if not jit.status() then t.skip "LuaJIT's compiler is off" end
    local whole, reasons = compiles(call)
    t.ok(whole, "given up for reasons " .. reasons)
  end)
end

test("calls that code which is not compiled has made a hundred thousand times", function(t)
  if not jit.status() then t.skip "LuaJIT's compiler is off" end
  local function call() return pg.is_tensor(x + 1) and x.shape and x:sum { axis = 1 } end
  local function never()
    for _ = 1, 100000 do local _ = pg.is_tensor(x + 1) and x.shape and x:sum { axis = 1 } end
  end
  jit.off(never)
  never()
  local whole, reasons = compiles(call)
  t.ok(whole, "given up for reasons " .. reasons)
end)
