-- SPDX-License-Identifier: Apache-2.0
-- What is done to all gradients of a model at once.

local array = require "cases.array"
local S = require "cases.specs"
local F, V = S.F, S.V

local function some() return { F { 3, 4 }, F {}, F { 0 }, F { 19 } } end
local INF, NAN = 1 / 0, 0 / 0

-- The tensors of a group, each element through f.
local function mapped(list, f)
  local out = {}
  for k, x in ipairs(list) do
    out[k] = array.new(x.shape)
    for i, v in ipairs(x.data) do out[k].data[i] = f(v) end
  end
  return out
end

local function any_infinite(list)
  for _, x in ipairs(list) do
    for _, v in ipairs(x.data) do
      if v ~= v or v == INF or v == -INF then return true end
    end
  end
  return false
end

local rows = {}
local bad_empty = { { {} }, nil, "at least one" }

rows.unscale_all = {
  class = "arithmetic",
  ref = function(a, o)
    local found = array.new({}, { any_infinite(a[1]) and 1 or 0 })
    return { found, mapped(a[1], function(v) return v * (o.inv_scale or 1) end) }
  end,
  cases = {
    { some(), attrs = { inv_scale = 0.25 } }, { some() }, { { F { 33000 } }, attrs = { inv_scale = 2 } },
    { { F { 5 }, V({ 3 }, { 1, INF, 2 }) }, attrs = { inv_scale = 0.5 } },
    { { V({ 2 }, { -INF, 0 }), F { 3 } }, attrs = { inv_scale = 0.5 } },
    { { V({ 9 }, { 1, 2, 3, 4, 5, 6, 7, 8, NAN }) }, attrs = { inv_scale = 0.5 } },
  },
  bad = { bad_empty },
}

rows.scale_all = {
  class = "arithmetic",
  ref = function(a) return mapped(a[1], function(v) return v * a[2].data[1] end) end,
  cases = { { some(), F {} }, { { F { 33000 } }, F {} }, { some(), V({}, { 1 }) } },
  bad = { { { {}, F {} }, nil, "at least one" }, { { { F { 2 } }, F { 2 } }, nil, "axes" } },
}

rows.clamp_all = {
  class = "exact",
  ref = function(a, o)
    return mapped(a[1], function(v) return math.min(math.max(v, o.min or -INF), o.max or INF) end)
  end,
  cases = { { some(), attrs = { min = -0.5, max = 0.25 } }, { some(), attrs = { max = 0 } }, { some() } },
  bad = { bad_empty },
}

rows.total_norm = {
  class = "sum",
  ref = function(a, o)
    local p, total = o.p or 2, 0
    for _, x in ipairs(a[1]) do
      for _, v in ipairs(x.data) do
        total = p == INF and math.max(total, math.abs(v)) or total + math.abs(v) ^ p
      end
    end
    return array.new({}, { p == INF and total or total ^ (1 / p) })
  end,
  cases = { { some() }, { some(), attrs = { p = 1 } }, { some(), attrs = { p = INF } }, { some(), attrs = { p = 3 } },
            { { F { 33000 } } }, { { F { 0 } } }, { { F { 0 } }, attrs = { p = INF } } },
  bad = { bad_empty, { { { F { 2 } } }, { p = 0 }, "above 0" }, { { { F { 2 } } }, { p = -1 }, "above 0" } },
}

return rows
