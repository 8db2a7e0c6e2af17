-- SPDX-License-Identifier: Apache-2.0
-- Where operators are called from, told to the core before each of them: for messages of what fails late, if that is
-- asked for, and for the nodes of a graph that is being recorded, which get names by it too. Finding the line walks the
-- stack, so it is off otherwise.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local scopes = require "perigee.native.scopes"

local M = { on = false }
errors.origins = M
local C

local asked, recording = false, nil -- by pg.config.set; { graph, layers that it knows }
local scope -- what names begin with, by pg.name_scope
local around -- inside of bodies (native/control.lua): { the scope around the outermost one }

---Set by the layer code: answers a layer's class, the names of all that it and those in it hold, the tensors, and
---whether some of them wait for the first input.
errors.layer_tensors = nil

-- "encoder/blocks.0", of the scope in force and the layer in progress.
local function inside(names)
  if names == nil then return scope end
  return scope and scope .. "/" .. names or names
end

local told, told_scope -- to the core; false: nothing

local function tell(origin)
  if origin == told then return end
  C.pgc_set_origin(origin or nil)
  told = origin
end
local function tell_scope(name)
  if name == told_scope then return end
  C.pgc_set_name_scope(name or nil)
  told_scope = name
end

-- What the outermost layer and those in it hold is the graph's where it is used: under its names in the layer's state.
-- A lazy layer is asked again, until all has its size.
local function name_tensors(root)
  if recording.named[root] then return end
  local class, names, tensors, lazy = errors.layer_tensors(root)
  recording.named[root] = not lazy
  local held = scope
  if around then held = around[1] end
  tell_scope(held or false)
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

-- Answers the line, and whether no layer stands on the stack.
local function note_slowly()
  local line, path, names, root = errors.script_line() or "?", nil, nil, nil
  if errors.layer_path then path, names, root = errors.layer_path() end
  tell(path and line .. " in " .. path or line)
  if not recording then return line, false end
  if root then name_tensors(root) end
  tell_scope(inside(names) or false)
  return line, path == nil
end

-- The lines of the whole stack as one string, where LuaJIT has its profiler: a graph's nodes come from the same few
-- places of a script again and again, and what was found out of a stack without layers holds for the next one like it.
local has_profiler, profiler = pcall(require, "jit.profile")
local most_frames, most_stacks = 64, 1000
local lines, line_count = {}, 0 -- by stack

-- Whether that is all of the stack: a coroutine's goes on in the one around it (scopes.each_frame).
local function is_whole(stack)
  local _, frames = stack:gsub(";", "")
  return frames < most_frames and scopes.in_main()
end

---Tells the core the script's line, and the layer whose call stands on the stack.
function M.note()
  if not recording or not has_profiler then
    note_slowly()
    return
  end
  local stack = profiler.dumpstack("pl;", most_frames)
  local line = lines[stack]
  if line and scopes.in_main() then
    tell(line)
    tell_scope(scope or false)
    return
  end
  local found, plain = note_slowly()
  if not plain or not is_whole(stack) then return end
  if line_count == most_stacks then lines, line_count = {}, 0 end
  lines[stack], line_count = found, line_count + 1
end

function M.set(on)
  asked = on
  M.on = asked or recording ~= nil
  if not M.on then tell(false) end
end

---Whether pg.config.set has asked for lines.
function M.asked() return asked end

---A graph is being recorded from now on (nil: none).
function M.record(graph)
  recording = graph ~= nil and { graph = graph, named = setmetatable({}, { __mode = "k" }) } or nil
  M.set(asked)
  tell_scope(recording and scope or false)
end

---What names begin with from now on (nil: nothing); answers what it was.
function M.set_scope(name)
  local old = scope
  scope = name
  if recording then tell_scope(scope or false) end
  return old
end

function M.scope() return scope end

---What names in a body begin with; those of what layers hold stay as around it, as they are the whole graph's. Answers
---what M.leave_body takes.
function M.enter_body(name)
  local old = { around = around, scope = scope }
  around = around or { scope }
  M.set_scope(name)
  return old
end
function M.leave_body(old)
  around = old.around
  M.set_scope(old.scope)
end

function M.start(library) C = library end

return M
