-- SPDX-License-Identifier: Apache-2.0
-- Sizes that are known when a graph runs, not before: symbols ("batch") and what is computed of them ("2*batch + 1").
-- There is one object for each, so that they compare and serve as keys of tables.

local ffi = require "ffi"
local errors = require "perigee.native.errors"

local M = {}

local Size = ffi.typeof("perigee_size")
local SYMBOLIC = -(2LL ^ 62) -- dimensions below are the core's numbers of expressions
local result = ffi.new("int64_t[1]")
local known = {}   -- by how far below SYMBOLIC
local symbols = {} -- those of placeholders
local names        -- the same of the graph that is being recorded, by name
local C

---Whether v is such a size.
function M.is(v)
  local is = ffi.istype(Size, v)
  return is
end

---A dimension of the core as a number or a size.
function M.of(d)
  local index = d >= SYMBOLIC and tonumber(d)
  if index then return index end
  index = tonumber(SYMBOLIC - d)
  local size = known[index]
  if not size then
    size = Size(d)
    known[index] = size
  end
  return size
end

---What the core calls a size, or a number.
function M.dimension(v) return M.is(v) and v.dimension or v end

---Notes that a dimension is an axis of a placeholder: when it is no number it is a symbol, whose name goes into its
---graph's table.
function M.declare(in_graph, d)
  local size = M.of(d)
  if M.is(size) then symbols[size], in_graph[tostring(size)] = true, size end
end

---From now on names are those of a graph's symbols (nil: there are none); answers the table that was in force.
function M.enter(in_graph)
  local before = names
  names = in_graph
  return before
end

---Whether v is a size that nothing was computed for.
function M.is_symbol(v) return M.is(v) and symbols[v] == true end

---The symbol of that name in the graph that is being recorded, or nil.
function M.named(name) return names and names[name] end

-- Tensors compute with sizes too: that is theirs to do.
local function delegate(event, a, b)
  local other = M.is(a) and b or a
  return ffi.istype("perigee_handle", other) and M.tensor_events[event] or nil
end

local function operand(v)
  if M.is(v) then return v.dimension end
  if type(v) == "number" and v == math.floor(v) and math.abs(v) < 2 ^ 53 then return v end
  errors.raise("invalid_argument", nil, ("sizes are computed from whole numbers, got %s"):format(errors.describe(v)),
               "x:size(1) / 2 rounds down")
end

local function compute(f, a, b)
  if C[f](operand(a), operand(b), result) ~= 0 then errors.raise_native(C, "size", nil, "dim") end
  return M.of(result[0])
end

local function add(a, b) return compute("pgc_dim_add", a, b) end
local function mul(a, b) return compute("pgc_dim_mul", a, b) end
local function div(a, b)
  if type(a) == "number" then -- rounded down it would be 0, most often
    errors.raise("invalid_argument", nil, ("%s / %s is no size"):format(tostring(a), tostring(b)),
                 "a tensor can be divided by a size")
  end
  return compute("pgc_dim_div", a, b)
end

-- How much larger a is than b where that is the same at each run.
local function difference(a, b)
  local d = add(a, mul(b, -1))
  if type(d) == "number" then return d end
  errors.raise("failed_precondition", nil,
               ("%s and %s cannot be compared before the graph runs"):format(tostring(a), tostring(b)))
end

---A size that is known when the graph runs, not before. Arithmetic with whole numbers gives others; / rounds down.
---@class perigee.Size
---@operator add(integer|perigee.Size): integer|perigee.Size
---@operator sub(integer|perigee.Size): integer|perigee.Size
---@operator mul(integer|perigee.Size): integer|perigee.Size
---@operator div(integer|perigee.Size): integer|perigee.Size
---@operator mod(integer|perigee.Size): integer|perigee.Size
---@operator unm: integer|perigee.Size
---@operator concat(any): string
local meta = {}

local function arithmetic(event, f)
  meta[event] = function(a, b)
    local tensors = delegate(event, a, b)
    if tensors then return tensors(a, b) end
    return f(a, b)
  end
end
arithmetic("__add", add)
arithmetic("__sub", function(a, b) return add(a, mul(b, -1)) end)
arithmetic("__mul", mul)
arithmetic("__div", div) -- rounds down
arithmetic("__mod", function(a, b) return add(a, mul(mul(div(a, b), b), -1)) end)
function meta.__index(a, key)
  errors.raise("not_found", "size", ("a size has no %q"):format(tostring(key)), tostring(a) .. " is to compute with")
end
function meta.__unm(a) return mul(a, -1) end

-- Equal for sure: what only a run can tell is no.
function meta.__eq(a, b)
  if M.is(a) and M.is(b) then return a.dimension == b.dimension end
  if type(a) == "string" or type(b) == "string" then return tostring(a) == tostring(b) end
  return false
end
function meta.__lt(a, b) return difference(a, b) < 0 end
function meta.__le(a, b) return difference(a, b) <= 0 end
function meta.__tostring(a) return ffi.string(C.pgc_dim_name(a.dimension)) end
function meta.__concat(a, b) return tostring(a) .. tostring(b) end

---The larger of two sizes, each a number or not known yet.
---@param a integer|perigee.Size
---@param b integer|perigee.Size
---@return integer|perigee.Size
function M.max(a, b) return compute("pgc_dim_max", a, b) end

---`tensor_events`: what tensors do for __add and its kin.
function M.start(library, tensor_events)
  C = library
  M.tensor_events = tensor_events
  ffi.metatype(Size, meta)
end

return M
