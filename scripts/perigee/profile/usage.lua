-- SPDX-License-Identifier: Apache-2.0
-- What a process uses: processor, memory, memory of devices, energy where the processor tells; and what NVIDIA's driver
-- tells of its devices. Read from /proc, /sys and NVML, some 20 microseconds a time.

local native = require "perigee.native"

local usage = {}

local function first_line(path)
  local file = io.open(path, "rb")
  local line = file and file:read("*l")
  if file then file:close() end
  return line
end

local PAGE = 4096
-- Bytes of memory that the process holds.
local function resident()
  local pages = (first_line "/proc/self/statm" or ""):match "^%d+ (%d+)"
  return pages and tonumber(pages) * PAGE
end

-- The counters of whole processors (not of their parts), and where they begin anew; found once.
local packages
local function find_packages()
  local list = {}
  for i = 0, 15 do
    local folder = ("/sys/class/powercap/intel-rapl:%d/"):format(i)
    if not (first_line(folder .. "name") or ""):find "^package" then break end
    if first_line(folder .. "energy_uj") then
      list[#list + 1] = { path = folder .. "energy_uj", range = tonumber(first_line(folder .. "max_energy_range_uj")) }
    end
  end
  return list
end

-- Joules since the last call; nil where nothing tells.
local function energy(last)
  packages = packages or find_packages()
  local sum, known = 0, false
  for i, package in ipairs(packages) do
    local now = tonumber(first_line(package.path))
    if now and last[i] then
      sum, known = sum + (now - last[i] + (now < last[i] and package.range or 0)) * 1e-6, true
    end
    last[i] = now
  end
  return known and sum or nil
end

-- What the driver's devices do, whoever's work it is: their use now, and their energy since the last call.
local function graphics(self)
  for _, device in ipairs(native.nvml.look()) do
    local name = "nvidia " .. device.number
    if device.use then self:add("use of " .. name, "devices", device.use) end
    local last = self.graphics[device.number]
    if device.joules and last then self:add("energy of " .. name, "joules", math.max(device.joules - last, 0)) end
    self.graphics[device.number] = device.joules
  end
end

---@class perigee.Usage
---@field unit string
---@field total number of what adds up: seconds of the processor, joules; else the sum
---@field mean number
---@field least number
---@field most number
---@field count integer

---@class perigee.profile.Meter
local Meter = {}
Meter.__index = Meter

function usage.meter()
  local self = setmetatable({ values = {}, joules = {}, devices = {}, graphics = {} }, Meter)
  self.clock, self.processor = native.clock(), os.clock()
  energy(self.joules)
  for _, device in ipairs(native.nvml.look()) do self.graphics[device.number] = device.joules end
  return self
end

function Meter:add(name, unit, value)
  local v = self.values[name]
  if not v then
    v = { unit = unit, total = 0, least = value, most = value, count = 0 }
    self.values[name] = v
  end
  v.total, v.count = v.total + value, v.count + 1
  v.least, v.most = math.min(v.least, value), math.max(v.most, value)
  v.mean = v.total / v.count
end

-- Devices that have been asked for memory, by name.
local function device_memory(self)
  for _, name in ipairs(self.names or {}) do
    local index = self.devices[name] or native.find_device(name, "Monitor")
    self.devices[name] = index
    self:add("memory of " .. native.device_name(index), "bytes", native.memory_stats(index).live)
  end
end

---Notes what is used now. The processor's share is that since a time long enough ago to tell, 1 a whole core.
---@param names string[] devices
function Meter:sample(names)
  local clock, processor = native.clock(), os.clock()
  if clock - self.clock >= 1e-3 then -- the processor's clock does not resolve less
    self:add("processor", "cores", (processor - self.processor) / (clock - self.clock))
    self.clock, self.processor = clock, processor
  end
  local bytes = resident()
  if bytes then self:add("memory", "bytes", bytes) end
  local joules = energy(self.joules)
  if joules then self:add("energy", "joules", joules) end
  self.names = names
  device_memory(self)
  graphics(self)
end

local SCALES = { bytes = { { 2 ^ 30, "GB" }, { 2 ^ 20, "MB" }, { 2 ^ 10, "KB" } } }
local function text_of(value, unit)
  for _, scale in ipairs(SCALES[unit] or {}) do
    if value >= scale[1] then return ("%.2f %s"):format(value / scale[1], scale[2]) end
  end
  return ("%.3g %s"):format(value, unit)
end

---The figures as lines of text.
---@param values table<string, perigee.Usage>
---@return string
function usage.report(values)
  local names, lines = {}, {}
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local v = values[name]
    local total = v.unit == "joules" and ", in all " .. text_of(v.total, v.unit) or ""
    lines[#lines + 1] = ("%-20s mean %s, least %s, most %s%s (%d times)"):format(name, text_of(v.mean, v.unit),
      text_of(v.least, v.unit), text_of(v.most, v.unit), total, v.count)
  end
  return table.concat(lines, "\n")
end

return usage
