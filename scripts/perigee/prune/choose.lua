-- SPDX-License-Identifier: Apache-2.0
-- Which elements go: by scores, the lowest first, equal ones by their place, the first first. So counts are exact, and
-- the same scores always choose the same.

local native = require "perigee.native"

local choose = {}
local function pg() return require "perigee" end

local function half_to_even(x)
  local low = math.floor(x)
  local rest = x - low
  if rest ~= 0.5 then return rest < 0.5 and low or low + 1 end
  return low % 2 == 0 and low or low + 1
end

---The options that say how much.
choose.AMOUNT = { "amount", "number",
                  doc = "part of what is not pruned yet, from 0 to 1; amount times their number, rounded to the " ..
                    "nearest whole number, halves to the even one, is how many go" }
choose.COUNT = { "count", "integer", named = true, doc = "how many go, in place of `amount`" }

---@param o {amount?: number, count?: integer}
---@param left integer how many are not pruned yet
---@param what string what they are
---@return integer
function choose.number(where, o, left, what)
  local amount, count = o.amount, o.count
  if (amount == nil) == (count == nil) then
    native.raise("invalid_argument", where, amount and "amount and count say the same twice" or "needs amount or count",
                 "amount=0.5 prunes half")
  end
  if amount and not (amount >= 0 and amount <= 1) then
    native.raise("invalid_argument", where, ("amount must lie in [0, 1], got %g"):format(amount),
                 "count= is a number of " .. what)
  end
  if count and (count < 0 or count > left) then
    native.raise("invalid_argument", where, ("count must lie in 0..%d, the number of %s that are not pruned, got %d")
                   :format(left, what, count))
  end
  return count or half_to_even(amount * left)
end

---Scores of which no two narrow ones are equal that were not: in float32 at least. Raises where some are not finite.
function choose.scores(where, t, name)
  local scores = t:abs()
  if scores.dtype == "float16" or scores.dtype == "bfloat16" then scores = scores:to("float32") end
  if scores:numel() > 0 and not scores:isfinite():all():item() then
    native.raise("failed_precondition", where, name .. " holds NaN or infinite values, which have no order")
  end
  return scores
end

---A mask, true at the `count` places of `open` with the lowest scores.
---@param scores perigee.Tensor finite
---@param open perigee.Tensor bool, in the same shape: what there is to choose from
---@param count integer
---@return perigee.Tensor
function choose.lowest(scores, open, count)
  if count == 0 then return pg().zeros_like(open) end
  local flat = pg().where(open, scores, math.huge):reshape(-1)
  local last = flat:sort()[count]
  local below = flat:lt(last)
  local equal = flat:eq(last):logical_and(open:reshape(-1))
  local places = equal:to("int64"):cumsum(1)
  return below:logical_or(equal:logical_and(places:le(count - below:sum():item()))):reshape(open.shape)
end

---A mask, true where fewer than `n` of the same `m` along an axis have a higher score; of equal ones the later counts
---as higher.
function choose.highest_of(scores, n, m, axis)
  local shape, grouped = scores.shape, {}
  for i, size in ipairs(shape) do
    if i == axis then
      grouped[#grouped + 1], grouped[#grouped + 2] = size / m, m
    else
      grouped[#grouped + 1] = size
    end
  end
  local groups = scores:reshape(grouped)
  local place = pg().arange { m, device = scores.device }
  local tail = {}
  for _ = axis + 2, #grouped do tail[#tail + 1] = 1 end
  place = place:reshape(m, unpack(tail))
  local higher
  for j = 1, m do
    local other = groups:narrow(axis + 1, j, 1)
    local wins = other:gt(groups):logical_or(other:eq(groups):logical_and(place:lt(j - 1))):to("int64")
    higher = higher and higher + wins or wins
  end
  return higher:lt(n):reshape(shape)
end

return choose
