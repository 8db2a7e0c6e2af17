-- SPDX-License-Identifier: Apache-2.0
-- States of optimizers in host memory (offload="host"): between steps a device holds nothing of them. A step brings
-- them to the parameters' device, a part after the other through the same memory, updates there, so that its bits are
-- those of states that stay, and takes them back.

local native = require "perigee.native"

local M = {}

local HOST = "cpu"
local PART = 16 * 2 ^ 20 -- bytes of states that are on the device at once, unless one parameter has more
local APART = 64 -- elements between beginnings, so that each is aligned

local function pg() return require "perigee" end

---What `offload` may be: false for nil.
---@return "host"|false
function M.check(where, value)
  if value == nil or value == false then return false end
  if value ~= "host" then
    native.raise("invalid_argument", where, "offload must be \"host\", got " .. native.describe(value))
  end
  return value
end

---Options without `offload`, and what it says.
---@return table options
---@return "host"|false|nil
function M.take(where, options)
  if options.offload == nil then return options, nil end
  local rest = {}
  for key, value in pairs(options) do rest[key] = value end
  rest.offload = nil
  return rest, M.check(where, options.offload)
end

---Where the state of a group's parameter is kept.
function M.device(group, p) return group.offload and HOST or p.device end

---Whether its states must travel for a step.
function M.travels(group)
  if not group.offload then return false end
  for _, p in ipairs(group.params) do
    if p.device ~= HOST then return true end
  end
  return false
end

---Raises where a step is to be part of a graph.
function M.refuse(optimizer, method)
  for _, group in ipairs(optimizer.groups) do
    if group.offload then
      native.raise("not_supported", optimizer.name, method .. " cannot keep states in host memory " ..
                   "(offload=\"host\"): a graph's variables are where their parameters are",
                   "train with backward() and step() in eager code")
    end
  end
end

local function bytes_of(t) return native.dtypes.find(t.dtype, "offload").bytes end

-- Numbers of parameters whose states travel together. Rules in Lua make memory while they update, which may end: they
-- take all at once, so that a step is made as a whole or not at all.
local function parts_of(attributes, params, state)
  local parts, open, bytes = {}, nil, 0
  for n in ipairs(params) do
    local own = 0
    for _, list in pairs(state) do own = own + list[n]:numel() * bytes_of(list[n]) end
    if not open or not attributes.in_lua and bytes + own > PART then
      open, bytes = {}, 0
      parts[#parts + 1] = open
    end
    open[#open + 1], bytes = n, bytes + own
  end
  return parts
end

-- visit(name, n, kind, first) for each state of a part that travels: `first`, from 0, is where it lies among those of
-- its kind. Answers how many elements there are of each kind.
local function lay_out(part, names, params, state, visit)
  local sizes = {}
  for _, name in ipairs(names) do
    for _, n in ipairs(part) do
      local own, device = state[name][n], params[n].device
      if device ~= HOST then
        local kind = own.dtype .. " " .. device
        local first = sizes[kind] or 0
        if visit then visit(name, n, kind, first) end
        sizes[kind] = first + math.ceil(own:numel() / APART) * APART
      end
    end
  end
  return sizes
end

-- Memory for the largest part, by kind: all of it before anything is written.
local function make_room(parts, names, params, state)
  local most, room = {}, {}
  for _, part in ipairs(parts) do
    for kind, size in pairs(lay_out(part, names, params, state)) do most[kind] = math.max(most[kind] or 0, size) end
  end
  for kind, size in pairs(most) do
    local dtype, device = kind:match "^(%S+) (%S+)$"
    room[kind] = pg().empty({ size }, { dtype = dtype, device = device })
  end
  return room
end

local function step_part(attributes, step, part, room, names, batch, state)
  local params, gradients, there, at, moved = {}, {}, {}, {}, {}
  for k, n in ipairs(part) do params[k], gradients[k], at[n] = batch.params[n], batch.gradients[n], k end
  for _, name in ipairs(names) do
    there[name] = {}
    for k, n in ipairs(part) do there[name][k] = state[name][n] end -- in host memory like its parameter
  end
  lay_out(part, names, batch.params, state, function(name, n, kind, first)
    local own = state[name][n]
    local t = room[kind]:narrow(1, first + 1, own:numel()):reshape(own.shape)
    there[name][at[n]] = t:copy_(own)
    moved[#moved + 1] = { own, t }
  end)
  attributes:step(step, params, gradients, there)
  for _, pair in ipairs(moved) do pair[1]:copy_(pair[2]) end
end

---Updates a batch, { step, params, gradients }, whose `state[name]`, lists beside params, are in host memory.
function M.step(attributes, names, batch, state)
  pg().scope(function()
    local parts = parts_of(attributes, batch.params, state)
    local room = make_room(parts, names, batch.params, state)
    for _, part in ipairs(parts) do step_part(attributes, batch.step, part, room, names, batch, state) end
  end)
end

return M
