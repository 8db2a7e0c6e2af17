-- SPDX-License-Identifier: Apache-2.0
-- Sources and transforms of input pipelines that plugins bring: what there is, and their options as packed structs.

local ffi = require "ffi"
local attributes = require "perigee.native.attributes"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local modules = require "perigee.native.modules"
local suggest = require "perigee.native.suggest"

local M = {}
local C

local function names_of(text)
  local names = modules.json(ffi.string(text))
  table.sort(names)
  return names
end

local function refuse_unknown(where, what, given, names)
  local near = suggest(given, names)
  errors.raise("not_found", where, ("there is no %s %q%s"):format(what, given, names[1] and "; there are " ..
                 table.concat(names, ", ") or "; no plugin brings one"), near and ("did you mean %q?"):format(near))
end

local known = {} -- descriptions, by sort and name

local function describe(sort, name, text)
  if text == nil then return nil end
  local key = sort .. " " .. name
  if not known[key] then
    local info = modules.json(ffi.string(text))
    info.visible, info.by_name, info.names = attributes.prepare(info.attrs)
    known[key] = info
  end
  return known[key]
end

---The description of a source; one that is not there is an error with the nearest of those that are.
function M.source(where, name)
  local info = describe("source", name, C.pgc_source_json(name))
  return info or refuse_unknown(where, "source", name, names_of(C.pgc_source_names_json()))
end

---The same of a transform.
function M.transform(where, name)
  local info = describe("transform", name, C.pgc_transform_json(name))
  return info or refuse_unknown(where, "transform", name, names_of(C.pgc_transform_names_json()))
end

local function reject(where, attr, expected, got)
  errors.raise("invalid_argument", where, ("%s must be %s, got %s"):format(attr.shown, expected, errors.describe(got)))
end

-- A list of strings as a pg_texts, whose memory `kept` holds.
local function texts_of(where, attr, list, kept)
  if type(list) ~= "table" or getmetatable(list) ~= nil then reject(where, attr, "a list of strings", list) end
  local count = #list
  for key in pairs(list) do
    if type(key) ~= "number" or key < 1 or key > count or key ~= math.floor(key) then
      errors.raise("invalid_argument", where, ("%s must be a list, it has the key %s"):format(attr.shown,
                   tostring(key)))
    end
  end
  for i = 1, count do
    local text = list[i]
    if type(text) ~= "string" then
      errors.raise("invalid_argument", where, ("entry %d of %s must be a string, got %s"):format(i, attr.shown,
                   errors.describe(text)))
    end
    if text:find "%z" then
      errors.raise("invalid_argument", where, ("entry %d of %s has a byte 0 in it"):format(i, attr.shown))
    end
    kept[#kept + 1] = text
  end
  local array = ffi.new("const char *[?]", math.max(count, 1))
  for i = 1, count do array[i - 1] = list[i] end
  local texts = ffi.new("pg_texts", ffi.offsetof("pg_texts", "list") + ffi.sizeof "void *", count, array)
  kept[#kept + 1], kept[#kept + 2] = array, texts
  return texts
end

-- The tensors of an option, { name =, tensor = }, behind `list`.
local function add_tensors(where, attr, value, list)
  if attr.kind == attributes.kinds.tensor then
    if not handles.is_tensor(value) then reject(where, attr, "a tensor", value) end
    list[#list + 1] = { option = attr.name, tensor = value }
    return
  end
  if type(value) ~= "table" or handles.is_tensor(value) or getmetatable(value) ~= nil then
    reject(where, attr, "a table of tensors", value)
  end
  local names = {}
  for name, tensor in pairs(value) do
    if type(name) ~= "string" or name == "" or name:find "%z" or not handles.is_tensor(tensor) then
      errors.raise("invalid_argument", where, ("%s of %s must be a tensor under a name, got %s"):format(tostring(name),
                   attr.shown, errors.describe(tensor)))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    list[#list + 1] = { option = attr.name, name = name, tensor = value[name] }
  end
end

---Options by name as what C takes: the packed struct of a description, and an array of the tensors that are among them.
---The memory of both, and of texts, lives as long as the result.
function M.pack(where, info, options)
  local struct, kept, tensors = attributes.new_struct(info.attr_size, info.attrs), { options }, {}
  for key, value in pairs(options) do
    local attr = info.by_name[key]
    if not attr then
      local is_name = type(key) == "string"
      local near = is_name and suggest(key, info.names)
      errors.raise("invalid_argument", where, ("%s has no option %s; it has %s"):format(info.name,
                     is_name and ("%q"):format(key) or errors.describe(key),
                     info.names[1] and table.concat(info.names, ", ") or "none"),
                   near and ("did you mean %q?"):format(near) or nil)
    end
    if attr.kind == attributes.kinds.texts then
      ffi.cast("const pg_texts **", struct + attr.offset)[0] = texts_of(where, attr, value, kept)
    elseif attr.kind == attributes.kinds.tensor or attr.kind == attributes.kinds.tensors then
      add_tensors(where, attr, value, tensors)
    else
      attributes.write(where, attr, struct, value)
    end
  end
  for _, attr in ipairs(info.visible) do
    if attr.required and options[attr.name] == nil then
      errors.raise("invalid_argument", where, ("option %q of %s is missing"):format(attr.name, info.name), attr.doc)
    end
  end
  local array = ffi.new("pgc_option_tensor[?]", math.max(#tensors, 1))
  for i, each in ipairs(tensors) do
    array[i - 1].option, array[i - 1].name = each.option, each.name
    array[i - 1].tensor = handles.pointer(each.tensor, where)
  end
  kept[#kept + 1] = tensors
  return { struct = struct, tensors = array, count = #tensors, kept = kept }
end

function M.start(library) C = library end

return M
