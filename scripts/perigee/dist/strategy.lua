-- SPDX-License-Identifier: Apache-2.0
-- Data parallelism: replicas of a model compute parts of each batch; gradients are summed before a step, so that all
-- take the same one. What replicas are, processes or devices, is a strategy's kind (processes.lua, devices.lua).

local native = require "perigee.native"
local shares = require "perigee.dist.shares"

---How a training is spread. `num_replicas_in_sync` is how many compute at once; `rank` which of them this process is,
---or, where one process has several, which one is computing (0 outside of strategy:run).
---@class perigee.Strategy
---@field num_replicas_in_sync integer
---@field rank integer
local Strategy = { __name = "perigee.Strategy" }

-- Of a strategy in scope or at work, which none may be inside of.
local active

local function enter(self, where, fn, ...)
  if active then
    native.raise("failed_precondition", where, active == self and "is called inside of " .. self._inside or
                   "a strategy is at work already: one inside of another makes no sense")
  end
  local function begin()
    active, self._inside = self, where
  end
  local function back() active = nil end
  return native.with(begin, back, fn, ...)
end

-- fn(...), with all layers and optimizers that it makes in `_made`.
local function recorded(self, fn, ...)
  local function begin()
    native.made = function(object) self._made[#self._made + 1] = object end
  end
  local function back() native.made = nil end
  return native.with(begin, back, self._kind.scope, self, fn, ...)
end

-- What layers call their parameters; of those inside of others what the outermost, made last, says.
local function note_names(self, layer)
  for name, p in layer:named_parameters() do self._names_of[p] = name end
end

---Runs fn(...), which makes the model and its optimizer, so that all replicas begin with the same parameters: of
---several processes with the same random numbers, of several devices on the first one.
---@param fn function
---@param ... any
---@return any ... what fn returns
function Strategy:scope(fn, ...)
  native.checked.need_function("strategy:scope", fn)
  if active == nil then self._kind.begin_scope(self) end
  local function finish(...)
    local made = self._made
    self._made = {}
    for _, object in ipairs(made) do
      if not object.groups then note_names(self, object) end
    end
    self._kind.end_scope(self, made)
    return ...
  end
  return finish(enter(self, "strategy:scope", recorded, self, fn, ...))
end

---Sums the gradients of an optimizer's parameters over all replicas now, inside of strategy:run: before they are
---clipped or looked at. Each counts by its part of the batch. step() of the optimizer does it where it was not done.
---@param optimizer perigee.Optimizer
function Strategy:reduce_gradients(optimizer)
  if active ~= self or self._inside ~= "strategy:run" then
    native.raise("failed_precondition", "strategy:reduce_gradients", "is for functions that strategy:run calls")
  end
  self._kind.reduce_gradients(self, optimizer)
end

---Calls fn(...), a step of a training, on every replica with its part of a batch (strategy:distribute). An optimizer's
---step in it uses the gradients of all replicas: the mean over all samples of the batch, whose parts may differ in
---size.
---
---Of several devices each calls fn with its own device in force (pg.device), its own parameters and buffers, and parts
---of batches that lie there. They take turns: where one comes to a step of an optimizer, a scaler, a schedule or an
---average, it waits until all have come to it, and the step is made once. What fn returns comes back as a list, a value
---a device, without gradients; a nil of all of them as nil.
---@param fn function
---@param ... any a batch of strategy:distribute, and what fn needs besides
---@return any ... what fn returns on this replica
function Strategy:run(fn, ...)
  native.checked.need_function("strategy:run", fn)
  return enter(self, "strategy:run", self._kind.run, self, fn, ...)
end

---Names of the parameters that need gradients and had none on any replica when an optimizer last stepped: those of the
---model's state() where the model was made in strategy:scope or fit trains it, else "parameter 3", the third of its
---optimizer. They stay what they are.
---@return string[]
function Strategy:unused()
  local last, list = self._last, {}
  for i, p in ipairs(last and last.params or {}) do
    if not last.any[i] and p.requires_grad then list[#list + 1] = self._names_of[p] or ("parameter %d"):format(i) end
  end
  return list
end

local OPS = { sum = true, mean = true, max = true, min = true }

---The sum ("mean", "max", "min") of a number or a tensor over all replicas; of several devices also of what
---strategy:run has returned.
---@param op string
---@param value number|perigee.Tensor
---@return any reduced a number of a number, a tensor of a tensor
function Strategy:reduce(op, value)
  if not OPS[op] then
    native.raise("invalid_argument", "strategy:reduce", "op must be sum, mean, max or min, got " ..
                 native.describe(op))
  end
  return self._kind.reduce(self, op, value, active == self and self._inside == "strategy:run")
end

---Batches whose parts the replicas compute: rows behind each other, as equal as they can be. The batch size is that of
---all replicas together. Every process goes through the whole data set, in the same order, and keeps its part of each
---batch; for several devices strategy:run takes batches apart.
---@param dataset perigee.Dataset of batches
---@return perigee.Dataset
function Strategy:distribute(dataset)
  if type(dataset) ~= "userdata" or not dataset.batched then
    native.raise("invalid_argument", "strategy:distribute", "needs a dataset of batches, got " ..
                 native.describe(dataset), "ds:batch(n), where n counts the samples of all replicas")
  end
  return dataset:map(self._kind.distributor(self))
end

function Strategy:__tostring() return self._kind.describe(self) end

native.checked.class(Strategy, { noun = "a strategy", call = "strategy", open = true,
  kinds = { reduce = { { "op", "string", required = true }, { "value", "any", required = true } },
            distribute = { { "dataset", "any", required = true } } } })
Strategy.__index = Strategy

---A strategy of a kind: { begin_scope, scope, end_scope, run, reduce_gradients, reduce, distributor, describe, work,
---fit }. `work(self)` is what optimizers and scalers ask while a step runs (native.strategy):
---  step(optimizer, fn, ...)    fn(...) updates all replicas' parameters, with the gradients of all
---  change(optimizer, fn, ...)  fn(...) changes the gradients of all
---  once(what, fn, ...)         fn(...) is for all replicas of the process together
---`fit` is what fit does of it (fit/replicas.lua).
return function(kind, fields)
  local self = setmetatable(fields, Strategy)
  self._kind, self._reduced = kind, setmetatable({}, { __mode = "k" })
  self._made, self._names_of = {}, setmetatable({}, { __mode = "k" })
  self._work = kind.work(self)
  self._fit = setmetatable({
    share = shares.of, note_names = note_names, wrap = function(_, fn, ...) return enter(self, "fit", fn, ...) end,
  }, { __index = kind.fit })
  return self
end
