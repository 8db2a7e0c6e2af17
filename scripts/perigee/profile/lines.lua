-- SPDX-License-Identifier: Apache-2.0
-- Records put in order: by threads and devices, each with what was called inside of it.

local lines = {}

local COPIES = { upload = true, download = true, peer = true }
function lines.is_copy(r) return COPIES[r.kind] or false end

---The records that last, those that began first in front, what encloses others before them; each with `inner` (seconds
---of what it called) and `parent`.
local function nest(list)
  for i, r in ipairs(list) do r.inner, r.order, r.parent = 0, i, nil end
  table.sort(list, function(a, b)
    if a.from ~= b.from then return a.from < b.from end
    if a.to ~= b.to then return a.to > b.to end
    return a.order > b.order -- the outer one ends later
  end)
  local open = {}
  for _, r in ipairs(list) do
    while #open > 0 and open[#open].to < r.to do open[#open] = nil end
    r.parent = open[#open]
    if r.parent then r.parent.inner = r.parent.inner + (r.to - r.from) end
    open[#open + 1] = r
  end
  return list
end

---Records by thread, nested, "script" first; by device, those that devices told of themselves, by their beginnings; and
---those of memory.
---@param records table[]
---@return table<string, table[]> threads
---@return table<integer, table[]> devices
---@return string[] names of the threads in order
function lines.sort(records)
  local threads, devices, names = { script = {} }, {}, { "script" }
  for _, r in ipairs(records) do
    if r.thread and not r.block then -- of memory there is no line
      if not threads[r.thread] then threads[r.thread], names[#names + 1] = {}, r.thread end
      table.insert(threads[r.thread], r)
    elseif not r.block then
      devices[r.device] = devices[r.device] or {}
      table.insert(devices[r.device], r)
    end
  end
  for _, list in pairs(threads) do nest(list) end
  for _, list in pairs(devices) do table.sort(list, function(a, b) return a.from < b.from end) end
  return threads, devices, names
end

---Time in order, without overlaps: { from, to, kind } of the innermost record at each moment, of a nested list.
function lines.innermost(list, kind_of)
  local spans, open, at = {}, {}, 0
  local function go_to(time)
    local top = open[#open]
    if top and time > at then
      local kind = kind_of(top)
      local last = spans[#spans]
      if last and last.kind == kind and last.to >= at then last.to = time
      else spans[#spans + 1] = { from = at, to = time, kind = kind } end
    end
    at = math.max(at, time)
  end
  for _, r in ipairs(list) do
    while #open > 0 and open[#open].to <= r.from do
      go_to(open[#open].to)
      open[#open] = nil
    end
    go_to(r.from)
    open[#open + 1] = r
  end
  while #open > 0 do
    go_to(open[#open].to)
    open[#open] = nil
  end
  return spans
end

---The times that records cover, joined where they overlap: { from, to }.
function lines.union(list)
  local spans = {}
  for _, r in ipairs(list) do
    local last = spans[#spans]
    if last and r.from <= last.to then last.to = math.max(last.to, r.to)
    else spans[#spans + 1] = { from = r.from, to = r.to, after = r } end
    spans[#spans].last = spans[#spans].to == r.to and r or spans[#spans].last or r
  end
  return spans
end

function lines.sum(spans)
  local seconds = 0
  for _, s in ipairs(spans) do seconds = seconds + (s.to - s.from) end
  return seconds
end

---What of `spans` lies outside of `holes`, both in order and without overlaps.
function lines.outside(spans, holes)
  local left, h = {}, 1
  for _, s in ipairs(spans) do
    local from = s.from
    while holes[h] and holes[h].to <= from do h = h + 1 end
    local k = h
    while holes[k] and holes[k].from < s.to do
      if holes[k].from > from then left[#left + 1] = { from = from, to = holes[k].from, kind = s.kind } end
      from = math.max(from, holes[k].to)
      k = k + 1
    end
    if from < s.to then left[#left + 1] = { from = from, to = s.to, kind = s.kind } end
  end
  return left
end

return lines
