-- SPDX-License-Identifier: Apache-2.0
-- Where operators are called from, told to the core before each of them: for messages of what fails late, if that is
-- asked for, and for the nodes of a graph that is being recorded, which get names by it too. Finding the line walks the
-- stack, so it is off otherwise.

local errors = require "perigee.native.errors"

local M = { on = false }
errors.origins = M
local C

local asked, recording = false, nil -- by pg.config.set; { graph, layers that have been named }
local scope -- what names begin with, by pg.name_scope

---Set by the layer code: calls name(tensor, "weight") for all that a layer holds.
errors.layer_tensors = nil

-- "encoder/blocks.0", of the scope in force and the layer in progress.
local function inside(names)
  if names == nil then return scope end
  return scope and scope .. "/" .. names or names
end

-- What a layer holds is called by its path when the graph takes it in.
local function name_tensors(layer, names)
  if recording.named[layer] then return end
  recording.named[layer] = true
  local prefix = inside(names)
  errors.layer_tensors(layer, function(t, name)
    if t.ptr ~= nil then C.pgc_graph_call(recording.graph, t.ptr, prefix and prefix .. "." .. name or name) end
  end)
end

---Tells the core the script's line, and the layer whose call stands on the stack.
function M.note()
  local line, path, names, layer = errors.script_line() or "?", nil, nil, nil
  if errors.layer_path then path, names, layer = errors.layer_path() end
  C.pgc_set_origin(path and line .. " in " .. path or line)
  if not recording then return end
  C.pgc_set_name_scope(inside(names))
  if layer then name_tensors(layer, names) end
end

function M.set(on)
  asked = on
  M.on = asked or recording ~= nil
  if not M.on then C.pgc_set_origin(nil) end
end

---Whether pg.config.set has asked for lines.
function M.asked() return asked end

---A graph is being recorded from now on (nil: none).
function M.record(graph)
  recording = graph ~= nil and { graph = graph, named = setmetatable({}, { __mode = "k" }) } or nil
  M.set(asked)
  C.pgc_set_name_scope(recording and scope or nil)
end

---What names begin with from now on (nil: nothing); answers what it was.
function M.set_scope(name)
  local old = scope
  scope = name
  if recording then C.pgc_set_name_scope(scope) end
  return old
end

function M.scope() return scope end

function M.start(library) C = library end

return M
