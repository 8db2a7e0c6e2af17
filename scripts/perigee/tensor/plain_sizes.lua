-- SPDX-License-Identifier: Apache-2.0
-- What the plain_ files share: sizes and shapes of numbers alone, in code that compiles, and operators that make.

local native = require "perigee.native"
local has_entries = require "perigee.native.has_entries"

local M = {}

local dtypes, floor, MOST_AXES, FAR = native.dtypes, math.floor, 8, 2 ^ 53
local structs = {} -- what pointers into attributes need to live

---A function that runs an operator without tensors, and its attributes. `where`: what messages call it.
function M.maker(operator, where)
  local make, attrs, struct = native.prepare(operator, nil, where)
  structs[#structs + 1] = struct
  return make, attrs
end

---What every other form of a call goes to.
function M.any(name)
  return function(...) return native.tensor.creators[name](...) end
end

function M.default_code() return dtypes.by_name[native.default_dtype()].code end

local function is_whole(v) return type(v) == "number" and v == floor(v) and v > -FAR and v < FAR end
local function is_size(v) return is_whole(v) and v >= 0 end
M.is_whole, M.is_size = is_whole, is_size

---Writes a shape that is a plain list; false where it is none. The first sizes without a loop, which would end the
---trace of the loop that the call stands in.
function M.set_list(target, list)
  if type(list) ~= "table" or getmetatable(list) ~= nil then return false end
  local n = #list
  if n == 0 or n > MOST_AXES or not has_entries(list, n) then return false end
  local value = target.value
  if not is_size(list[1]) then return false end
  value[0] = list[1]
  if n > 1 then
    if not is_size(list[2]) then return false end
    value[1] = list[2]
  end
  if n > 2 then
    if not is_size(list[3]) then return false end
    value[2] = list[3]
  end
  if n > 3 then
    if not is_size(list[4]) then return false end
    value[3] = list[4]
  end
  for i = 5, n do
    if not is_size(list[i]) then return false end
    value[i - 1] = list[i]
  end
  target.count = n
  return true
end
local set_list = M.set_list

-- Writes a shape that is a list, or one to three sizes.
local function set_shape(target, n, a, b, c)
  if n == 1 and type(a) == "table" then return set_list(target, a) end
  if n < 1 or n > 3 or not is_size(a) or n > 1 and not is_size(b) or n > 2 and not is_size(c) then return false end
  target.count, target.value[0] = n, a
  if n > 1 then target.value[1] = b end
  if n > 2 then target.value[2] = c end
  return true
end

-- The dtype that is the only option of a call, by its name.
local function only_dtype(options)
  if type(options) ~= "table" or getmetatable(options) ~= nil or not has_entries(options, 1) then return nil end
  return dtypes.by_name[options.dtype or 1]
end

---A function of sizes that an operator makes, filled with `value` if there is one.
function M.of_sizes(name, operator, value)
  local make, attrs = M.maker(operator, name)
  local any, default_code, shape, dtype = M.any(name), M.default_code, attrs.shape, attrs.dtype
  if value then attrs.value[0] = value end
  return function(...)
    local count = select("#", ...)
    if set_shape(shape, count, ...) then
      dtype[0] = default_code()
      return make()
    end
    local sizes, options = ...
    local wanted = count == 2 and only_dtype(options)
    if not wanted or wanted.complex or not set_list(shape, sizes) then return any(...) end
    dtype[0] = wanted.code
    return make()
  end
end

return M
