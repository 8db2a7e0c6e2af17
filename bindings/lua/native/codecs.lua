-- SPDX-License-Identifier: Apache-2.0
-- Codecs of plugins: which there are, what headers say, tensors as bytes.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local modules = require "perigee.native.modules"

local M = {}
local C
local known -- { list, names, endings }, the latter two by those

local function read()
  known = { list = modules.json(ffi.string(C.pgc_codecs_json())), names = {}, endings = {} }
  for _, codec in ipairs(known.list) do
    known.names[codec.name] = codec
    codec.part, codec.scales = codec.flags % 2 == 1, math.floor(codec.flags / 2) % 2 == 1
    for _, ending in ipairs(codec.extensions) do known.endings[ending:sub(2):lower()] = codec end
  end
end

-- The codec under a name or an ending; read again where it is not there, as a plugin may have come.
local function found(which, key)
  if not (known and known[which][key]) then read() end
  return known[which][key]
end

---All of them, each with name, extensions, whether it decodes parts and scales, and its options.
function M.list()
  read()
  return known.list
end

---Those of files, by the endings of their names ("jpg").
function M.endings()
  read()
  return known.endings
end

---The codec of that name, or nil.
function M.named(name) return found("names", name) end

---The codec of files whose names end so ("jpg"), or nil.
function M.of_ending(ending) return found("endings", ending:lower()) end

---The codec of bytes, told by how they begin, or nil. A path is none.
function M.of_bytes(bytes)
  if not bytes:find "[%z\1-\8\14-\31\128-\255]" then return nil end
  local name = C.pgc_codec_of(bytes, math.min(#bytes, 64))
  return name ~= nil and M.named(ffi.string(name)) or nil
end

local info = ffi.new("pg_coded_info")

---The shape, as a list, that the header of a file, or of bytes of a codec, says.
function M.probe(where, from, codec)
  local code
  if codec then
    code = C.pgc_probe(codec.name, nil, from, #from, info)
  else
    code = C.pgc_probe(nil, from, nil, 0, info)
  end
  if code ~= 0 then errors.raise_native(C, where) end
  local shape = {}
  for i = 1, info.rank do shape[i] = tonumber(info.shape[i - 1]) end
  return shape
end

local bytes, size = ffi.new("const char *[1]"), ffi.new("uint64_t[1]")

---A tensor as bytes. `notes`: a table of texts, options of the codec among them.
function M.encode(where, codec, tensor, notes)
  local flat = {}
  for key, value in pairs(notes or {}) do
    flat[#flat + 1] = key
    flat[#flat + 1] = tostring(value)
  end
  local array = ffi.new("const char *[?]", math.max(#flat, 1), flat)
  if C.pgc_encode(codec.name, handles.pointer(tensor, where), #flat / 2, array, bytes, size) ~= 0 then
    errors.raise_native(C, where)
  end
  return ffi.string(bytes[0], size[0])
end

function M.start(library) C = library end

return M
