-- SPDX-License-Identifier: Apache-2.0
-- Averages of weights: optim.EMA, which forgets, and optim.SWA, which does not. Both keep tensors of their own beside
-- the model's and update them in one pass.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local lasting = require "perigee.optim.lasting"

local averages = {}

---@class perigee.Average
---@field updates integer how many there were
---@field shadow table<string|integer, perigee.Tensor> averages by the names of the model's state, or from 1 for a list
local Average = {}

local function is_float(t) return native.dtypes.by_name[t.dtype].floating end

-- Names and tensors of what is averaged (parameters), and of what is only copied along (buffers).
local function sources_of(where, source)
  local list = {}
  if walk.is_layer(source) then
    if walk.is_lazy(source) then
      native.raise("failed_precondition", where, "the model's sizes are not known before its first input",
                   "call it once")
    end
    for i, entry in ipairs(walk.tensors(source)) do
      local t = entry.tensor
      list[i] = { name = entry.name, tensor = t, averaged = walk.is_parameter(t) and is_float(t) }
    end
  elseif type(source) == "table" and native.is_tensor(source[1]) then
    for i, t in ipairs(source) do list[i] = { name = i, tensor = t, averaged = is_float(t) } end
  else
    native.raise("invalid_argument", where, "needs a layer or a list of tensors, got " .. native.describe(source))
  end
  for _, entry in ipairs(list) do require("perigee").keep(entry.tensor) end
  return list
end

-- A tensor of its own with the same contents: float32 where the model's has 16 bits, which would not see small steps.
local function shadow_of(t)
  local copy = t:detach():clone()
  return (t.dtype == "float16" or t.dtype == "bfloat16") and copy:to("float32") or copy
end

local function add_shadows(self)
  for _, source in ipairs(self.sources) do self.shadow[source.name] = lasting(shadow_of, source.tensor) end
end

local function new(where, o)
  local self = setmetatable({ name = where, options = o, updates = 0, shadow = {} }, Average)
  self.sources = sources_of(where, o.model)
  require("perigee").no_grad(add_shadows, self)
  return self
end

-- A source's shadow, where the source is: a model that has moved takes its averages along.
local function shadow_at(self, source)
  local shadow, device = self.shadow[source.name], source.tensor.device
  if shadow.device ~= device then
    shadow = lasting(native.methods.to, shadow, device)
    self.shadow[source.name] = shadow
  end
  return shadow
end

-- shadow += part (tensor - shadow) for all of a device at once. A step of gradient descent says it: with decay `part`
-- and the tensors as gradients to climb along.
local function move(self, part)
  local devices = {}
  for _, source in ipairs(self.sources) do
    local shadow, t = shadow_at(self, source), source.tensor
    if not source.averaged then
      native.call("copy", { shadow, t })
    else
      local group = devices[t.device] or { {}, {} }
      devices[t.device] = group
      group[1][#group[1] + 1], group[2][#group[2] + 1] = shadow, t:detach()
    end
  end
  for _, group in pairs(devices) do
    native.call("sgd", { group[1], group[2], {} }, { lr = 1, weight_decay = part, grad_scale = 1 / part,
                                                     maximize = true })
  end
end

local function update(self)
  self.updates = self.updates + 1
  require("perigee").no_grad(move, self, self:part())
end

---Takes the model's weights into the average. Call it after optimizer:step().
function Average:update()
  local strategy = rawget(native, "strategy") -- of replicas, whose weights are the same
  if strategy then return strategy.once("average:update()", update, self) end
  update(self)
end

-- Averages that the model holds rounded are kept beside, for the way back: where nothing has changed them since.
local function exchange(self)
  local kept, exact = self.exact or {}, {}
  for _, source in ipairs(self.sources) do
    local name, t = source.name, source.tensor
    local shadow, own = shadow_at(self, source), t:detach():clone()
    if kept[name] then
      local exactly = kept[name]:to(t.device)
      own = require("perigee").where(own:eq(exactly:to(t.dtype)), exactly, own:to(shadow.dtype))
    elseif shadow.dtype ~= t.dtype then
      exact[name] = lasting(shadow.clone, shadow)
    end
    native.call("copy", { t:detach(), shadow:to(t.dtype) })
    native.call("copy", { shadow, own })
  end
  self.exact = not self.exact and exact or nil
end

---Exchanges the model's weights with the averages, in place; a second call puts them back.
function Average:swap() require("perigee").no_grad(exchange, self) end

---Calls fn(...) with the averages in the model and puts its own weights back, also after an error.
---@param fn function
---@param ... any arguments of fn
---@return any ... what fn returns
function Average:use(fn, ...)
  native.checked.need_function(self.name .. ":use", fn)
  local kept = {}
  require("perigee").no_grad(function()
    for _, source in ipairs(self.sources) do kept[source.name] = source.tensor:detach():clone() end
  end)
  local function enter() self:copy_to() end
  local function back()
    require("perigee").no_grad(function()
      for _, source in ipairs(self.sources) do
        native.call("copy", { source.tensor:detach(), kept[source.name] })
      end
    end)
  end
  return native.with(enter, back, fn, ...)
end

---Writes the averages into the model, or into another one of its kind.
---@param model? perigee.Layer
function Average:copy_to(model)
  local targets = model and sources_of(self.name .. ":copy_to", model) or self.sources
  require("perigee").no_grad(function()
    for _, target in ipairs(targets) do
      local shadow = self.shadow[target.name]
      if not shadow or shadow.shape ~= target.tensor.shape then
        native.raise("invalid_argument", self.name .. ":copy_to", ("%s is not what is averaged here"):format(
                       tostring(target.name)))
      end
      native.call("copy", { target.tensor:detach(), shadow:to(target.tensor.dtype):to(target.tensor.device) })
    end
  end)
end

---For load_state and for checkpoints.
---@return table
function Average:state()
  local shadow = {}
  for name, t in pairs(self.shadow) do shadow[name] = t:clone() end
  return { updates = self.updates, shadow = shadow }
end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function Average:load_state(saved)
  local where = self.name .. ":load_state"
  if type(saved) ~= "table" or type(saved.shadow) ~= "table" then
    native.raise("invalid_argument", where, "needs what state() returned")
  end
  local updates = saved.updates
  if type(updates) ~= "number" or updates < 0 or updates % 1 ~= 0 then
    native.raise("invalid_argument", where, "updates must be a count, got " .. native.describe(updates))
  end
  for _, source in ipairs(self.sources) do
    local t = saved.shadow[source.name]
    local own = self.shadow[source.name]
    if not native.is_tensor(t) or t.shape ~= own.shape or t.dtype ~= own.dtype then
      native.raise("invalid_argument", where, ("%s is %s, expected %s %s"):format(tostring(source.name),
                   t and native.describe(t) or "missing", own.dtype, tostring(own.shape)))
    end
  end
  for _, source in ipairs(self.sources) do
    self.shadow[source.name] = lasting(function() return saved.shadow[source.name]:clone():to(source.tensor.device) end)
  end
  self.updates, self.exact = saved.updates, nil
  return self
end

native.checked.class(Average, { noun = "an average of weights", call = "average", fields = "exact" })

function Average:__tostring() return ("%s(%d updates)"):format(self.name, self.updates) end

local MODEL = { "model", "any", required = true, many = true, type = "perigee.Layer|perigee.Tensor[]",
                doc = "what is averaged" }

local read_ema = native.signature("optim.EMA", {
  MODEL,
  { "decay", "number", default = 0.999, doc = "part of the average that stays at an update" },
  { "warmup", "boolean", named = true, default = false, doc = "whether the n-th decay is at most n / (9 + n)" } })

---Exponential moving average of a model's parameters, or of a list of tensors: average = decay average + (1 - decay)
---weights at each update(). With warmup early weights are soon forgotten. Buffers are copied.
---@return perigee.Average
function averages.EMA(...)
  local o = read_ema(...)
  if not (o.decay >= 0 and o.decay < 1) then
    native.raise("invalid_argument", "optim.EMA", "decay must lie in [0, 1), got " .. o.decay)
  end
  local self = new("optim.EMA", o)
  self.part = function(average)
    local n = average.updates
    return 1 - (o.warmup and math.min(o.decay, n / (9 + n)) or o.decay)
  end
  return self
end

local read_swa = native.signature("optim.SWA", { MODEL })

---The mean of all weights that update() was called with (stochastic weight averaging: Izmailov et al., 2018):
---average += (weights - average) / n at the n-th update. Running statistics are the model's last ones: run the averaged
---model over data in train() mode to renew them.
---@return perigee.Average
function averages.SWA(...)
  local self = new("optim.SWA", read_swa(...))
  self.part = function(average) return 1 / average.updates end
  return self
end

return averages
