-- SPDX-License-Identifier: Apache-2.0
-- Interpolation: one axis, or the last two.

local array = require "cases.array"
local F = require "cases.specs".F

local rows = {}

local function cubic(d)
  local a = -0.75
  d = math.abs(d)
  if d <= 1 then return (a + 2) * d ^ 3 - (a + 3) * d ^ 2 + 1 end
  return d < 2 and a * d ^ 3 - 5 * a * d ^ 2 + 8 * a * d - 4 * a or 0
end

-- One line of numbers interpolated to n.
local function resample_line(list, n, o)
  local out, last = {}, #list - 1
  local mode, scale = o.mode or "linear", (o.scale or 0) > 0 and o.scale or #list / n
  if o.align_corners then scale = n > 1 and last / (n - 1) or 0 end
  local function at(i) return list[math.min(math.max(i, 0), last) + 1] end
  for i = 0, n - 1 do
    local p = o.align_corners and i * scale or (i + 0.5) * scale - 0.5
    local low = math.floor(p)
    if mode == "nearest" then
      out[i + 1] = at(math.floor(i * scale))
    elseif mode == "area" then
      local first, stop = math.floor(i * #list / n), math.ceil((i + 1) * #list / n)
      out[i + 1] = 0
      for k = first, stop - 1 do out[i + 1] = out[i + 1] + at(k) / (stop - first) end
    elseif mode == "linear" then
      p = math.max(p, 0)
      low = math.floor(p)
      out[i + 1] = at(low) * (1 - p + low) + at(low + 1) * (p - low)
    else
      out[i + 1] = 0
      for k = -1, 2 do out[i + 1] = out[i + 1] + at(low + k) * cubic(p - low - k) end
    end
  end
  return out
end

local function resampled(a, o)
  local axis, shape = (o.axis or -1) % (#a.shape + 1), { unpack(a.shape) }
  if (o.axis or -1) < 0 then axis = #a.shape + 1 + (o.axis or -1) end
  shape[axis] = o.size
  local lines = {}
  return array.build(shape, function(ix)
    local key, place = {}, ix[axis]
    for i, v in ipairs(ix) do key[i] = i == axis and 0 or v end
    local name = table.concat(key, ",")
    if not lines[name] then
      local list = {}
      for k = 0, a.shape[axis] - 1 do
        key[axis] = k
        list[k + 1] = a.data[array.at(a, key)]
      end
      lines[name] = resample_line(list, o.size, o)
    end
    return lines[name][place + 1]
  end)
end

local resamples = {
  { { 3, 2, 4 }, { size = 7 }, { 3, 2, 7 } }, { { 2, 5, 3 }, { axis = 2, size = 3 }, { 2, 3, 3 } },
  { { 2, 4 }, { size = 6, align_corners = true }, { 2, 6 } },
  { { 2, 4 }, { size = 1, align_corners = true }, { 2, 1 } },
  { { 2, 3, 2 }, { axis = -2, size = 5, mode = "cubic" }, { 2, 5, 2 } },
  { { 2, 5 }, { size = 4, mode = "cubic", align_corners = true }, { 2, 4 } },
  { { 2, 5 }, { size = 3, mode = "nearest" }, { 2, 3 } }, { { 2, 7 }, { size = 3, mode = "area" }, { 2, 3 } },
  { { 2, 4 }, { size = 6, scale = 1 / 1.7 }, { 2, 6 } }, { { 0, 4 }, { size = 2 }, { 0, 2 } },
}
local function resample_cases(make)
  local cases = {}
  for i, v in ipairs(resamples) do
    cases[i] = make(v[1], v[3])
    cases[i].attrs = v[2]
  end
  return cases
end
rows.resample = {
  class = "sum", ref = function(a, o) return resampled(a[1], o) end,
  cases = resample_cases(function(xs) return { F(xs) } end),
  bad = { { { F { 2, 3 } }, { size = 0 }, "at least 1" }, { { F { 2, 0 } }, { size = 2 }, "nothing to resample" },
    { { F { 2, 3 } }, nil, "missing" }, { { F { 2, 3 } }, { size = 2, axis = 3 }, "out of range" },
    { { F { 2, 3 } }, { size = 2, mode = "bilinear" }, "mode must be one of" } },
}
rows.resample_grad = {
  class = "sum",
  ref = function(a, o) return array.adjoint(a[2].shape, a[1], function(v) return resampled(v, o) end) end,
  cases = resample_cases(function(xs, ys) return { F(ys), F(xs) } end),
  bad = { { { F { 2, 3 }, F { 2, 4 } }, { size = 2 }, "shape of the resampled x" } },
}

-- Both of the last two axes.
local function resampled_planes(a, o)
  local size = type(o.size) == "table" and o.size or { o.size, o.size }
  local function along(x, axis, scale)
    return resampled(x, { axis = axis, size = size[axis + 3], mode = o.mode, align_corners = o.align_corners,
                          scale = scale })
  end
  return along(along(a, -2, o.scale_rows), -1, o.scale_columns)
end

-- More and fewer rows and columns, in rows of less and more than a vector, of many and few elements an element.
local planes = {
  { { 2, 3, 4 }, { size = { 5, 7 } }, { 2, 5, 7 } }, { { 5, 6 }, { size = 3 }, { 3, 3 } },
  { { 2, 2, 9, 23 }, { size = { 20, 50 } }, { 2, 2, 20, 50 } },
  { { 2, 20, 50 }, { size = { 9, 23 } }, { 2, 9, 23 } },
  { { 1, 7, 40 }, { size = { 7, 61 }, align_corners = true }, { 1, 7, 61 } },
  { { 3, 9, 24 }, { size = { 18, 48 }, mode = "cubic" }, { 3, 18, 48 } },
  { { 2, 11, 41 }, { size = { 5, 17 }, mode = "cubic", align_corners = true }, { 2, 5, 17 } },
  { { 2, 6, 21 }, { size = { 15, 42 }, mode = "nearest" }, { 2, 15, 42 } },
  { { 2, 15, 42 }, { size = { 6, 21 }, mode = "nearest" }, { 2, 6, 21 } },
  { { 2, 19, 45 }, { size = { 4, 17 }, mode = "area" }, { 2, 4, 17 } },
  { { 5, 30 }, { size = { 8, 53 }, mode = "area" }, { 8, 53 } },
  { { 2, 4, 20 }, { size = { 2, 64 } }, { 2, 2, 64 } }, { { 2, 5, 64 }, { size = { 9, 3 } }, { 2, 9, 3 } },
  { { 2, 4, 20 }, { size = { 6, 34 }, scale_rows = 1 / 1.7, scale_columns = 1 / 1.7 }, { 2, 6, 34 } },
  { { 4, 5 }, { size = 1, align_corners = true }, { 1, 1 } }, { { 0, 4, 3 }, { size = 2 }, { 0, 2, 2 } },
}
local function plane_cases(make)
  local cases = {}
  for i, v in ipairs(planes) do
    cases[i] = make(v[1], v[3])
    cases[i].attrs = v[2]
  end
  return cases
end
rows.resample2d = {
  class = "sum", ref = function(a, o) return resampled_planes(a[1], o) end,
  cases = plane_cases(function(xs) return { F(xs) } end),
  bad = { { { F { 2, 3 } }, { size = 0 }, "at least 1" }, { { F { 2, 0 } }, { size = 2 }, "axis 2 is empty" },
    { { F { 2, 3 } }, nil, "missing" }, { { F { 3 } }, { size = 2 }, "axes" },
    { { F { 2, 3 } }, { size = { 2, 3, 4 } }, "3 numbers; expected 2" },
    { { F { 2, 3 } }, { size = 2, scale_columns = -1 }, "scale_columns is %-1" },
    { { F { 2, 3 } }, { size = 2, mode = "bilinear" }, "mode must be one of" } },
}
rows.resample2d_grad = {
  class = "sum",
  ref = function(a, o) return array.adjoint(a[2].shape, a[1], function(v) return resampled_planes(v, o) end) end,
  cases = plane_cases(function(xs, ys) return { F(ys), F(xs) } end),
  bad = { { { F { 2, 3 }, F { 2, 4 } }, { size = 2 }, "shape of the resampled x" } },
}

return rows
