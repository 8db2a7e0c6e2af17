-- SPDX-License-Identifier: Apache-2.0
-- How LuaJIT compiles, for the program `perigee`: a host of its own may choose otherwise.
--
-- LuaJIT compiles a loop twice in a row, the second time without what stays the same, which has to be kept somewhere
-- all the while. Of a loop that calls a few layers that is more than it has room for (255 slots), and such a loop was
-- left to the interpreter. It is compiled as it stands instead.

local opt = require "jit.opt"

local M = {}

local REASONS = { ["too many spill slots"] = true, ["too many snapshots"] = true, ["trace too long"] = true,
                  ["too many PHIs"] = true, ["NYI: PHI shuffling too complex"] = true }

-- By number, which differs between versions of LuaJIT: its own module knows them. Without that, loops are left.
local numbers
local function is_overflow(code)
  if not numbers then
    local ok, names = pcall(require, "jit.vmdef")
    numbers = {}
    for number, text in pairs(ok and names.traceerr or {}) do
      numbers[number] = REASONS[text] or false
    end
  end
  return numbers[code] or false
end

local large = setmetatable({}, { __mode = "k" }) -- by function: where a trace began that was too large
local started, place -- what is being compiled
local as_it_stands = false

local function are_loops_optimized()
  local status = { jit.status() }
  for i = 2, #status do if status[i] == "loop" then return true end end
  return false
end

local function watch(what, _, fn, pc, code)
  if what == "start" then
    started, place = fn, pc
    local places = large[fn]
    if places and places[pc] and are_loops_optimized() then
      as_it_stands = true
      opt.start "-loop"
    end
  elseif what == "stop" or what == "abort" then
    if as_it_stands then
      as_it_stands = false
      opt.start "+loop"
    elseif what == "abort" and fn == started and is_overflow(code) then -- back where it began: it was seen whole
      large[fn] = large[fn] or {}
      large[fn][place] = true
    end
    started = nil -- it may hold tensors
  end
end

---Before a script runs. Who attaches to "trace" later, as jit.v and jit.dump do, takes the place of what watches here.
function M.prepare()
  -- More room for compiled code than LuaJIT's default of half a megabyte.
  opt.start("maxmcode=32768", "maxtrace=16384", "maxsnap=1000", "maxrecord=16000", "maxirconst=2000", "loopunroll=40")
  jit.attach(watch, "trace")
end

return M
