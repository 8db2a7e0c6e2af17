-- SPDX-License-Identifier: Apache-2.0
-- pg.linalg: norms of vectors and matrices.

local native = require "perigee.native"

---@class perigee.linalg
local linalg = {}

local function params()
  return { { "x", "tensor", required = true }, { "ord", "single" }, { "axes", "axes", alias = "axis" },
    { "keepdim", "boolean", default = false } }
end

local function check_number(where, ord)
  if type(ord) == "number" and ord == ord then return ord end
  native.raise("invalid_argument", where, "ord must be a number, got " .. native.describe(ord))
end

local function vector_norm(where, x, ord, axes, keepdim)
  return native.call("norm", { x }, { p = check_number(where, ord), axes = axes, keepdim = keepdim })
end

-- Over axes { rows, columns }, made positive.
local function matrix_norm(where, x, ord, axes, keepdim)
  local rows, columns = native.tensor.axis_of(where, x, axes[1]), native.tensor.axis_of(where, x, axes[2])
  if rows == columns then
    native.raise("invalid_argument", where, ("axis %d is given twice"):format(rows))
  end
  if ord == "fro" then return vector_norm(where, x, 2, { rows, columns }, keepdim) end
  if ord == "nuc" or ord == 2 or ord == -2 then
    native.raise("not_supported", where, ("the matrix norm %s needs singular values, which Perigee has not"):format(
                   tostring(ord)), "\"fro\", 1, -1, math.huge and -math.huge are there")
  end
  local size = type(ord) == "number" and math.abs(ord)
  if size ~= 1 and size ~= math.huge then
    native.raise("invalid_argument", where,
                 "ord of a matrix must be \"fro\", \"nuc\", 1, 2, math.huge or a negative of these, got " ..
                   native.describe(ord))
  end
  local summed, kept = rows, columns -- the largest sum of a column
  if size == math.huge then summed, kept = columns, rows end
  local sums = x:abs():sum { axis = summed, keepdim = true }
  local y = native.call(ord > 0 and "amax" or "amin", { sums }, { axes = { kept }, keepdim = true })
  return keepdim and y or y:squeeze { axes = { rows, columns } }
end

local read_vector = native.signature("linalg.vector_norm", params())
---The norm of vectors along axes: (sum |x|^ord)^(1/ord).
---@param x perigee.Tensor floating
---@param ord? number default 2; 0, math.huge and -math.huge as in `norm`
---@param axis? integer|integer[] from 1; default all
---@param keepdim? boolean
---@return perigee.Tensor
function linalg.vector_norm(...)
  local o = read_vector(...)
  return vector_norm("linalg.vector_norm", o.x, o.ord or 2, o.axes, o.keepdim)
end

local read_matrix = native.signature("linalg.matrix_norm", params())
---The norm of matrices in two axes (default: the last two).
---@param x perigee.Tensor floating
---@param ord? number|string default "fro"; 1 (-1): largest (least) sum of a column; math.huge (-math.huge): of a row
---@param axis? integer[] from 1: rows, columns
---@param keepdim? boolean
---@return perigee.Tensor
function linalg.matrix_norm(...)
  local o = read_matrix(...)
  local axes = o.axes and #o.axes > 0 and o.axes or { -2, -1 }
  if #axes ~= 2 then
    native.raise("invalid_argument", "linalg.matrix_norm", ("got %d axes; expected two"):format(#axes))
  end
  return matrix_norm("linalg.matrix_norm", o.x, o.ord == nil and "fro" or o.ord, axes, o.keepdim)
end

local read_norm = native.signature("linalg.norm", params())
---Of a vector, or along one axis, the vector norm of order `ord`; of a matrix, or in two axes, the matrix norm. Without
---`ord` the root of the sum of squares, of any number of axes.
---@param x perigee.Tensor floating
---@param ord? number|string
---@param axis? integer|integer[] from 1
---@param keepdim? boolean
---@return perigee.Tensor
function linalg.norm(...)
  local o = read_norm(...)
  local axes, rank = o.axes and #o.axes > 0 and o.axes or nil, o.x:dim()
  if o.ord == nil then return vector_norm("linalg.norm", o.x, 2, axes, o.keepdim) end
  local count = axes and #axes or rank
  if count == 1 then return vector_norm("linalg.norm", o.x, o.ord, axes, o.keepdim) end
  if count ~= 2 then
    native.raise("invalid_argument", "linalg.norm",
                 ("ord %s is for one axis or two, got %d"):format(tostring(o.ord), count),
                 "vector_norm takes any number of axes")
  end
  return matrix_norm("linalg.norm", o.x, o.ord, axes or { 1, 2 }, o.keepdim)
end

return linalg
