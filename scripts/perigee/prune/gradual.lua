-- SPDX-License-Identifier: Apache-2.0
-- pg.prune.Gradual: sparsity that grows while a model trains.

local native = require "perigee.native"
local masks = require "perigee.prune.masks"
local methods = require("perigee.prune.methods").inner
local targets = require "perigee.prune.targets"

local prune = {}

---A callback of model:fit, or stepped by hand.
---@class perigee.Gradual: perigee.Callback
---@field done integer steps taken
local Gradual = {}
Gradual.__index = Gradual

local WHERE = "prune.Gradual"
local read = native.signature(WHERE, {
  { "target", "any", required = true, type = "perigee.Layer|perigee.Layer[]",
    doc = "a layer, a model, or a list of them, as for pg.prune.l1_unstructured" },
  { "amount", "number", required = true, doc = "part of all elements that is pruned in the end, from 0 to 1" },
  { "steps", "integer", named = true, required = true, doc = "from the first pruning to the last" },
  { "initial", "number", named = true, default = 0, doc = "part that the first pruning takes" },
  { "begin", "integer", named = true, default = 0, doc = "steps before the first pruning" },
  { "every", "integer", named = true, default = 1, doc = "steps from one pruning to the next; the last is at the end" },
  { "method", "string", named = true, default = "l1", choices = { "l1", "random" }, doc = "what goes first" },
  { "together", "boolean", named = true, default = false,
    doc = "the part is one of all layers together, not of each by itself" },
  targets.NAME })

local function check(o)
  for _, key in ipairs { "amount", "initial" } do
    if not (o[key] >= 0 and o[key] <= 1) then
      native.raise("invalid_argument", WHERE, ("%s must lie in [0, 1], got %g"):format(key, o[key]))
    end
  end
  if o.initial > o.amount then
    native.raise("invalid_argument", WHERE, ("initial %g is more than amount %g"):format(o.initial, o.amount),
                 "sparsity only grows")
  end
  for key, least in pairs { steps = 1, begin = 0, every = 1 } do
    if o[key] < least then
      native.raise("invalid_argument", WHERE, ("%s must be at least %d, got %d"):format(key, least, o[key]))
    end
  end
end

---Sparsity that grows while a model trains, fast at first and slower towards the end, as the cube of what is left of
---the time (Zhu and Gupta, 2017, "To prune, or not to prune"): at step t behind `begin` the part
---amount + (initial - amount) (1 - t / steps)^3 is pruned. model:fit{callbacks={gradual}} steps it behind every batch;
---by hand it is `gradual:step()` behind `optimizer:step()`. Masks are there from the start, and checkpoints carry how
---far it is.
---@return perigee.Gradual
function prune.Gradual(...)
  local o = read(...)
  check(o)
  local self = setmetatable({ options = o, done = 0, layers = targets.find(WHERE, o.target, o.name) }, Gradual)
  require("perigee").no_grad(function()
    for _, layer in ipairs(self.layers) do masks.set(layer, o.name, masks.open(layer, o.name)) end
  end)
  return self
end

---The part that is to be pruned after `done` steps; nil: nothing is due yet.
---@return number?
function Gradual:sparsity()
  local o = self.options
  local t = self.done - o.begin
  if t < 0 then return nil end
  if t >= o.steps then return o.amount end
  return o.amount + (o.initial - o.amount) * (1 - t / o.steps) ^ 3
end

-- How many more go, where `left` of `all` are not pruned.
local function missing(part, all, left)
  local wanted = math.floor(part * all + 0.5)
  return math.max(wanted - (all - left), 0)
end

local function advance(self, part)
  local o, total = self.options, 0
  for _, layer in ipairs(self.layers) do total = total + masks.original(layer, o.name):numel() end
  if o.together then
    methods.together(WHERE, self.layers, o.name, o.method, function(left) return missing(part, total, left) end)
  else
    methods.by_layer(WHERE, self.layers, o.name, o.method, function(left, layer)
      return missing(part, masks.original(layer, o.name):numel(), left)
    end)
  end
end

---Counts a step, and prunes where the schedule has one. Answers the part that is to be pruned by now.
---@return number
function Gradual:step()
  self.done = self.done + 1
  local o = self.options
  local t = self.done - o.begin
  for _, layer in ipairs(self.layers) do
    if not masks.is_pruned(layer, o.name) then
      native.raise("failed_precondition", "Gradual:step", targets.text(layer, o.name) .. " is not pruned any more",
                   "pg.prune.remove ends the schedule")
    end
  end
  if t >= 0 and t <= o.steps and (t % o.every == 0 or t == o.steps) then
    require("perigee").no_grad(advance, self, self:sparsity())
  end
  return self:sparsity() or 0
end

Gradual["on_batch_end"] = function(self, job, step) self:step() end -- fit calls it

---What checkpoints carry; the masks are the model's.
---@return table
function Gradual:state() return { done = self.done } end

---Takes up where state() was taken.
---@param saved table
---@param job? any fit gives it
---@return nil
function Gradual:load_state(saved, job)
  local done = type(saved) == "table" and saved.done
  if type(done) ~= "number" or done < 0 or done % 1 ~= 0 then
    native.raise("invalid_argument", "Gradual:load_state", "needs what state() returned, got " ..
                 native.describe(saved))
  end
  self.done = done
end

function Gradual:__tostring()
  local o = self.options
  return ("Gradual(%g to %g, step %d of %d, %d layers)"):format(o.initial, o.amount, self.done, o.begin + o.steps,
                                                               #self.layers)
end

native.checked.class(Gradual, { noun = "a pruning schedule", call = "gradual", open = true })
return prune
