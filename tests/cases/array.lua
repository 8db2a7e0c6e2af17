-- SPDX-License-Identifier: Apache-2.0
-- Plain-Lua arrays: { shape = {2, 3}, data = {row-major numbers} }. References compute with these, in float64, without
-- touching a tensor.

local A = {}

function A.count(shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

function A.new(shape, data) return { shape = shape, data = data or {} } end

---An array whose element i (from 1) is f(i).
function A.fill(shape, f)
  local data = {}
  for i = 1, A.count(shape) do data[i] = type(f) == "function" and f(i) or f end
  return A.new(shape, data)
end

local function strides(shape)
  local s, n = {}, 1
  for i = #shape, 1, -1 do s[i], n = n, n * shape[i] end
  return s
end

---Position (from 1) of the element at a list of indices (from 0).
function A.at(a, index)
  local p, s = 1, strides(a.shape)
  for i, x in ipairs(index) do p = p + x * s[i] end
  return p
end

---Indices (from 0) of the element at position p (from 1).
function A.index(shape, p)
  local index, rest = {}, p - 1
  for i = #shape, 1, -1 do
    index[i] = rest % shape[i]
    rest = math.floor(rest / shape[i])
  end
  return index
end

---The element at two or four indices (from 0); convolutions read millions.
function A.get(a, i, j, k, l)
  local s = a.shape
  if not k then return a.data[i * s[2] + j + 1] end
  return a.data[((i * s[2] + j) * s[3] + k) * s[4] + l + 1]
end

---An array whose element at indices ix (from 0) is f(ix).
function A.build(shape, f)
  return A.fill(shape, function(p) return f(A.index(shape, p)) end)
end

function A.broadcast_shape(a, b)
  local shape, rank = {}, math.max(#a, #b)
  for i = 1, rank do
    local x, y = a[i - rank + #a] or 1, b[i - rank + #b] or 1
    shape[i] = x == 1 and y or x
  end
  return shape
end

---The element of `a` that an index of a broader shape shows.
function A.shown(a, index)
  local own, skip = {}, #index - #a.shape
  for i, d in ipairs(a.shape) do own[i] = d == 1 and 0 or index[i + skip] end
  return a.data[A.at(a, own)]
end

local function as_array(v) return type(v) == "number" and A.new({}, { v }) or v end

---f elementwise over arrays and numbers that broadcast.
function A.map(f, ...)
  local args, shape = { ... }, {}
  for i, v in ipairs(args) do
    args[i] = as_array(v)
    shape = A.broadcast_shape(shape, args[i].shape)
  end
  return A.build(shape, function(ix)
    local xs = {}
    for i, a in ipairs(args) do xs[i] = A.shown(a, ix) end
    return f(unpack(xs))
  end)
end

local function axis_set(a, axes)
  local set = {}
  if type(axes) == "number" then axes = { axes } end
  if not axes or #axes == 0 then
    for i = 1, #a.shape do set[i] = true end
  else
    for _, x in ipairs(axes) do set[x > 0 and x or #a.shape + 1 + x] = true end
  end
  return set
end

---f(list of elements) over axes (from 1; none: all).
function A.reduce(a, axes, keepdim, f)
  local set, kept, out = axis_set(a, axes), {}, {}
  for i, d in ipairs(a.shape) do
    kept[i] = set[i] and 1 or d
    if keepdim or not set[i] then out[#out + 1] = kept[i] end
  end
  local lists, frame = {}, A.new(kept)
  for p = 1, A.count(kept) do lists[p] = {} end
  for p, x in ipairs(a.data) do
    local ix = A.index(a.shape, p)
    for i in ipairs(ix) do if set[i] then ix[i] = 0 end end
    local list = lists[A.at(frame, ix)]
    list[#list + 1] = x
  end
  local data = {}
  for p, list in ipairs(lists) do data[p] = f(list) end
  return A.new(out, data)
end

---f(list) -> list along one axis (from 1, or negative).
function A.along(a, axis, f)
  local out = A.new(a.shape)
  if #a.shape == 0 then return A.new({}, f(a.data)) end
  axis = axis > 0 and axis or #a.shape + 1 + axis
  for p = 1, #a.data do
    local ix = A.index(a.shape, p)
    if ix[axis] == 0 then
      local places, list = {}, {}
      for k = 0, a.shape[axis] - 1 do
        ix[axis] = k
        places[k + 1] = A.at(a, ix)
        list[k + 1] = a.data[places[k + 1]]
      end
      for k, v in ipairs(f(list)) do out.data[places[k]] = v end
    end
  end
  return out
end

function A.sum(list)
  local s = 0
  for _, x in ipairs(list) do s = s + x end
  return s
end

function A.dot(a, b)
  local s = 0
  for i, x in ipairs(a.data) do s = s + x * b.data[i] end
  return s
end

---The adjoint of a linear function of an array of `shape`, applied to dy: element i is <dy, f(unit i)>.
function A.adjoint(shape, dy, f)
  return A.fill(shape, function(i)
    return A.dot(dy, f(A.fill(shape, function(k) return k == i and 1 or 0 end)))
  end)
end

---Gradient of <dy, f(x)> by central differences.
function A.differences(x, dy, f)
  local eps = 1e-5
  return A.fill(x.shape, function(i)
    local function moved(d)
      return A.dot(dy, f(A.fill(x.shape, function(k) return x.data[k] + (k == i and d or 0) end)))
    end
    return (moved(eps) - moved(-eps)) / (2 * eps)
  end)
end

return A
