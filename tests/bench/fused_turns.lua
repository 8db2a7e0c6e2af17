-- SPDX-License-Identifier: Apache-2.0
-- Rows timed compiled, compiled with fuse=false, and eagerly, by turns with PyTorch's process that has the same rows:
-- of fused_lines.lua and fused_products.lua.

local pg = require "perigee"

local fused = {}

function fused.median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1] or 0 / 0
end

-- Milliseconds of processor time, the least of some calls.
local function measure(fn, calls)
  local best = math.huge
  for _ = 1, calls do
    local begin = os.clock()
    local result = fn()
    best = math.min(best, (os.clock() - begin) * 1e3)
    result:free()
  end
  return best
end

-- What `command` prints: a line a row, its name, milliseconds of an eager call and of torch.compile's.
local function torch_times(command)
  local found = {}
  if not command then return found end
  local pipe = assert(io.popen(command .. " 2>/dev/null"))
  for line in pipe:lines() do
    local name, eager, compiled = line:match "^(.-)\t(%S+)\t(%S+)$"
    if name then found[name] = { tonumber(eager), tonumber(compiled) } end
  end
  pipe:close()
  return found
end

---A row: its name, what it calls three ways with the times of each round behind, PyTorch's times.
function fused.item(name, eager)
  local joined, apart = pg.compile(eager), pg.compile(eager, { fuse = false })
  for _ = 1, 3 do joined():free() apart():free() end
  return { name = name, { joined }, { apart }, { eager }, {}, {}, step = joined }
end

function fused.measure(items, rounds, calls, command)
  for i = 1, rounds do
    local torch = torch_times(command)
    for _, item in ipairs(items) do
      for k = 1, 3 do item[k][i + 1] = measure(item[k][1], calls) end
      local theirs = torch[item.name]
      if theirs then item[4][#item[4] + 1], item[5][#item[5] + 1] = theirs[1], theirs[2] end
    end
  end
end

---Medians of the five times, and the rounds' ratios of the first one to each of the others, sorted.
function fused.results(item, rounds)
  local times, ratios = {}, { {}, {}, {}, {} }
  for i = 1, rounds do
    local mine = item[1][i + 1]
    ratios[1][i], ratios[2][i] = mine / item[2][i + 1], mine / item[3][i + 1]
    ratios[3][i], ratios[4][i] = item[4][i] and mine / item[4][i], item[5][i] and mine / item[5][i]
  end
  for k = 1, 3 do times[k] = fused.median { unpack(item[k], 2) } end
  for k = 4, 5 do times[k] = fused.median { unpack(item[k]) } end
  for _, list in ipairs(ratios) do table.sort(list) end
  return times, ratios
end

return fused
