-- SPDX-License-Identifier: Apache-2.0
-- Graphs and sessions. They are few and long-lived, so these have finalizers.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local gradients = require "perigee.native.gradients"
local sizes = require "perigee.native.size"
local operators = require "perigee.native.operators"
local scopes = require "perigee.native.scopes"
local origins = require "perigee.native.origins"
local check_open = require("perigee.native.tensor").check_open

-- Whether operators become nodes, and of which graph; the graph that scripts are recording, as they see it (false:
-- none).
local M = { recording = false, current = nil, front = false }
local depth = 0 -- how many layers are being called
local C
local out = ffi.new("pgc_tensor *[1]")

local function check(rc, where)
  if rc ~= 0 then errors.raise_native(C, where) end
end

-- C would take nil for a graph at address 0.
local function open(handle, where)
  if handle == nil then errors.raise("internal", where, "there is no graph or session behind this object") end
  return handle
end

function M.create()
  local graph = ffi.new("pgc_graph *[1]")
  check(C.pgc_graph_create(graph), "graph")
  return ffi.gc(graph[0], C.pgc_graph_release)
end

---Where goes what no scope and no accelerator among its inputs decides about, by number.
function M.set_device(graph, device) check(C.pgc_graph_set_device(graph, device), "graph") end

---Makes a graph (nil: none) the one that operators are recorded into; answers the old one.
function M.set_current(graph)
  M.recording, M.current = graph ~= nil, graph -- NULL too is nil
  if M.recording and not M.front then depth = 0 end -- of a recording that an error has ended
  origins.record(graph)
  return C.pgc_set_graph(graph)
end

---Runs fn(...) outside of the graph that is being recorded, if there is one: what it makes has contents at once.
function M.outside(fn, ...)
  if not M.recording then return fn(...) end
  return scopes.with(function() return M.set_current(nil) end, M.set_current, fn, ...)
end

---Dimensions are numbers, names of symbols, or sizes that are such symbols.
---`names`: the graph's table of them.
function M.placeholder(graph, name, dtype, shape, names)
  local dims, symbols = ffi.new("int64_t[?]", math.max(#shape, 1)), ffi.new("const char *[?]", math.max(#shape, 1))
  for i, d in ipairs(shape) do
    if type(d) == "number" then dims[i - 1] = d else symbols[i - 1] = tostring(d) end
  end
  open(graph, "placeholder")
  if origins.on then origins.note() end
  check(C.pgc_graph_placeholder(graph, name, dtype.code, #shape, dims, symbols, out), "placeholder")
  local t = handles.wrap(out[0])
  M.declare(t, names)
  return t
end

---Notes the symbols among a placeholder's axes in its graph's table of them.
function M.declare(t, names)
  local d = C.pgc_describe(t.ptr)
  for i = 0, d.rank - 1 do sizes.declare(names, d.shape[i]) end
end

function M.variable(graph, name, value)
  check_open(value, "variable")
  if origins.on then origins.note() end
  check(C.pgc_graph_variable(open(graph, "variable"), name, value.ptr, out), "variable")
  return handles.wrap(out[0])
end

---The same where the variable of another tensor is, and as free to go where it is read.
function M.variable_beside(graph, name, value, other)
  check_open(value, "variable")
  check_open(other, "variable")
  if origins.on then origins.note() end
  check(C.pgc_graph_variable_beside(open(graph, "variable"), name, value.ptr, other.ptr, out), "variable")
  return handles.wrap(out[0])
end

function M.constant(graph, name, value)
  check_open(value, "constant")
  if origins.on then origins.note() end
  check(C.pgc_graph_constant(open(graph, "constant"), name, value.ptr, out), "constant")
  return handles.wrap(out[0])
end

function M.set_name(graph, t, name)
  check_open(t, "graph")
  check(C.pgc_graph_set_name(open(graph, "graph"), t.ptr, name), "graph")
end

function M.find(graph, name)
  check(C.pgc_graph_find(open(graph, "graph"), name, out), "graph")
  return handles.wrap(out[0])
end

local function found(t) return t ~= nil and handles.wrap(t) or nil end

---The variable that an eager tensor became, as M.variable gives it, or nil.
function M.variable_of(graph, t)
  check_open(t, "graph")
  check(C.pgc_graph_variable_of(open(graph, "graph"), t.ptr, out), "graph")
  return found(out[0])
end

---How many values variables have got in the graph that is being recorded.
function M.written()
  local value = C.pgc_graph_written(M.current)
  return value
end

---A tensor of the graph that is being recorded, computed after the values that variables have got since `written`, and
---after `also`, if there is one.
function M.after_writes(t, written, also)
  check(C.pgc_graph_after_writes(M.current, t.ptr, written, also and also.ptr or nil, out), "graph")
  if out[0] ~= t.ptr then return handles.wrap(out[0]) end
  C.pgc_release(out[0])
  return t
end

---What was written since: nothing that is recorded from now on sees it.
function M.forget_writes(written) C.pgc_graph_forget_writes(M.current, written) end

---A model is called, and that call is over: from then on its variables are read as sessions hold them.
function M.enter_layer()
  depth, origins.layers = depth + 1, origins.layers + 1
end
function M.leave_layer()
  depth, origins.layers = depth - 1, origins.layers - 1
  if depth <= 0 then C.pgc_graph_settle(M.current) end
end

---How many nodes the graph that is being recorded has.
function M.node_count()
  local value = C.pgc_graph_node_count(M.current)
  return value
end

local bound = ffi.new("uint32_t[1]")

---In nodes recorded since there were `first`, runs read a number of that name off a float64 tensor of the graph.
---Answers whether any has one.
function M.bind(first, name, value)
  check(C.pgc_graph_bind(M.current, first, name, value.ptr, bound), "graph")
  return bound[0] > 0
end

---Whether one of them has such a number.
function M.has_number(first, name)
  check(C.pgc_graph_bind(M.current, first, name, nil, bound), "graph")
  return bound[0] > 0
end

---Whether this graph is the one that is being recorded.
function M.is_current(graph) return M.current == graph end

---The eager tensor that the index-th variable was, from 1, or nil.
function M.source_at(graph, index)
  check(C.pgc_graph_source_at(open(graph, "graph"), index - 1, out), "graph")
  return found(out[0])
end

---Tells the graph that is being recorded of tensors by name, as of a model of that class.
function M.call(class, names, tensors) origins.call(M.current, class, names, tensors) end

---A layer's class, the names of all that it and those in it hold, and the tensors.
function M.tensors_of(layer) return errors.layer_tensors(layer) end

---Whether the graph was told of an eager tensor as a part of a model.
function M.knows(graph, t) return t.ptr ~= nil and C.pgc_graph_knows(open(graph, "graph"), t.ptr) ~= 0 end

---The index-th variable of those made so far, from 1, or nil.
function M.variable_at(graph, index)
  check(C.pgc_graph_variable_at(open(graph, "graph"), index - 1, out), "graph")
  return found(out[0])
end

---What a tensor of a graph is called.
function M.name(t) return ffi.string(C.pgc_graph_name(t.ptr)) end

function M.text(graph) return ffi.string(C.pgc_graph_text(open(graph, "text"))) end
function M.dot(graph) return ffi.string(C.pgc_graph_dot(open(graph, "dot"))) end

---The graph as JSON, without contents.
function M.document(graph)
  local text = C.pgc_graph_document(open(graph, "save"))
  if text == nil then errors.raise_native(C, "save") end
  return ffi.string(text)
end

---The graph of such a document, with contents by name. `device`: a number, or nil: where the document says. `shown`:
---what messages begin with.
function M.read(document, contents, device, shown)
  local graph, names, tensors = ffi.new("pgc_graph *[1]"), {}, {}
  for name, t in pairs(contents) do names[#names + 1], tensors[#tensors + 1] = name, t end
  local rc = C.pgc_graph_read(document, #names, ffi.new("const char *[?]", math.max(#names, 1), names),
                              gradients.array(tensors, #tensors, "load_graph"), device or -1, shown, graph)
  check(rc, "load_graph")
  return ffi.gc(graph[0], C.pgc_graph_release)
end

---What a variable of a session, or a constant, holds: the very tensor.
function M.contents(session, name)
  check(C.pgc_session_contents(open(session, "save"), name, out), "save")
  return handles.wrap(out[0])
end

---`soft`: what cannot be where it was placed goes elsewhere, else it is an error. `fuse`: nodes may be launched as one.
function M.create_session(graph, soft, fuse)
  local session = ffi.new("pgc_session *[1]")
  check(C.pgc_session_create(open(graph, "Session"), (soft and 1 or 0) + (fuse and 0 or 2), session), "Session")
  return ffi.gc(session[0], C.pgc_session_release)
end

function M.close_session(session) C.pgc_session_release(ffi.gc(session, nil)) end

function M.plan(session)
  local text = C.pgc_session_plan(open(session, "plan"))
  if text == nil then errors.raise_native(C, "plan") end
  return ffi.string(text)
end
function M.placement(session) return ffi.string(C.pgc_session_placement(open(session, "placement"))) end

---Another number whenever anything was recorded or named.
function M.revision(graph) return tonumber(C.pgc_graph_revision(open(graph, "graph"))) end

local pointers = ffi.typeof("pgc_tensor *[?]")
local FEW = 16
local few = { pointers(FEW), pointers(FEW), pointers(FEW), pointers(FEW) }

-- The k-th array of a call, with room for `count` tensors.
local function room(k, count) return count <= FEW and few[k] or pointers(count) end

local function fill(array, list, count)
  for i = 1, count do
    local t = list[i]
    if t.ptr == nil then check_open(t, "run") end
    array[i - 1] = t.ptr
  end
  return array
end

local function wrapped(results, count)
  local list = {}
  for i = 1, count do list[i] = handles.wrap(results[i - 1]) end
  return list
end

---Lists of graph tensors to fetch, of graph tensors fed and of their values.
function M.run(session, fetches, feeds, values)
  open(session, "run")
  local count, fed = #fetches, #feeds
  local wanted, targets = fill(room(1, count), fetches, count), fill(room(2, fed), feeds, fed)
  local given, results = fill(room(3, fed), values, fed), room(4, count)
  local rc = C.pgc_session_run(session, wanted, count, targets, given, fed, results)
  if rc == 10 then -- memory is short
    operators.make_room()
    rc = C.pgc_session_run(session, wanted, count, targets, given, fed, results)
  end
  check(rc, "Session:run")
  return wrapped(results, count)
end

---Begins a run in parts, of all that will be fetched and fed.
function M.begin(session, fetches, feeds)
  local partial = ffi.new("pgc_partial *[1]")
  local wanted, targets = pointers(math.max(#fetches, 1)), pointers(math.max(#feeds, 1))
  fill(wanted, fetches, #fetches)
  fill(targets, feeds, #feeds)
  check(C.pgc_partial_create(open(session, "partial_run_setup"), wanted, #fetches, targets, #feeds, partial),
        "Session:partial_run_setup")
  return ffi.gc(partial[0], C.pgc_partial_release)
end

---A part of it.
function M.run_part(partial, fetches, feeds, values)
  local count, fed = #fetches, #feeds
  local wanted, targets = fill(room(1, count), fetches, count), fill(room(2, fed), feeds, fed)
  local given, results = fill(room(3, fed), values, fed), room(4, count)
  local rc = C.pgc_partial_run(partial, wanted, count, targets, given, fed, results)
  if rc == 10 then
    operators.make_room()
    rc = C.pgc_partial_run(partial, wanted, count, targets, given, fed, results)
  end
  check(rc, "Session:partial_run")
  return wrapped(results, count)
end

---Gives a variable of the session's graph a value.
function M.assign(session, variable, value)
  check(C.pgc_session_assign(open(session, "Session"), variable.ptr, value.ptr), "load_state")
end

function M.start(library) C = library end

return M
