-- SPDX-License-Identifier: Apache-2.0
-- The range of an axis, round numbers to mark on it, and numbers as short text.

local scale = {}

local function is_finite(v) return v == v and v ~= math.huge and v ~= -math.huge end
scale.is_finite = is_finite
local LARGEST, EPSILON = 1.7976931348623157e308, 2 ^ -52

---Least and largest of the finite numbers (of the positive ones on a logarithmic axis), widened where they are equal.
---@param lists number[][]
---@param log boolean
---@return number low
---@return number high
function scale.range(lists, log)
  local low, high = math.huge, -math.huge
  for _, list in ipairs(lists) do
    for _, v in ipairs(list) do
      if is_finite(v) and (not log or v > 0) then low, high = math.min(low, v), math.max(high, v) end
    end
  end
  if low > high then return log and 1 or 0, log and 10 or 1 end
  if low == high then
    if log then return low / 10, high * 10 end
    local margin = low == 0 and 1 or math.abs(low) * 0.1
    return math.max(low - margin, -LARGEST), math.min(high + margin, LARGEST)
  end
  return low, high
end

local function log_ticks(low, high)
  local first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
  if last - first < 1 then return nil end
  local ticks, step = {}, math.max(1, math.ceil((last - first) / 8))
  for power = first, last, step do ticks[#ticks + 1] = 10 ^ power end
  return ticks
end

---Whether all positions of a plot's curves are whole, as epochs are.
---@param plot table
---@return boolean
function scale.has_whole_x(plot)
  for _, series in ipairs(plot.series) do
    for _, v in ipairs(series.x) do
      if v ~= math.floor(v) then return false end
    end
  end
  return true
end

---About `count` round numbers in [low, high]; whole ones where `whole` says so.
---@return number[]
function scale.ticks(low, high, count, log, whole)
  local powers = log and log_ticks(low, high)
  if powers then return powers end
  count = math.max(1, count)
  -- Not as a difference, which may be infinite; nor steps that numbers of this size do not resolve.
  local rough = math.max(high / count - low / count, 4 * EPSILON * math.max(math.abs(low), math.abs(high)))
  local magnitude = 10 ^ math.floor(math.log10(rough))
  local step = magnitude
  for _, factor in ipairs { 1, 2, 5, 10 } do
    if factor * magnitude > LARGEST then break end
    step = factor * magnitude
    if step >= rough * (1 - 1e-9) then break end
  end
  if whole then step = math.max(1, step) end
  local ticks = {}
  for i = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) do
    local v = i == 0 and 0 or i * step -- no minus zero
    if not log or v > 0 then ticks[#ticks + 1] = v end
  end
  return ticks
end

local function power_text(v, precision)
  local text = ("%." .. precision .. "e"):format(v):gsub("(%.%d-)0*e", "%1e"):gsub("%.e", "e")
  return (text:gsub("e([+-])0*(%d)", "e%1%2"):gsub("e%+", "e"))
end

---Texts of ticks with equally many digits behind the point.
---@param ticks number[]
---@param log? boolean they are powers of ten
---@return string[]
function scale.texts(ticks, log)
  local digits, largest, smallest = 0, 0, math.huge
  for _, v in ipairs(ticks) do
    largest = math.max(largest, math.abs(v))
    if v ~= 0 then smallest = math.min(smallest, math.abs(v)) end
    local fraction = ("%.6f"):format(v):gsub("0+$", ""):match("%.(%d*)$")
    digits = math.max(digits, #fraction)
  end
  local powers = largest >= 1e6 or (smallest < 1e-4 and largest > 0) or (log and largest / smallest > 1e3)
  local list = {}
  for precision = 3, 16 do -- until no two look the same
    local seen, same = {}, false
    for i, v in ipairs(ticks) do
      list[i] = powers and power_text(v, precision) or ("%." .. digits .. "f"):format(v)
      same, seen[list[i]] = same or seen[list[i]], true
    end
    if not same or not powers then break end
  end
  return list
end

---Where a number lies between low (0) and high (1); nil where it has no place.
function scale.place(v, low, high, log)
  if not is_finite(v) or (log and v <= 0) then return nil end
  if log then v, low, high = math.log(v), math.log(low), math.log(high) end
  if high - low == math.huge then v, low, high = v / 2, low / 2, high / 2 end
  return (v - low) / (high - low)
end

return scale
