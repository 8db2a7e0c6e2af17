-- SPDX-License-Identifier: Apache-2.0
-- From records to figures: rows by operator, by pipeline stage, where the time went, what devices did, memory.

local flops = require "perigee.profile.flops"
local lines = require "perigee.profile.lines"
local memory = require "perigee.profile.memory"

-- The nearest thing around a record that is an operator, or what copies.
local function caller(r)
  local p = r.parent
  while p and (p.kind == "range" or p.kind == "stage") do p = p.parent end
  return p
end

local function row_of(self, by_name, name)
  local row = by_name[name]
  if not row then
    row = { name = name, calls = 0, total = 0, host = 0, kernel = 0, bytes = 0, flops = 0, least = 0, computing = 0 }
    by_name[name] = row
    self.rows[#self.rows + 1] = row
  end
  return row
end

-- Seconds that the device needs at least for a kernel, and those of its arithmetic alone; nil where it cannot say.
local function least_of(self, r, operations)
  local roofline = self.roofline_of
  local name = roofline and self.names[r.device]
  if not name then return nil end
  local bandwidth = roofline.bytes(name)
  local rate = operations > 0 and roofline.flops(name, (r.shapes or ""):match "^(%w+) %[" or "float32")
  if not bandwidth or (operations > 0 and not rate) then return nil end
  local computing = operations > 0 and operations / rate or 0
  return math.max(computing, r.bytes / bandwidth), computing
end

local function count_kernel(self, row, r)
  local operations = flops(r.name, r.shapes)
  row.kernel, row.bytes, row.flops = row.kernel + (r.to - r.from), row.bytes + r.bytes, row.flops + operations
  local least, computing = least_of(self, r, operations)
  if least then row.least, row.computing = row.least + least, row.computing + computing end
end

local ROWS = { op = true, kernel = true, launch = true, upload = true, download = true, peer = true, wait = true,
               plan = true }

-- An operator's row has its kernels' time too; what it called has rows of its own. What a device told of counts beside
-- the time that its submission took on the host.
local function count_rows(self)
  self.rows = {}
  local by_name = {}
  for _, list in pairs(self.threads) do
    for _, r in ipairs(list) do
      if ROWS[r.kind] then
        local own, around = r.to - r.from - r.inner, caller(r)
        local part = (r.kind == "kernel" or r.kind == "launch") and around and ROWS[around.kind] and
                     (around.kind == "op" or lines.is_copy(around))
        local row = row_of(self, by_name, part and around.name or r.name)
        row.total, row.host = row.total + own, row.host + own
        if not part then row.calls = row.calls + 1 end
        if r.kind == "kernel" then count_kernel(self, row, r) end
      end
    end
  end
  for _, list in pairs(self.on_devices) do
    for _, r in ipairs(list) do
      local row = row_of(self, by_name, r.name)
      row.total = row.total + (r.to - r.from)
      if r.kind == "kernel" then count_kernel(self, row, r) end
    end
  end
  for _, row in ipairs(self.rows) do
    row.mean, row.share = row.total / math.max(row.calls, 1), row.total / math.max(self.seconds, 1e-12)
    if row.least > 0 and row.kernel > 0 then
      row.roofline = row.least / row.kernel
      row.bound = row.computing >= row.least * 0.5 and "compute" or "memory"
    end
  end
  table.sort(self.rows, function(a, b)
    if a.total ~= b.total then return a.total > b.total end
    return a.name < b.name
  end)
end

-- Stages of pipelines: the time of each without that of those before it, on all threads.
local function count_stages(self)
  self.stages = {}
  local by_name = {}
  for thread, list in pairs(self.threads) do
    for _, r in ipairs(list) do
      if r.kind == "stage" then
        local key = r.name .. " " .. (r.line or "")
        local row = by_name[key]
        if not row then
          row = { name = r.name, line = r.line, elements = 0, seconds = 0, threads = {} }
          by_name[key] = row
          self.stages[#self.stages + 1] = row
        end
        local inner = 0
        for _, other in ipairs(r.stages or {}) do inner = inner + (other.to - other.from) end
        row.elements, row.seconds = row.elements + (r.elements or 1), row.seconds + (r.to - r.from) - inner
        row.threads[thread] = true
      end
    end
  end
  for _, row in ipairs(self.stages) do
    local names = {}
    for name in pairs(row.threads) do names[#names + 1] = name end
    table.sort(names)
    row.threads = names
  end
  table.sort(self.stages, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.name < b.name
  end)
end

-- Which stages were asked for an element while another made its own.
local function nest_stages(list)
  for _, r in ipairs(list) do
    if r.kind == "stage" then
      local p = r.parent
      while p and p.kind ~= "stage" do p = p.parent end
      if p then
        p.stages = p.stages or {}
        table.insert(p.stages, r)
      end
    end
  end
end

-- What the script's thread is at in a record. What is made for the input counts as input, whatever it is.
local function kind_of(r)
  local p = r
  while p do
    if p.kind == "stage" or p.kind == "range" and p.name == "input" then return "input" end
    p = p.parent
  end
  if r.kind == "range" then return "script" end
  if lines.is_copy(r) then return "copies" end
  if r.kind == "launch" or r.kind == "wait" then
    if r.parent and lines.is_copy(r.parent) then return "copies" end
    return r.kind == "wait" and "waits" or "dispatch"
  end
  return r.kind == "kernel" and "kernels" or "dispatch"
end

-- Where the time went. While a device that tells computes or copies, that is what the time is for; else it is what the
-- script's thread is at.
local function count_parts(self)
  local parts = { input = 0, copies = 0, kernels = 0, waits = 0, dispatch = 0, script = 0 }
  local host = lines.innermost(self.threads.script, kind_of)
  local kernels, copies = {}, {}
  for _, list in pairs(self.on_devices) do
    for _, r in ipairs(list) do table.insert(r.kind == "kernel" and kernels or copies, r) end
  end
  local function by_time(a, b) return a.from < b.from end
  table.sort(kernels, by_time)
  table.sort(copies, by_time)
  local computing = lines.union(kernels)
  local copying = lines.outside(lines.union(copies), computing)
  parts.kernels, parts.copies = lines.sum(computing), lines.sum(copying)
  local noted = parts.kernels + parts.copies
  for _, s in ipairs(lines.outside(lines.outside(host, computing), copying)) do
    parts[s.kind] = parts[s.kind] + (s.to - s.from)
    if s.kind ~= "script" then noted = noted + (s.to - s.from) end
  end
  parts.script = math.max(0, self.seconds - noted)
  self.parts = parts
  self.busy = math.min(1, (parts.kernels + parts.copies + parts.waits) / math.max(self.seconds, 1e-12))
end

local GAPS = 3
local function longest(gaps)
  table.sort(gaps, function(a, b) return a.seconds > b.seconds end)
  for i = #gaps, GAPS + 1, -1 do gaps[i] = nil end
  return gaps
end

local function gaps_between(spans, stop)
  local gaps, last = {}, nil
  local function add(to)
    local from = last and last.to or 0
    if to > from then
      local r = last and last.last
      gaps[#gaps + 1] = { seconds = to - from, at = from, after = r and r.name, origin = r and r.origin }
    end
  end
  for _, s in ipairs(spans) do
    add(s.from)
    last = s
  end
  add(stop)
  return longest(gaps)
end

---@class perigee.ProfileDevice
---@field kernels number seconds in which kernels ran; of one that tells nothing: nil
---@field copies number seconds in which bytes were copied to or from it, and no kernel ran
---@field bytes number that were copied
---@field busy number share of the time
---@field gaps {seconds: number, at: number, after: string?, origin: string?}[] the longest times without any work

local function count_devices(self)
  self.devices = {}
  for id, list in pairs(self.on_devices) do
    local kernels, bytes = {}, 0
    for _, r in ipairs(list) do
      if r.kind == "kernel" then kernels[#kernels + 1] = r else bytes = bytes + r.bytes end
    end
    local all, computing = lines.union(list), lines.sum(lines.union(kernels))
    local busy = lines.sum(all)
    self.devices[self.names[id] or tostring(id)] = {
      kernels = computing, copies = busy - computing, bytes = bytes, busy = busy / math.max(self.seconds, 1e-12),
      gaps = gaps_between(all, self.seconds + self.noting) }
  end
  -- A synchronous device computes on the script's thread.
  local by_device = {}
  for _, r in ipairs(self.threads.script) do
    if r.kind == "kernel" and not self.on_devices[r.device] then
      by_device[r.device] = by_device[r.device] or {}
      table.insert(by_device[r.device], r)
    end
  end
  for id, list in pairs(by_device) do
    local all = lines.union(list)
    local busy = lines.sum(all)
    self.devices[self.names[id] or tostring(id)] = { kernels = busy, copies = 0, bytes = 0,
      busy = busy / math.max(self.seconds, 1e-12), gaps = gaps_between(all, self.seconds + self.noting) }
  end
end

local function find_gaps(self)
  local list = {}
  for _, r in ipairs(self.threads.script) do
    if r.kind ~= "range" and r.kind ~= "stage" then list[#list + 1] = r end
  end
  self.gaps = gaps_between(lines.union(list), self.seconds + self.noting)
end

---Fills a profile that has records, lost, seconds and noting. `live`: { name, bytes } of each device when it began.
---`roofline`: what a device can do; nil: nobody asks.
return function(self, live, roofline)
  self.live, self.names, self.roofline_of = live, {}, roofline or false
  for id, start in pairs(live) do self.names[id] = start.name end
  self.threads, self.on_devices, self.thread_names = lines.sort(self.records)
  for _, list in pairs(self.threads) do nest_stages(list) end
  self.nested = self.threads.script
  count_rows(self)
  count_stages(self)
  count_parts(self)
  count_devices(self)
  find_gaps(self)
  self.memory = memory(self.records, live, self.seconds + self.noting)
  return self
end
