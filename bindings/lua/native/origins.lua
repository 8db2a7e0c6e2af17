-- SPDX-License-Identifier: Apache-2.0
-- Where operators are called from, told to the core before each of them: for messages of what fails late, if that is
-- asked for, and for the nodes of a graph that is being recorded, which get names by it too. Finding the line walks the
-- stack, so it is off otherwise.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local scopes = require "perigee.native.scopes"
local sites = require "perigee.native.sites"

---`before`: somebody wants lines before operators run: pg.config.set, or a graph that is being recorded. `after`: a
---profile does, behind them. `on`: any of these: what is no operator's own function notes before it calls. `layers`:
---how many are being called in the recording; other than 0 too where an error has ended a call.
local M = { on = false, before = false, after = false, in_profile = false, layers = 0 }
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
local NEAR = 5 -- frames: the profiler's, this file's, the operator's function, that of its sign, and the script's
local lines, line_count = {}, 0 -- by stack
local near_lines = {}           -- by its nearest frames, where the line is one of them and no layer is being called

-- Whether that is all of the stack: a coroutine's goes on in the one around it (scopes.each_frame).
local function is_whole(stack)
  local _, frames = stack:gsub(";", "")
  return frames < most_frames and scopes.in_main()
end

-- Whether a line is that of one of these frames.
local function is_near(near, line) return (";" .. near):gsub(";%./", ";"):find(";" .. line .. ";", 1, true) ~= nil end

-- ---- in a profile ----
-- The line must cost less than an operator, so the library knows it by the address that compiled code asks from
-- (sites). Where it does not, our executable looks it up (src/lines.hpp) for each line of the script in each call of
-- layers, and what that does not know is looked for here. In another host all is.

local seek = package.loaded["perigee.native.lines"]

-- The layer whose call is under way: { layer, its number, children by layer }; nil: no profile.
local profiled
local layer_count
local spent -- seconds that looking for lines here has taken, which is not what a profile is about
local walks -- of the stack, by our executable

local function address(pointer) return tonumber(ffi.cast("uintptr_t", ffi.cast("const void *", pointer))) end

-- Whether code stands in that call by the coroutine that runs, not by one around it: then it stands there next time.
local function is_called_here()
  if profiled.number == 0 then return true end
  return scopes.each_frame("f", function(info, thread, level)
    if errors.layer_calls[info.func] and scopes.first_local(thread, level) == profiled.layer then return not thread end
  end)
end

-- What is noted for the stack as it stands: an interned text.
local function place_slowly()
  local begin = C.pgc_profile_time()
  local line, path = errors.script_line() or "?", errors.layer_path and errors.layer_path() or nil
  local place = C.pgc_interned(path and line .. " in " .. path or line)
  if not is_called_here() then
    C.pgc_profile_unsure()
  elseif seek then
    seek.remember(address(place))
  end
  spent = spent + tonumber(C.pgc_profile_time() - begin) * 1e-9
  return place
end

local note -- what M.note is without a profile
local function note_profiled()
  if M.before then note() end
  told = nil -- tell() knows nothing of it
  walks = walks + 1
  if not seek or seek.put(profiled.number) then C.pgc_put_origin(place_slowly()) end
end

---The last operator was called from here.
function M.note_after()
  told = nil -- the core has been told of no line for what follows
  if C.pgc_profile_site(profiled.number) == 0 then
    walks = walks + 1
    if not seek or seek.place(profiled.number) then C.pgc_profile_place(place_slowly()) end
  end
end

-- What note_after would be told, for the library.
local function offer() seek.offer(profiled.number) end
jit.off(offer)

-- Seconds that finding a known line takes.
local function cost_of_finding()
  local begin, count = C.pgc_profile_time(), 100
  for _ = 1, count do seek.find(0) end
  return tonumber(C.pgc_profile_time() - begin) * 1e-9 / count
end

---Operators are noted with lines and layers from now on.
function M.begin_profile()
  profiled, layer_count = { number = 0, children = setmetatable({}, { __mode = "k" }) }, 0
  spent, walks = 0, 0
  if seek then
    seek.start(errors.is_own_source, address(C.pgc_profile_place), address(C.pgc_put_origin),
               address(C.pgc_profile_offer))
    sites.begin(C, errors.is_own_source, M.note_after, offer)
  end
  M.in_profile, M.after, M.on = true, true, true
  note, M.note = M.note, note_profiled
end

---Not any more. Answers the seconds that looking for lines took.
---@return number
function M.end_profile()
  if not profiled then return 0 end
  sites.finish()
  profiled = nil
  M.in_profile, M.after, M.note = false, false, note
  C.pgc_set_origin(nil)
  told = false
  M.set(asked)
  return spent + (seek and walks * cost_of_finding() or 0)
end

---The call of a layer begins; answers what leave_layer takes when it is over.
function M.enter_layer(layer)
  local outer = profiled
  if not outer then return nil end
  local inner = outer.children[layer]
  if not inner then
    layer_count = layer_count + 1
    inner = { layer = layer, number = layer_count, children = setmetatable({}, { __mode = "k" }) }
    outer.children[layer] = inner
  end
  profiled = inner
  return outer
end
function M.leave_layer(outer)
  if profiled and outer then profiled = outer end
end

-- ---- otherwise ----

---Tells the core the script's line, and the layer whose call stands on the stack.
function M.note()
  if not recording or not has_profiler then
    note_slowly()
    return
  end
  local near
  if M.layers == 0 then
    if recording.bare == nil then recording.bare = not (errors.layer_path and errors.layer_path()) end
    near = recording.bare and profiler.dumpstack("pl;", NEAR)
  end
  local line, stack = near_lines[near or 1], nil
  if not line then
    stack = profiler.dumpstack("pl;", most_frames)
    line = scopes.in_main() and lines[stack]
  end
  if line then
    tell(line)
    tell_scope(scope or false)
    return
  end
  local found, plain = note_slowly()
  if not plain then return end
  if line_count >= most_stacks then lines, near_lines, line_count = {}, {}, 0 end
  line_count = line_count + 1
  if near and is_near(near, found) then
    near_lines[near] = found
  elseif is_whole(stack) then
    lines[stack] = found
  end
end

function M.set(on)
  asked = on
  M.before = asked or recording ~= nil
  M.on = M.before or M.in_profile
  if not M.before then tell(false) end
end

---Whether pg.config.set has asked for lines.
function M.asked() return asked end

---A graph is being recorded from now on (nil: none).
function M.record(graph)
  if not recording then M.layers = 0 end
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
