-- SPDX-License-Identifier: Apache-2.0
-- Writes the Lua function that runs a plugin's layer: parameters by name, inputs by position, spelt out without loops,
-- so that it compiles to one C call.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local operators = require "perigee.native.operators"
local origins = require "perigee.native.origins"

local M = {}
local C

local head = [[
local C, Handle, wrap, istype, attributes, struct, refresh, params, inputs, out, is, origins = ...
local id, call, tensors, path = attributes.info.id, C.pgc_layer_call, attributes.tensors, attributes.path
local rawget, select = rawget, select
]]

local function text_of(info, names, refreshes)
  local arguments, parts = {}, { head }
  for i = 1, info.inputs do arguments[i] = "x" .. i end
  local function add(text, ...) parts[#parts + 1] = text:format(...) end
  add("return function(layer, %s...)\nif select('#', ...) ~= 0 then is.surplus(select('#', ...)) end\n",
      table.concat(arguments, ", ") .. (info.inputs > 0 and ", " or ""))
  for i, x in ipairs(arguments) do
    add("if not istype(Handle, %s) or %s.ptr == nil then is.wrong(%s) end\ninputs[%d] = %s.ptr\n", x, x, x, i - 1, x)
  end
  for i, name in ipairs(names) do
    add("local p = tensors[%q]\nif p then\nif p.ptr == nil then is.wrong(p) end\n", name)
    add("params[%d] = p.ptr\nelse\nparams[%d] = nil\nend\n", i - 1, i - 1)
  end
  if refreshes then add("refresh()\n") end
  add("local training = rawget(layer, 'training') and 1 or 0\n")
  add("if origins.on then origins.note() end\n")
  add("local rc = call(id, struct, training, path, params, inputs, out)\n")
  add("if rc == 10 then\nis.short()\nrc = call(id, struct, training, path, params, inputs, out)\nend\n")
  add("if rc ~= 0 then is.failed() end\n")
  add("local first = wrap(out[0])\n") -- a local: a tail call less, of which a trace has room for few
  local results = { "first" }
  for i = 2, info.outputs do
    add("if out[%d] == nil then return %s end\n", i - 1, table.concat(results, ", "))
    results[i] = ("wrap(out[%d])"):format(i - 1)
  end
  add("return %s\nend\n", table.concat(results, ", "))
  return table.concat(parts)
end

-- What the function calls when something is not as it should be.
local function exits(attributes)
  local info = attributes.info
  local function where() return attributes.where or info.name end
  return {
    surplus = function(more)
      errors.raise("invalid_argument", where(), ("takes %d inputs, got %d"):format(info.inputs, info.inputs + more))
    end,
    wrong = function(x) handles.raise_input(x, where()) end,
    short = function() operators.make_room() end,
    failed = function() errors.raise_native(C, where()) end,
  }
end

-- The compiled functions, by text. A trace keeps a function that it calls, and so the tensors of a layer that is long
-- gone, unless the compiler has seen three functions of the same text: then it looks at the text alone, and layers of
-- a kind share traces.
local chunks = {}
local FUNCTIONS_OF_ONE_TEXT = 3

local function chunk_of(info, text, ...)
  local chunk = chunks[text]
  if not chunk then
    chunk = assert(loadstring(text, "=perigee:" .. info.name))
    for _ = 1, FUNCTIONS_OF_ONE_TEXT do chunk(...) end
    chunks[text] = chunk
  end
  return chunk(...)
end

local function pointers(count) return ffi.new("pgc_tensor *[?]", math.max(count, 1)) end

-- The call passes `struct`, which `refresh`, where there is one, fills before.
local function compile(attributes, names, struct, refresh)
  local info = attributes.info
  local path = errors.layer_path and errors.layer_path() -- compiled at the first call, which it stands in
  attributes.path = path and C.pgc_interned(path) or nil
  return chunk_of(info, text_of(info, names, refresh ~= nil), C, handles.Handle, handles.wrap, ffi.istype, attributes,
                  struct, refresh, pointers(#names), pointers(info.inputs), pointers(info.outputs), exits(attributes),
                  origins)
end

---The function(layer, inputs...) that runs a layer with these attributes. Parameters are those in `attributes.tensors`,
---by the given names; `training` is the layer's own field.
function M.compile_layer(attributes, names) return compile(attributes, names, attributes.struct) end

local int32_p = ffi.typeof("int32_t *")

---The same with one choice made otherwise, in a copy of the attributes as they are at the call: `to` in place of
---`from`. Answers also a function that tells whether it is `from` now.
function M.compile_layer_with(attributes, names, name, from, to)
  local info, own = attributes.info, attributes.struct
  local attr, size = info.by_name[name], ffi.sizeof(attributes.struct)
  local old, new = attr.choice_index[from], attr.choice_index[to]
  local copy = ffi.new("uint8_t[?]", size)
  local chosen, changed = ffi.cast(int32_p, own + attr.offset), ffi.cast(int32_p, copy + attr.offset)
  local function refresh()
    ffi.copy(copy, own, size)
    changed[0] = new
  end
  return compile(attributes, names, copy, refresh), function() return chosen[0] == old end
end

function M.start(library) C = library end

return M
