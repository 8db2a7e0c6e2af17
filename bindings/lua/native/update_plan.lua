-- SPDX-License-Identifier: Apache-2.0
-- An optimizer's step over parameters that stay the same: the C arrays are made once and each step is one call.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local operators = require "perigee.native.operators"
local origins = require "perigee.native.origins"

local M = {}
local C
local mask = ffi.new("uint64_t[1]")
local Plan = {}
Plan.__index = Plan

local function slots_used(attributes)
  local info = attributes.info
  if C.pgc_optimizer_slots(info.id, attributes.struct, mask) ~= 0 then errors.raise_native(C, info.name) end
  return tonumber(mask[0])
end

---@param attributes table an optimizer's hyperparameters
---@param params table list of tensors
---@param state table by slot: lists beside params
function M.update_plan(attributes, params, state)
  local info, count = attributes.info, #params
  local plan = { attributes = attributes, params = params, count = count, slots = slots_used(attributes), state = state,
                 device_array = ffi.new("int32_t[?]", math.max(count, 1)),
                 param_array = ffi.new("pgc_tensor *[?]", math.max(count, 1)),
                 gradient_array = ffi.new("pgc_tensor *[?]", math.max(count, 1)),
                 state_array = ffi.new("pgc_tensor *[?]", math.max(count * #info.slots, 1)) }
  for i = 1, count do
    plan.param_array[i - 1] = params[i].ptr
    plan.device_array[i - 1] = C.pgc_device_of(params[i].ptr)
  end
  for s, slot in ipairs(info.slots) do
    for i = 1, state[slot] and count or 0 do plan.state_array[(s - 1) * count + i - 1] = state[slot][i].ptr end
  end
  return setmetatable(plan, Plan)
end

-- References to all gradients, or false and none where one is missing.
local function take_gradients(plan)
  local params, array = plan.param_array, plan.gradient_array
  for i = 0, plan.count - 1 do
    if C.pgc_grad_of(params[i], array + i) ~= 0 or array[i] == nil then
      C.pgc_release_many(array, i)
      return false
    end
  end
  return true
end

local function all_open(list)
  for i = 1, #list do
    if list[i].ptr == nil then return false end
  end
  return true
end

-- Whether the parameters' handles are open and show what they did.
local function shows_params(plan)
  local params, array = plan.params, plan.param_array
  if #params ~= plan.count then return false end
  for i = 1, plan.count do
    local p = params[i].ptr
    if p == nil or p ~= array[i - 1] then return false end
  end
  return true
end

-- Whether a parameter is no longer where it was. Asked before anything is updated.
local function has_moved(plan)
  for i = 0, plan.count - 1 do
    if C.pgc_device_of(plan.param_array[i]) ~= plan.device_array[i] then return true end
  end
  return false
end

---Updates everything; answers false, having done nothing, when the plan does not fit any more: a gradient is missing, a
---tensor was closed or changed, a parameter has moved to another device, or the hyperparameters ask for other state.
function Plan.step(plan, step)
  local attributes = plan.attributes
  local info, struct = attributes.info, attributes.struct
  if not shows_params(plan) then return false end
  if slots_used(attributes) ~= plan.slots then return false end
  for _, slot in ipairs(info.slots) do
    if plan.state[slot] and not all_open(plan.state[slot]) then return false end
  end
  if has_moved(plan) or not take_gradients(plan) then return false end
  if origins.on then origins.note() end
  local rc = C.pgc_optimizer_step(info.id, struct, step, plan.count, plan.param_array, plan.gradient_array,
                                  plan.state_array)
  if rc == 10 then
    operators.make_room()
    rc = C.pgc_optimizer_step(info.id, struct, step, plan.count, plan.param_array, plan.gradient_array,
                              plan.state_array)
  end
  C.pgc_release_many(plan.gradient_array, plan.count)
  if rc == 0 then return true end
  errors.raise_native(C, info.name)
end

---Forgets the gradients of all parameters; answers false where one was closed, or shows another tensor.
function Plan.clear_gradients(plan)
  if not shows_params(plan) then return false end
  C.pgc_clear_grads(plan.param_array, plan.count)
  return true
end

function M.start(library) C = library end

return M
