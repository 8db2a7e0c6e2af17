-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.pipeline: stages of a model on several devices of this process, or in several processes, which compute
-- micro-batches at the same time.
--
-- The tape is cut between stages: a stage's input is a leaf, whose gradient is the seed of the stage before. Devices
-- are given work in the order of the schedules of all; processes wait for what they need, and send without waiting.

local native = require "perigee.native"
local schedules = require "perigee.dist.schedules"
local walk = require "perigee.nn.walk"
local wire = require "perigee.dist.wire"

local WHERE = "dist.pipeline"

local function pg() return require "perigee" end

---Stages of a model, one after the other. `stages` are those that this process has, by their number from 1.
---@class perigee.Pipeline
---@field stages table<integer, perigee.Layer>
---@field micro_batches integer
local Pipeline = { __name = "perigee.Pipeline" }

-- ---- one stage ----

local function need_tensor(stage, y)
  if native.is_tensor(y) then return y end
  native.raise("invalid_argument", WHERE, ("stage %d answers %s; expected a tensor"):format(stage, native.describe(y)))
end

-- fn(...), a layer or a function, where the stage is.
local function on(self, stage, fn, ...)
  local device = self._device_of[stage]
  if device then return pg().device(device, function(...) return fn(...) end, ...) end
  return fn(...)
end

-- A leaf with the contents of what the stage before gave.
local function leaf_of(self, stage, x)
  if self._device_of[stage] and native.is_tensor(x) then x = x:to(self._device_of[stage]) end
  if stage == 1 then return x end
  x = x:detach()
  if x.dtype:find("float", 1, true) then x.requires_grad = true end
  return x
end

local function forward(self, work, stage, micro)
  local last, part = stage == self._count, work.parts[micro]
  local x = leaf_of(self, stage, stage == 1 and part.x or work.take(stage, micro))
  local y = need_tensor(stage, on(self, stage, self.stages[stage], x))
  local kept = { x = x, y = y }
  if last then
    local target = native.is_tensor(part.y) and part.y:to(y.device) or part.y
    local loss = on(self, stage, self._loss, y, target)
    if not native.is_tensor(loss) or loss:numel() ~= 1 then
      native.raise("invalid_argument", WHERE, "loss must answer a tensor of one element, got " .. native.describe(loss))
    end
    kept.y = loss:reshape {} * (part.rows / work.rows)
    local value = kept.y:detach()
    work.loss = work.loss and work.loss + value or value
  else
    work.give(stage + 1, micro, y:detach())
  end
  work.kept[stage .. " " .. micro] = kept
end

local function backward(self, work, stage, micro)
  local key = stage .. " " .. micro
  local kept = work.kept[key]
  work.kept[key] = nil
  local seed = stage < self._count and work.take_back(stage, micro) or nil
  if kept.y.requires_grad then
    if seed and self._device_of[stage] then seed = seed:to(self._device_of[stage]) end
    if seed then kept.y:backward(seed) else kept.y:backward() end
  end
  if stage == 1 then return end
  local gradient = native.is_tensor(kept.x) and kept.x.grad
  work.give_back(stage - 1, micro, gradient or pg().zeros_like(kept.x))
end

-- ---- a step ----

local function rows_of(where, x)
  if native.is_tensor(x) and x:dim() > 0 then return x.shape[1] end
  native.raise("invalid_argument", where, "x must be a tensor with a first axis of samples, got " .. native.describe(x))
end

local function cut(self, x, y)
  local rows, parts, n = rows_of("pipeline:step", x), {}, self.micro_batches
  if rows < n then
    native.raise("invalid_argument", "pipeline:step", ("%d samples are fewer than %d micro-batches"):format(rows, n))
  end
  if native.is_tensor(y) and (y:dim() == 0 or y.shape[1] ~= rows) then
    native.raise("invalid_argument", "pipeline:step", ("y is %s; expected %d rows, as x has"):format(native.describe(y),
                 rows))
  end
  for m = 1, n do
    local first, last = math.floor(rows * (m - 1) / n) + 1, math.floor(rows * m / n)
    parts[m] = { rows = last - first + 1, x = x[{ { first, last } }],
                 y = native.is_tensor(y) and y[{ { first, last } }] or y }
  end
  return parts, rows
end

local STREAMS = 30 -- of a device, for what comes to it: beside the one on which it computes

-- To where a stage is, at once. What waits for a stream waits for all that it has been given, so what a stage needs at
-- different times comes on different ones, as far as there are.
local function carry(self, t, stage, micro, is_gradient)
  local device = self._device_of[stage]
  if not device or t.device == device then return t end
  local kind, apart = 2 * math.floor((stage - 1) / self._places) + (is_gradient and 1 or 0),
                      math.max(1, math.floor(STREAMS / (2 * self._each)))
  return pg().stream(1 + (kind * apart + micro % apart) % STREAMS, t.to, t, device)
end

-- What passes from stage to stage within one process.
local function by_hand(self, work)
  local forwards, backwards = {}, {}
  local function taker(from)
    return function(stage, micro)
      local key = stage .. " " .. micro
      local t = from[key]
      from[key] = nil
      return t
    end
  end
  work.take, work.take_back = taker(forwards), taker(backwards)
  function work.give(stage, micro, t) forwards[stage .. " " .. micro] = carry(self, t, stage, micro, false) end
  function work.give_back(stage, micro, t)
    backwards[stage .. " " .. micro] = carry(self, t, stage, micro, true)
  end
end

local BACK = 4096 -- tags of gradients begin there

-- What passes between processes.
local function by_wire(self, work)
  local line = wire.open(self._group)
  local function owner(stage) return (stage - 1) % self._places end
  function work.take(stage) return line:receive(owner(stage - 1), stage, self._device) end
  function work.give(stage, _, t) line:send(t, owner(stage), stage) end
  function work.take_back(stage) return line:receive(owner(stage + 1), BACK + stage, self._device) end
  function work.give_back(stage, _, t) line:send(t, owner(stage), BACK + stage) end
  return line
end

local function run(self, x, y)
  local parts, rows = cut(self, x, y)
  local work = { parts = parts, rows = rows, kept = {} }
  local function visit(s) (s.kind == "F" and forward or backward)(self, work, s.stage, s.micro) end
  if not self._group then
    by_hand(self, work)
    schedules.walk(self:schedule(), self._count, visit)
    return work.loss
  end
  local line = by_wire(self, work)
  for _, s in ipairs(self:schedule()[self._group.rank + 1]) do visit(s) end
  line:close()
  local root = (self._count - 1) % self._places
  local loss = wire.spread(self._group, work.loss, root)
  return loss
end

---A step's forward and backward passes: x and y are cut into micro-batches, of which each stage computes one while its
---neighbours compute others; gradients are added to those that parameters have, as loss:backward() does. All processes
---of a pipeline call it with the same batch.
---@param x perigee.Tensor [N, ...]
---@param y? any [N, ...], what the loss gets besides the last stage's result
---@return perigee.Tensor loss the mean over all samples, on every process
function Pipeline:step(x, y)
  if not self._loss then
    native.raise("failed_precondition", "pipeline:step", "the pipeline has no loss",
                 "pg.dist.pipeline{..., loss=nn.mse}")
  end
  return run(self, x, y)
end

---What the last stage gives of a whole batch, on every process: for evaluation.
---@param x perigee.Tensor
---@return perigee.Tensor
function Pipeline:forward(x)
  if not self._group then
    for stage = 1, self._count do
      x = on(self, stage, self.stages[stage], native.is_tensor(x) and self._device_of[stage] and
             x:to(self._device_of[stage]) or x)
    end
    return x
  end
  local line = wire.open(self._group)
  local y
  for stage = 1, self._count do
    local owner = (stage - 1) % self._places
    if owner == self._group.rank then
      local input = x
      if stage > 1 then input = line:receive((stage - 2) % self._places, stage, self._device) end
      y = need_tensor(stage, self.stages[stage](input))
      if stage < self._count then line:send(y:detach(), stage % self._places, stage + 1) end
    end
  end
  line:close()
  return wire.spread(self._group, y, (self._count - 1) % self._places)
end

---The parameters of the stages that this process has.
---@return perigee.Tensor[]
function Pipeline:parameters()
  local list, seen = {}, {}
  for stage = 1, self._count do
    for _, p in ipairs(self.stages[stage] and self.stages[stage]:parameters() or {}) do
      if not seen[p] then seen[p], list[#list + 1] = true, p end
    end
  end
  return list
end

---What each place, a device or a process, does in a step, in its order: { kind = "F" or "B", stage, micro }.
---@return table[][]
function Pipeline:schedule()
  local lists = {}
  for place = 0, self._places - 1 do
    lists[place + 1] = schedules.of(self._schedule, place, self._places, self.micro_batches, self._each)
  end
  return lists
end

---The part of a step's time that places wait for each other where all stages take as long, backward `ratio` times what
---forward takes, and sending takes none: (places - 1) / (micro_batches * stages of a place + places - 1).
---@param ratio? number 2 if not given
---@return number
function Pipeline:bubble(ratio)
  local _, part = schedules.time(self:schedule(), self._count, 1, ratio or 2)
  return part
end

function Pipeline:__tostring()
  return ("pipeline(%d stages, %d %s, %d micro-batches, %s)"):format(self._count, self._places, self._group and
         "processes" or "devices", self.micro_batches, self._schedule)
end

native.checked.class(Pipeline, { noun = "a pipeline", call = "pipeline", open = true,
  kinds = { step = { { "x", "any", required = true }, { "y", "any" } }, forward = { { "x", "any", required = true } },
            bubble = { { "ratio", "number" } } } })
Pipeline.__index = Pipeline
Pipeline.__call = function(self, ...) return self:forward(...) end

-- ---- a new one ----

local function resolve_devices(given)
  local names, taken = {}, {}
  if type(given) ~= "table" or #given == 0 then
    native.raise("invalid_argument", WHERE, "devices must be a list of names, got " .. native.describe(given))
  end
  for i, name in ipairs(given) do
    local number = native.find_device(name, WHERE)
    if taken[number] then
      native.raise("invalid_argument", WHERE, ("%s is named twice: devices %d and %d"):format(name, taken[number], i))
    end
    taken[number], names[i] = i, native.device_name(number)
  end
  return names
end

local function check_stages(o, places, what)
  local count = type(o.stages) == "table" and not walk.is_layer(o.stages) and #o.stages or 0
  if count == 0 then
    native.raise("invalid_argument", WHERE, "stages must be a list of layers, got " .. native.describe(o.stages))
  end
  if count % places ~= 0 then
    native.raise("invalid_argument", WHERE, ("%d stages cannot be shared by %d %s"):format(count, places, what))
  end
  local each = count / places
  if each > 1 and o.schedule ~= "interleaved" then
    native.raise("invalid_argument", WHERE, ("%d stages for %d %s need schedule=\"interleaved\""):format(count, places,
                 what))
  end
  if each > 1 and o.micro_batches % places ~= 0 then
    native.raise("invalid_argument", WHERE, ("interleaved: micro_batches %d is no multiple of the %d %s"):format(
                   o.micro_batches, places, what))
  end
  return count, each
end

-- A layer, or a function that makes one where it is needed.
local function make_stage(given, number)
  local layer = given
  if type(given) == "function" then layer = given() end
  if walk.is_layer(layer) then return layer end
  native.raise("invalid_argument", WHERE, ("stage %d must be a layer or a function that makes one, got %s"):format(
                 number, native.describe(layer)))
end

---@param o { stages: table, devices: string[]?, group: perigee.Group?, micro_batches: integer, schedule: string,
---  loss: function? }
return function(o)
  local devices = o.devices ~= nil and resolve_devices(o.devices) or nil
  if devices and o.group then
    native.raise("invalid_argument", WHERE, "takes devices of this process or a group of processes, not both")
  end
  local group = not devices and o.group.size > 1 and o.group or nil
  local places = devices and #devices or group and group.size or 1
  local schedule = places == 1 and #o.stages > 1 and "interleaved" or o.schedule
  local count, each = check_stages({ stages = o.stages, micro_batches = o.micro_batches, schedule = schedule }, places,
                                   devices and "devices" or "processes")
  local self = { stages = {}, micro_batches = o.micro_batches, _count = count, _each = each, _places = places,
                 _schedule = schedule, _loss = o.loss, _group = group, _device_of = {} }
  for stage = 1, count do
    local place = (stage - 1) % places
    if not group or place == group.rank then
      local layer = make_stage(o.stages[stage], stage)
      if devices then
        layer:to(devices[place + 1])
        self._device_of[stage] = devices[place + 1]
      end
      self.stages[stage] = layer
      local p = layer:parameters()[1]
      self._device = p and p.device or self._device
    end
  end
  return setmetatable(self, Pipeline)
end
