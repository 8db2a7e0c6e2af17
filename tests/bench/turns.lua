-- SPDX-License-Identifier: Apache-2.0
-- Items timed beside another program's of the same names, by turns: what order.lua and recurrent.lua print.

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

-- Milliseconds a call, the best of some behind the first.
local function measure(fn, seconds)
  fn()
  local best, begin = math.huge, os.clock()
  while os.clock() - begin < seconds do
    local start = os.clock()
    fn()
    best = math.min(best, os.clock() - start)
  end
  return best * 1e3
end

-- What the other program prints: a line an item, its name and milliseconds with a tab between.
local function theirs(command)
  local pipe = assert(io.popen(command .. " 2>/dev/null"))
  local times = {}
  for line in pipe:lines() do
    local name, ms = line:match("^(.*)\t([%d.]+)$")
    if name then times[name] = tonumber(ms) end
  end
  pipe:close()
  return times
end

---Prints a row an item: the median processor time of each side in ms, and the median of the rounds' ratios (below 1:
---less).
---@param items {[1]: string, [2]: function}[]
---@param o {command: string, rounds: integer, seconds: number} seconds for an item in a round
return function(items, o)
  local ours_all, theirs_all, ratios, width = {}, {}, {}, 0
  for k, item in ipairs(items) do
    ours_all[k], theirs_all[k], ratios[k] = {}, {}, {}
    width = math.max(width, #item[1])
  end
  for _ = 1, o.rounds do
    local other = theirs(o.command)
    for k, item in ipairs(items) do
      local mine, their = measure(item[2], o.seconds), other[item[1]]
      table.insert(ours_all[k], mine)
      if their then
        table.insert(theirs_all[k], their)
        table.insert(ratios[k], mine / their)
      end
    end
  end
  local name = "%-" .. width .. "s"
  print((name .. " %10s %10s %7s"):format("", "Perigee", "PyTorch", "ratio"))
  for k, item in ipairs(items) do
    local their, ratio = median(theirs_all[k]), median(ratios[k])
    print((name .. " %10.3f %10s %7s"):format(item[1], median(ours_all[k]), their and ("%.3f"):format(their) or "-",
                                              ratio and ("%.2f"):format(ratio) or "-"))
  end
end
