-- SPDX-License-Identifier: Apache-2.0
-- Floats as text, by the rules of numpy (floatmode "maxprec_equal"): as many digits as tell a value from its neighbours
-- of the same dtype, at most `precision` behind the point, equally many for all; powers of ten where the values differ
-- by more than a thousand times or are very large or small.

local numbers = {}

-- Bits of the significand, and the exponent of the smallest step.
local FORMATS = { float64 = { 53, -1074 }, float32 = { 24, -149 }, float16 = { 11, -24 }, bfloat16 = { 8, -133 },
                  float8_e4m3fn = { 4, -9 }, float8_e5m2 = { 3, -16 } }

local MANY_DIGITS = 17

-- v in a format of fewer bits; halves go to the even neighbour.
local function round_to(v, format)
  local bits, smallest = format[1], format[2]
  if bits == 53 then return v end
  local _, exponent = math.frexp(v)
  local step = 2 ^ math.max(exponent - bits, smallest)
  local scaled = v / step
  local low = math.floor(scaled)
  local rest = scaled - low
  if rest > 0.5 or (rest == 0.5 and low % 2 == 1) then low = low + 1 end
  return low * step
end

-- The shortest digits that give v again: digits without a point, and the power of ten of the first.
local function shortest(v, format)
  for count = 0, MANY_DIGITS - 1 do
    local text = ("%." .. count .. "e"):format(v)
    if count == MANY_DIGITS - 1 or round_to(tonumber(text), format) == v then
      local digits, exponent = text:match("^%-?([%d.]+)e([-+]%d+)$")
      return (digits:gsub("%.", ""):gsub("(%d)0+$", "%1")), tonumber(exponent)
    end
  end
end

-- Number of digits behind the point that `digits` at this power of ten need.
local function fraction_length(digits, exponent) return math.max(0, #digits - 1 - exponent) end

-- v with `count` digits behind the point, by "%f" or "%e", and what follows the digits. Halves go to the even digit,
-- which the two leave to the platform.
local function rounded(v, count, kind)
  local text, power = ("%." .. count .. kind):format(v):match("^([^e]*)(.*)$")
  local head, rest = ("%." .. count + 45 .. kind):format(v):match("^(%-?%d+%." .. ("%d"):rep(count) .. ")(%d*)")
  local last = head:gsub("%.", ""):sub(-1)
  if rest:find("^50*$") and last:find("[02468]") then
    text, power = head, ("%.45" .. kind):format(v):match("^[^e]*(.*)$")
  end
  return text:find(".", 1, true) and text or text .. ".", power
end

local function scientific(v, count)
  local text, power = rounded(v, count, "e")
  return text, tonumber(power:sub(2))
end

-- Number of digits behind the point of a text, without zeros at its end.
local function fraction_of(text) return #text:match("%.(%d-)0*%.?$") end

local function is_finite(v) return v == v and v ~= math.huge and v ~= -math.huge end

local function special(v) return v ~= v and "nan" or v > 0 and "inf" or "-inf" end

local function needs_exponent(list, options)
  if options.sci_mode ~= nil then return options.sci_mode end
  local largest, smallest = 0, math.huge
  for _, v in ipairs(list) do
    local a = math.abs(v)
    if is_finite(v) and a ~= 0 then largest, smallest = math.max(largest, a), math.min(smallest, a) end
  end
  if largest == 0 then return false end
  return largest >= 1e8 or (not options.suppress and (smallest < 1e-4 or largest / smallest > 1000))
end

local function with_exponents(list, format, precision)
  local count, width, texts = 0, 2, {}
  for _, v in ipairs(list) do
    if is_finite(v) then
      local digits, exponent = shortest(v, format)
      local needed = #digits - 1
      if needed > precision then needed = fraction_of((scientific(v, precision))) end
      count = math.max(count, needed)
      width = math.max(width, #tostring(math.abs(exponent)))
    end
  end
  for i, v in ipairs(list) do
    if is_finite(v) then
      local text, power = scientific(v, count)
      texts[i] = text .. ("e%s%0" .. width .. "d"):format(power < 0 and "-" or "+", math.abs(power))
    else
      texts[i] = special(v)
    end
  end
  return texts
end

local function with_points(list, format, precision)
  local count, texts = 0, {}
  for _, v in ipairs(list) do
    if is_finite(v) and v ~= 0 then
      local needed = fraction_length(shortest(v, format))
      if needed > precision then needed = fraction_of((rounded(v, precision, "f"))) end
      count = math.max(count, needed)
    end
  end
  for i, v in ipairs(list) do texts[i] = is_finite(v) and rounded(v, count, "f") or special(v) end
  return texts
end

---Texts of floats that stand together.
---@param list number[]
---@param dtype string
---@param options {precision: integer, suppress: boolean, sci_mode: boolean?}
---@return string[]
function numbers.texts(list, dtype, options)
  local format = FORMATS[dtype]
  if needs_exponent(list, options) then return with_exponents(list, format, options.precision) end
  return with_points(list, format, options.precision)
end

return numbers
