-- SPDX-License-Identifier: Apache-2.0
-- Entries of containers, at positions from 1. They stand in the layer's own table, where # counts them; but Lua does
-- not tell of an assignment over an entry that is there, so each look compares with what was held before.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"

local positions = {}
local META = walk.META

local function class_name(self) return getmetatable(self).__name end
local function raise(self, message, hint) native.raise("invalid_argument", class_name(self), message, hint) end

-- Makes these the entries, and their positions the keys that names come from.
local function write(self, meta, list)
  local old, new = #meta.held, #list
  for i = 1, math.max(old, new) do rawset(self, i, list[i]) end
  if new < old then
    local keys = {}
    for _, key in ipairs(meta.keys) do
      if type(key) ~= "number" or key <= new then keys[#keys + 1] = key end
    end
    meta.keys = keys
    for i = new + 1, old do meta.known[i] = nil end
  end
  for i = old + 1, new do
    meta.keys[#meta.keys + 1] = i
    meta.known[i] = true
  end
  meta.held = list
end

local function copy(list) return { unpack(list, 1, #list) } end

-- An entry that was set to nil goes, and those behind it move up; one that cannot be an entry is put back.
local function repair(self, meta)
  local list = {}
  for i, before in ipairs(meta.held) do
    local v = rawget(self, i)
    if v ~= nil and v ~= before then
      rawset(self, i, before)
      v = self:__accept(i, v)
      rawset(self, i, v)
    end
    list[#list + 1] = v
  end
  write(self, meta, list)
end

---Takes note of what was assigned since the last look.
function positions.settle(self)
  local meta = rawget(self, META)
  local held = meta.held
  for i = 1, #held do
    if rawget(self, i) ~= held[i] then return repair(self, meta) end
  end
end

local function settled(self)
  positions.settle(self)
  return rawget(self, META)
end

-- A position as one from 1; `extra` allows one behind the last.
local function place(self, key, count, extra)
  if type(key) ~= "number" or key ~= math.floor(key) then
    raise(self, "a position must be a whole number, got " .. native.describe(key))
  end
  if key == 0 then
    raise(self, "position 0, but positions count from 1", "the first " .. getmetatable(self).__first)
  end
  local i = key > 0 and key or count + 1 + key
  if i < 1 or i > count + (extra or 0) then
    raise(self, ("position %d is out of range for %d entr%s"):format(key, count, count == 1 and "y" or "ies"),
          key > 0 and ("position %d would append"):format(count + 1) or nil)
  end
  return i
end

-- {first, last[, step]}, both ends included, as of tensors: cut at the ends; {} is all.
local function slice(self, key, held)
  if #key == 1 and type(key[1]) == "table" then key = key[1] end
  local first, last, step = key[1] or 1, key[2] or -1, key[3] or 1
  for k, v in pairs(key) do
    if type(k) ~= "number" or type(v) ~= "number" or v ~= math.floor(v) or v == 0 or k > 3 or #key == 1 or step < 1 then
      raise(self, "a slice is {first, last[, step]} of whole numbers from 1 or negative, step from 1",
            "both ends are included; {} is all")
    end
  end
  local count, list = #held, {}
  if first < 0 then first = count + 1 + first end
  if last < 0 then last = count + 1 + last end
  for i = math.max(first, 1), math.min(last, count), step do list[#list + 1] = held[i] end
  return getmetatable(self).__container(list)
end

---What self[key] reads where nothing stands in the table itself.
function positions.get(self, key)
  if type(key) ~= "number" and type(key) ~= "table" then return nil end
  local held = settled(self).held
  if type(key) == "table" then return slice(self, key, held) end
  if key == 0 then place(self, key, #held) end
  return rawget(self, key < 0 and #held + 1 + key or key)
end

---Puts an entry at a position, 1 to #self + 1, in front of what stands there.
function positions.insert(self, key, value)
  local meta = settled(self)
  local i, list = place(self, key, #meta.held, 1), copy(meta.held)
  table.insert(list, i, self:__accept(i, value))
  write(self, meta, list)
end

---Takes an entry out; those behind it move up. Answers it.
function positions.remove(self, key)
  local meta = settled(self)
  local list = copy(meta.held)
  local gone = table.remove(list, place(self, key, #list))
  write(self, meta, list)
  return gone
end

---self[key] = value where nothing stands in the table itself: appends, replaces from the end, or removes.
function positions.assign(self, key, value)
  local meta = settled(self)
  local count = #meta.held
  local i = place(self, key, count, 1)
  if value == nil then
    if i <= count then positions.remove(self, i) end
    return
  end
  local list = copy(meta.held)
  list[i] = self:__accept(i, value)
  write(self, meta, list)
end

return positions
