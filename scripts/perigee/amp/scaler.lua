-- SPDX-License-Identifier: Apache-2.0
-- Loss scaling with a scale that adapts itself (Micikevicius et al. 2018; with the schedule of PyTorch's GradScaler).
-- Whether gradients overflowed stays on the device: the step looks at it there, and the host first sees it in update.

local native = require "perigee.native"
local partial = require "perigee.nn.partial"

if native.grad_scaler then return native.grad_scaler end -- package.loaded was cleared: the one in use

---@class perigee.GradScaler
local GradScaler = {}

local read_options = native.signature("amp.GradScaler", {
  { "init_scale", "number", named = true, default = 2 ^ 16, doc = "the first scale" },
  { "growth_factor", "number", named = true, default = 2,
    doc = "of the scale, after growth_interval steps without an overflow" },
  { "backoff_factor", "number", named = true, default = 0.5, doc = "of the scale, after an overflow" },
  { "growth_interval", "integer", named = true, default = 2000, doc = "steps until it grows" },
  { "enabled", "boolean", named = true, default = true, doc = "false: everything passes unscaled" } })

local LARGEST = 3.4028234663852886e38 -- of float32

local function need(condition, where, text, hint)
  if not condition then native.raise("invalid_argument", where, text, hint) end
end

local function check_factors(where, o)
  need(o.growth_factor > 1 and o.growth_factor < math.huge, where, "growth_factor must be above 1, got " ..
       o.growth_factor)
  need(o.backoff_factor > 0 and o.backoff_factor < 1, where, "backoff_factor must lie between 0 and 1, got " ..
       o.backoff_factor)
  need(o.growth_interval >= 1 and o.growth_interval % 1 == 0, where, "growth_interval must be at least 1, got " ..
       o.growth_interval)
end

---`amp.GradScaler{init_scale=2^16, growth_factor=2, backoff_factor=0.5, growth_interval=2000, enabled=true}`
---@return perigee.GradScaler
local function new(...)
  local o = read_options(...)
  need(o.init_scale > 0 and o.init_scale <= LARGEST, "amp.GradScaler", "init_scale must be positive and finite")
  check_factors("amp.GradScaler", o)
  return setmetatable({ factor = o.init_scale, growth_factor = o.growth_factor, backoff_factor = o.backoff_factor,
                        growth_interval = o.growth_interval, growth_tracker = 0, enabled = o.enabled, seen = {},
                        order = {} }, GradScaler)
end

---A loss (or a list of them) times the scale.
---@param losses perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor|perigee.Tensor[]
function GradScaler:scale(losses)
  if not self.enabled then return losses end
  native.grad_scaler.scaling = true
  if native.is_tensor(losses) then return losses * self.factor end
  need(type(losses) == "table", "GradScaler:scale", "needs a tensor or a list of tensors, got " ..
       native.describe(losses))
  local scaled = {}
  for i, loss in ipairs(losses) do scaled[i] = self:scale(loss) end
  return scaled
end

local function check_optimizer(where, optimizer)
  need(require("perigee.optim").is_optimizer(optimizer), where, "needs an optimizer, got " ..
       native.describe(optimizer))
end

-- Gradients by device: { device = { gradients } }, and the devices in order.
local function gradients_of(optimizer)
  local by_device, devices = {}, {}
  for _, group in ipairs(optimizer.groups) do
    for i, p in ipairs(group.params) do
      local gradient = p.grad
      if gradient then
        if gradient.dtype == "float16" then
          native.raise("invalid_argument", "GradScaler:unscale", ("parameter %d is float16"):format(i),
                       "keep parameters in float32 and compute in float16 with amp.autocast or amp.policy")
        end
        local list = by_device[gradient.device]
        if not list then
          list = {}
          by_device[gradient.device], devices[#devices + 1] = list, gradient.device
        end
        list[#list + 1] = gradient
      end
    end
  end
  return by_device, devices
end

local function unscale(scaler, optimizer)
  local by_device, devices = gradients_of(optimizer)
  local found
  for _, device in ipairs(devices) do
    local flag = native.call("unscale_all", { by_device[device] }, { inv_scale = 1 / scaler.factor })
    found = found and found:logical_or(flag:to(found.device)) or flag
  end
  return found
end

-- What has happened to an optimizer since the last update.
local function record_of(self, optimizer)
  local record = self.seen[optimizer]
  if not record then
    record = { optimizer = optimizer }
    self.seen[optimizer], self.order[#self.order + 1] = record, record
  end
  return record
end

-- Where processes hold parts of parameters, what one has found all know.
local function found_by_all(optimizer, found)
  local asked, first = {}, nil
  for _, group in ipairs(optimizer.groups) do
    for _, p in ipairs(group.params) do
      for _, among in ipairs(partial.groups(p)) do
        if not asked[among.number] then
          asked[among.number], first = true, first or p
          local own = found and found:to "int32" or
                      require("perigee").zeros({}, { dtype = "int32", device = first.device })
          local all = native.call("all_reduce", { { own } }, { op = "max", group = among.number })
          found = all:ne(0)
        end
      end
    end
  end
  return found
end

local function unscale_all(self, optimizer) return found_by_all(optimizer, unscale(self, optimizer)) end

local function unscale_once(self, record)
  record.found = require("perigee.optim.lasting")(require("perigee").no_grad, unscale_all, self, record.optimizer)
  record.unscaled = true
end

local function unscale_now(self, optimizer)
  local record = record_of(self, optimizer)
  if record.stepped or record.unscaled then
    native.raise("failed_precondition", "GradScaler:unscale", record.stepped and
                   "this optimizer has already stepped since the last update" or
                   "the gradients of this optimizer have already been unscaled since the last update",
                 "call scaler:update() at the end of every step")
  end
  unscale_once(self, record)
end

-- Replicas that share a batch find the same, and skip a step together.
local function strategy_at_work() return rawget(native, "strategy") end

---Divides the gradients of an optimizer's parameters by the scale, in place, and checks them: before they are clipped
---or looked at. Once between two updates; step does it where it was not done.
---@param optimizer perigee.Optimizer
function GradScaler:unscale(optimizer)
  if not self.enabled then return end
  check_optimizer("GradScaler:unscale", optimizer)
  local strategy = strategy_at_work()
  if strategy then return strategy.change(optimizer, unscale_now, self, optimizer) end
  unscale_now(self, optimizer)
end

local function counts_of(optimizer)
  local counts = {}
  for g, group in ipairs(optimizer.groups) do
    counts[g] = {}
    for i, count in ipairs(group.steps) do counts[g][i] = count end
  end
  return counts
end

local function step_now(self, optimizer)
  local record = record_of(self, optimizer)
  if record.stepped then
    native.raise("failed_precondition", "GradScaler:step", "this optimizer has already stepped since the last update",
                 "call scaler:update() at the end of every step")
  end
  if not record.unscaled then unscale_once(self, record) end
  if not record.found then
    native.raise("failed_precondition", "GradScaler:step", "no parameter of this optimizer has a gradient",
                 "call scaler:scale(loss):backward() first")
  end
  record.stepped, record.counts = true, counts_of(optimizer)
  return native.with(function() native.set_condition(record.found) end, function() native.set_condition(nil) end,
                     optimizer.step, optimizer)
end

---optimizer:step(), which changes nothing where a gradient is infinite or NaN. Does not wait for the device.
---@param optimizer perigee.Optimizer
---@return any ... what the step returns
function GradScaler:step(optimizer, ...)
  check_optimizer("GradScaler:step", optimizer)
  if not self.enabled then return optimizer:step(...) end
  if select("#", ...) > 0 then
    native.raise("not_supported", "GradScaler:step", "a step with a closure cannot be scaled")
  end
  local strategy = strategy_at_work()
  if strategy then return strategy.step(optimizer, step_now, self, optimizer) end
  return step_now(self, optimizer)
end

-- A step that did not happen does not count.
local function take_back(record)
  for g, counts in ipairs(record.counts) do
    local steps = record.optimizer.groups[g].steps
    for i, count in ipairs(counts) do steps[i] = count end
  end
end

local function adapt(self, overflowed)
  if overflowed then
    self.factor, self.growth_tracker = self.factor * self.backoff_factor, 0
    return
  end
  self.growth_tracker = self.growth_tracker + 1
  if self.growth_tracker < self.growth_interval then return end
  self.growth_tracker = 0
  local grown = self.factor * self.growth_factor
  if grown <= LARGEST then self.factor = grown end
end

local function update_now(self, new_scale)
  local overflowed, checked = false, false
  for _, record in ipairs(self.order) do
    if record.found then
      checked = true
      local skipped = record.found:item()
      overflowed = overflowed or skipped
      if skipped and record.counts then take_back(record) end
    end
  end
  if new_scale ~= nil then
    need(type(new_scale) == "number" and new_scale > 0 and new_scale <= LARGEST, "GradScaler:update",
         "the scale must be positive and finite, got " .. native.describe(new_scale))
    self.factor = new_scale
  elseif not checked then
    native.raise("failed_precondition", "GradScaler:update", "no gradients were checked since the last update",
                 "call scaler:step(optimizer) first")
  else
    adapt(self, overflowed)
  end
  self.seen, self.order = {}, {}
  native.grad_scaler.scaling = false
  return overflowed
end

---Ends a step: the scale shrinks where gradients overflowed, and grows after `growth_interval` steps in which none did.
---The one place that waits for the device.
---@param new_scale? number sets the scale instead
---@return boolean skipped whether the steps since the last update did nothing
function GradScaler:update(new_scale)
  if not self.enabled then return false end
  local strategy = strategy_at_work()
  if strategy then return strategy.once("scaler:update()", update_now, self, new_scale) end
  return update_now(self, new_scale)
end

---The scale; 1 where scaling is off.
---@return number
function GradScaler:get_scale() return self.enabled and self.factor or 1 end
---Whether scaling is on.
---@return boolean
function GradScaler:is_enabled() return self.enabled end

---What load_state takes: { scale, growth_factor, backoff_factor, growth_interval, growth_tracker }; {} where it is off.
---@return table
function GradScaler:state()
  if not self.enabled then return {} end
  return { scale = self.factor, growth_factor = self.growth_factor, backoff_factor = self.backoff_factor,
           growth_interval = self.growth_interval, growth_tracker = self.growth_tracker }
end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
---@return perigee.GradScaler self
function GradScaler:load_state(saved)
  if not self.enabled then return self end
  need(type(saved) == "table", "GradScaler:load_state", "needs what state() returned, got " .. native.describe(saved))
  for _, name in ipairs { "scale", "growth_factor", "backoff_factor", "growth_interval", "growth_tracker" } do
    need(type(saved[name]) == "number", "GradScaler:load_state", ("%q is missing"):format(name),
         next(saved) == nil and "the state is one of a scaler that was off" or nil)
  end
  need(saved.scale > 0 and saved.scale <= LARGEST, "GradScaler:load_state",
       "scale must be positive and finite, got " .. saved.scale)
  check_factors("GradScaler:load_state", saved)
  need(saved.growth_tracker >= 0 and saved.growth_tracker % 1 == 0, "GradScaler:load_state",
       "growth_tracker must be a count, got " .. saved.growth_tracker)
  self.factor, self.growth_tracker = saved.scale, saved.growth_tracker
  self.growth_factor, self.backoff_factor = saved.growth_factor, saved.backoff_factor
  self.growth_interval = saved.growth_interval
  return self
end

native.checked.class(GradScaler, { noun = "a gradient scaler", call = "scaler" })

function GradScaler:__tostring()
  if not self.enabled then return "GradScaler(off)" end
  return ("GradScaler(scale=%g, %d of %d steps to the next growth)"):format(self.factor, self.growth_tracker,
                                                                            self.growth_interval)
end

-- `scaling`: whether losses have been scaled since the last update, so that gradients may overflow.
native.grad_scaler = { new = new, scaling = false, is_scaler = function(v) return getmetatable(v) == GradScaler end,
                       recorded = function(...) return require("perigee.amp.recorded")(...) end }
return native.grad_scaler
