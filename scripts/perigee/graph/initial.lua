-- SPDX-License-Identifier: Apache-2.0
-- What variables and constants of a graph hold at first. It is made outside of the graph that is being recorded.

local native = require "perigee.native"
local pg = require "perigee"

local initial = {}

local eagerly = native.graphs.outside

local function refuse(message, hint) native.raise("invalid_argument", "variable", message, hint) end

local fills = {
  zeros = function(shape) return pg.zeros { shape } end,
  ones = function(shape) return pg.ones { shape } end,
  uniform = function(shape) return pg.rand { shape } end,
  normal = function(shape) return pg.randn { shape } end,
  glorot_uniform = function(shape) return pg.nn.init.xavier_uniform_(pg.zeros { shape }) end,
  glorot_normal = function(shape) return pg.nn.init.xavier_normal_(pg.zeros { shape }) end,
}
local names = {}
for name in pairs(fills) do names[#names + 1] = name end
table.sort(names)

---A tensor, or what makes one, as an eager tensor of a dtype (nil: its own).
function initial.tensor(where, v, dtype)
  if not native.is_tensor(v) then return eagerly(pg.tensor, v, { dtype = dtype }) end
  if native.is_graph_tensor(v) then
    native.raise("invalid_argument", where, "the value is a tensor of a graph, which has no contents yet",
                 "make it outside of pg.graph, or give numbers")
  end
  return dtype and eagerly(v.to, v, dtype) or v
end

local function check_shape(shape)
  for i, d in ipairs(shape) do
    if type(d) ~= "number" then
      refuse(("shape[%d] must be a number, got %s"):format(i, native.describe(d)), "a variable has its size at once")
    end
  end
end

-- What a function or a name makes of a shape.
local function made(init, shape)
  local make = type(init) == "function" and init or fills[init]
  if not make then
    local near = type(init) == "string" and native.suggest(init, names)
    refuse(("init must be a tensor, numbers, a function of the shape or one of %s, got %s"):format(
             table.concat(names, ", "), native.describe(init)), near and ("did you mean %q?"):format(near))
  end
  if not shape then refuse("needs a shape, or init as a tensor") end
  local value = eagerly(make, shape)
  if not native.is_tensor(value) then refuse("init must give a tensor, got " .. native.describe(value)) end
  return value
end

---The first value of a variable, as `shape`, `init` and `dtype` of o tell it.
function initial.value(o)
  local init, value = o.init
  if init == nil then init = "zeros" end
  if o.shape then check_shape(o.shape) end
  if type(init) == "number" and o.shape then
    value = eagerly(pg.full, o.shape, init, { dtype = o.dtype })
  elseif native.is_tensor(init) or type(init) == "table" or type(init) == "number" then
    value = initial.tensor("variable", init, o.dtype)
  else
    value = initial.tensor("variable", made(init, o.shape), o.dtype)
  end
  if o.shape and not value:has_shape(o.shape) then
    refuse(("init is %s, but the shape %s"):format(tostring(value.shape), tostring(native.shape { unpack(o.shape) })))
  end
  return value
end

return initial
