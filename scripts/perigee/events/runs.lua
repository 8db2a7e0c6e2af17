-- SPDX-License-Identifier: Apache-2.0
-- The scalars of runs: folders of event files, read as far as they go, and further when they have grown.

local native = require "perigee.native"
local protobuf = require "perigee.events.protobuf"
local records = require "perigee.events.records"

---@class perigee.events.Run
---@field name string
---@field curves table<string, {x: number[], y: number[], time: number[]}> by tag, in the order of steps
---@field damage string[] what could not be read
local Run = {}
Run.__index = Run

local runs = {}

local FLOAT, SCALARS = 1, "scalars"

-- The fields of a message by their numbers, the last where there are several; nil where it is none.
local function by_number(text)
  local list = protobuf.fields(text)
  if not list then return nil end
  local t = {}
  for _, field in ipairs(list) do t[field[1]] = field[2] end
  return t
end

-- The number in a TensorProto of one float, as TensorFlow 2 writes scalars.
local function tensor_number(text)
  local t = type(text) == "string" and by_number(text)
  if not t or t[1] ~= FLOAT then return nil end
  for _, content in ipairs { t[4] or false, t[5] or false } do
    if type(content) == "number" then return content end
    if type(content) == "string" and #content == 4 then return native.words.to_float32(content, 1) end
  end
end

local function plugin_of(metadata)
  local m = type(metadata) == "string" and by_number(metadata)
  local data = m and type(m[1]) == "string" and by_number(m[1])
  return data and data[1]
end

-- Steps come in order but where a training was taken up again: what it had from there on counts no more.
local function add_point(curve, step, value, time)
  while #curve.x > 0 and curve.x[#curve.x] >= step do
    curve.x[#curve.x], curve.y[#curve.y], curve.time[#curve.time] = nil, nil, nil
  end
  local n = #curve.x + 1
  curve.x[n], curve.y[n], curve.time[n] = step, value, time
end

local function add_value(self, text, step, time)
  local value = by_number(text)
  if not value or type(value[1]) ~= "string" then return end
  local number = value[2]
  if type(number) ~= "number" then
    number = plugin_of(value[9]) == SCALARS and tensor_number(value[8]) or nil
  end
  if not number then return end
  local tag = value[1]
  self.curves[tag] = self.curves[tag] or { x = {}, y = {}, time = {} }
  add_point(self.curves[tag], step, number, time)
end

local function add_event(self, text)
  local event = by_number(text)
  local step, time = event and event[2] or 0, event and event[1] or 0
  if not event or type(event[5]) ~= "string" then return end
  for _, field in ipairs(protobuf.fields(event[5]) or {}) do
    if field[1] == 1 and type(field[2]) == "string" then add_value(self, field[2], step, time) end
  end
end

---A folder of event files, or one such file.
---@param path string
---@return perigee.events.Run
function runs.open(path)
  return setmetatable({ path = path, name = path:match("([^/]+)/*$") or path, readers = {}, curves = {}, damage = {} },
                      Run)
end

local function files_of(path)
  local file = io.open(path, "rb")
  local is_file = file and file:read(0) ~= nil
  if file then file:close() end
  if is_file then return { path } end
  local ok, names = pcall(native.folder, path)
  local list = {}
  for _, name in ipairs(ok and names or {}) do
    if name:find("tfevents", 1, true) then list[#list + 1] = path .. "/" .. name end
  end
  return list
end

---Reads what has come since the last call.
---@return integer count of events
function Run:update()
  local count = 0
  for _, path in ipairs(files_of(self.path)) do -- in the order of their times, which their names begin with
    local reader = self.readers[path] or records.open(path)
    self.readers[path] = reader
    while reader do
      local data, damage = reader:next()
      if damage then self.damage[#self.damage + 1] = damage end
      if not data then break end
      add_event(self, data)
      count = count + 1
    end
  end
  return count
end

function Run:close()
  for _, reader in pairs(self.readers) do reader:close() end
  self.readers = {}
end

return runs
