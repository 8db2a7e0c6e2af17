-- SPDX-License-Identifier: Apache-2.0
-- Pictures read at places that an affine map gives, to Pillow's numbers: nearest in 1/65536 of a pixel, which is how
-- Pillow steps from column to column; the others in float64.

local function pg() return require "perigee" end

-- What lies at whole places `rows` and `columns`, of any shape; both are inside.
local function pick(t, rows, columns)
  local rank, width = t:dim(), t:size(t:dim() - 1)
  local flat = t:flatten(rank - 2, rank - 1)
  local index = (rows * width + columns):to "int64"
  local out = flat:index_select(index:flatten(), rank - 2)
  local shape = {}
  for i = 1, rank - 3 do shape[i] = t:size(i) end
  shape[rank - 2], shape[rank - 1], shape[rank] = index:size(1), index:size(2), t:size(rank)
  return out:reshape(shape)
end

local function fixed(v) return math.floor(v * 65536 + 0.5) end

-- Whether all corners lie where Pillow trusts 16 bits.
local function is_near(m, rows, columns)
  for _, corner in ipairs { { 0, 0 }, { columns, rows }, { 0, rows }, { columns, 0 } } do
    local x, y = corner[1] + 0.5, corner[2] + 0.5
    if math.abs(m[1] * x + m[2] * y + m[3]) >= 32768 or math.abs(m[4] * x + m[5] * y + m[6]) >= 32768 then
      return false
    end
  end
  return true
end

local function places(n, axis, device)
  return pg().arange { n, dtype = "float64", device = device }:reshape(axis == 1 and { n, 1 } or { 1, n })
end

-- Columns and rows of the picture at the centres of the result's pixels.
local function centres(m, rows, columns, device)
  local x, y = places(columns, 2, device) + 0.5, places(rows, 1, device) + 0.5
  return x * m[1] + y * m[2] + m[3], x * m[4] + y * m[5] + m[6]
end

local function nearest_places(m, rows, columns, device)
  local is_scaled = m[2] == 0 and m[4] == 0
  if is_scaled or not is_near(m, rows, columns) then
    local x, y = centres(m, rows, columns, device)
    return x:floor(), y:floor()
  end
  local x, y = places(columns, 2, device), places(rows, 1, device)
  local function along(a, b, c)
    return ((x * fixed(a) + y * fixed(b) + fixed(c + a * 0.5 + b * 0.5)) / 65536):floor() -- whole numbers below 2^53
  end
  return along(m[1], m[2], m[3]), along(m[4], m[5], m[6])
end

local function mixed(a, b, part) return a + (b - a) * part end

-- Pillow's cubic between the second and the third.
local function cubic(v, part)
  local p2, p3, p4 = v[3] - v[1], (v[1] - v[2]) * 2 + v[3] - v[4], v[2] - v[1] - v[3] + v[4]
  return v[2] + part * (p2 + part * (p3 + part * p4))
end

local function between(t, x, y, filter)
  local rows, columns = t:size(t:dim() - 2), t:size(t:dim() - 1)
  local wide = t:to "float64"
  x, y = x - 0.5, y - 0.5
  local left, above = x:floor(), y:floor()
  local right, below = (x - left):unsqueeze(3), (y - above):unsqueeze(3)
  local function at(row, column)
    return pick(wide, (above + row):clamp(0, rows - 1), (left + column):clamp(0, columns - 1))
  end
  if filter == "bilinear" then
    return mixed(mixed(at(0, 0), at(0, 1), right), mixed(at(1, 0), at(1, 1), right), below)
  end
  local lines = {}
  for i = 1, 4 do
    lines[i] = cubic({ at(i - 2, -1), at(i - 2, 0), at(i - 2, 1), at(i - 2, 2) }, right)
  end
  return cubic(lines, below)
end

---`t` [..., rows, columns, channels] at the places of `m`, as [..., rows, columns, channels] of the given sides.
return function(t, m, rows, columns, filter, fill)
  local height, width, device = t:size(t:dim() - 2), t:size(t:dim() - 1), t.device
  local x, y
  if filter == "nearest" then
    x, y = nearest_places(m, rows, columns, device)
  else
    x, y = centres(m, rows, columns, device)
  end
  local inside = x:ge(0):logical_and(x:lt(width)):logical_and(y:ge(0)):logical_and(y:lt(height))
  local out
  if filter == "nearest" then
    out = pick(t, y:clamp(0, height - 1), x:clamp(0, width - 1))
  else
    out = between(t, x:clamp(0, width), y:clamp(0, height), filter)
    if t.dtype == "uint8" then out = out:clamp(0, 255) end
    out = out:to(t.dtype)
  end
  return out:masked_fill(inside:logical_not():unsqueeze(3), fill)
end
