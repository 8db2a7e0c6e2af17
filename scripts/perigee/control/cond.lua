-- SPDX-License-Identifier: Apache-2.0
-- pg.cond: one of two functions, by a tensor.

local native = require "perigee.native"
local structure = require "perigee.control.structure"

local WHERE = "cond"

---What decides: Lua's true or false, or a bool tensor of one element.
---@param where string
---@param what string
---@param v any
---@return boolean|perigee.Tensor
local function check_condition(where, what, v)
  if type(v) == "boolean" then return v end
  if not native.is_tensor(v) then
    native.raise("invalid_argument", where, ("%s must be a bool tensor of one element, got %s"):format(
                   what, native.describe(v)), type(v) == "function" and "pg.cond(x:gt(0):all(), a, b)" or nil)
  end
  if v.dtype ~= "bool" then
    native.raise("invalid_argument", where, ("%s must be a bool tensor, got %s"):format(what, v.dtype),
                 "x:ne(0), x:gt(0) and the like give one")
  end
  local n = v:numel()
  if type(n) == "number" and n ~= 1 then
    native.raise("invalid_argument", where, ("%s must have one element, got %s"):format(what, tostring(v.shape)),
                 "x:all() or x:any() give one")
  end
  return v
end

---One of two functions, by a bool tensor of one element: `pg.cond(x:sum():gt(0), function() return x:sqrt() end,
---function() return -x end)`. Only the one that is taken runs. Each returns a tensor, or a table of them; what follows
---the functions is handed to the one that is taken. Gradients flow through it. A Lua boolean may stand for the tensor.
---In a graph both functions are recorded, as parts of one node, which runs one of them; they must return the same
---names, dtypes and numbers of axes. They may use tensors from outside, but not write into them.
---@param pred boolean|perigee.Tensor
---@param a fun(...): perigee.Tensor|table when it is true
---@param b fun(...): perigee.Tensor|table when it is false
---@param ... any arguments of either
---@return perigee.Tensor|table
local function cond(pred, a, b, ...)
  structure.check_callable(WHERE, "the second argument, what to do when it is true,", a)
  structure.check_callable(WHERE, "the third argument, what to do when it is false,", b)
  local taken = check_condition(WHERE, "the condition", pred)
  local later = native.is_tensor(taken) and structure.is_recorded { taken }
  if later then return require("perigee.control.recorded").cond(WHERE, taken, a, b, ...) end
  if type(taken) ~= "boolean" then taken = taken:item() end
  local leaves, spec = structure.call(WHERE, taken and "the first function" or "the second function", nil,
                                      taken and a or b, ...)
  return structure.build(spec, leaves)
end

return { cond = cond, check_condition = check_condition }
