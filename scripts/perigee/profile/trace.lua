-- SPDX-License-Identifier: Apache-2.0
-- A profile as Chrome's trace format: https://ui.perfetto.dev opens it. A line for the host, one for ranges, one for
-- each thread of pipelines and for each device or stream of one, arrows from launches to what they began, and memory.

local native = require "perigee.native"
local pg = require "perigee"
local flops = require "perigee.profile.flops"

local PROCESS, HOST, RANGES, FIRST_THREAD, FIRST_DEVICE, STREAMS = 1, 1, 2, 10, 1000, 64

local function encode(event) return pg.json.encode(event) end

local Trace = {}
Trace.__index = Trace

function Trace:add(event)
  self.events[#self.events + 1] = encode(event)
end

function Trace:name_line(number, name)
  if self.named[number] then return end
  self.named[number] = true
  self:add { ph = "M", name = "thread_name", pid = PROCESS, tid = number, args = { name = name } }
  self:add { ph = "M", name = "thread_sort_index", pid = PROCESS, tid = number, args = { sort_index = number } }
end

function Trace:device_name(id)
  local start = self.profile.live[id]
  return start and start.name or tostring(id)
end

-- Which line a record stands on: kernels of a synchronous device on that of the device, though the host computes.
function Trace:line_of(r)
  if not r.thread then
    local number = FIRST_DEVICE + r.device * STREAMS + r.stream
    self:name_line(number, ("%s stream %d"):format(self:device_name(r.device), r.stream))
    return number
  end
  if r.thread ~= "script" then
    local number = self.threads[r.thread]
    self:name_line(number, r.thread)
    return number
  end
  if r.kind == "range" then return RANGES end
  if r.kind == "kernel" then
    local number = FIRST_DEVICE + r.device * STREAMS
    self:name_line(number, self:device_name(r.device))
    return number
  end
  return HOST
end

local TITLES = { launch = "launch of %s" }
local function title_of(r)
  if r.kind == "backward" then
    return (r.name == "backward" or r.name == "grad") and "backward" or "gradient of " .. r.name
  end
  if r.kind == "optimizer" then return r.name .. " step" end
  return TITLES[r.kind] and TITLES[r.kind]:format(r.name) or r.name
end

function Trace:add_record(r)
  local operations = r.kind == "kernel" and flops(r.name, r.shapes) or 0
  local arguments = { shapes = r.shapes, line = r.line, layer = r.layer, bytes = r.bytes > 0 and r.bytes or nil,
                      flops = operations > 0 and operations or nil }
  local line = self:line_of(r)
  self:add { ph = "X", name = title_of(r), cat = r.kind, ts = r.from * 1e6, dur = (r.to - r.from) * 1e6,
             pid = PROCESS, tid = line, args = next(arguments) and arguments or nil }
  if not r.sequence then return end
  local id = ("%d/%d"):format(r.device, r.sequence)
  if r.thread and r.kind == "launch" then
    self.begun[id] = true
    self:add { ph = "s", name = "launch", cat = "launch", id = id, ts = r.from * 1e6, pid = PROCESS, tid = line }
  elseif not r.thread and self.begun[id] then -- not what was launched before the profile began
    self:add { ph = "f", bp = "e", name = "launch", cat = "launch", id = id, ts = r.from * 1e6, pid = PROCESS,
               tid = line }
  end
end

function Trace:add_memory(r)
  local live = (self.live[r.device] or 0) + (r.kind == "alloc" and r.bytes or -r.bytes)
  self.live[r.device] = live
  self:add { ph = "C", pid = PROCESS, ts = r.from * 1e6, args = { bytes = live },
             name = "memory of " .. self:device_name(r.device) }
end

---@param profile perigee.Profile
---@param path string
return function(profile, path)
  local self = setmetatable({ profile = profile, events = {}, named = {}, live = {}, threads = {}, begun = {} }, Trace)
  for i, name in ipairs(profile.thread_names) do self.threads[name] = FIRST_THREAD + i end
  self:add { ph = "M", name = "process_name", pid = PROCESS, args = { name = "perigee" } }
  self:name_line(HOST, "host")
  self:name_line(RANGES, "ranges")
  for device, start in pairs(profile.live) do self.live[device] = start.bytes end
  for _, r in ipairs(profile.records) do
    if r.block then self:add_memory(r) else self:add_record(r) end
  end
  native.write_text(path, '{"displayTimeUnit":"ms","traceEvents":[\n' .. table.concat(self.events, ",\n") ..
                          "\n]}\n")
end
