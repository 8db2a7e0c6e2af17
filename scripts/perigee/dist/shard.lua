-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.shard: what the processes of a group would all have is spread over them (Rajbhandari et al., 2020): states of
-- optimizers (level 1), gradients too (2), parameters too (3).
--
-- At levels 2 and 3 a parameter is this process's stretch of its elements, a leaf. While its layer is called the
-- stretches of all are together in `flat`, which the layer sees as its parameter: the result of a node over it,
-- whose gradient is summed, and cut, as soon as a backward pass has it. At level 3 `flat` has memory only while a layer
-- needs it, in forward and again in backward; the tape goes on showing it in between (core/src/tensor/dropped.hpp).

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local hooks = require "perigee.nn.hooks"
local partial = require "perigee.nn.partial"
local shares = require "perigee.dist.shares"
local walk = require "perigee.nn.walk"

local WHERE = "dist.shard"
local META = walk.META

local function pg() return require "perigee" end
local close = native.handles.close

local Sharding = {}
Sharding.__index = Sharding

-- ---- one parameter ----

-- All elements in a row, with room for as many of each process, and the whole parameter in it.
local function make_flat(p, shape, each, size)
  local flat = pg().keep(pg().zeros({ each * size }, { dtype = p.dtype, device = p.device }))
  local n = partial.elements(shape)
  local whole = (n < each * size and flat[{ { 1, n } }] or flat):reshape(shape)
  return flat, pg().keep(whole:detach())
end

local function new_entry(self, p)
  local shape, each = p.shape, partial.stretch(p:numel(), self.group.size)
  local part = { group = self.group, flat = true, shape = shape, within = partial.of(p) }
  if p.grad then native.set_grad(p, nil) end
  local flat, whole = make_flat(p, shape, each, self.group.size)
  if self.drops then
    native.assign(p, partial.cut(p:detach(), part))
    native.dist.drop_memory(flat)
  else -- the stretch is where it lies in the whole
    whole:copy_(p:detach())
    native.assign(p, flat[{ { self.group.rank * each + 1, (self.group.rank + 1) * each } }]:detach())
  end
  partial.mark(p, part)
  return { p = p, flat = flat, whole = whole, part = part, calls = 0, in_backward = false }
end

local function is_there(self, entry)
  if self.drops then return entry.there end
  return entry.version == native.version_of(entry.p)
end

-- Begins to bring the stretches together; `quiet`: what the tape has seen of it comes back.
local function gather(self, entry, begins)
  if self.drops then native.dist.renew_memory(entry.flat) end
  local own = self.drops and entry.p or entry.p:detach():clone() -- it is part of what is written
  entry.begun = native.dist.gather(self.group.number, own, entry.flat, begins, self.drops)
  if not self.drops then close(own) end
  entry.there, entry.version = true, native.version_of(entry.p)
end

local function finish(entry)
  if not entry.begun then return end
  local begun = entry.begun
  entry.begun = nil
  native.dist.finish(begun)
end

local function acquire(self, entry)
  if not is_there(self, entry) then gather(self, entry, false) end
  finish(entry)
end

local function release(self, entry)
  if not self.drops or not entry.there or entry.calls > 0 or entry.in_backward then return end
  finish(entry)
  native.dist.drop_memory(entry.flat)
  entry.there = false
end

-- The sum over all of the gradient of the whole parameter, of which each has its stretch. What is as large as the whole
-- is let go of at once: the collector would leave that of many layers.
local function scatter(self, entry, gradient)
  local weight, group = shares.sending or 1 / self.group.size, self.group
  gradients.check_nan("reduce_scatter", { gradient }, 1, function() return self.names[entry.p] end, group)
  local made = { gradient, gradient:reshape(-1) }
  if weight ~= 1 then
    made[3] = made[2] * weight
    close(made[2])
    close(gradient)
  end
  local n = entry.flat:numel()
  if made[#made]:numel() < n then
    local padded = pg().zeros({ n }, { dtype = entry.p.dtype, device = entry.p.device })
    padded[{ { 1, made[#made]:numel() } }]:copy_(made[#made])
    made[#made + 1] = padded
  end
  local own = native.call("reduce_scatter", { made[#made] }, { op = "sum", group = group.number, ranks = group.size })
  for _, t in ipairs(made) do close(t) end
  return own
end

-- ---- layers ----

-- Units in the order in which they come, which is most often that of the last time: what comes next is fetched ahead.
local function fetch_ahead(self, order, unit)
  if not self.prefetch then return end
  local at = order[order.at + 1] == unit and order.at + 1 or nil
  if not at then
    for i, u in ipairs(order) do at = at or (u == unit and i) end
  end
  if not at then
    at = #order + 1
    order[at] = unit
  end
  order.at = at
  local following = order[at + 1]
  for _, entry in ipairs(following and following.entries or {}) do
    if not is_there(self, entry) then gather(self, entry, true) end
  end
end

-- The parameter as a layer's call sees it.
local function compute(self, unit, entry)
  if unit.entries[1] == entry then
    fetch_ahead(self, self.forward_order, unit)
    if self.drops then self:let_go(unit) end
  end
  acquire(self, entry)
  entry.calls = entry.calls + 1
  if not native.grad_enabled() or not entry.p.requires_grad then return entry.whole:detach() end
  return native.custom.record({ entry.p }, { entry.whole }, function(pass)
    if pass.creates_graph then
      native.raise("not_supported", WHERE, "has no gradient of a gradient")
    end
    entry.in_backward = false
    release(self, entry)
    return { scatter(self, entry, pass.cotangents[1]) }
  end)[1]
end

-- A backward pass comes to the layer: its parameters are needed once more.
local function enter(self, unit)
  if not self.drops then return end
  fetch_ahead(self, self.backward_order, unit)
  self:let_go(unit)
  for _, entry in ipairs(unit.entries) do
    acquire(self, entry)
    entry.in_backward = true
  end
end

---What passes have left, since it needs no gradient and so no node tells when they are past it.
function Sharding:let_go(unit)
  for _, other in ipairs(self.units) do
    if other ~= unit and other.frozen and not other.inner[unit.layer] then
      for _, entry in ipairs(other.entries) do
        if entry.in_backward and not entry.p.requires_grad then
          entry.in_backward = false
          release(self, entry)
        end
      end
    end
  end
end

-- Before the whole model is called nothing of it is at work.
function Sharding:begin()
  self.forward_order.at, self.backward_order.at = 0, 0
  for _, entry in ipairs(self.entries) do
    finish(entry)
    if entry.calls == 0 then
      entry.in_backward = false
      release(self, entry)
    end
  end
end

local function refuse(layer, name, why)
  native.raise("not_supported", WHERE, ("%s of %s %s"):format(name, getmetatable(layer).__name, why))
end

local function set_rule(self, unit, name, entry)
  local layer = unit.layer
  local before = hooks.computed(layer, name)
  hooks.set_computed(layer, name, {
    kind = "pg.dist.shard", undo = "pg.dist.whole_state(model)", aliases = {},
    compute = function(_, called)
      if not called then return entry.p end
      local t = compute(self, unit, entry)
      return before and before.transform(t) or t
    end,
    done = function()
      entry.calls = entry.calls - 1
      release(self, entry)
    end,
  })
end

local function add_layer(self, layer)
  local set = layer[META].hooks
  for name, rule in pairs(set and set.computed or {}) do
    if not rule.transform then refuse(layer, name, "is computed by " .. rule.kind) end
  end
  local unit = { layer = layer, entries = {}, inner = {}, frozen = false }
  for _, inner in ipairs(walk.modules(layer)) do unit.inner[inner] = true end
  local names = {}
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "parameter" then
      if entry.position or type(entry.key) ~= "string" then
        refuse(layer, entry.name, "is in a list, which a call of the layer reads by itself")
      end
      names[#names + 1] = entry.key
    end
  end
  table.sort(names) -- as calls compute them
  for i, name in ipairs(names) do
    local p = layer[META].tensors[name]
    self.of[p] = self.of[p] or new_entry(self, p)
    local entry = self.of[p]
    unit.entries[i], unit.frozen = entry, unit.frozen or not p.requires_grad
    if not self.known[entry] then self.known[entry], self.entries[#self.entries + 1] = true, entry end
    set_rule(self, unit, name, entry)
  end
  if #names == 0 then return end
  self.units[#self.units + 1] = unit
  hooks.set_entered(layer, function() enter(self, unit) end)
end

-- ---- level 1 ----

-- The parameter stays whole, and lies where all stretches lie behind each other.
local function stretch(self, p)
  local shape, each = p.shape, partial.stretch(p:numel(), self.group.size)
  local flat, whole = make_flat(p, shape, each, self.group.size)
  whole:copy_(p:detach())
  native.assign(p, whole)
  local first = self.group.rank * each
  local own = pg().keep(flat[{ { first + 1, first + each } }]:detach())
  own.requires_grad = true
  partial.set_stretch(p, { own = own, flat = flat,
                           part = { group = self.group, flat = true, shape = shape, within = partial.of(p) } })
end

-- ---- all ----

local function check(model, o)
  if not walk.is_layer(model) then
    native.raise("invalid_argument", WHERE, "needs a layer, got " .. native.describe(model))
  end
  if o.level ~= 1 and o.level ~= 2 and o.level ~= 3 then
    native.raise("invalid_argument", WHERE, "level must be 1, 2 or 3, got " .. native.describe(o.level))
  end
  if walk.is_lazy(model) then
    native.raise("failed_precondition", WHERE, "the model's sizes are not known before its first input", "call it once")
  end
  for _, entry in ipairs(walk.tensors(model)) do
    local part = partial.of(entry.tensor)
    if part and part.flat or partial.stretch_of(entry.tensor) then
      native.raise("failed_precondition", WHERE, entry.name .. " is spread already")
    end
  end
end

---@param model perigee.Layer
---@param o { level: integer, group: perigee.Group, prefetch: boolean }
return function(model, o)
  check(model, o)
  if o.group.size == 1 then return model end
  gradients.check_models(WHERE, model:parameters(), o.group)
  local self = setmetatable({ group = o.group, drops = o.level == 3, prefetch = o.prefetch and o.level == 3, of = {},
                              known = {}, names = {}, entries = {}, units = {}, forward_order = { at = 0 },
                              backward_order = { at = 0 } }, Sharding)
  for name, p in model:named_parameters() do self.names[p] = name end
  pg().no_grad(function()
    if o.level == 1 then
      for _, p in ipairs(model:parameters()) do stretch(self, p) end
    else
      for _, layer in ipairs(walk.modules(model)) do add_layer(self, layer) end
    end
  end)
  if o.level > 1 then model:hook("forward_pre", function() self:begin() end) end
  return model
end
