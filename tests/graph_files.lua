-- SPDX-License-Identifier: Apache-2.0
-- Graphs in files, for tests.

local pg = require "perigee"
local native = require "perigee.native"

local files = {}

---Calls fn with the name of a file that is not there, and removes it.
function files.with_path(fn, extension)
  local name = os.tmpname()
  os.remove(name)
  local path = name .. (extension or ".pgraph")
  local ok, e = pcall(fn, path)
  os.remove(path)
  if not ok then error(e, 0) end
end

---The graph of a session, written and read again.
---@return perigee.Graph
function files.round_trip(session, options, load_options)
  local read
  files.with_path(function(path)
    pg.save(path, session, options)
    read = pg.load_graph(path, load_options)
  end)
  return read
end

---Raises unless two tensors have one dtype and shape and the same bytes.
function files.same_bits(got, want, name)
  if not got or not want then error(("%s: only one is there"):format(name), 2) end
  if got.dtype ~= want.dtype or got.shape ~= want.shape then
    error(("%s: got %s %s, expected %s %s"):format(name, got.dtype, tostring(got.shape), want.dtype,
                                                   tostring(want.shape)), 2)
  end
  if native.host.bytes(got, "test") ~= native.host.bytes(want, "test") then
    error(("%s: got %s, expected %s"):format(name, tostring(got), tostring(want)), 2)
  end
end

---The same of all entries of two tables.
function files.same_all(got, want)
  for name, y in pairs(want) do files.same_bits(got[name], y, name) end
  for name in pairs(got) do
    if not want[name] then error(("%s is there too"):format(name), 2) end
  end
end

---What a file says of its graph, as a table.
function files.document(path)
  local _, note = pg.load(path)
  return pg.json.decode(require("perigee.graph.document").from_notes(note))
end

---Writes tensors with another text in place of the graph's.
function files.write(path, tensors, text)
  pg.save(path:gsub("pgraph$", "safetensors"), tensors, { notes = require("perigee.graph.document").to_notes(text) })
  assert(os.rename(path:gsub("pgraph$", "safetensors"), path))
end

return files
