-- SPDX-License-Identifier: Apache-2.0
-- The one optimizer class: parameter groups, state by parameter, steps. What a step does is the plugin's.

local native = require "perigee.native"
local kept = rawget(native, "optim.optimizer") -- a script that clears package.loaded gets the same again
if kept then return kept end
local rule = require "perigee.optim.rule"
local walk = require "perigee.nn.walk"
local policy = require "perigee.nn.policy"
local lasting = require "perigee.optim.lasting"
local parameters = require "perigee.optim.parameters"
local stretches = require "perigee.optim.stretches"
local offload = require "perigee.optim.offload"

---Parameters of 16 bits step in float32 and keep float32 state, but no float32 copy of themselves: to have one, keep
---float32 parameters and compute under amp.autocast. Every hyperparameter may change between steps.
---@class perigee.Optimizer
---@field groups table[] parameter groups from 1: group.params, and the hyperparameters as fields (group.lr = 0.01)
local Optimizer = {}

-- Hyperparameters of a plugin's optimizer, or of one that is written in Lua.
local function new_attributes(name, options)
  return rule.new(name, options) or native.new_optimizer(name, options)
end

-- betas = {a, b} is how everyone writes beta1 and beta2.
local function split_betas(where, options)
  if options.betas == nil then return options end
  local betas, copy = options.betas, {}
  if type(betas) ~= "table" or #betas ~= 2 then
    native.raise("invalid_argument", where, "betas must be two numbers, got " .. native.describe(betas))
  end
  if options.beta1 ~= nil or options.beta2 ~= nil then
    native.raise("invalid_argument", where, ("betas and %s are the same, given twice"):format(
                   options.beta1 ~= nil and "beta1" or "beta2"))
  end
  for key, value in pairs(options) do copy[key] = value end
  copy.betas, copy.beta1, copy.beta2 = nil, betas[1], betas[2]
  return copy
end

-- A group's fields are the native hyperparameters themselves, so that a schedule's write is all it takes.
local function refuse_name(info, key, code)
  local near = native.suggest.foreign.option(tostring(key), info.names) or native.suggest(tostring(key), info.names)
  native.raise(code, info.name, ("a parameter group has no %q"):format(tostring(key)),
               near and ("did you mean %q?"):format(near))
end

local Group = {}
function Group.__index(group, key)
  local attributes = rawget(group, "attributes")
  if key == "betas" then return { attributes:get("beta1"), attributes:get("beta2") } end
  if key == "offload" then return rawget(group, "kept_by") end
  if attributes.info.by_name[key] then return attributes:get(key) end
  if type(key) == "string" and not key:find "^__" then refuse_name(attributes.info, key, "not_found") end
end
function Group.__newindex(group, key, value)
  local attributes = rawget(group, "attributes")
  if key == "betas" then
    local split = split_betas(attributes.info.name, { betas = value })
    attributes:set("beta1", split.beta1)
    attributes:set("beta2", split.beta2)
  elseif key == "offload" then
    rawset(group, "kept_by", offload.check(attributes.info.name, value)) -- the next step moves what there is
    rawset(group, "plan", false)
    rawset(group, "beside", {})
  elseif attributes.info.by_name[key] then
    attributes:set(key, value)
    if key == "lr" then rawset(group, "initial_lr", nil) end -- what schedules go out from
  else
    refuse_name(attributes.info, key, "invalid_argument")
  end
end

---Adds a parameter group: { params = {...}, lr = ... }; what it does not say is as in the constructor.
---@param group table
---@return perigee.Optimizer
function Optimizer:add_group(group)
  if not native.is_plain(group) then
    native.raise("invalid_argument", self.name, "a parameter group must be a table, got " .. native.describe(group),
                 "optimizer:add_group{params=..., lr=0.1}")
  end
  local where, options, params = self.name, {}, group.params
  local own, kept_by = offload.take(where, group)
  if kept_by == nil then kept_by = self.kept_by end
  for key, value in pairs(self.defaults) do options[key] = value end
  for key, value in pairs(split_betas(where, own)) do
    if key ~= "params" then options[key] = value end
  end
  if walk.is_layer(params) then params = params:parameters() end
  if native.is_tensor(params) then params = { params } end
  if type(params) ~= "table" then
    native.raise("invalid_argument", where, "params must be a list of tensors, got " .. native.describe(params))
  end
  local list = {}
  for i, p in ipairs(params) do
    parameters.check(where, self.seen, p, i)
    list[i] = require("perigee").keep(p)
  end
  local steps = {}
  for i = 1, #list do steps[i] = 0 end
  local entry = { params = list, steps = steps, slots = {}, plan = false, beside = {}, kept_by = kept_by,
                  attributes = new_attributes(where, options) }
  self.groups[#self.groups + 1] = setmetatable(entry, Group)
  local made = rawget(native, "made") -- the scope of a strategy
  if made then made(self) end
  return self
end

---`optim.Adam{params, lr=1e-3}`: a list of tensors, a layer, or a list of groups. Without parameters it is a recipe
---that model:fit binds to the model: from then on it is that model's, state and all.
function Optimizer.new(name, ...)
  local first, options = ..., {}
  local positional
  if select("#", ...) == 1 and native.is_plain(first) then
    for key, value in pairs(first) do
      if type(key) == "string" then options[key] = value end
    end
    positional = first[1]
    if native.is_tensor(positional) then -- a bare list of tensors, perhaps with options beside them
      positional = {}
      for i, p in ipairs(first) do positional[i] = p end
    elseif first[2] ~= nil then
      native.raise("invalid_argument", name, "too many arguments: parameters, then options by name")
    end
  else
    local more
    positional, options, more = ...
    options = options or {}
    if not native.is_plain(options) or more ~= nil then
      native.raise("invalid_argument", name, "takes parameters and a table of options, got " ..
                   native.describe(native.is_plain(options) and more or options),
                   ("optim.%s{model:parameters(), lr=0.1}"):format(name))
    end
  end
  local own, kept_by = offload.take(name, options)
  local self = setmetatable({ name = name, defaults = split_betas(name, own), groups = {}, kept_by = kept_by or false,
                              seen = setmetatable({}, { __mode = "k" }) }, Optimizer)
  new_attributes(name, self.defaults) -- checks the options, also when there are no parameters yet
  if positional ~= nil then self:bind(positional) end
  return self
end

---Gives a recipe its parameters.
---@param params perigee.Tensor[]|perigee.Layer|table[]
---@return perigee.Optimizer
function Optimizer:bind(params)
  local is_groups = type(params) == "table" and not walk.is_layer(params) and type(params[1]) == "table" and
                    not native.is_tensor(params[1])
  if is_groups then
    for _, group in ipairs(params) do self:add_group(group) end
  else
    self:add_group { params = params }
  end
  if #self.groups[1].params == 0 then
    native.raise("invalid_argument", self.name, "the list of parameters is empty")
  end
  return self
end

---Whether it has parameters; what has none is a recipe for fit.
---@return boolean
function Optimizer:is_bound() return #self.groups > 0 end

-- Like its parameter, but float32 where that is a 16-bit float: sums of small terms would stand still in it. Where the
-- parameter is, or on `device`, whatever device is in force.
local function zeros_for(attributes, slot, p, device)
  local pg = require "perigee"
  local own = attributes.in_lua and attributes:zeros(slot, p)
  if own then return device and own:to(device) or own end
  local narrow = p.dtype == "float16" or p.dtype == "bfloat16"
  local dtype = narrow and "float32" or p.dtype
  if device and device ~= p.device then return pg.zeros(p.shape, { dtype = dtype, device = device }) end
  return pg.zeros_like { p, dtype = dtype }
end

-- Parameters with gradients, collected by the number of the step they are at: as a rule all at the same one.
local function collect(group)
  local batches, order = {}, {}
  for i, p in ipairs(group.params) do
    local gradient = p.grad
    if gradient then
      local step = group.steps[i] + 1
      local batch = batches[step]
      if not batch then
        batch = { step = step, index = {}, params = {}, gradients = {} }
        batches[step], order[#order + 1] = batch, batch
      end
      local n = #batch.params + 1
      batch.index[n], batch.params[n], batch.gradients[n] = i, p, gradient
    end
  end
  return order
end

-- What most steps are: all parameters have gradients and are at the same step. Answers whether it was one of them.
local function step_together(group)
  local plan, steps = group.plan, group.steps
  if not plan or not plan:step(steps[1] + 1) then return false end
  local step = steps[1] + 1
  for i = 1, #steps do steps[i] = step end
  return true
end

-- A plan for the steps to come, where this one brought all parameters to the same count; `beside` has those of other
-- devices, for copies of all.
local function make_plan(group)
  group.plan = false
  if #group.steps == 0 or group.attributes.in_lua or offload.travels(group) then return end
  for i = 1, #group.steps do
    if group.steps[i] == 0 or group.steps[i] ~= group.steps[1] then return end
  end
  group.plan = native.update_plan(group.attributes, group.params, group.slots)
end

local function step_apart(group)
  local attributes = group.attributes
  local names = attributes:slots()
  for _, batch in ipairs(collect(group)) do
    local state = {}
    for _, slot in ipairs(names) do
      local own, list = group.slots[slot] or {}, {}
      group.slots[slot] = own
      for n, i in ipairs(batch.index) do
        local p = batch.params[n]
        local device = offload.device(group, p)
        if not own[i] then
          own[i] = lasting(zeros_for, attributes, slot, p, device)
        elseif own[i].device ~= device then -- the model has moved
          own[i] = lasting(native.methods.to, own[i], device)
        end
        list[n] = own[i]
      end
      state[slot] = list
    end
    if offload.travels(group) then
      offload.step(attributes, names, batch, state)
    else
      attributes:step(batch.step, batch.params, batch.gradients, state)
    end
    for _, i in ipairs(batch.index) do group.steps[i] = batch.step end
  end
  make_plan(group)
end

local function step_groups(self)
  for _, group in ipairs(self.groups) do
    native.compiled.note_step(group)
    if not step_together(group) then require("perigee").no_grad(step_apart, group) end
  end
end

local function update_all(self)
  if native.in_autocast() then
    policy.autocast(nil, nil, step_groups, self) -- updates written in Lua
  else
    step_groups(self)
  end
end

local function update(self) stretches.around(self, update_all) end

---Updates all parameters that have gradients: behind a call of closure(), which computes them, where one is given.
---@param closure? fun(): perigee.Tensor clears gradients, computes the loss, calls backward, returns the loss
---@return perigee.Tensor? loss what the closure returned
function Optimizer:step(closure)
  if native.graphs.recording then
    native.raise("failed_precondition", self.name, "step() is for eager code, and a graph is being recorded",
                 "optimizer:minimize(loss) records a step")
  end
  if not self:is_bound() then
    native.raise("failed_precondition", self.name, "has no parameters yet", "optim." .. self.name ..
                 "{model:parameters(), ...}")
  end
  local loss
  if closure ~= nil then
    if type(closure) ~= "function" then
      native.raise("invalid_argument", self.name, "step needs a function or nothing, got " .. native.describe(closure))
    end
    loss = require("perigee").enable_grad(closure)
  end
  local strategy = rawget(native, "strategy") -- of replicas that share a batch, whose gradients become one
  if strategy then
    strategy.step(self, update, self)
  else
    update(self)
  end
  return loss
end

---Inside of pg.graph: records the gradients of a loss and a step by them. Answers the training tensor: who runs it
---trains, and gets the number of steps done, int64 []. An optimizer without parameters takes all variables of the graph
---that want gradients and that the loss depends on.
---
---The optimizer's state and step count are variables of the graph ("adam/fc1.weight/exp_avg", "adam/step") and begin
---with what it holds; session:commit(optimizer) writes them back. Its hyperparameters are read at each run: what a
---script or a schedule sets in `optimizer.groups` holds from the next run on, bit by bit as in eager code. (Of LAMB,
---LARS, Adafactor and Muon that is the learning rate; others raise where they were changed.) `lr` is a tensor of the
---graph in place of the learning rates. Options as fit has them: accumulate=n steps in each n-th run with the mean of n
---gradients; clip_norm and clip_value limit the gradients; scaler scales the loss, leaves out steps whose gradients
---are not finite, and adapts its scale ("grad_scaler/scale"). What is recorded behind it sees nothing of the step.
---@param loss perigee.Tensor
---@param options? {accumulate?: integer, clip_norm?: number, clip_value?: number, scaler?: perigee.GradScaler,
---  lr?: perigee.Tensor}
---@return perigee.Tensor
function Optimizer:minimize(loss, options)
  offload.refuse(self, "minimize")
  return require("perigee.optim.recorded").minimize(self, loss, options, zeros_for)
end

---Inside of pg.graph: records a step by gradients that the graph has computed, { { gradient, variable }, ... }, as
---minimize does by those of a loss. A variable is a parameter or a g:variable.
---@param pairs perigee.Tensor[][] of a gradient and a variable each
---@param options? {accumulate?: integer, clip_norm?: number, clip_value?: number, lr?: perigee.Tensor}
---@return perigee.Tensor
function Optimizer:apply_gradients(pairs, options)
  offload.refuse(self, "apply_gradients")
  return require("perigee.optim.recorded").apply_gradients(self, pairs, options, zeros_for)
end

local function forget_gradients(self)
  for _, group in ipairs(self.groups) do
    if not (group.plan and group.plan:clear_gradients()) then native.clear_grads(group.params) end
  end
end

local function lists_of(self)
  local lists = {}
  for i, group in ipairs(self.groups) do lists[i] = group.params end
  return lists
end

---Forgets the gradients of all parameters, or with set_to_none=false makes them zeros.
---@param options? boolean|{set_to_none: boolean?}
function Optimizer:zero_grad(...)
  if select("#", ...) == 0 then return forget_gradients(self) end
  parameters.clear(self, forget_gradients, lists_of, ...)
end

---Hyperparameters, step counts and state: groups[i] = { options = {...}, steps = {...}, slots = { name = {...} } }.
---@return table
function Optimizer:state()
  local groups = {}
  for g, group in ipairs(self.groups) do
    local entry = { options = {}, steps = {}, slots = {} }
    for _, key in ipairs(group.attributes.info.names) do entry.options[key] = group.attributes:get(key) end
    for i, step in ipairs(group.steps) do entry.steps[i] = step end
    for slot, list in pairs(group.slots) do
      entry.slots[slot] = {}
      for i in ipairs(group.params) do entry.slots[slot][i] = list[i] and list[i]:detach():clone() or false end
    end
    groups[g] = entry
  end
  return { optimizer = self.name, groups = groups }
end

local function check_slots(refuse, group, slots)
  for slot, list in pairs(slots) do
    if type(list) ~= "table" then
      refuse(("%s must be a list, got %s"):format(tostring(slot), native.describe(list)))
    end
    for i, p in ipairs(group.params) do
      local t, expected = list[i], list[i] and zeros_for(group.attributes, slot, p)
      if t and (not native.is_tensor(t) or t.shape ~= expected.shape or t.dtype ~= expected.dtype) then
        refuse(("%s of parameter %d must be a tensor %s %s, got %s"):format(slot, i, expected.dtype,
                 tostring(expected.shape), native.describe(t)))
      end
    end
  end
end

local function check_state(self, saved)
  local function refuse(text) native.raise("invalid_argument", self.name .. ":load_state", text) end
  if type(saved) ~= "table" or type(saved.groups) ~= "table" then refuse("needs what state() returned") end
  if saved.optimizer ~= self.name then refuse("the state is one of " .. tostring(saved.optimizer)) end
  if #saved.groups ~= #self.groups then
    refuse(("%d parameter groups, expected %d"):format(#saved.groups, #self.groups))
  end
  for g, group in ipairs(self.groups) do
    local entry = saved.groups[g]
    for _, key in ipairs { "options", "steps", "slots" } do
      if type(entry) ~= "table" or type(entry[key]) ~= "table" then refuse(("group %d has no %s"):format(g, key)) end
    end
    if #entry.steps ~= #group.params then
      refuse(("group %d has %d parameters, expected %d"):format(g, #entry.steps, #group.params))
    end
    for i = 1, #group.params do
      local step = entry.steps[i]
      if type(step) ~= "number" or step < 0 or step % 1 ~= 0 or step >= 2 ^ 53 then
        refuse(("the steps of parameter %d must be a count, got %s"):format(i, native.describe(step)))
      end
    end
    new_attributes(self.name, entry.options) -- checks them
    check_slots(refuse, group, entry.slots)
  end
end

local function copy_to(device, t) return t:detach():clone():to(device) end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function Optimizer:load_state(saved)
  check_state(self, saved)
  for g, group in ipairs(self.groups) do
    local entry = saved.groups[g]
    for key, value in pairs(entry.options) do group.attributes:set(key, value) end
    for i in ipairs(group.params) do group.steps[i] = entry.steps[i] end
    group.slots, group.plan, group.beside = {}, false, {}
    for slot, list in pairs(entry.slots) do
      group.slots[slot] = {}
      for i, p in ipairs(group.params) do
        group.slots[slot][i] = list[i] and lasting(copy_to, offload.device(group, p), list[i]) or nil
      end
    end
  end
  return self
end

function Optimizer:__tostring()
  local count = 0
  for _, group in ipairs(self.groups) do count = count + #group.params end
  local options = self.groups[1] and self.groups[1].attributes or new_attributes(self.name, self.defaults)
  return ("%s(%d parameters; %s)"):format(self.name, count, options:describe(true))
end

native.checked.class(Optimizer, { noun = "an optimizer", call = "optimizer", skip = "new",
  hint = function(key) return native.suggest.foreign.hint("optimizer", key) end })

-- What a script may have meant to change are the hyperparameters, which belong to the groups.
function Optimizer:__newindex(key, value)
  if self.groups[1] and self.groups[1][key] ~= nil then
    native.raise("invalid_argument", self.name, ("%q is a field of the parameter groups"):format(tostring(key)),
                 ("optimizer.groups[1].%s = ..."):format(tostring(key)))
  end
  rawset(self, key, value)
end

rawset(native, "optim.optimizer", Optimizer)
return Optimizer
