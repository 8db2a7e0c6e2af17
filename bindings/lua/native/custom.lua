-- SPDX-License-Identifier: Apache-2.0
-- Nodes of the tape whose gradients Lua computes, and hooks, which are shown gradients. The core never calls Lua: a
-- backward pass stops at such a place, what Lua has to do is done here, and the pass goes on.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local gradients = require "perigee.native.gradients"
local handles = require "perigee.native.handles"
local scopes = require "perigee.native.scopes"
local tensor = require "perigee.native.tensor"

local M = {}
local C
local pointers = ffi.typeof("pgc_tensor *[?]")
local PAUSED, ROOM = 100, 64
local number, numbers, count, one = ffi.new("uint64_t[1]"), ffi.new("uint64_t[?]", ROOM), ffi.new("uint32_t[1]"),
                                    pointers(1)

local REHANG, PURE = 1, 2
local NOTHING = {}

-- By a node's number: { inputs, outputs: counts, answer, own }; by a hook's: { hook, line }.
local records = {}

local function forget(node)
  local own = records[node] and records[node].own or NOTHING
  records[node] = nil
  for i = 1, #own do handles.close(own[i]) end
end

---Lets go of what nodes and hooks needed that are gone.
function M.forget()
  repeat
    local n = C.pgc_forgotten(numbers, ROOM)
    for i = 0, n - 1 do forget(tonumber(numbers[i])) end
  until n < ROOM
end

---Hangs outputs on a node over inputs, both lists of tensors: returns the outputs as they are from now on; with
---`rehang`, wherever that can be, the same tensors without the history that they had.
---answer(pass) returns the gradients by input (nil or false: none); the pass has
---  needed[i]         whether the gradient of input i is asked for
---  cotangents[k]     what flowed into output k, or false
---  creates_graph     whether gradients of these gradients will be asked for
---  linked(saved, k)  `saved`, a tensor that holds what output k held, as output k
---  unchanged(t, i), unchanged_output(t, k)  whether nothing was written into t since it was input i, or output k
---With `own`, a list of tensors that nobody but answer has, these are closed with the node; and answer depends on
---nothing but them and what it is shown, so that a plan of a compiled function launches what it did without calling it.
function M.record(inputs, outputs, answer, rehang, own)
  M.forget()
  local ins, n = gradients.array(inputs, nil, "custom_grad")
  local outs, m = gradients.array(outputs, nil, "custom_grad")
  local made = pointers(math.max(m, 1))
  local flags = (rehang and REHANG or 0) + (own and PURE or 0)
  if C.pgc_custom(ins, n, outs, m, flags, made, number) ~= 0 then errors.raise_native(C, "custom_grad") end
  records[tonumber(number[0])] = { inputs = n, outputs = m, answer = answer, own = own }
  local list = {}
  for i = 1, m do
    if made[i - 1] == outs[i - 1] then
      C.pgc_release(made[i - 1])
      list[i] = outputs[i]
    else
      list[i] = handles.wrap(made[i - 1])
    end
  end
  return list
end

---Answers for a node of a graph that was read, as of the numbers of inputs and outputs that it has.
function M.answer_for(number_of_node, inputs, outputs, answer)
  records[number_of_node] = { inputs = inputs, outputs = outputs, answer = answer }
end

---Calls fn(gradient) in every backward pass, before it uses the whole gradient of t. Answers what takes the hook away.
function M.hook(t, fn)
  M.forget()
  if C.pgc_hook(handles.pointer(t, "hook"), number) ~= 0 then errors.raise_native(C, "hook") end
  local own = tonumber(number[0])
  records[own] = { hook = fn, line = errors.script_line() }
  return function()
    records[own] = nil
    C.pgc_unhook(own)
  end
end

---Collects the gradient of a computed tensor.
function M.retain_grad(t)
  if C.pgc_retain_grad(handles.pointer(t, "retain_grad")) ~= 0 then errors.raise_native(C, "retain_grad") end
end

---How many nodes and hooks are alive.
function M.alive()
  M.forget()
  local n = 0
  for _ in pairs(records) do n = n + 1 end
  return n
end

---The leaves that tensors depend on, other than through `except`: a list of tensors without contents.
function M.leaves(tensors, except)
  local list, n = gradients.array(tensors, nil, "leaves")
  local without, m = gradients.array(except, nil, "leaves")
  local room = 64
  while true do
    local found = pointers(room)
    if C.pgc_leaves(list, n, without, m, found, room, count) ~= 0 then errors.raise_native(C, "leaves") end
    if count[0] <= room then
      local leaves = {}
      for i = 1, count[0] do leaves[i] = handles.wrap(found[i - 1]) end
      return leaves
    end
    room = count[0]
  end
end

local function view(raw, record)
  local pass = { needed = {}, cotangents = {}, creates_graph = C.pgc_pass_creates_graph(raw) ~= 0 }
  for i = 1, record.inputs do pass.needed[i] = C.pgc_pass_needed(raw, i - 1) ~= 0 end
  for k = 1, record.outputs do
    if C.pgc_pass_cotangent(raw, k - 1, one) ~= 0 then errors.raise_native(C, "backward") end
    pass.cotangents[k] = one[0] ~= nil and handles.wrap(one[0])
  end
  function pass.linked(saved, k)
    local pointer = handles.pointer(saved, "backward")
    if C.pgc_pass_output(raw, pointer, k - 1, one) ~= 0 then errors.raise_native(C, "backward") end
    return handles.wrap(one[0])
  end
  function pass.unchanged(t, i) return C.pgc_pass_unchanged(raw, handles.pointer(t, "backward"), 0, i - 1) ~= 0 end
  function pass.unchanged_output(t, k)
    return C.pgc_pass_unchanged(raw, handles.pointer(t, "backward"), 1, k - 1) ~= 0
  end
  return pass
end

-- As in the native part of a pass: recorded only where gradients of gradients are wanted, and nothing is cast.
local function enter(creates_graph)
  return { grad = C.pgc_set_grad_enabled(creates_graph and 1 or 0), autocast = C.pgc_set_autocast(nil) }
end
local function enter_plain() return enter(false) end
local function enter_recording() return enter(true) end
local function leave(old)
  C.pgc_set_grad_enabled(old.grad)
  C.pgc_set_autocast(old.autocast)
end

local function raise_hook(code, record, problem, hint)
  errors.raise(code, "hook", ("the hook%s %s"):format(record.line and " set at " .. record.line or "", problem), hint)
end

local function kind_of(t) return ("%s %s on %s"):format(t.dtype, tostring(t.shape), t.device) end

-- What takes the place of the gradient that a hook is shown, or nothing.
local function check_replacement(record, gradient, version, replacement)
  if gradient.ptr ~= nil and C.pgc_version_of(gradient.ptr) ~= version then
    raise_hook("failed_precondition", record, "modified its gradient in place",
               "return the new gradient: fn(g) return g * 2 end")
  end
  if replacement == nil then return false end
  if not handles.is_tensor(replacement) then
    raise_hook("invalid_argument", record, ("returned %s; expected a tensor or nil"):format(
                 errors.describe(replacement)))
  end
  tensor.check_open(replacement, "hook")
  local differs = gradient.ptr ~= nil and (tensor.shapes_differ(replacement.shape, gradient.shape) or
                                           replacement.dtype ~= gradient.dtype or
                                           replacement.device ~= gradient.device)
  if differs then
    raise_hook("invalid_argument", record, ("returned %s; expected %s"):format(kind_of(replacement), kind_of(gradient)))
  end
  return replacement
end

-- A hook's answer.
local function show(raw, record)
  local creates_graph = C.pgc_pass_creates_graph(raw) ~= 0
  if C.pgc_pass_cotangent(raw, 0, one) ~= 0 then errors.raise_native(C, "backward") end
  local gradient = handles.wrap(one[0])
  local version = C.pgc_version_of(gradient.ptr)
  local replacement = scopes.with(creates_graph and enter_recording or enter_plain, leave, record.hook,
                                   gradient)
  local list = { check_replacement(record, gradient, version, replacement) }
  return gradients.array(list, 1, "hook"), list
end

-- The gradients of the node that a pass stopped at, or what a hook there answers.
local function compute(raw)
  local record = records[tonumber(C.pgc_pass_number(raw))]
  if record.hook then return show(raw, record) end
  local pass = view(raw, record)
  local list = scopes.with(pass.creates_graph and enter_recording or enter_plain, leave, record.answer, pass)
  local array = gradients.array(list, record.inputs, "backward")
  return array, list
end

---Goes on with the pass that has just stopped, through all custom nodes and hooks: answers the code that ends it.
function M.go_on(results)
  local rc
  repeat
    local raw = C.pgc_paused()
    local ok, array, list = pcall(compute, raw)
    if not ok then
      C.pgc_pass_abandon(raw)
      error(array, 0)
    end
    rc = C.pgc_pass_go_on(raw, array, results)
    list[0] = nil -- lives until here: it holds what the array points to
  until rc ~= PAUSED
  return rc
end

function M.start(library)
  C = library
  gradients.go_on, handles.forget = M.go_on, M.forget
end

return M
