-- SPDX-License-Identifier: Apache-2.0
-- What is done to the gradients of many parameters at once, in place: limits, a common factor. One operator a device.

local native = require "perigee.native"
local limits = require "perigee.optim.limits"
local partial = require "perigee.nn.partial"

local clip = {}

-- Those of parameters, and how many there are. Missing ones are left out.
local function gradients_of(where, params)
  if native.is_tensor(params) then params = { params } end
  if require("perigee.nn").is_layer(params) then params = params:parameters() end
  if type(params) ~= "table" then
    native.raise("invalid_argument", where, "needs a list of parameters, got " .. native.describe(params))
  end
  local gradients = {}
  for i, p in ipairs(params) do
    if not native.is_tensor(p) then
      native.raise("invalid_argument", where, ("parameter %d must be a tensor, got %s"):format(i, native.describe(p)))
    end
    gradients[#gradients + 1] = p.grad
  end
  return limits.by_device(gradients), #gradients, params
end

-- Parameters of which several processes hold parts, in lists of the same groups, which all of these ask for in the same
-- order; the others in `list.whole`.
local function by_groups(params)
  local lists, of = { whole = {} }, {}
  for _, p in ipairs(params) do
    local groups, key = partial.groups(p), {}
    for i, group in ipairs(groups) do key[i] = group.number end
    key = table.concat(key, " ")
    local list = #groups == 0 and lists.whole or of[key]
    if not list then
      list = { groups = groups }
      of[key], lists[#lists + 1] = list, list
    end
    list[#list + 1] = p.grad
  end
  return lists
end

local function norm_of(list, p, like)
  if #list > 0 then return limits.total_norm(limits.by_device(list), p) end
  return require("perigee").zeros({}, { dtype = like and like.dtype, device = like and like.device })
end

-- The norm over all parts, on every process.
local function norm_over_groups(lists, p, like)
  local norms = { norm_of(lists.whole, p, like) }
  for _, list in ipairs(lists) do
    local norm = norm_of(list, p, like)
    local summed = p ~= math.huge
    if summed then norm = norm:pow(p) end
    for _, group in ipairs(list.groups) do
      norm = native.call("all_reduce", { { norm } }, { op = summed and "sum" or "max", group = group.number })
    end
    norms[#norms + 1] = (summed and norm:pow(1 / p) or norm):to(norms[1].device)
  end
  return native.call("total_norm", { norms }, { p = p })
end

local check_limit = limits.check

local read_norm = native.signature("clip_grad_norm_", {
  { "params", "any", required = true }, { "max_norm", "any", required = true },
  { "norm_type", "number", default = 2 }, { "error_if_nonfinite", "boolean", named = true } })

---Scales all gradients so that the norm of all their elements together is at most `max_norm`. Waits for the device only
---with error_if_nonfinite. Of parameters of which several processes hold parts it is that of all parts, and all
---of these processes call it.
---@param params perigee.Tensor[]|perigee.Layer parameters, or a layer; those without a gradient are left out
---@param max_norm number
---@param norm_type? number 2 by default; math.huge: the largest absolute value
---@param options? {norm_type: number?, error_if_nonfinite: boolean?}
---@return perigee.Tensor norm the norm before, 0-dim
function clip.clip_grad_norm_(...)
  local where, o = "clip_grad_norm_", read_norm(...)
  local max_norm = o.max_norm
  check_limit(where, max_norm)
  if o.norm_type <= 0 or o.norm_type ~= o.norm_type then
    native.raise("invalid_argument", where, "norm_type must be above 0, got " .. o.norm_type)
  end
  local pg = require "perigee"
  local lists, count, params = gradients_of(where, o.params)
  local among = by_groups(params)
  if count == 0 and #among == 0 then return pg.tensor(0) end
  return pg.no_grad(function()
    local like = params[1]
    local total = #among > 0 and norm_over_groups(among, o.norm_type, like) or limits.total_norm(lists, o.norm_type)
    if o.error_if_nonfinite and not total:isfinite():item() then
      native.raise("failed_precondition", where,
                   ("the norm of the gradients is %s"):format(tostring(total:item())),
                   "error_if_nonfinite=false clips all the same")
    end
    limits.norm(lists, max_norm, total)
    return total
  end)
end

local read_value = native.signature("clip_grad_value_", {
  { "params", "any", required = true }, { "limit", "any", required = true } })

---Limits every element of all gradients to [-limit, limit].
---@param params perigee.Tensor[]|perigee.Layer
---@param limit number
function clip.clip_grad_value_(...)
  local o = read_value(...)
  local limit = o.limit
  check_limit("clip_grad_value_", limit)
  require("perigee").no_grad(function()
    limits.values(gradients_of("clip_grad_value_", o.params), limit)
  end)
end

local read_factor = native.signature("scale_grad_", {
  { "params", "any", required = true }, { "factor", "any", required = true } })

---Multiplies all gradients by a number.
---@param params perigee.Tensor[]|perigee.Layer
---@param factor number
function clip.scale_grad_(...)
  local o = read_factor(...)
  local params, factor = o.params, o.factor
  if type(factor) ~= "number" then
    native.raise("invalid_argument", "scale_grad_", "the factor must be a number, got " .. native.describe(factor))
  end
  local pg = require "perigee"
  pg.no_grad(function() limits.scale(gradients_of("scale_grad_", params), pg.tensor(factor)) end)
end

return clip
