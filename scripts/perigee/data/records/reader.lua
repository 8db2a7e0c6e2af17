-- SPDX-License-Identifier: Apache-2.0
-- Bytes of files by position: of plain ones where they stand, of compressed ones as they are unpacked in memory.

local native = require "perigee.native"

local MOST_OPEN = 64 -- files at a time

local Unpacked = {}
Unpacked.__index = Unpacked

function Unpacked:size() return self.bytes:size(1) end
function Unpacked:read(at, count)
  count = math.min(count, self:size() - at)
  if count <= 0 then return "" end
  return native.host.bytes(self.bytes:narrow(1, at + 1, count))
end
function Unpacked:close() self.bytes = nil end

local Plain = {}
Plain.__index = Plain

function Plain:size() return self.file:seek "end" end
function Plain:read(at, count)
  self.file:seek("set", at)
  return self.file:read(count) or ""
end
function Plain:close() self.file:close() end

local reader = {}

---A file as it stands, with size(), read(at, count), which answers fewer bytes at its end, and close().
function reader.plain(where, path)
  local file, problem = io.open(path, "rb")
  if not file then native.raise("not_found", where, tostring(problem)) end
  return setmetatable({ file = file }, Plain)
end

---The same of a gzip or zlib file, whatever its name is.
function reader.unpacked(where, path)
  return setmetatable({ bytes = native.read(path, nil, where, ".gz").data }, Unpacked)
end

---Whether a file begins as gzip's do.
function reader.is_gzip(file) return file:read(0, 2) == "\31\139" end

---Plain files that are opened when they are asked for, and not all at a time.
function reader.opener(where)
  local open, count = {}, 0
  return function(path)
    if open[path] then return open[path] end
    if count >= MOST_OPEN then
      for _, file in pairs(open) do file:close() end
      open, count = {}, 0
    end
    local file = reader.plain(where, path)
    open[path], count = file, count + 1
    return file
  end
end

return reader
