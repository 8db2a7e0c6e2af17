-- SPDX-License-Identifier: Apache-2.0
-- Singular values and their vectors, by rotations of pairs of columns until all are orthogonal (Hestenes, 1958): exact
-- to rounding for small values too. In Lua, in float64: seconds for a matrix of a thousand rows and columns.

local SWEEPS = 60
local TOLERANCE = 1e-12 -- of the cosine between two columns: what is left over is its square

local function dot(a, b, n)
  local sum = 0
  for i = 1, n do sum = sum + a[i] * b[i] end
  return sum
end

local function rotate(a, b, n, c, s)
  for i = 1, n do
    local x, y = a[i], b[i]
    a[i], b[i] = c * x - s * y, s * x + c * y
  end
end

-- Makes all columns orthogonal to each other. Columns of numbers that are all 0 stay.
local function orthogonalise(columns, n)
  for _ = 1, SWEEPS do
    local squares, rotated = {}, false
    for i, column in ipairs(columns) do squares[i] = dot(column, column, n) end
    for i = 1, #columns - 1 do
      for j = i + 1, #columns do
        local product = dot(columns[i], columns[j], n)
        if math.abs(product) > TOLERANCE * math.sqrt(squares[i] * squares[j]) then
          rotated = true
          local zeta = (squares[j] - squares[i]) / (2 * product)
          local t = (zeta >= 0 and 1 or -1) / (math.abs(zeta) + math.sqrt(1 + zeta * zeta))
          local c = 1 / math.sqrt(1 + t * t)
          rotate(columns[i], columns[j], n, c, c * t)
          squares[i], squares[j] = squares[i] - t * product, squares[j] + t * product
        end
      end
    end
    if not rotated then return end
  end
end

---Of a matrix with no more columns than rows: singular values from the largest, and the left singular vectors as rows,
---each of them a list; zeros where a value is 0.
---@param rows number[][] the columns of the matrix, each a list: they are overwritten
---@return number[] values, number[][] vectors
return function(rows)
  local n = #(rows[1] or {})
  orthogonalise(rows, n)
  local order, values, vectors = {}, {}, {}
  for i, row in ipairs(rows) do order[i] = { math.sqrt(dot(row, row, n)), row, i } end
  table.sort(order, function(a, b) return a[1] > b[1] or a[1] == b[1] and a[3] < b[3] end)
  for i, entry in ipairs(order) do
    local value, row = entry[1], entry[2]
    if value > 0 then
      for k = 1, n do row[k] = row[k] / value end
    end
    values[i], vectors[i] = value, row
  end
  return values, vectors
end
