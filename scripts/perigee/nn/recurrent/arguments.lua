-- SPDX-License-Identifier: Apache-2.0
-- What recurrent layers and cells are called with, looked at.

local native = require "perigee.native"
local common = require "perigee.nn.layers_common"

local M = {}
local refuse, differ = common.refuse, native.tensor.sizes_differ

local function example(where, has_cell)
  local name = where:lower()
  if where:find "Cell" then return has_cell and "cell(x, {h, c})" or "cell(x, h)" end
  return has_cell and ("%s(x, {h0=h, c0=c})"):format(name) or ("%s(x, {h0=h})"):format(name)
end

-- States by position, in the table's array part too, and options by name.
local function collect(where, has_cell, names, ...)
  local n, args, options = select("#", ...), { ... }, {}
  local last = args[n]
  if n > 0 and native.is_plain(last) then
    n = n - 1
    options = last
  end
  local limit, states = has_cell and 2 or 1, {}
  local function add(v)
    states[#states + 1] = v
    if #states > limit then
      refuse(where, ("takes %d state%s, got more"):format(limit, limit > 1 and "s" or ""), example(where, has_cell))
    end
  end
  for i = 1, n do
    if args[i] ~= nil then add(args[i]) end
  end
  for _, v in ipairs(options) do add(v) end
  for key in pairs(options) do
    if type(key) ~= "number" and not names[key] then
      local known = {}
      for name in pairs(names) do known[#known + 1] = name end
      table.sort(known)
      local near = native.suggest(tostring(key), known)
      refuse(where, ("unknown option %q"):format(tostring(key)), near and ("did you mean %q?"):format(near) or
             "options are " .. table.concat(known, ", "))
    end
  end
  local h, c = states[1], states[2]
  if options.h0 ~= nil then
    if h ~= nil then refuse(where, "h0 is given twice") end
    h = options.h0
  end
  if options.c0 ~= nil then
    if c ~= nil then refuse(where, "c0 is given twice") end
    c = options.c0
  end
  if has_cell and (h == nil) ~= (c == nil) then
    refuse(where, ("%s is given without %s"):format(h and "h0" or "c0", h and "c0" or "h0"), example(where, has_cell))
  end
  return h, c, options.lengths
end

local LAYER = { [false] = { h0 = true, lengths = true }, [true] = { h0 = true, c0 = true, lengths = true } }
local CELL = { [false] = { h0 = true }, [true] = { h0 = true, c0 = true } }

---h0, c0 and lengths of a layer's call, from what follows x.
function M.of_layer(where, has_cell, ...) return collect(where, has_cell, LAYER[has_cell], ...) end
---h and c of a cell's call.
function M.of_cell(where, has_cell, ...) return collect(where, has_cell, CELL[has_cell], ...) end

---Raises unless x is a tensor of floats that a layer on this device can take. `shapes` says what they are.
function M.check_input(where, x, ranks, shapes, features, parameter)
  if not native.is_tensor(x) or x.ptr == nil then native.handles.raise_input(x, where) end
  local rank = x:dim()
  if not ranks[rank] then refuse(where, ("x is %s; expected %s"):format(tostring(x.shape), shapes)) end
  if not native.dtypes.by_name[x.dtype].floating then
    refuse(where, ("x is %s; expected a floating dtype"):format(x.dtype), "x:to(\"float32\")")
  end
  if features and differ(x:size(rank), features) then
    refuse(where, ("x is %s; expected a last axis of %d, input_size"):format(tostring(x.shape), features))
  end
  if not native.is_graph_tensor(x) and x.device ~= parameter.device then
    refuse(where, ("x is on %s, the layer's parameters on %s"):format(x.device, parameter.device),
           ("x:to(%q), or model:to(%q)"):format(parameter.device, x.device))
  end
end

local function text_of(shape)
  local list = {}
  for i, n in ipairs(shape) do list[i] = tostring(n) end
  return "{" .. table.concat(list, ", ") .. "}"
end

---Raises unless a state fits. `dtypes`: x's, that of the layer's parameters, and that of its arithmetic.
function M.check_state(where, name, state, shape, dtypes, x)
  if not native.is_tensor(state) then
    refuse(where, ("%s must be a tensor, got %s"):format(name, native.describe(state)))
  end
  local fits = state:dim() == #shape
  for i, n in ipairs(shape) do fits = fits and not differ(state:size(i), n) end
  if not fits then
    refuse(where, ("%s is %s; expected %s"):format(name, tostring(state.shape), text_of(shape)))
  end
  if state.dtype ~= dtypes[1] and state.dtype ~= dtypes[2] and state.dtype ~= dtypes[3] then
    refuse(where, ("%s is %s; expected %s, as x"):format(name, state.dtype, dtypes[1]))
  end
  if not native.is_graph_tensor(x) and state.device ~= x.device then
    refuse(where, ("%s is on %s; expected %s, as x"):format(name, state.device, x.device))
  end
end

return M
