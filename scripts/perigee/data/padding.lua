-- SPDX-License-Identifier: Apache-2.0
-- Padding of a batch: what `pad` names, and tensors filled up to the largest.

local native = require "perigee.native"

local padding = {}

-- The fields that `pad` names, by their paths.
function padding.read(pad)
  local values = {}
  for name, value in pairs(pad) do
    if type(name) ~= "string" and type(name) ~= "number" then
      native.raise("invalid_argument", "batch", "pad must name fields, got " .. native.describe(name))
    end
    if type(value) ~= "number" and type(value) ~= "boolean" then
      native.raise("invalid_argument", "batch", ("pad of %s must be a number or a boolean, got %s"):format(name,
                   native.describe(value)), 'a field of a field is pad={["x.a"]=0}')
    end
    values[tostring(name)] = value
  end
  if next(values) == nil then native.raise("invalid_argument", "batch", "pad names no field", "pad={x=0}") end
  return values
end

-- What a tensor of this dtype holds of a value of `pad`, as a number.
local function pad_number(value, dtype, path)
  local number = type(value) == "boolean" and (value and 1 or 0) or value
  local fits = type(value) ~= "boolean" or dtype == "bool"
  if fits and dtype == "bool" then fits = number == 0 or number == 1 end
  if fits and dtype:find "^u?int" then -- which full would round, or refuse without saying for whom
    local held, tensor = pcall(require("perigee").full, {}, number, { dtype = dtype })
    fits = held and tensor:item() == number
  end
  if not fits then
    native.raise("invalid_argument", "batch", ("pad of %s is %s, which %s cannot hold"):format(path, tostring(value),
                 dtype))
  end
  return number
end

-- Tensors made as large as the largest along each axis, by values behind their ends.
function padding.fill(values, value, path)
  local largest, number = {}, pad_number(value, values[1].dtype, path)
  for axis = 1, values[1]:dim() do
    largest[axis] = 0
    for _, t in ipairs(values) do largest[axis] = math.max(largest[axis], t.shape[axis]) end
  end
  for i, t in ipairs(values) do
    local widths, short = {}, false -- of the last axis first
    for axis = #largest, 1, -1 do
      local missing = largest[axis] - t.shape[axis]
      widths[#widths + 1], widths[#widths + 2], short = 0, missing, short or missing > 0
    end
    if short then values[i] = t:pad(widths, { value = number }) end
  end
end

return padding
