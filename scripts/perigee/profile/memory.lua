-- SPDX-License-Identifier: Apache-2.0
-- Memory of each device over time, and who held it when most was in use.

-- Visits every change of a device's memory with the bytes that are live then, beginning with `live`.
local function replay(records, device, live, visit)
  for _, r in ipairs(records) do
    if r.block and r.device == device then
      live = live + (r.kind == "alloc" and r.bytes or -r.bytes)
      visit(r, live)
    end
  end
end

local function holder_name(r)
  return ("%s%s"):format(r.name or "?", r.origin and " at " .. r.origin or r.layer and " in " .. r.layer or "")
end

-- Who held what was taken in the profile when most of a device's memory was in use.
local function holders_at(records, device, peak)
  local held, sums = {}, {}
  for _, r in ipairs(records) do
    if r.block and r.device == device then
      held[r.block] = r.kind == "alloc" and r or nil
      if r == peak then break end
    end
  end
  for _, r in pairs(held) do
    local name = holder_name(r)
    sums[name] = sums[name] or { name = name, bytes = 0, count = 0 }
    sums[name].bytes, sums[name].count = sums[name].bytes + r.bytes, sums[name].count + 1
  end
  local list = {}
  for _, sum in pairs(sums) do list[#list + 1] = sum end
  table.sort(list, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.name < b.name
  end)
  return list
end

local POINTS = 240 -- of a curve

-- The most bytes that were in use in each of equal parts of the time.
local function curve_of(records, device, before, seconds)
  local points, part, live = {}, math.max(seconds, 1e-9) / POINTS, before
  for i = 1, POINTS do points[i] = { at = (i - 1) * part, bytes = 0 } end
  local reached = 1
  points[1].bytes = live
  local function go_to(i)
    while reached < i do
      reached = reached + 1
      points[reached].bytes = live
    end
  end
  replay(records, device, before, function(r, bytes)
    local i = math.max(1, math.min(POINTS, math.floor(r.from / part) + 1))
    go_to(i)
    live = bytes
    points[reached].bytes = math.max(points[reached].bytes, bytes)
  end)
  go_to(POINTS)
  return points
end

---@class perigee.ProfileMemory
---@field peak integer the most bytes of tensors that were live at one time
---@field at number when that was, in seconds
---@field before integer bytes that were live when the profile began
---@field holders {name: string, bytes: integer, count: integer}[] of what was taken in the profile, at the peak
---@field curve {at: number, bytes: integer}[] the most that was live in each of equal parts of the time

---By device, of those whose memory changed.
---@param records table[]
---@param live table<integer, {name: string, bytes: integer}>
---@param seconds number the whole time
---@return table<string, perigee.ProfileMemory>
return function(records, live, seconds)
  local memory = {}
  for device, start in pairs(live) do
    local peak, at, changed = start.bytes, nil, nil
    replay(records, device, start.bytes, function(r, bytes)
      changed = changed or r
      if bytes > peak then peak, at = bytes, r end
    end)
    if changed then
      memory[start.name] = { peak = peak, at = at and at.from or 0, before = start.bytes,
                             holders = at and holders_at(records, device, at) or {},
                             curve = curve_of(records, device, start.bytes, seconds) }
    end
  end
  return memory
end
