-- SPDX-License-Identifier: Apache-2.0
-- Losses, loops that leave garbage, tiny tensors and other corners against PyTorch: perigee tests/bench/corners.lua
-- [PYTHON [ROUNDS [PATTERN]]]. The two take turns, with one thread each, in processes of their own; a row is an item
-- whose name has PATTERN in it, the median processor time of each side in microseconds a call, and the median of the
-- rounds' ratios (below 1: less) with the least and the most. Collections that a loop causes count.
--
-- An item is a row of corners_items.lua and one of the same name in corners_torch.py.

local folder = arg[0]:match("^(.*)/[^/]*$") or "."
local items = dofile(folder .. "/corners_items.lua")

if arg[1] == "--own" then -- one side of a round
  local pg = require "perigee"
  pg.config.set { threads = 1 }
  pg.manual_seed(1)
  for _, item in ipairs(items) do
    if not arg[2] or item[1]:find(arg[2], 1, true) then
      local fn, calls = item[2](pg), 1
      local function run(n) for _ = 1, n do fn() end end
      collectgarbage()
      local start = os.clock()
      repeat -- until all memory that is needed between two collections has been used before
        local fresh, begin = pg.memory.stats("cpu").device_allocations, os.clock()
        repeat
          run(calls)
          local passed = os.clock() - begin
          if passed < 0.02 then calls = calls * 2 end
        until passed > 0.1
        local passed, grows = os.clock() - start, pg.memory.stats("cpu").device_allocations ~= fresh
      until passed > 3 or (passed > 0.3 and not grows)
      local count, begin = 0, os.clock()
      repeat
        run(calls)
        count = count + calls
      until os.clock() - begin > 0.3
      print(("%s\t%.4f"):format(item[1], (os.clock() - begin) / count * 1e6))
      io.stdout:flush()
      fn = nil
      collectgarbage()
    end
  end
  return
end

local python, rounds, pattern = arg[1] or "python3", tonumber(arg[2] or 5), arg[3] or ""
local own = arg[-1] or "perigee"

local function quantile(list, q)
  table.sort(list)
  return list[math.floor((#list - 1) * q + 1.5)]
end

local function times(command)
  local pipe, result = assert(io.popen(command)), {}
  for line in pipe:lines() do
    local name, time = line:match("^(.*)\t([%d.]+)$")
    if name then result[name] = tonumber(time) end
  end
  pipe:close()
  return result
end

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local ours_all, theirs_all, ratios = {}, {}, {}
for _, item in ipairs(items) do ours_all[item[1]], theirs_all[item[1]], ratios[item[1]] = {}, {}, {} end
for _ = 1, rounds do
  -- Freed memory stays with PyTorch's process: it is fastest so.
  local their = times("MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824 " ..
    ("%s %s %s 2>/dev/null"):format(quote(python), quote(folder .. "/corners_torch.py"), quote(pattern)))
  local mine = times(("%s %s --own %s"):format(quote(own), quote(arg[0]), quote(pattern)))
  for name, time in pairs(mine) do
    table.insert(ours_all[name], time)
    if their[name] then
      table.insert(theirs_all[name], their[name])
      table.insert(ratios[name], time / their[name])
    end
  end
end
print(("%-36s %10s %10s  %s"):format("microseconds a call", "Perigee", "PyTorch", "ratio"))
for _, item in ipairs(items) do
  local name = item[1]
  local a, b, r = ours_all[name], theirs_all[name], ratios[name]
  if #a > 0 then
    print(("%-36s %10.2f %10s  %s"):format(name, quantile(a, 0.5), #b > 0 and ("%.2f"):format(quantile(b, 0.5)) or "-",
      #r > 0 and ("%.2f (%.2f to %.2f)"):format(quantile(r, 0.5), quantile(r, 0), quantile(r, 1)) or "-"))
  end
end
