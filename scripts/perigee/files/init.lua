-- SPDX-License-Identifier: Apache-2.0
-- pg.save and pg.load: layers and tables of tensors in files. The path's extension names the format.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local sharded = require "perigee.files.sharded"

local files = {}

local PICKLES = { bin = true, pt = true, pth = true, pkl = true, pickle = true, t7 = true, ckpt = true, h5 = true,
                  keras = true }

local function check_path(where, path)
  if type(path) ~= "string" or path == "" then
    native.raise("invalid_argument", where, "path must be a string, got " .. native.describe(path),
                 where == "save" and "pg.save(path, what)" or nil)
  end
  local ending = path:match("%.(%w+)$")
  if ending and PICKLES[ending:lower()] then
    native.raise("not_supported", where, ("%q is a format of other programs that may run code when read"):format("." ..
                   ending), "use .safetensors; from Python: safetensors.torch.save_file(model.state_dict(), path)")
  end
  if ending and ending:lower() == "json" and not (where == "load" and sharded.is_index(path)) then
    native.raise("not_supported", where, (".json holds no tensors: %q"):format(path), ("pg.json.%s"):format(
                   where == "load" and "load(path); an index of shards ends in .index.json" or "save(path, value)"))
  end
end

local function check_names(where, tensors, names)
  for _, name in ipairs(names) do
    if type(name) ~= "string" or not native.is_tensor(tensors[name]) then
      native.raise("invalid_argument", where, ("%s must be a tensor under a name, got %s"):format(tostring(name),
                   native.describe(tensors[name])), where == "save" and
                   "pg.CheckpointManager{folder} keeps models, optimizers and numbers together" or nil)
    end
    if name:find("\0", 1, true) then
      native.raise("invalid_argument", where, ("a NUL byte stands in the name %q of a tensor"):format(name))
    end
  end
end

local function check_options(options)
  if options == nil then return end
  if not native.is_plain(options) then
    native.raise("invalid_argument", "save", "options must be a table, got " .. native.describe(options))
  end
  for key in pairs(options) do
    if key ~= "notes" then
      native.raise("invalid_argument", "save", ("unknown option %q"):format(tostring(key)), "options are notes")
    end
  end
  local notes = options.notes
  if notes ~= nil and type(notes) ~= "table" then
    native.raise("invalid_argument", "save", "notes must be a table of strings, got " .. native.describe(notes))
  end
  for key, value in pairs(notes or {}) do
    if type(key) ~= "string" or (key .. tostring(value)):find("\0", 1, true) then
      native.raise("invalid_argument", "save", ("the note %q must be a text without NUL bytes under a name"):format(
                     tostring(key)))
    end
  end
end

-- Sessions go into graph files, and nothing else does.
local function is_session(path, what)
  local is = native.graphs.is_session ~= nil and native.graphs.is_session(what) -- nil: none was ever made
  if is == (path:lower():find("%.pgraph$") ~= nil) then return is end
  native.raise("invalid_argument", "save", is and ("a session goes into a .pgraph file, not into %q"):format(path) or
                 "a .pgraph file holds a session, got " .. native.describe(what),
               is and "pg.save(path, session:state()) writes what its variables hold" or "pg.save(path, pg.Session{g})")
end

-- The names of a layer's tensors, of shared ones the first.
local function once(layer)
  local names, seen = {}, {}
  for _, entry in ipairs(walk.tensors(layer)) do
    if not seen[entry.tensor] then names[#names + 1] = entry.name end
    seen[entry.tensor] = true
  end
  return names
end

---Writes a layer's state, or a table of tensors by name. Atomic: the file is the old one or the whole new one.
---An image is one tensor [rows, columns] or [rows, columns, channels], uint8 or int32 of 16 bits.
---A tensor that a layer has under several names (tied weights) is written once, under the first, as Hugging Face does.
---A session goes into a .pgraph file: its graph, with what its variables hold, for pg.load_graph.
---`inputs` and `outputs` say what is fed and fetched (placeholders and results, by default all): names or tensors, as a
---list or by the names that they are to have. `freeze` keeps what the outputs need alone, and makes constants of
---variables.
---Where the disk, a quota or a limit of file sizes is full, an error with the code "out_of_disk" names the path.
---@param path string "model.safetensors"
---@param what perigee.Layer|table<string, perigee.Tensor>|perigee.Session
---@param options? {notes?: table<string, string>, inputs?: any, outputs?: any, freeze?: boolean}
function files.save(path, what, options)
  check_path("save", path)
  if is_session(path, what) then return native.graphs.save_session(path, what, options) end
  check_options(options)
  local tensors, names
  if walk.is_layer(what) then
    if walk.is_lazy(what) then
      native.raise("failed_precondition", "save", "the model's sizes are not known before its first input",
                   "call it once")
    end
    tensors, names = what:state(), once(what)
  elseif type(what) == "table" then
    tensors, names = what, {}
    for name in pairs(what) do names[#names + 1] = name end
    check_names("save", tensors, names)
    table.sort(names)
  else
    native.raise("invalid_argument", "save", "needs a layer or a table of tensors, got " .. native.describe(what),
                 native.is_tensor(what) and "pg.save(path, {x=tensor})" or nil)
  end
  local list = {}
  for i, name in ipairs(names) do list[i] = tensors[name] end
  native.write(path, names, list, options and options.notes)
end

local function load_into(layer, path, options)
  local tensors, _, note = native.read(path)
  return note, layer:load_state(tensors, options)
end

-- Whether a layer's class has a load_state of its own, which may keep what it is given.
local function has_own_way(layer) return layer.load_state ~= require("perigee").nn.Module.load_state end

---Reads a file of tensors. With a layer, loads them into it and returns the layer. Without one the options are the
---format's: `pg.load("table.csv", {skip=1})`. Tables, arrays and images are one tensor named `data`; a PNG image is
---[rows, columns, channels], uint8 or int32 of 16 bits, of at most `max_pixels` (2^28), and channels are grey, grey and
---opacity, red green blue, or these and opacity; JPEG and WebP images are uint8. A checkpoint in several files is read
---by its index, `pg.load("model.safetensors.index.json", model)`: into a layer a file at a time, so that beside it
---there is the memory of one; all names are looked at before.
---@param path string
---@param into? perigee.Layer
---@param options? {strict?: boolean, strip_prefix?: string, add_prefix?: string} as in load_state
---@return table<string, perigee.Tensor>|perigee.Layer tensors by name, or the layer
---@return fun(key: string): string? note the file's notes
---@return string[]? missing of a layer: names that the file lacks
---@return string[]? unexpected names that the layer lacks
function files.load(path, into, options)
  check_path("load", path)
  if native.is_plain(into) and options == nil then into, options = nil, into end
  if into == nil and options ~= nil and not native.is_plain(options) then
    native.raise("invalid_argument", "load", "options must be a table, got " .. native.describe(options))
  end
  if into ~= nil and not walk.is_layer(into) then
    native.raise("invalid_argument", "load", "the second argument must be a layer, got " .. native.describe(into))
  end
  if sharded.is_index(path) then
    local index = sharded.read_index(path, check_path)
    if into == nil then return sharded.read(index, options) end
    if not has_own_way(into) then return sharded.load(index, into, options) end
    local tensors, note = sharded.read(index)
    return into, note, into:load_state(tensors, options)
  end
  if into == nil then
    local tensors, _, note = native.read(path, options)
    return tensors, note
  end
  local note, missing, unexpected
  if has_own_way(into) then
    note, missing, unexpected = load_into(into, path, options)
  else -- in a scope: the file's tensors go as soon as they are copied
    note, missing, unexpected = require("perigee").scope(load_into, into, path, options)
  end
  return into, note, missing, unexpected
end

return files
