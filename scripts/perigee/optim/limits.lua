-- SPDX-License-Identifier: Apache-2.0
-- Limits of lists of gradients, in place, one operator a device: those that parameters have collected, and those that a
-- graph computes.

local native = require "perigee.native"

local limits = {}

---{ { gradients }, ... }: a list a device.
function limits.by_device(gradients)
  local of, lists = {}, {}
  for _, gradient in ipairs(gradients) do
    local list = of[gradient.device]
    if not list then
      list = {}
      of[gradient.device], lists[#lists + 1] = list, list
    end
    list[#list + 1] = gradient
  end
  return lists
end

---Refuses what is no limit.
function limits.check(where, limit)
  if type(limit) ~= "number" or limit < 0 or limit ~= limit then
    native.raise("invalid_argument", where, "the limit must be a number from 0, got " .. native.describe(limit))
  end
end

function limits.total_norm(lists, p)
  local norms = {}
  for i, list in ipairs(lists) do
    norms[i] = native.call("total_norm", { list }, { p = p })
    if i > 1 then norms[i] = norms[i]:to(norms[1].device) end
  end
  return #norms == 1 and norms[1] or native.call("total_norm", { norms }, { p = p })
end

function limits.scale(lists, factor)
  for _, list in ipairs(lists) do native.call("scale_all", { list, factor:to(list[1].device) }) end
end

---`total`: the norm that they have.
function limits.norm(lists, max_norm, total) limits.scale(lists, (max_norm / (total + 1e-6)):clamp { max = 1 }) end

function limits.values(lists, limit)
  for _, list in ipairs(lists) do native.call("clamp_all", { list }, { min = -limit, max = limit }) end
end

return limits
