-- SPDX-License-Identifier: Apache-2.0
-- Steps of recurrent layers behind their products.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end

-- f(row, column) answers a list; its items become the columns of arrays of that many parts, each of c's shape.
local function parts(c, f, ...)
  local out, size, widths = {}, c.shape[2], { ... }
  for k, count in ipairs(widths) do out[k] = array.new { c.shape[1], count * size } end
  for p = 1, #c.data do
    local row, column = math.floor((p - 1) / size), (p - 1) % size
    local values, at = f(p, row, column), 0
    for k, count in ipairs(widths) do
      for part = 0, count - 1 do
        at = at + 1
        out[k].data[row * count * size + part * size + column + 1] = values[at]
      end
    end
  end
  return out
end

local rows = {}

rows.lstm_cell = {
  class = "composed", grad = { true, true, true },
  ref = function(a)
    local size = a[3].shape[2]
    return parts(a[3], function(p, row, column)
      local function sum(k)
        local at = row * 4 * size + k * size + column + 1
        return a[1].data[at] + a[2].data[at]
      end
      local i, f, g, o = sigmoid(sum(0)), sigmoid(sum(1)), math.tanh(sum(2)), sigmoid(sum(3))
      local c = f * a[3].data[p] + i * g
      local t = math.tanh(c)
      return { o * t, c, i, f, g, o, t }
    end, 1, 1, 5)
  end,
  cases = {
    { F { 3, 8 }, F { 3, 8 }, F { 3, 2 } }, { F { 1, 4 }, F { 1, 4 }, F { 1, 1 } },
    { F({ 2, 1200 }, -9, 9), F({ 2, 1200 }, -9, 9), F { 2, 300 }, grad = false }, -- more than a stretch
    { F { 0, 8 }, F { 0, 8 }, F { 0, 2 } }, { F { 3, 0 }, F { 3, 0 }, F { 3, 0 } },
  },
  bad = {
    { { F { 3, 8 }, F { 3, 8 }, F { 3, 3 } }, nil, "4 times the size" },
    { { F { 3, 8 }, F { 2, 8 }, F { 3, 2 } }, nil, "the number of rows" },
    { { F { 8 }, F { 8 }, F { 2 } }, nil, "2 axes" }, { { S.I({ 3, 8 }, 0, 3), F { 3, 8 }, F { 3, 2 } }, nil, "int64" },
  },
}

rows.lstm_cell_grad = {
  class = "composed", grad = false,
  ref = function(a)
    local size = a[4].shape[2]
    return parts(a[4], function(p, row, column)
      local function gate(k) return a[3].data[row * 5 * size + k * size + column + 1] end
      local i, f, g, o, t = gate(0), gate(1), gate(2), gate(3), gate(4)
      local dh, c = a[1] and a[1].data[p] or 0, a[4].data[p]
      local d = (a[2] and a[2].data[p] or 0) + dh * o * (1 - t * t)
      return { d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g), dh * t * o * (1 - o), d * f }
    end, 4, 1)
  end,
  cases = {
    { F { 3, 2 }, F { 3, 2 }, F { 3, 10 }, F { 3, 2 } }, { F { 3, 2 }, false, F { 3, 10 }, F { 3, 2 } },
    { false, F { 3, 2 }, F { 3, 10 }, F { 3, 2 } }, { F { 2, 300 }, F { 2, 300 }, F { 2, 1500 }, F { 2, 300 } },
    { F { 0, 2 }, F { 0, 2 }, F { 0, 10 }, F { 0, 2 } },
  },
  bad = {
    { { false, false, F { 3, 10 }, F { 3, 2 } }, nil, "neither dh nor dnext" },
    { { F { 3, 2 }, false, F { 3, 8 }, F { 3, 2 } }, nil, "5 times the size" },
    { { F { 3, 1 }, false, F { 3, 10 }, F { 3, 2 } }, nil, "shape" },
  },
}

rows.gru_cell = {
  class = "composed", grad = { true, true, true },
  ref = function(a)
    local size = a[3].shape[2]
    return parts(a[3], function(p, row, column)
      local function pair(k)
        local at = row * 3 * size + k * size + column + 1
        return a[1].data[at], a[2].data[at]
      end
      local function gate(x, hidden) return sigmoid(x + hidden) end
      local r, z, x, hidden = gate(pair(0)), gate(pair(1)), pair(2)
      local n = math.tanh(x + r * hidden)
      return { n + z * (a[3].data[p] - n), r, z, n }
    end, 1, 3)
  end,
  cases = {
    { F { 3, 6 }, F { 3, 6 }, F { 3, 2 } }, { F { 1, 3 }, F { 1, 3 }, F { 1, 1 } },
    { F({ 2, 900 }, -9, 9), F({ 2, 900 }, -9, 9), F { 2, 300 }, grad = false }, -- more than a stretch
    { F { 0, 6 }, F { 0, 6 }, F { 0, 2 } }, { F { 3, 0 }, F { 3, 0 }, F { 3, 0 } },
  },
  bad = {
    { { F { 3, 6 }, F { 3, 6 }, F { 3, 3 } }, nil, "3 times the size" },
    { { F { 3, 6 }, F { 2, 6 }, F { 3, 2 } }, nil, "the number of rows" },
    { { F { 6 }, F { 6 }, F { 2 } }, nil, "2 axes" }, { { S.I({ 3, 6 }, 0, 3), F { 3, 6 }, F { 3, 2 } }, nil, "int64" },
  },
}

rows.gru_cell_grad = {
  class = "composed", grad = false,
  ref = function(a)
    local size = a[4].shape[2]
    return parts(a[4], function(p, row, column)
      local function at(x, k) return x.data[row * 3 * size + k * size + column + 1] end
      local r, z, n, d = at(a[2], 0), at(a[2], 1), at(a[2], 2), a[1].data[p]
      local dn = (d - d * z) * (1 - n * n)
      local dr, dz = dn * at(a[3], 2) * r * (1 - r), d * (a[4].data[p] - n) * z * (1 - z)
      return { dr, dz, dn, dr, dz, dn * r, d * z }
    end, 3, 3, 1)
  end,
  cases = {
    { F { 3, 2 }, F { 3, 6 }, F { 3, 6 }, F { 3, 2 } }, { F { 2, 300 }, F { 2, 900 }, F { 2, 900 }, F { 2, 300 } },
    { F { 0, 2 }, F { 0, 6 }, F { 0, 6 }, F { 0, 2 } },
  },
  bad = {
    { { F { 3, 2 }, F { 3, 8 }, F { 3, 6 }, F { 3, 2 } }, nil, "3 times the size" },
    { { F { 3, 1 }, F { 3, 6 }, F { 3, 6 }, F { 3, 2 } }, nil, "shape" },
  },
}

return rows
