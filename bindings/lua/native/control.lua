-- SPDX-License-Identifier: Apache-2.0
-- Nodes of a graph that run graphs of their own: bodies, what they take in from around them, and the nodes themselves.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local gradients = require "perigee.native.gradients"
local graphs = require "perigee.native.graphs"
local scopes = require "perigee.native.scopes"
local origins = require "perigee.native.origins"
local sizes = require "perigee.native.size"

local M = {}
local C
local out, twin = ffi.new("pgc_tensor *[1]"), ffi.new("pgc_tensor *[1]")
local KINDS = { cond = 0, scan = 1, while_loop = 2 }

local function check(rc, where)
  if rc ~= 0 then errors.raise_native(C, where) end
end

---The graph that operators are recorded into, or, where none is, that of a tensor.
function M.graph_for(t)
  if graphs.current ~= nil then return graphs.current end
  return C.pgc_graph_of(handles.pointer(t, "graph"))
end

---A graph without holding it: what a node of the tape keeps for its gradient must not keep the graph alive, which lets
---go of that node at its end.
function M.borrow(graph) return ffi.cast("pgc_graph *", graph) end

---Whether a tensor is one of a graph itself, not of one around it.
function M.is_of(t, graph) return C.pgc_graph_of(handles.pointer(t, "graph")) == graph end

---What tells a graph's tensor from others, its history included.
function M.key(t)
  local key = ffi.new("uint64_t[3]")
  C.pgc_graph_key(handles.pointer(t, "graph"), key)
  return ("%s/%s/%s"):format(tostring(key[0]), tostring(key[1]), tostring(key[2]))
end

---What tells a value of a graph from others.
function M.value_key(t)
  local key = ffi.new("uint64_t[3]")
  C.pgc_graph_key(handles.pointer(t, "graph"), key)
  return tonumber(key[1])
end

---A body in the making, inside of a graph.
function M.body(around)
  local graph = ffi.new("pgc_graph *[1]")
  check(C.pgc_body_create(around, graph), "graph")
  return ffi.gc(graph[0], C.pgc_graph_release)
end

---Runs fn(...) so that what it records goes into a body, under names that begin with `scope`.
function M.record(body, scope, fn, ...)
  return scopes.with(function()
    return { graph = graphs.set_current(body), scope = origins.enter_body(scope) }
  end, function(outer)
    origins.leave_body(outer.scope)
    graphs.set_current(outer.graph)
  end, fn, ...)
end

---An argument like a tensor, or with `step` like one position of its first axis: the tensor itself, and one for those
---who may write into it.
function M.argument(body, name, like, step, differentiable)
  check(C.pgc_body_argument(body, name, handles.pointer(like, "graph"), step and 1 or 0, differentiable and 1 or 0,
                            out, twin), "graph")
  return handles.wrap(out[0]), handles.wrap(twin[0])
end

---A tensor as one of the body's.
function M.take(body, t, where)
  check(C.pgc_body_take(body, handles.pointer(t, where), out), where)
  return handles.wrap(out[0])
end

---What a body uses from around it: a list of { outer, inner }.
function M.taken(body)
  local list = {}
  while true do
    check(C.pgc_body_taken(body, #list, out, twin), "graph")
    if out[0] == nil then return list end
    list[#list + 1] = { outer = handles.wrap(out[0]), inner = handles.wrap(twin[0]) }
  end
end

---A name for a node, whole: "encoder/cond_1".
function M.name(graph, wanted)
  if origins.on then origins.note() end
  local name = C.pgc_control_name(graph, wanted)
  if name == nil then errors.raise_native(C, wanted) end
  return ffi.string(name)
end

-- A C array of the tensors of several lists, one after the other.
local function rows(lists, width, where)
  local all, n = {}, 0
  for _, list in ipairs(lists) do
    for i = 1, width or #list do
      n = n + 1
      all[n] = list[i] or false
    end
  end
  return gradients.array(all, n, where), all
end

---Appends a node. form: kind ("cond"), name (reserved), inputs; carries, steps, length, most, reverse; bodies, a list
---of { graph, name, arguments (by input; false: not used), results }. Answers its number and its outputs.
function M.add(graph, form, where)
  if origins.on then origins.note() end
  local bodies, inputs = form.bodies, form.inputs
  local f = ffi.new("pgc_control_form")
  local list, names = ffi.new("pgc_graph *[?]", #bodies), ffi.new("const char *[?]", #bodies)
  local counts, arguments, results = ffi.new("uint32_t[?]", #bodies), {}, {}
  for b, body in ipairs(bodies) do
    list[b - 1], names[b - 1], counts[b - 1] = body.graph, body.name, #body.results
    arguments[b], results[b] = body.arguments, body.results
  end
  local held = { gradients.array(inputs, #inputs, where) }
  local given, all_given = rows(arguments, #inputs, where)
  local made, all_made = rows(results, nil, where)
  f.kind, f.name, f.inputs, f.input_count = KINDS[form.kind], form.name, held[1], #inputs
  f.carries, f.steps, f.reverse = form.carries or 0, form.steps or 0, form.reverse and 1 or 0
  f.length, f.most = form.length and sizes.dimension(form.length) or 0, form.most or -1
  f.body_count, f.bodies, f.body_names, f.result_counts = #bodies, list, names, counts
  f.arguments, f.results = given, made
  local count = #bodies[#bodies].results
  local outputs, node = ffi.new("pgc_tensor *[?]", math.max(count, 1)), ffi.new("uint32_t[1]")
  check(C.pgc_control(graph, f, outputs, node), where)
  all_given[0], all_made[0] = nil, nil -- live until here: they hold what the arrays point to
  local wrapped = {}
  for k = 1, count do wrapped[k] = handles.wrap(outputs[k - 1]) end
  return node[0], wrapped
end

---A value of a node's body as one more output of the node.
function M.keep(graph, node, body, inner, where)
  check(C.pgc_control_keep(graph, node, body - 1, handles.pointer(inner, where), out), where)
  return handles.wrap(out[0])
end

local form_out, name_out, count_out = ffi.new("pgc_control_form"), ffi.new("const char *[1]"), ffi.new("uint32_t[1]")
local KIND_NAMES = {}
for name, number in pairs(KINDS) do KIND_NAMES[number] = name end

local function part(rc)
  check(rc, "graph")
  return out[0] ~= nil and handles.wrap(out[0])
end

---The form that a node was made of, as M.add takes it.
function M.read(graph, node)
  check(C.pgc_control_read(graph, node, form_out), "graph")
  local form = { kind = KIND_NAMES[form_out.kind], graph = graph, node = node, name = ffi.string(form_out.name),
                 carries = form_out.carries, steps = form_out.steps, length = sizes.of(form_out.length),
                 most = form_out.most >= 0 and tonumber(form_out.most) or nil, reverse = form_out.reverse ~= 0,
                 inputs = {}, bodies = {} }
  local inputs, bodies = form_out.input_count, form_out.body_count
  for i = 1, inputs do form.inputs[i] = part(C.pgc_control_input(graph, node, i - 1, out)) end
  for b = 1, bodies do
    local body = { graph = C.pgc_control_body(graph, node, b - 1, name_out, count_out), arguments = {}, results = {} }
    body.name = ffi.string(name_out[0])
    for i = 1, inputs do body.arguments[i] = part(C.pgc_control_argument(graph, node, b - 1, i - 1, out)) end
    for k = 1, count_out[0] do body.results[k] = part(C.pgc_control_result(graph, node, b - 1, k - 1, out)) end
    form.bodies[b] = body
  end
  return form
end

---What a graph that was read has on the tape for Lua to answer: a list of { number, graph, node, first, count, inputs,
---lost, name }.
function M.hung(graph)
  local list, what = {}, ffi.new("pgc_hung_node")
  while C.pgc_graph_hung(graph, #list, what) ~= 0 do
    list[#list + 1] = { number = tonumber(what.number), graph = what.graph, node = what.node, first = what.first,
                        count = what.count, inputs = what.inputs, lost = what.lost ~= 0, name = ffi.string(what.name) }
  end
  return list
end

---Runs fn(...) so that what it records into a graph runs after the nodes of some tensors.
function M.after(graph, tensors, fn, ...)
  local list, before = gradients.array(tensors, #tensors, "after"), ffi.new("uint32_t[1]")
  return scopes.with(function()
    check(C.pgc_graph_after(graph, list, #tensors, before), "after")
  end, function() C.pgc_graph_after_end(graph, before[0]) end, fn, ...)
end

function M.start(library) C = library end

return M
