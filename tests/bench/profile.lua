-- SPDX-License-Identifier: Apache-2.0
-- What a profile costs: nanoseconds an operator more, of a small one called from one line of a script, from several, in
-- a layer that is written in Lua, and without lines. perigee tests/bench/profile.lua [PYTHON [ROUNDS]]. Each with the
-- profile on and off by turns, one thread; medians of the rounds, and the least and the most of them. The last row is
-- the load that is all that a place pays while no profile is under way. Where PYTHON has torch its profiler takes turns
-- with this one: with shapes beside the row without lines, with shapes and stacks beside the first.

local pg = require "perigee"
local native = require "perigee.native"
pg.config.set { threads = 1 }

local python, rounds, CALLS = arg[1] ~= "" and arg[1], tonumber(arg[2] or 9), 200000
local folder = arg[0]:match("^(.*)/[^/]*$") or "."
local x = pg.rand { 4 }
local y

local function one_line()
  for _ = 1, CALLS do y = x + 1 end
end
local function four_lines()
  for _ = 1, CALLS / 4 do
    y = x + 1
    y = y * 2
    y = y - x
    y = y:neg()
  end
end
local Net = pg.nn.class "Net"
function Net:init() self.scale = pg.nn.Parameter(pg.ones { 4 }) end
function Net:forward(v)
  v = v * 2
  v = v + 1
  return v
end
local net = Net {}
local function in_layer()
  for _ = 1, CALLS / 2 do y = net(x) end
end

local function processor_time(fn)
  collectgarbage() -- a report of a quarter of a million records leaves much behind
  local begin = os.clock()
  fn()
  return os.clock() - begin
end

-- Seconds of fn alone inside of a profile: what begins and ends it is left out.
local function profiled(fn, options)
  local seconds
  options[1] = function() seconds = processor_time(fn) end
  pg.profile(options)
  return seconds
end

local function quantile(list, q) return list[math.max(1, math.ceil(q * #list))] end

-- What PyTorch's profiler costs, by name; nothing where there is none.
local function theirs()
  local found = {}
  if not python then return found end
  local pipe = assert(io.popen(("%s %s/profile_torch.py 2>/dev/null"):format(python, folder)))
  for line in pipe:lines() do
    local name, ns = line:match "^(%a+)\t([%d.]+)$"
    if name then found[name] = tonumber(ns) end
  end
  pipe:close()
  return found
end

local function row(name, fn, options, peer)
  options.roofline, options.capacity = false, 2 ^ 18
  fn()
  profiled(fn, options)
  local costs, plain, ratios = {}, {}, {}
  for i = 1, rounds do
    local off = processor_time(fn)
    local on = profiled(fn, options)
    costs[i], plain[i] = (on - off) / CALLS * 1e9, off / CALLS * 1e9
    local other = peer and theirs()[peer]
    if other then ratios[#ratios + 1] = costs[i] / other end
  end
  table.sort(costs)
  table.sort(plain)
  table.sort(ratios)
  print(("%-22s %10.0f %10.0f %10.0f %10.0f %10s"):format(name, quantile(plain, 0.5), quantile(costs, 0.5), costs[1],
        costs[#costs], ratios[1] and ("%.3f"):format(quantile(ratios, 0.5)) or "-"))
end

print(("%-22s %10s %10s %10s %10s %10s"):format("ns an operator", "off", "more on", "least", "most", "of torch's"))
row("one line", one_line, {}, "stacks")
row("four lines", four_lines, {})
row("in a layer of Lua", in_layer, {})
row("without lines", one_line, { origins = false }, "shapes")

-- Off: a place asks whether there is a profile.
local ask, count = native.profile.now, 1e7
local function asking() for _ = 1, count do ask() end end
local function looping() for _ = 1, count do end end -- luacheck: ignore 542
asking()
local least = math.huge
for _ = 1, rounds do least = math.min(least, processor_time(asking) - processor_time(looping)) end
print(("off, a call that asks whether a profile is under way: %.2f ns, the call through FFI included"):format(
      least / count * 1e9))
