-- SPDX-License-Identifier: Apache-2.0
-- From records to figures: who called whom, rows by operator, where the time went, memory over time.

local flops = require "perigee.profile.flops"

local IS_COPY = { upload = true, download = true, peer = true }

-- The records that last, those that began first in front, what encloses others before them; each with `inner` (seconds
-- of what it called) and `parent`.
local function nest(records)
  local list = {}
  for _, r in ipairs(records) do
    if not r.block then
      list[#list + 1] = r
      r.inner, r.order = 0, #list
    end
  end
  table.sort(list, function(a, b)
    if a.from ~= b.from then return a.from < b.from end
    if a.to ~= b.to then return a.to > b.to end
    return a.order > b.order -- the outer one ends later
  end)
  local open = {}
  for _, r in ipairs(list) do
    while #open > 0 and open[#open].to < r.to do table.remove(open) end
    r.parent = open[#open]
    if r.parent then r.parent.inner = r.parent.inner + (r.to - r.from) end
    open[#open + 1] = r
  end
  return list
end

-- The nearest thing around a record that is no range.
local function caller(r)
  local p = r.parent
  while p and p.kind == "range" do p = p.parent end
  return p
end

local function row_of(rows, by_name, name)
  local row = by_name[name]
  if not row then
    row = { name = name, calls = 0, total = 0, kernel = 0, bytes = 0, flops = 0 }
    by_name[name], rows[#rows + 1] = row, row
  end
  return row
end

-- An operator's row has its kernels' time too; what it called has rows of its own.
local function count_rows(self, list)
  local rows, by_name = {}, {}
  for _, r in ipairs(list) do
    if r.kind ~= "range" and r.kind ~= "backward" then
      local own, around = r.to - r.from - r.inner, caller(r)
      local part = r.kind == "kernel" and around and around.kind == "op"
      local row = row_of(rows, by_name, part and around.name or r.name)
      row.total = row.total + own
      if not part then row.calls = row.calls + 1 end
      if r.kind == "kernel" then
        row.kernel, row.bytes = row.kernel + (r.to - r.from), row.bytes + r.bytes
        row.flops = row.flops + flops(r.name, r.shapes)
      end
    end
  end
  for _, row in ipairs(rows) do
    row.mean, row.share = row.total / math.max(row.calls, 1), row.total / self.seconds
  end
  table.sort(rows, function(a, b)
    if a.total ~= b.total then return a.total > b.total end
    return a.name < b.name
  end)
  self.rows = rows
end

local function in_input(r)
  local p = r
  while p do
    if p.kind == "range" and p.name == "input" then return true end
    p = p.parent
  end
  return false
end

-- Where the time went. What is made for the input counts as input, whatever it is.
local function count_parts(self, list)
  local parts = { input = 0, copies = 0, kernels = 0, waits = 0, dispatch = 0, script = 0 }
  local noted = 0
  for _, r in ipairs(list) do
    local own = r.to - r.from - r.inner
    if in_input(r) then
      if r.kind == "range" and r.name == "input" and not in_input(r.parent) then
        parts.input, noted = parts.input + (r.to - r.from), noted + (r.to - r.from)
      end
    elseif r.kind ~= "range" then
      local part = IS_COPY[r.kind] and "copies" or r.kind == "kernel" and "kernels" or r.kind == "wait" and
                   (r.parent and IS_COPY[r.parent.kind] and "copies" or "waits") or "dispatch"
      parts[part], noted = parts[part] + own, noted + own
    end
  end
  parts.script = math.max(0, self.seconds - noted)
  self.parts = parts
  self.busy = math.min(1, (parts.kernels + parts.copies + parts.waits) / self.seconds)
end

local GAPS = 3
local function find_gaps(self, list)
  local gaps, last = {}, nil
  local function add(to)
    local from = last and last.to or 0
    if to > from then
      gaps[#gaps + 1] = { seconds = to - from, after = last and last.name, origin = last and last.origin }
    end
  end
  for _, r in ipairs(list) do
    if r.kind ~= "range" then
      add(r.from)
      if not last or r.to > last.to then last = r end
    end
  end
  add(self.seconds + self.noting)
  table.sort(gaps, function(a, b) return a.seconds > b.seconds end)
  for i = #gaps, GAPS + 1, -1 do gaps[i] = nil end
  self.gaps = gaps
end

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

local function count_memory(self, live)
  self.memory = {}
  for device, start in pairs(live) do
    local peak, at = start.bytes, nil
    replay(self.records, device, start.bytes, function(r, bytes)
      if bytes > peak then peak, at = bytes, r end
    end)
    if at then
      self.memory[start.name] = { peak = peak, at = at.from, before = start.bytes,
                                  holders = holders_at(self.records, device, at) }
    end
  end
end

---Fills a profile that has records, lost and seconds. `live`: { name, bytes } of each device when it began.
return function(self, live)
  self.live = live
  local list = nest(self.records)
  self.nested = list
  count_rows(self, list)
  count_parts(self, list)
  find_gaps(self, list)
  count_memory(self, live)
  return self
end
