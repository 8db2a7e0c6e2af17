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

-- One row of a [n, size] state at a time: sums(k, j) are the gates' sums, c(j) the state before.
local function lstm_row(size, sums, c)
  local out = {}
  for j = 1, size do
    local i, f, g, o = sigmoid(sums(0, j)), sigmoid(sums(1, j)), math.tanh(sums(2, j)), sigmoid(sums(3, j))
    local next = f * c(j) + i * g
    local tanh = math.tanh(next)
    out[j] = { o * tanh, next, i, f, g, o, tanh }
  end
  return out
end

local function walk(count, o)
  if o and o.reverse then return count, 1, -1 end
  return 1, count, 1
end

rows.lstm_steps = {
  class = "composed", grad = { true, true, true, true }, symbolic = false, -- whose way back counts the steps
  ref = function(a, o)
    local x, weight, count, n, size = a[1], a[2], a[1].shape[1], a[3].shape[1], a[3].shape[2]
    local keep = not (o and o.keep == false)
    local y, states = array.new { count, n, size }, array.new { keep and count or 1, n, size }
    local gates = array.new { keep and count or 0, n, 5 * size }
    for row = 1, n do
      local h, c = {}, {}
      for j = 1, size do h[j], c[j] = a[3].data[(row - 1) * size + j], a[4].data[(row - 1) * size + j] end
      local first, last, by = walk(count, o)
      for t = first, last, by do
        local at = (t - 1) * n + row - 1
        local step = lstm_row(size, function(k, j)
          local sum = x.data[at * 4 * size + k * size + j]
          for p = 1, size do sum = sum + h[p] * weight.data[(k * size + j - 1) * size + p] end
          return sum
        end, function(j) return c[j] end)
        for j, values in ipairs(step) do
          h[j], c[j] = values[1], values[2]
          y.data[at * size + j] = h[j]
          states.data[(keep and at or row - 1) * size + j] = c[j]
          for k = 0, keep and 4 or -1 do gates.data[at * 5 * size + k * size + j] = values[3 + k] end
        end
      end
    end
    return { y, states, gates }
  end,
  cases = {
    { F { 3, 2, 8 }, F { 8, 2 }, F { 2, 2 }, F { 2, 2 } },
    { F { 3, 2, 8 }, F { 8, 2 }, F { 2, 2 }, F { 2, 2 }, attrs = { reverse = true } },
    { F { 2, 1, 4 }, F { 4, 1 }, F { 1, 1 }, F { 1, 1 }, attrs = { keep = false } },
    { F { 1, 7, 12 }, F { 12, 3 }, F { 7, 3 }, F { 7, 3 }, attrs = { reverse = true, keep = false }, grad = false },
    { F { 4, 9, 160 }, F({ 160, 40 }, -0.1, 0.1), F { 9, 40 }, F { 9, 40 }, grad = false }, -- a product by panels
    { F { 2, 3, 600 }, F({ 600, 150 }, -0.1, 0.1), F { 3, 150 }, F { 3, 150 }, grad = false }, -- one of few rows
    { F { 2, 0, 8 }, F { 8, 2 }, F { 0, 2 }, F { 0, 2 } }, { F { 2, 3, 0 }, F { 0, 0 }, F { 3, 0 }, F { 3, 0 } },
  },
  bad = {
    { { F { 0, 2, 8 }, F { 8, 2 }, F { 2, 2 }, F { 2, 2 } }, nil, "at least one step" },
    { { F { 3, 2, 8 }, F { 8, 3 }, F { 2, 2 }, F { 2, 2 } }, nil, "the size of the state" },
    { { F { 3, 2, 8 }, F { 6, 2 }, F { 2, 2 }, F { 2, 2 } }, nil, "4 times the size" },
    { { F { 3, 2, 6 }, F { 8, 2 }, F { 2, 2 }, F { 2, 2 } }, nil, "4 times the size" },
    { { F { 3, 4, 8 }, F { 8, 2 }, F { 2, 2 }, F { 2, 2 } }, nil, "the number of rows" },
    { { F { 2, 8 }, F { 8, 2 }, F { 2, 2 }, F { 2, 2 } }, nil, "3 axes" },
    { { S.I({ 3, 2, 8 }, 0, 3), F { 8, 2 }, F { 2, 2 }, F { 2, 2 } }, nil, "int64" },
  },
}

rows.lstm_steps_grad = {
  class = "composed", grad = false,
  ref = function(a, o)
    local gates, states, weight, c0 = a[4], a[5], a[6], a[7]
    local count, n, size = gates.shape[1], c0.shape[1], c0.shape[2]
    local dx, dh0, dc0 = array.new { count, n, 4 * size }, array.new { n, size }, array.new { n, size }
    for row = 1, n do
      local dh, dc = {}, {}
      for j = 1, size do
        local at = (row - 1) * size + j
        dh[j], dc[j] = a[2] and a[2].data[at] or 0, a[3] and a[3].data[at] or 0
      end
      local first, last, by = walk(count, o)
      for t = last, first, -by do
        local at = (t - 1) * n + row - 1
        for j = 1, size do
          local function gate(k) return gates.data[at * 5 * size + k * size + j] end
          local i, f, g, out, tanh = gate(0), gate(1), gate(2), gate(3), gate(4)
          local before = t == first and c0.data[(row - 1) * size + j] or states.data[(at - by * n) * size + j]
          local dy = dh[j] + (a[1] and a[1].data[at * size + j] or 0)
          local d = dc[j] + dy * out * (1 - tanh * tanh)
          local slopes = { d * g * i * (1 - i), d * before * f * (1 - f), d * i * (1 - g * g),
                           dy * tanh * out * (1 - out) }
          for k = 0, 3 do dx.data[at * 4 * size + k * size + j] = slopes[k + 1] end
          dc[j] = d * f
        end
        for p = 1, size do
          dh[p] = 0
          for q = 1, 4 * size do
            dh[p] = dh[p] + dx.data[at * 4 * size + q] * weight.data[(q - 1) * size + p]
          end
        end
      end
      for j = 1, size do dh0.data[(row - 1) * size + j], dc0.data[(row - 1) * size + j] = dh[j], dc[j] end
    end
    return { dx, dh0, dc0 }
  end,
  cases = {
    { F { 3, 2, 2 }, F { 2, 2 }, F { 2, 2 }, F({ 3, 2, 10 }, 0.1, 0.9), F { 3, 2, 2 }, F({ 8, 2 }, -0.5, 0.5),
      F { 2, 2 } },
    { F { 3, 2, 2 }, false, false, F({ 3, 2, 10 }, 0.1, 0.9), F { 3, 2, 2 }, F({ 8, 2 }, -0.5, 0.5), F { 2, 2 },
      attrs = { reverse = true } },
    { false, F { 2, 2 }, false, F({ 3, 2, 10 }, 0.1, 0.9), F { 3, 2, 2 }, F({ 8, 2 }, -0.5, 0.5), F { 2, 2 } },
    { false, false, F { 2, 2 }, F({ 1, 2, 10 }, 0.1, 0.9), F { 1, 2, 2 }, F({ 8, 2 }, -0.5, 0.5), F { 2, 2 },
      attrs = { reverse = true } },
    { F { 2, 9, 40 }, F { 9, 40 }, false, F({ 2, 9, 200 }, 0.1, 0.9), F { 2, 9, 40 }, F({ 160, 40 }, -0.1, 0.1),
      F { 9, 40 } },
    { F { 2, 3, 150 }, false, F { 3, 150 }, F({ 2, 3, 750 }, 0.1, 0.9), F { 2, 3, 150 },
      F({ 600, 150 }, -0.1, 0.1), F { 3, 150 } },
    { F { 2, 0, 2 }, false, false, F({ 2, 0, 10 }, 0.1, 0.9), F { 2, 0, 2 }, F({ 8, 2 }, -0.5, 0.5), F { 0, 2 } },
  },
  bad = {
    { { false, false, false, F { 3, 2, 10 }, F { 3, 2, 2 }, F { 8, 2 }, F { 2, 2 } }, nil, "none of dy, dh and dc" },
    { { F { 2, 2, 2 }, false, false, F { 3, 2, 10 }, F { 3, 2, 2 }, F { 8, 2 }, F { 2, 2 } }, nil, "shape" },
    { { F { 2, 2, 2 }, false, false, F { 3, 2, 10 }, F { 2, 2, 2 }, F { 8, 2 }, F { 2, 2 } }, nil,
      "the number of steps" },
    { { false, F { 2, 1 }, false, F { 3, 2, 10 }, F { 3, 2, 2 }, F { 8, 2 }, F { 2, 2 } }, nil, "shape" },
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
