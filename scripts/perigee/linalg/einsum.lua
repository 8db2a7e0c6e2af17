-- SPDX-License-Identifier: Apache-2.0
-- pg.einsum: sums of products by labelled axes. Two tensors at a time, each pair as one batched matrix product.

local native = require "perigee.native"

local tensor = native.tensor
local rank, size, differ = tensor.rank, tensor.size, tensor.sizes_differ

local function refuse(message, hint) native.raise("invalid_argument", "einsum", message, hint) end

-- The labels of one term as a list. Axes that "..." stands for are the numbers -count..-1.
local function labels_of(term, count)
  local list, dots = {}, false
  local text = term:gsub("%s", "")
  local at = 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == "." then
      if text:sub(at, at + 2) ~= "..." or dots then refuse(("bad dots in %q"):format(term)) end
      for i = -count, -1 do list[#list + 1] = i end
      dots, at = true, at + 3
    elseif c:find("%a") then
      list[#list + 1], at = c, at + 1
    else
      refuse(("%q in %q is no label"):format(c, term), "labels are letters")
    end
  end
  return list, dots
end

-- What "..." stands for in a term: the axes of x that have no letter.
local function dot_count(term, x)
  if not term:find("...", 1, true) then return 0 end
  local _, letters = term:gsub("%a", "")
  return math.max(0, rank(x) - letters)
end

local function index_of(labels)
  local at = {}
  for i, label in ipairs(labels) do
    if at[label] then refuse(("label %s stands twice in the result"):format(label)) end
    at[label] = i
  end
  return at
end

local function check_sizes(labels, x, sizes)
  if #labels ~= rank(x) then
    refuse(("a term has %d labels for a tensor %s"):format(#labels, tostring(x.shape)))
  end
  for i, label in ipairs(labels) do
    local n = size(x, i)
    if sizes[label] and sizes[label] ~= 1 and n ~= 1 and differ(sizes[label], n) then
      refuse(("label %s is %s and %s"):format(label, tostring(sizes[label]), tostring(n)))
    end
    if not sizes[label] or sizes[label] == 1 then sizes[label] = n end
  end
end

-- Each label once: of two axes with one label the diagonal.
local function take_diagonals(part)
  local first = {}
  for i, label in ipairs(part.labels) do
    if first[label] then
      local n, labels, order = size(part.x, i), {}, {}
      if differ(size(part.x, first[label]), n) then refuse(("label %s has two sizes in one term"):format(label)) end
      for j, other in ipairs(part.labels) do
        if other ~= label then labels[#labels + 1], order[#order + 1] = other, j end
      end
      labels[#labels + 1], order[#order + 1], order[#order + 2] = label, first[label], i
      return take_diagonals { x = part.x:permute(order):diagonal { axis1 = -2, axis2 = -1 }, labels = labels }
    end
    first[label] = i
  end
  return part
end

-- Sums out what is not needed any more.
local function sum_unneeded(part, needed)
  local axes, left = {}, {}
  for i, label in ipairs(part.labels) do
    if needed[label] then left[#left + 1] = label else axes[#axes + 1] = i end
  end
  if #axes == 0 then return part end
  return { x = part.x:sum(axes), labels = left }
end

-- x as [first..., second..., third...] with each group joined into one axis. Absent axes have size 1; axes of size 1
-- that the other tensor has longer are repeated.
local function matrix(part, groups, sizes)
  local at, order, wide, joined = index_of(part.labels), {}, {}, {}
  for g, group in ipairs(groups) do
    joined[g] = 1
    for _, label in ipairs(group) do
      order[#order + 1], wide[#wide + 1] = at[label], sizes[label]
      joined[g] = joined[g] * sizes[label]
    end
  end
  return part.x:permute(order):expand(wide):reshape(joined)
end

local function append(...)
  local list = {}
  for _, group in ipairs { ... } do
    for _, label in ipairs(group) do list[#list + 1] = label end
  end
  return list
end

-- The product of two parts, summed over shared labels that are not needed.
local function product(a, b, needed, sizes)
  local in_a, in_b = index_of(a.labels), index_of(b.labels)
  local keep_for_a, keep_for_b = setmetatable({}, { __index = in_b }), setmetatable({}, { __index = in_a })
  for label in pairs(needed) do keep_for_a[label], keep_for_b[label] = true, true end
  a, b = sum_unneeded(a, keep_for_a), sum_unneeded(b, keep_for_b)
  in_a, in_b = index_of(a.labels), index_of(b.labels)
  local batch, left, right, inner = {}, {}, {}, {}
  for _, label in ipairs(a.labels) do
    local group = not in_b[label] and left or needed[label] and batch or inner
    group[#group + 1] = label
  end
  for _, label in ipairs(b.labels) do
    if not in_a[label] then right[#right + 1] = label end
  end
  local y = matrix(a, { batch, left, inner }, sizes):matmul(matrix(b, { batch, inner, right }, sizes))
  local labels, shape = append(batch, left, right), {}
  for i, label in ipairs(labels) do shape[i] = sizes[label] end
  return { x = y:reshape(shape), labels = labels }
end

-- Labels that stand once, in alphabetical order, after the axes of "...".
local function implied_output(terms, dots)
  local count, list = {}, {}
  for _, term in ipairs(terms) do
    for letter in term:gmatch("%a") do count[letter] = (count[letter] or 0) + 1 end
  end
  for letter, n in pairs(count) do
    if n == 1 then list[#list + 1] = letter end
  end
  table.sort(list)
  return (dots > 0 and "..." or "") .. table.concat(list)
end

local function read_terms(equation, tensors)
  local inputs, output = equation:match("^(.-)%->(.*)$")
  local terms = {}
  for term in ((inputs or equation) .. ","):gmatch("(.-),") do terms[#terms + 1] = term end
  if #terms ~= #tensors then refuse(("%d terms for %d tensors"):format(#terms, #tensors)) end
  local dots, parts, sizes = 0, {}, {}
  for i, term in ipairs(terms) do
    local count = dot_count(term, tensors[i])
    dots = math.max(dots, count)
    local labels = labels_of(term, count)
    check_sizes(labels, tensors[i], sizes)
    parts[i] = take_diagonals { x = tensors[i], labels = labels }
  end
  local wanted = labels_of(output or implied_output(terms, dots), dots)
  for _, label in ipairs(wanted) do
    if not sizes[label] then refuse(("label %s of the result stands in no term"):format(label)) end
  end
  return parts, wanted, sizes
end

local read = native.signature("einsum", {
  { "equation", "string", required = true }, { "tensors", "tensors", required = true } })

---Products of elements, summed over the labels that the result lacks: `pg.einsum("bij,bjk->bik", x, y)`. Without
---an arrow the result has the labels that stand once, in alphabetical order. "..." stands for axes without a label.
---@return perigee.Tensor
local function einsum(...)
  local o = read(...)
  local parts, wanted, sizes = read_terms(o.equation, o.tensors)
  local result = parts[1]
  for i = 2, #parts do
    local needed = index_of(wanted)
    for j = i + 1, #parts do
      for _, label in ipairs(parts[j].labels) do needed[label] = true end
    end
    result = product(result, parts[i], needed, sizes)
  end
  local final = index_of(wanted)
  result = sum_unneeded(result, final)
  local at, order = index_of(result.labels), {}
  for i, label in ipairs(wanted) do order[i] = at[label] end
  return result.x:permute(order)
end

return { einsum = einsum }
