-- SPDX-License-Identifier: Apache-2.0
-- Files of tensors, through the format plugins.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local gradients = require "perigee.native.gradients"

local M = {}
local C

local function option_lines(options)
  local lines = {}
  for key, value in pairs(options or {}) do lines[#lines + 1] = key .. "=" .. tostring(value) end
  table.sort(lines)
  return table.concat(lines, "\n")
end

---Reads a file: tensors by name, names in file order, and a function that answers a note (or nil).
function M.read(path, options)
  local out = ffi.new("pgc_file *[1]")
  if C.pgc_read(path, option_lines(options), out) ~= 0 then errors.raise_native(C, "read") end
  local file = ffi.gc(out[0], C.pgc_file_close)
  local tensors, names = {}, {}
  for i = 1, C.pgc_file_count(file) do
    local name = ffi.string(C.pgc_file_name(file, i - 1))
    names[i], tensors[name] = name, handles.wrap(C.pgc_file_tensor(file, i - 1))
  end
  return tensors, names, function(key)
    local text = C.pgc_file_note(file, key)
    return text ~= nil and ffi.string(text) or nil
  end
end

---Writes a file atomically. `notes` is a table of strings.
function M.write(path, names, tensors, notes)
  local count = #names
  local array = gradients.array(tensors, count, "write")
  local name_array = ffi.new("const char *[?]", math.max(count, 1), names)
  local flat, keys = {}, {}
  for key in pairs(notes or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    flat[#flat + 1], flat[#flat + 2] = key, tostring(notes[key])
  end
  local note_array = ffi.new("const char *[?]", math.max(#flat, 1), flat)
  if C.pgc_write(path, count, name_array, array, #keys, note_array) ~= 0 then errors.raise_native(C, "write") end
end

function M.start(library) C = library end

return M
