-- SPDX-License-Identifier: Apache-2.0
-- Sources and transforms of input pipelines that plugins bring: what there is, and their options as packed structs.

local ffi = require "ffi"
local attributes = require "perigee.native.attributes"
local errors = require "perigee.native.errors"
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

---Options by name as the packed struct of a description. Their texts live as long as `options` does.
function M.pack(where, info, options)
  local struct = attributes.new_struct(info.attr_size, info.attrs)
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
    attributes.write(where, attr, struct, value)
  end
  for _, attr in ipairs(info.visible) do
    if attr.required and options[attr.name] == nil then
      errors.raise("invalid_argument", where, ("option %q of %s is missing"):format(attr.name, info.name), attr.doc)
    end
  end
  return struct
end

function M.start(library) C = library end

return M
