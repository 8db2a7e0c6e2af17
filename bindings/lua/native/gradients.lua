-- SPDX-License-Identifier: Apache-2.0
-- Gradients: backward, gradients of roots with respect to inputs, detaching, identity of native tensors.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local operators = require "perigee.native.operators"
local origins = require "perigee.native.origins"
local tensor = require "perigee.native.tensor"

local pointer = handles.pointer
local M = { anomalies = { detected = false } } -- whether every result is looked at
local C
local pointers = ffi.typeof("pgc_tensor *[?]")
local out = ffi.new("pgc_tensor *[1]")

---A C array of tensors; `false` entries are absent. Answers the array and its length.
function M.array(list, count, where)
  count = count or #list
  local array = pointers(math.max(count, 1))
  for i = 1, count do
    if list[i] then
      tensor.check_open(list[i], where)
      array[i - 1] = list[i].ptr
    end
  end
  return array, count
end

local PAUSED = 100 -- at a node whose gradient Lua computes

---Computes such gradients until the pass has ended; native/custom.lua sets it. Answers the code that ended it.
---@type fun(results: ffi.cdata*?): integer
M.go_on = nil

-- Issues `call`, once more when memory is short.
local function issue(where, results, call, ...)
  if origins.on then origins.note() end
  local rc = call(...)
  if rc == PAUSED then rc = M.go_on(results) end
  if rc == 10 then
    operators.make_room()
    rc = call(...)
    if rc == PAUSED then rc = M.go_on(results) end
  end
  if rc ~= 0 then errors.raise_native(C, where) end
end

---roots and seeds are lists; seeds may be nil.
function M.backward(roots, seeds, retain_graph, create_graph)
  local list, count = M.array(roots, nil, "backward")
  issue("backward", nil, C.pgc_backward, list, seeds and M.array(seeds, count, "backward") or nil, count,
        retain_graph and 1 or 0, create_graph and 1 or 0)
end

local root = ffi.new("pgc_tensor *[1]")

---backward of one open tensor without options: what training loops call.
function M.backward_plain(t)
  if origins.on then origins.note() end
  root[0] = pointer(t, "backward")
  local rc = C.pgc_backward(root, nil, 1, 0, 0)
  if rc == PAUSED then rc = M.go_on() end
  if rc == 10 then
    operators.make_room()
    root[0] = pointer(t, "backward")
    rc = C.pgc_backward(root, nil, 1, 0, 0)
    if rc == PAUSED then rc = M.go_on() end
  end
  if rc ~= 0 then errors.raise_native(C, "backward") end
end

---Gradients of roots with respect to inputs: a list with nil where unused.
function M.gradients(roots, seeds, inputs, retain_graph, create_graph)
  local list, count = M.array(roots, nil, "grad")
  local wanted, n = M.array(inputs, nil, "grad")
  local results = pointers(math.max(n, 1))
  issue("grad", results, C.pgc_gradients, list, seeds and M.array(seeds, count, "grad") or nil, count, wanted, n,
        retain_graph and 1 or 0, create_graph and 1 or 0, results)
  local gradients = {}
  for i = 1, n do
    if results[i - 1] ~= nil then gradients[i] = handles.wrap(results[i - 1]) end
  end
  return gradients, n
end

function M.detach(t)
  if C.pgc_detach(pointer(t, "detach"), out) ~= 0 then errors.raise_native(C, "detach") end
  return handles.wrap(out[0])
end

function M.set_grad(t, gradient)
  local given = gradient and pointer(gradient, "grad") or nil
  if C.pgc_set_grad(pointer(t, "grad"), given) ~= 0 then errors.raise_native(C, "grad") end
end

function M.clear_grads(list)
  local array, count = M.array(list, nil, "zero_grad")
  C.pgc_clear_grads(array, count)
end

---Makes `target` show `source`'s memory.
function M.assign(target, source)
  tensor.check_open(target, "assign")
  tensor.check_open(source, "assign")
  if C.pgc_assign(target.ptr, source.ptr) ~= 0 then errors.raise_native(C, "assign") end
end

---Whether an eager operator that makes NaN or Inf of finite numbers fails. Answers whether it did before.
function M.set_detect_anomaly(on)
  M.anomalies.detected = on
  return C.pgc_set_detect_anomaly(on and 1 or 0) ~= 0
end

function M.identity(t)
  local value = tonumber(ffi.cast("uintptr_t", pointer(t)))
  return value
end
function M.storage(t)
  local value = tonumber(C.pgc_storage_id(pointer(t)))
  return value
end
function M.version_of(t)
  local value = tonumber(C.pgc_version_of(pointer(t)))
  return value
end
function M.is_graph_tensor(t) return C.pgc_is_graph_tensor(pointer(t)) ~= 0 end

function M.start(library) C = library end

return M
