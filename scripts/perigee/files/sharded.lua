-- SPDX-License-Identifier: Apache-2.0
-- Checkpoints in several files, as Hugging Face writes large ones: model.safetensors.index.json says under "weight_map"
-- which file of its folder holds which tensor. The index is not trusted: it names files of its own folder alone.

local native = require "perigee.native"
local loading = require "perigee.nn.loading"

local sharded = {}

local WHERE = "load"

---Whether a path is that of an index.
function sharded.is_index(path) return path:lower():find("%.index%.json$") ~= nil end

local function damaged(path, what, hint) native.raise("data_loss", WHERE, path .. ": " .. what, hint) end

local function is_object(v)
  return type(v) == "table" and not require("perigee").json.is_array(v)
end

-- A file beside the index: a way to another folder is not one.
local function check_file(path, name, file)
  if type(file) ~= "string" then
    damaged(path, ("weight_map has %s as the file of %q, not a text"):format(native.describe(file), name))
  end
  if file == "" or file == "." or file == ".." or file:find("[/\\%z]") then
    damaged(path, ("weight_map has %q as the file of %q, which is no name of a file beside it"):format(file, name))
  end
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

---What an index says.
---@param path string
---@param check_path fun(where: string, path: string) raises for formats that are not read
---@return {path: string, shards: {file: string, path: string, names: string[]}[], names: string[], metadata: table}
function sharded.read_index(path, check_path)
  if not exists(path) then native.raise("not_found", WHERE, ("there is no file '%s'"):format(path)) end
  local content = require("perigee").json.load(path)
  if not is_object(content) or not is_object(content.weight_map) then
    damaged(path, "it has no object \"weight_map\"", "an index of shards is {\"weight_map\": {name: file}}")
  end
  local metadata = is_object(content.metadata) and content.metadata or {}
  local index = { path = path, shards = {}, names = {}, metadata = metadata }
  local folder, by_file = path:match("^(.*/)[^/]*$") or "", {}
  for name, file in pairs(content.weight_map) do
    check_file(path, name, file)
    local shard = by_file[file]
    if not shard then
      shard = { file = file, path = folder .. file, names = {} }
      by_file[file], index.shards[#index.shards + 1] = shard, shard
    end
    shard.names[#shard.names + 1], index.names[#index.names + 1] = name, name
  end
  table.sort(index.shards, function(a, b) return a.file < b.file end)
  local absent = {}
  for _, shard in ipairs(index.shards) do
    table.sort(shard.names)
    check_path(WHERE, shard.path)
    if not exists(shard.path) then absent[#absent + 1] = shard.file end
  end
  if #absent > 0 then
    native.raise("not_found", WHERE, ("%s: %d of its %d files are not there: %s"):format(path, #absent, #index.shards,
                 table.concat(absent, ", ", 1, math.min(#absent, 4)) .. (#absent > 4 and ", ..." or "")))
  end
  return index
end

-- The tensors that the index says are in a shard, and the shard's notes.
local function read_shard(index, shard, options)
  local found, _, note = native.read(shard.path, options)
  local tensors = {}
  for _, name in ipairs(shard.names) do
    if not found[name] then damaged(index.path, ("%q is to be in %s, which lacks it"):format(name, shard.file)) end
    tensors[name] = found[name]
  end
  return tensors, note
end

local function notes_of(index, note)
  return function(key)
    local value = index.metadata[key]
    if type(value) == "string" or type(value) == "number" then return tostring(value) end
    return note and note(key)
  end
end

---All tensors of an index by name, and its notes.
function sharded.read(index, options)
  local all, first_note = {}, nil
  for _, shard in ipairs(index.shards) do
    local tensors, note = read_shard(index, shard, options)
    first_note = first_note or note
    for name, x in pairs(tensors) do all[name] = x end
  end
  return all, notes_of(index, first_note)
end

local function load_shard(index, shard, plan)
  local tensors, note = read_shard(index, shard)
  loading.copy(plan, tensors)
  return note
end

---Loads an index's tensors into a layer, a shard at a time: beside the layer there is the memory of one. Names are all
---looked at before anything is read, shapes shard by shard.
function sharded.load(index, layer, options)
  local plan = loading.plan(layer, index.names, loading.read_options(options))
  local wanted, first_note = {}, nil
  for _, pair in ipairs(plan.pairs) do wanted[pair.source] = true end
  local scope = require("perigee").scope -- what a shard held goes at its end
  for _, shard in ipairs(index.shards) do
    local is_wanted = false
    for _, name in ipairs(shard.names) do is_wanted = is_wanted or wanted[name] == true end
    if is_wanted then
      local note = scope(load_shard, index, shard, plan)
      first_note = first_note or note
    end
  end
  return layer, notes_of(index, first_note), plan.missing, plan.unexpected
end

return sharded
