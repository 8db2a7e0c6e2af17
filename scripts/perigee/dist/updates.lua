-- SPDX-License-Identifier: Apache-2.0
-- Steps of an optimizer on every device of a process, of the gradients that all have: each updates its own parameters
-- by its own copies of the optimizer's state, so that nothing goes from one to the others behind a step.
--
-- What the first device has is what counts: where the others cannot have done the same, they copy what it has.

local native = require "perigee.native"
local new_twins = require "perigee.dist.twins"

local Updates = {}
Updates.__index = Updates

local function pg() return require "perigee" end

---Whether steps of this optimizer are the same on all devices: it is a plugin's, and its state lies beside its
---parameters. What is written in Lua may keep anything anywhere.
---@param optimizer perigee.Optimizer
---@return boolean
function Updates:suits(optimizer)
  if not self.alike then return false end
  for _, group in ipairs(optimizer.groups) do
    local attributes = rawget(group, "attributes")
    if not attributes or attributes.in_lua or group.offload then return false end
  end
  return true
end

-- All state of the parameters that have gradients, or nil where some has not been made yet.
local function slots_of(optimizer)
  local list = {}
  for _, group in ipairs(optimizer.groups) do
    local names = group.attributes:slots()
    for i, p in ipairs(group.params) do
      for _, slot in ipairs(p.grad and names or {}) do
        local own = group.slots[slot] and group.slots[slot][i]
        if not own or own.device ~= p.device then return nil end
        list[#list + 1] = own
      end
    end
  end
  return list
end

local function copy_of(list)
  local copy = {}
  for i, v in ipairs(list) do copy[i] = v end
  return copy
end

local function are_same(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

local function mark(gradient) return gradient and native.storage(gradient), gradient and native.version_of(gradient) end

---Remembers that all devices have the same gradients now, in lists by device.
---@param lists perigee.Tensor[][]
function Updates:note(optimizer, lists)
  local noted = {}
  for k, list in ipairs(lists) do
    noted[k] = {}
    for i, p in ipairs(list) do
      local storage, version = mark(p.grad)
      noted[k][i] = { storage = storage, version = version }
    end
  end
  self.noted[optimizer] = noted
end

function Updates:has_noted(optimizer) return self.noted[optimizer] ~= nil end

-- Whether all devices have gone on alike with them: clipped theirs, all as often.
local function are_alike(self, optimizer, lists)
  local noted = self.noted[optimizer]
  self.noted[optimizer] = nil
  for k, list in ipairs(noted and lists or {}) do
    for i, p in ipairs(list) do
      local storage, version = mark(p.grad)
      local first = lists[1][i].grad
      if storage ~= noted[k][i].storage then return false end
      if first and version - noted[k][i].version ~= native.version_of(first) - noted[1][i].version then return false end
    end
  end
  return noted ~= nil
end

local function get_counts(optimizer)
  local counts = {}
  for g, group in ipairs(optimizer.groups) do counts[g] = copy_of(group.steps) end
  return counts
end

local function set_counts(optimizer, counts)
  for g, group in ipairs(optimizer.groups) do
    for i, count in ipairs(counts[g]) do group.steps[i] = count end
  end
end

-- fn(optimizer) on device k, as if it had not been called on the first one before.
local function on(self, k, optimizer, counts, fn)
  local outer = {}
  local function enter()
    for g, group in ipairs(optimizer.groups) do
      outer[g] = group.plan
      group.plan = group.beside[k] or false
    end
    outer.counts = get_counts(optimizer)
    set_counts(optimizer, counts)
    self.params:exchange(k)
    self.states:exchange(k)
    return native.set_device(self.numbers[k])
  end
  local function leave(device)
    native.set_device(device)
    self.states:exchange(k)
    self.params:exchange(k)
    for g, group in ipairs(optimizer.groups) do
      group.beside[k], group.plan = group.plan, outer[g]
    end
    set_counts(optimizer, outer.counts)
  end
  native.with(enter, leave, fn, optimizer)
end

---A step: fn(optimizer), on each device where that comes to the same, else on the first.
---@param params perigee.Tensor[] the first device's
---@param lists perigee.Tensor[][] by device
function Updates:step(optimizer, params, lists, fn)
  local alike = are_alike(self, optimizer, lists)
  local slots = alike and self:suits(optimizer) and slots_of(optimizer)
  if not slots then
    fn(optimizer)
    self.params:follow(params)
    return
  end
  for _, t in ipairs(slots) do self.states:add("strategy:run", t, "state of " .. optimizer.name) end
  self.states:follow(slots)
  if not are_same(self.slots[optimizer] or {}, slots) then -- plans know where state lies
    for _, group in ipairs(optimizer.groups) do group.beside = {} end
    self.slots[optimizer] = setmetatable(copy_of(slots), { __mode = "v" })
  end
  local counts = get_counts(optimizer)
  fn(optimizer)
  for k = 2, #self.numbers do on(self, k, optimizer, counts, fn) end
  self.params:has_followed(params)
  self.states:has_followed(slots)
end

-- Whether devices are of one model, so that they compute the same bits.
local function are_one_model(devices)
  local models = {}
  for _, d in ipairs(pg().devices()) do
    models[d.name] = d.type .. " " .. d.description:gsub(" " .. d.index .. "$", "") -- sim numbers them
  end
  for _, name in ipairs(devices) do
    if models[name] ~= models[devices[1]] then return false end
  end
  return true
end

---@param devices string[]
---@param numbers integer[] of the devices
---@param params table twins of parameters
return function(devices, numbers, params)
  return setmetatable({ numbers = numbers, params = params, states = new_twins(devices, numbers),
                        alike = #devices > 1 and are_one_model(devices), slots = setmetatable({}, { __mode = "k" }),
                        noted = setmetatable({}, { __mode = "k" }) }, Updates)
end
