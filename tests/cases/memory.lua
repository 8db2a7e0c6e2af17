-- SPDX-License-Identifier: Apache-2.0
-- Copies, dtypes, devices.

local array = require "cases.array"
local S = require "cases.specs"
local F, V = S.F, S.V

local rows = {}
local function same(a) return a[1] end

rows.clone = { class = "exact", ref = same, cases = { { F { 3, 4 } }, { F {} }, { F { 3, 0 } },
  { V({ 3 }, { 0 / 0, 1 / 0, -1 }), special = true, grad = false } },
               bad = { { { 1 }, nil, "tensor" } } }

local function truncated(x) return x < 0 and math.ceil(x) or math.floor(x) end
rows.cast = {
  class = "exact",
  ref = function(a, o)
    return array.map(function(x)
      if o.dtype == "bool" then return x ~= 0 and 1 or 0 end
      return o.dtype:find("int") and truncated(x) or x
    end, a[1])
  end,
  cases = { { F { 3, 4 }, attrs = { dtype = "float64" } }, { F { 3, 4 }, attrs = { dtype = "int32" }, grad = false },
            { F { 3, 4 }, attrs = { dtype = "bool" }, grad = false },
              { V({ 4 }, { 0, -1.75, 2.5, 3 }), attrs = { dtype = "float32" }, grad = false },
            { V({ 4 }, { 0, -1.75, 2.5, 3 }), attrs = { dtype = "bfloat16" }, grad = false },
              { V({ 4 }, { 0, -1.75, 2.5, 3 }), attrs = { dtype = "float16" }, grad = false },
            { F {}, attrs = { dtype = "int64" }, grad = false },
              { F { 3, 0 }, attrs = { dtype = "int8" }, grad = false } },
  bad = { { { F { 2 } }, { dtype = "flaot32" }, "float32" }, { { F { 2 } }, nil, "missing" } },
}
rows.transfer = {
  class = "exact", ref = same,
  cases = { { F { 3, 4 }, attrs = { device = "cpu" } }, { F { 3, 0 }, attrs = { device = "cpu" } },
    { F {}, attrs = { device = "cpu" } },
    { F { 3, 4 }, attrs = { device = "sim:0" } }, { F { 3, 0 }, attrs = { device = "sim:0" } } },
  bad = { { { F { 2 } }, { device = "nowhere:0" }, "nowhere" } },
}
rows.copy = {
  class = "exact", grad = { false, true },
  ref = function(a) return array.build(a[1].shape, function(ix) return array.shown(a[2], ix) end) end,
  cases = { { F { 3, 4 }, F { 3, 4 } }, { F { 3, 4 }, F { 4 } }, { F { 3, 4 }, F {} }, { F {}, F {} },
    { F { 3, 0 }, F { 1 } } },
  bad = { { { F { 3 }, F { 2, 3 } }, nil, "does not broadcast" } }, graph = false,
}

rows.filled = {
  class = "exact", ref = function(a, o) return array.fill(a[1].shape, o.value) end,
  cases = { { F { 3, 4 }, attrs = { value = 3 } }, { F {}, attrs = { value = -1 } },
    { F { 3, 0 }, attrs = { value = 1 } }, { F { 3 }, attrs = { value = 0 } } },
  bad = { { { F { 2 } }, nil, "missing" }, { { 1 }, { value = 1 }, "tensor" } },
}

return rows
