-- SPDX-License-Identifier: Apache-2.0
-- Rows: bags of embeddings. What contents are bad is in tests/lua/operators/index_limits_test.lua and
-- tests/lua/neural/bags_test.lua.

local S = require "cases.specs"
local array = require "cases.array"

local F, D, I, V = S.F, S.D, S.I, S.V
local function index(values, shape) return V(shape or { #values }, values, "index") end
local rows = {}

-- The positions of each bag's indices that count, in row-major order, from 1.
local function bags_of(at, offsets, o)
  local bags, padding = {}, o.padding_idx or -1
  local function add(bag, first, last)
    for p = first, last do
      if at.data[p] ~= padding then table.insert(bags[bag], p) end
    end
  end
  local count = offsets and #offsets.data - (o.include_last_offset and 1 or 0) or at.shape[1]
  for b = 1, count do
    bags[b] = {}
    if offsets then
      add(b, offsets.data[b] + 1, b < count and offsets.data[b + 1] or #at.data)
    else
      add(b, (b - 1) * at.shape[2] + 1, b * at.shape[2])
    end
  end
  return bags
end

local function sums(weight, at, offsets, weights, o)
  local bags = bags_of(at, offsets, o)
  return array.build({ #bags, weight.shape[2] }, function(ix)
    local bag, sum = bags[ix[1] + 1], 0
    for _, p in ipairs(bag) do
      sum = sum + array.get(weight, at.data[p], ix[2]) * (weights and weights.data[p] or 1)
    end
    return o.mode == "mean" and sum / math.max(#bag, 1) or sum
  end)
end

local function largest(weight, at, offsets, o)
  local bags = bags_of(at, offsets, o)
  local shape, found = { #bags, weight.shape[2] }, {}
  local y = array.build(shape, function(ix)
    local top, row = 0, -1
    for _, p in ipairs(bags[ix[1] + 1]) do
      local v = array.get(weight, at.data[p], ix[2])
      if row < 0 or v > top then top, row = v, at.data[p] end
    end
    found[#found + 1] = row
    return top
  end)
  return y, array.new(shape, found)
end

-- Indices, offsets (false: bags are rows of indices), number of bags, options. Bags of none, of padding alone, of one
-- row often, of more than are fetched ahead; offsets' numbers must not depend on a seed.
local flat = { 4, 0, 4, 2, 1, 2, 0 }
local bags = {
  { index(flat), index { 0, 3 }, 2 }, { index(flat), index { 0, 2, 2, 7 }, 4 },
  { index(flat), index { 0, 4, 7 }, 2, { include_last_offset = true } },
  { index(flat), index { 0, 1, 3, 4 }, 4, { padding_idx = 4 } },
  { I({ 3, 4 }, 0, 4), false, 3 }, { I({ 2, 5 }, 0, 4), false, 2, { padding_idx = 2 } },
  { index({ 1, 1, 1, 3, 1, 3 }, { 2, 3 }), false, 2, { padding_idx = 1 } },
  { I({ 60 }, 0, 4), index { 0, 25, 26 }, 3 },
}
local few = { { index({}, { 0 }), index { 0, 0 }, 2 }, { index({}, { 2, 0 }), false, 2 } }

-- make(bag, width, attrs) for all bags, of rows of less and more than a vector.
local function cases_of(list, width, more, make)
  local cases = {}
  for i, bag in ipairs(list) do
    local attrs = {}
    for k, v in pairs(bag[4] or {}) do attrs[k] = v end
    for k, v in pairs(more) do attrs[k] = v end
    cases[i] = make(bag, width)
    cases[i].attrs = attrs
    if attrs.include_last_offset then cases[i].expanded = false end
  end
  return cases
end
local function joined(...)
  local all = {}
  for _, list in ipairs { ... } do
    for _, case in ipairs(list) do all[#all + 1] = case end
  end
  return all
end

local function plain(bag, width) return { F { 5, width }, bag[1], bag[2], false } end
local function weighed(bag, width) return { F { 5, width }, bag[1], bag[2], F(bag[1].shape) } end
rows.embedding_bag = {
  class = "sum", ref = function(a, o) return sums(a[1], a[2], a[3], a[4], o) end,
  cases = joined(cases_of(bags, 3, {}, plain), cases_of(few, 3, {}, plain),
                 cases_of(bags, 45, { mode = "mean" }, plain), cases_of(few, 2, { mode = "mean" }, plain),
                 cases_of(bags, 19, {}, weighed), cases_of(few, 2, {}, weighed),
                 { { F { 5, 0 }, index(flat), index { 0, 3 } } }),
  bad = {
    { { F { 5 }, index { 0 }, index { 0 } }, nil, "axes" }, { { F { 5, 3 }, index { 0 } }, nil, "axes" },
    { { F { 5, 3 }, index({ 0 }, { 1, 1 }), index { 0 } }, nil, "axes" },
    { { F { 5, 3 }, index { 0, 1 }, index { 0 }, F { 3 } }, nil, "per_sample_weights" },
    { { F { 5, 3 }, index { 0, 1 }, index { 0 }, F { 2 } }, { mode = "mean" }, "mode sum" },
    { { F { 5, 3 }, index { 0, 1 }, index({}, { 0 }) }, { include_last_offset = true }, "no last offset" },
    { { F { 5, 3 }, index { 0, 1 }, index { 0 } }, { padding_idx = 5 }, "padding_idx" },
  },
}

local function zeros(shape) return array.build(shape, function() return 0 end) end
local function flow(bag, width) return { F { bag[3], width }, bag[1], bag[2], false, F { 5, width } } end
local function weighed_flow(bag, width)
  return { F { bag[3], width }, bag[1], bag[2], F(bag[1].shape), F { 5, width } }
end
rows.embedding_bag_grad = {
  class = "sum",
  ref = function(a, o)
    return array.adjoint(a[5].shape, a[1], function(w) return sums(w, a[2], a[3], a[4], o) end)
  end,
  cases = joined(cases_of(bags, 3, {}, flow), cases_of(few, 3, {}, flow), cases_of(bags, 2, { mode = "mean" }, flow),
                 cases_of(bags, 9, {}, weighed_flow)),
  bad = { { { F { 2, 3 }, index { 0, 5 }, index { 0 }, false, F { 5, 3 } }, nil, "number of bags" },
    { { F { 1, 2 }, index { 0, 4 }, index { 0 }, false, F { 5, 3 } }, nil, "width" } },
}

rows.embedding_bag_grad_weights = {
  class = "sum",
  ref = function(a, o)
    local dy, weight, at, all = a[1], a[2], a[3], zeros(a[3].shape)
    for b, bag in ipairs(bags_of(at, a[4], o)) do
      for _, p in ipairs(bag) do
        local sum = 0
        for i = 0, weight.shape[2] - 1 do
          sum = sum + array.get(dy, b - 1, i) * array.get(weight, at.data[p], i)
        end
        all.data[p] = sum
      end
    end
    return all
  end,
  cases = joined(cases_of(bags, 3, {}, function(bag, width)
    return { F { bag[3], width }, F { 5, width }, bag[1], bag[2] }
  end), { { F { 1, 37 }, F { 5, 37 }, index { 1, 3 }, index { 0 } } }),
  bad = { { { F { 2, 3 }, F { 5, 3 }, index { 0, 4 }, index { 0 } }, nil, "number of bags" } },
}

local function distinct(bag, width) return { D { 5, width }, bag[1], bag[2] } end
rows.embedding_bag_max = {
  class = "exact", ref = function(a, o) return (largest(a[1], a[2], a[3], o)) end,
  cases = joined(cases_of(bags, 3, {}, distinct), cases_of(few, 3, {}, distinct), cases_of(bags, 21, {}, distinct)),
  bad = { { { F { 5, 3 }, index { 0 } }, nil, "axes" } },
}
for _, case in ipairs(rows.embedding_bag_max.cases) do
  if case[3] then case.not_on = "cuda" end -- where it is composed of scatter_reduce
end

rows.embedding_bag_max_grad = {
  class = "sum",
  ref = function(a)
    local dy, from, all = a[1], a[2], zeros(a[3].shape)
    for p, row in ipairs(from.data) do
      local at = row * dy.shape[2] + (p - 1) % dy.shape[2] + 1
      if row >= 0 then all.data[at] = all.data[at] + dy.data[p] end
    end
    return all
  end,
  cases = { { F { 3, 2 }, index({ 4, 0, -1, -1, 4, 1 }, { 3, 2 }), F { 5, 2 } },
    { F { 0, 2 }, index({}, { 0, 2 }), F { 5, 2 } }, { F { 9, 40 }, I({ 9, 40 }, 0, 4), F { 5, 40 } } },
  bad = { { { F { 2, 3 }, index({ 0, 1, 2, 3, 4, 5 }, { 2, 3 }), F { 5, 2 } }, nil, "width" } },
}

return rows
