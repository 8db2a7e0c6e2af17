-- SPDX-License-Identifier: Apache-2.0
-- Where operators are called from, told to the core before each of them: for messages of what fails late, if that is
-- asked for, and for the nodes of a graph that is being recorded, which get names by it too. Finding the line walks the
-- stack, so it is off otherwise.

local ffi = require "ffi"
local errors = require "perigee.native.errors"

local M = { on = false }
errors.origins = M
local C

local asked, recording = false, nil -- by pg.config.set; { graph, layers that it knows }
local scope -- what names begin with, by pg.name_scope

---Set by the layer code: answers a layer's class, the names of all that it and those in it hold, the tensors, and
---whether some of them wait for the first input.
errors.layer_tensors = nil

-- "encoder/blocks.0", of the scope in force and the layer in progress.
local function inside(names)
  if names == nil then return scope end
  return scope and scope .. "/" .. names or names
end

-- What the outermost layer and those in it hold is the graph's where it is used: under its names in the layer's state.
-- A lazy layer is asked again, until all has its size.
local function name_tensors(root)
  if recording.named[root] then return end
  local class, names, tensors, lazy = errors.layer_tensors(root)
  recording.named[root] = not lazy
  C.pgc_set_name_scope(scope)
  M.call(recording.graph, class, names, tensors)
end

---Tells a graph of what a model holds, under these names in the scope in force.
function M.call(graph, class, names, tensors)
  local open, list, texts = 0, ffi.new("pgc_tensor *[?]", #names + 1), ffi.new("const char *[?]", #names + 1)
  for i, t in ipairs(tensors) do
    if t.ptr ~= nil then
      list[open], texts[open] = t.ptr, names[i]
      open = open + 1
    end
  end
  if C.pgc_graph_call(graph, class, open, list, texts) ~= 0 then errors.raise_native(C, "graph") end
end

---Tells the core the script's line, and the layer whose call stands on the stack.
function M.note()
  local line, path, names, root = errors.script_line() or "?", nil, nil, nil
  if errors.layer_path then path, names, root = errors.layer_path() end
  C.pgc_set_origin(path and line .. " in " .. path or line)
  if not recording then return end
  if root then name_tensors(root) end
  C.pgc_set_name_scope(inside(names))
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
