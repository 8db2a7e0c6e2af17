-- SPDX-License-Identifier: Apache-2.0
-- Limits on gradients, in place.

local native = require "perigee.native"

local clip = {}

local function gradients_of(where, params)
  if native.is_tensor(params) then params = { params } end
  if type(params) ~= "table" then
    native.raise("invalid_argument", where, "needs a list of parameters, got " .. native.describe(params))
  end
  local list = {}
  for i, p in ipairs(params) do
    if not native.is_tensor(p) then
      native.raise("invalid_argument", where, ("parameter %d must be a tensor, got %s"):format(i, native.describe(p)))
    end
    local gradient = p.grad
    if gradient then list[#list + 1] = gradient end
  end
  return list
end

local function check_limit(where, limit)
  if type(limit) ~= "number" or limit <= 0 or limit ~= limit then
    native.raise("invalid_argument", where, "the limit must be a positive number, got " .. native.describe(limit))
  end
end

local function clip_norm(gradients, limit)
  local total
  for _, g in ipairs(gradients) do
    local squares = g:square():sum():to("float32")
    total = total and total + squares:to(total.device) or squares
  end
  total = total:sqrt()
  local factor = (limit / (total + 1e-6)):clamp { max = 1 }
  for _, g in ipairs(gradients) do g:mul_(factor:to(g.device):to(g.dtype)) end
  return total
end

---Scales all gradients so that their common Euclidean norm is at most `limit`.
---@return table norm before, a 0-dim tensor
function clip.clip_grad_norm_(params, limit)
  check_limit("clip_grad_norm_", limit)
  local pg = require "perigee"
  local gradients = gradients_of("clip_grad_norm_", params)
  if #gradients == 0 then return pg.tensor(0) end
  return pg.no_grad(clip_norm, gradients, limit)
end

---Limits every element of all gradients to [-limit, limit].
function clip.clip_grad_value_(params, limit)
  check_limit("clip_grad_value_", limit)
  require("perigee").no_grad(function()
    for _, g in ipairs(gradients_of("clip_grad_value_", params)) do
      native.call("copy", { g, g:clamp { min = -limit, max = limit } })
    end
  end)
end

return clip
