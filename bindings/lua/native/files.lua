-- SPDX-License-Identifier: Apache-2.0
-- Files of tensors, through the format plugins.

local bit = require "bit"
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

-- What a file holds: tensors by name, names in file order, and a function that answers a note (or nil).
local function contents(raw)
  local file = ffi.gc(raw, C.pgc_file_close)
  local tensors, names = {}, {}
  for i = 1, C.pgc_file_count(file) do
    local name = ffi.string(C.pgc_file_name(file, i - 1))
    names[i], tensors[name] = name, handles.wrap(C.pgc_file_tensor(file, i - 1))
  end
  local notes, count = {}, 0 -- all of them now: the file holds its tensors while it is open
  while true do
    local key = C.pgc_file_note_key(file, count)
    if key == nil then break end
    notes[ffi.string(key)], count = ffi.string(C.pgc_file_note(file, key)), count + 1
  end
  C.pgc_file_close(ffi.gc(file, nil))
  return tensors, names, function(key) return notes[key] end
end

---Reads a file: tensors by name, names in file order, and a function that answers a note (or nil). `where`: what
---messages call the reader. `extension`: whose format it is, where the path does not say so.
function M.read(path, options, where, extension)
  local out = ffi.new("pgc_file *[1]")
  if C.pgc_read_as(path, extension, option_lines(options), out) ~= 0 then
    errors.raise_native(C, where or "load", nil, "load")
  end
  return contents(out[0])
end

---The same of a file's bytes.
function M.read_bytes(bytes, extension, options, where)
  local out = ffi.new("pgc_file *[1]")
  if C.pgc_read_bytes(extension, bytes, #bytes, option_lines(options), out) ~= 0 then
    errors.raise_native(C, where or "load", nil, "load")
  end
  return contents(out[0])
end

-- The C arrays of named tensors and of notes (a table of strings); the lists behind them must live as long.
local function arrays(names, tensors, notes)
  local flat, keys = {}, {}
  for key in pairs(notes or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    flat[#flat + 1], flat[#flat + 2] = key, tostring(notes[key])
  end
  return { array = gradients.array(tensors, #names, "write"), names = ffi.new("const char *[?]", math.max(#names, 1),
           names), notes = ffi.new("const char *[?]", math.max(#flat, 1), flat), count = #keys, flat = flat }
end

---Writes a file atomically. `notes` is a table of strings.
function M.write(path, names, tensors, notes)
  local a = arrays(names, tensors, notes)
  if C.pgc_write(path, #names, a.names, a.array, a.count, a.notes) ~= 0 then errors.raise_native(C) end
end

local sum = ffi.new("uint64_t[1]")
local function hexadecimal(value) return bit.tohex(value, 16) end

---Writes STEM.CHECKSUM.EXTENSION atomically; answers the checksum's 16 digits.
function M.write_sealed(stem, extension, names, tensors, notes)
  local a = arrays(names, tensors, notes)
  if C.pgc_write_sealed(stem, extension, #names, a.names, a.array, a.count, a.notes, sum) ~= 0 then
    errors.raise_native(C)
  end
  return hexadecimal(sum[0])
end

---Writes a string as a file, atomically.
function M.write_text(path, text)
  if C.pgc_write_bytes(path, text, #text) ~= 0 then errors.raise_native(C) end
end

---Removes what killed processes left of files whose names begin with `prefix`.
function M.remove_unfinished(folder, prefix)
  if C.pgc_remove_unfinished(folder, prefix) ~= 0 then errors.raise_native(C) end
end

---The checksum of a file's bytes, as write_sealed names it.
function M.checksum(path)
  if C.pgc_checksum(path, sum) ~= 0 then errors.raise_native(C) end
  return hexadecimal(sum[0])
end

---Makes a folder and all above it.
function M.make_folder(path)
  if C.pgc_make_folder(path) ~= 0 then errors.raise_native(C) end
end

---Names of what is in a folder, sorted.
function M.folder(path)
  local text, names = C.pgc_folder_names(path), {}
  if text == nil then errors.raise_native(C) end
  for name in ffi.string(text):gmatch("[^\n]+") do names[#names + 1] = name end
  table.sort(names)
  return names
end

function M.start(library) C = library end

return M
