-- SPDX-License-Identifier: Apache-2.0
-- Attention.

local array = require "cases.array"
local S = require "cases.specs"
local F, V, B = S.F, S.V, S.B

local rows = {}

-- A query's scores, as sequences: rows(q, k, mask, o) calls see(ix, weights, lse) for every query.
local function each_query(q, k, mask, o, see)
  local rank = #q.shape
  local width, keys = q.shape[rank], k.shape[rank - 1]
  local scale = o.scale and o.scale ~= 0 and o.scale or 1 / math.sqrt(math.max(1, width))
  local lead = { unpack(q.shape, 1, rank - 1) }
  for p = 1, array.count(lead) do
    local ix = array.index(lead, p)
    local scores, top, total, weights = {}, -1e300, 0, {}
    for j = 0, keys - 1 do
      local at, s = { unpack(ix) }, 0
      for e = 0, width - 1 do
        at[rank - 1], at[rank] = ix[rank - 1], e
        local x = q.data[array.at(q, at)]
        at[rank - 1] = j
        s = s + x * k.data[array.at(k, at)]
      end
      s = s * scale
      at[rank - 1], at[rank] = ix[rank - 1], j
      if mask then
        local m = array.shown(mask, { unpack(at, rank - #mask.shape + 1) })
        if mask.boolean then s = m ~= 0 and s or -1 / 0 else s = s + m end
      end
      if o.is_causal and j > ix[rank - 1] then s = -1 / 0 end
      scores[j], top = s, math.max(top, s)
    end
    for j = 0, keys - 1 do
      weights[j] = math.exp(scores[j] - top)
      total = total + weights[j]
    end
    for j = 0, keys - 1 do weights[j] = total > 0 and weights[j] / total or 0 end
    see(p, ix, weights, total > 0 and top + math.log(total) or 1 / 0)
  end
end

local function attention(q, k, v, mask, o)
  local rank, shape = #q.shape, { unpack(q.shape) }
  shape[rank] = v.shape[rank]
  local out = array.fill(shape, 0)
  each_query(q, k, mask, o, function(p, ix, weights)
    for c = 0, shape[rank] - 1 do
      local sum, at = 0, { unpack(ix) }
      at[rank] = c
      for j = 0, k.shape[rank - 1] - 1 do
        at[rank - 1] = j
        if weights[j] > 0 then sum = sum + weights[j] * v.data[array.at(v, at)] end
      end
      out.data[(p - 1) * shape[rank] + c + 1] = sum
    end
  end)
  return out
end

-- A case's mask says of itself whether it is a condition: arrays do not know their dtype.
local function bool(a) return a and { shape = a.shape, data = a.data, boolean = true } end

local function reference(a, o) return { attention(a[1], a[2], a[3], a[4] or nil, o) } end
local function conditional(a, o) return { attention(a[1], a[2], a[3], bool(a[4]), o) } end

local key = V({ 2 }, { 7, 11 }, "index")

rows.scaled_dot_product_attention = {
  class = "composed", ref = reference, grad = { true, true, true, true },
  cases = {
    { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 } },
    { F { 3, 4 }, F { 5, 4 }, F { 5, 2 }, attrs = { scale = 0.3 } },
    { F { 2, 2, 5, 4 }, F { 2, 2, 5, 4 }, F { 2, 2, 5, 4 }, attrs = { is_causal = true } },
    { F { 2, 4, 3 }, F { 2, 6, 3 }, F { 2, 6, 2 }, attrs = { is_causal = true } },
    { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, F { 3, 5 } },
    { F { 2, 2, 3, 4 }, F { 2, 2, 5, 4 }, F { 2, 2, 5, 3 }, F { 2, 1, 3, 5 }, attrs = { is_causal = true } },
    { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, F { 1, 5 } },
    { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, B { 2, 3, 5 }, ref = conditional },
    -- The second query sees nothing.
    { F { 3, 4 }, F { 2, 4 }, F { 2, 3 }, V({ 3, 2 }, { 1, 0, 0, 0, 1, 1 }, "bool"), ref = conditional },
    { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, false, key, attrs = { dropout_p = 0 } },
    { F { 1, 70, 3 }, F { 1, 130, 3 }, F { 1, 130, 2 }, grad = false },
    { F { 1, 130, 20 }, F { 1, 70, 20 }, F { 1, 70, 17 }, attrs = { is_causal = true }, grad = false },
    { F { 2, 0, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 } }, { F { 2, 3, 4 }, F { 2, 0, 4 }, F { 2, 0, 3 } },
    { F { 0, 3, 4 }, F { 0, 5, 4 }, F { 0, 5, 3 } },
  },
  bad = {
    { { F { 4 }, F { 4 }, F { 4 } }, nil, "axes" },
    { { F { 2, 3, 4 }, F { 2, 5, 3 }, F { 2, 5, 3 } }, nil, "the width of q" },
    { { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 6, 3 } }, nil, "the number of keys" },
    { { F { 2, 3, 4 }, F { 3, 5, 4 }, F { 2, 5, 3 } }, nil, "as in q" },
    { { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, F { 3, 4 } }, nil, "%[2, 3, 5%] and %[3, 4%] do not broadcast" },
    { { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, false, key }, { dropout_p = 1.5 }, "p is 1.5" },
    { { F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, false, V({ 3 }, { 1, 2, 3 }, "index") }, nil,
      "a seed and an offset" },
  },
}

-- lse and delta follow from dout, q, k, v, mask, which are the inputs before them.
local function lse(o, boolean)
  return S.statistics(function(b)
    local q, mask = b[2], b[5] or nil
    local out = array.fill({ unpack(q.shape, 1, #q.shape - 1) }, 0)
    each_query(q, b[3], boolean and bool(mask) or mask, o, function(p, _, _, l) out.data[p] = l end)
    return out
  end)
end
local function delta(o, boolean)
  return S.statistics(function(b)
    local d, mask = b[1], b[5] or nil
    local out = attention(b[2], b[3], b[4], boolean and bool(mask) or mask, o)
    local n = d.shape[#d.shape]
    return array.fill({ unpack(d.shape, 1, #d.shape - 1) }, function(i)
      local s = 0
      for c = 1, n do s = s + d.data[(i - 1) * n + c] * out.data[(i - 1) * n + c] end
      return s
    end)
  end)
end

local function gradients(a, o, boolean)
  local mask = a[5] and (boolean and bool(a[5]) or a[5]) or nil
  local list = {}
  for i = 2, 4 do
    list[#list + 1] = array.differences(a[i], a[1], function(x)
      return attention(i == 2 and x or a[2], i == 3 and x or a[3], i == 4 and x or a[4], mask, o)
    end)
  end
  return list
end

local function grad_case(o, boolean, ...)
  local case = { ... }
  for i = #case + 1, 6 do case[i] = false end
  case[7], case[8], case.attrs = lse(o, boolean), delta(o, boolean), o
  if boolean then case.ref = function(a, attrs) return gradients(a, attrs, true) end end
  return case
end
rows.scaled_dot_product_attention_grad = {
  class = "differences", ref = gradients, grad = { true, true, true, true, true }, second = false,
  cases = {
    grad_case({}, false, F { 2, 3, 3 }, F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }),
    grad_case({ is_causal = true, scale = 0.7 }, false, F { 4, 2 }, F { 4, 3 }, F { 4, 3 }, F { 4, 2 }),
    grad_case({}, false, F { 2, 3, 2 }, F { 2, 3, 4 }, F { 2, 4, 4 }, F { 2, 4, 2 }, F { 3, 4 }),
    grad_case({}, true, F { 2, 3, 2 }, F { 2, 3, 4 }, F { 2, 4, 4 }, F { 2, 4, 2 }, B { 1, 3, 4 }),
  },
  bad = { { { F { 2, 3, 2 }, F { 2, 3, 4 }, F { 2, 5, 4 }, F { 2, 5, 3 }, false, false, F { 2, 3 }, F { 2, 3 } }, nil,
            "the width of v" } },
}

return rows
