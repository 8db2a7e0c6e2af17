-- SPDX-License-Identifier: Apache-2.0
-- Operators that make tensors of nothing.

local array = require "cases.array"
local S = require "cases.specs"
local F = S.F

local rows = {}
rows.fill = {
  class = "exact", ref = function(_, o) return array.fill(o.shape, o.value or 0) end, creates = true,
  cases = { { attrs = { shape = { 3, 4 }, value = 2 } }, { attrs = { shape = {}, value = 1 } },
    { attrs = { shape = { 3, 0 }, value = 1 } },
            { attrs = { shape = { 2 } } } },
  bad = { { {}, { value = 1 }, "missing" }, { {}, { shape = { -1 } }, nil },
    { {}, { shape = { 2 ^ 40, 2 ^ 40 } }, nil } },
}
rows.arange = {
  class = "exact", creates = true, class_of_dtype = true,
  ref = function(_, o) return array.fill({ o.count },
    function(i) return (o.start or 0) + (i - 1) * (o.step or 1) end) end,
  cases = { { attrs = { count = 5, start = 2, stop = 7, step = 1 } },
    { attrs = { count = 4, start = 8, stop = 0, step = -2 }, signed = true },
            { attrs = { count = 0, start = 0, stop = 0, step = 1 } } },
  bad = { { {}, { count = -1 }, nil } },
}
rows.spaced = {
  class = "function_", creates = true, class_of_dtype = true,
  ref = function(_, o)
    return array.fill({ o.count }, function(i)
      return o.count > 1 and (o.first * (o.count - i) + o.last * (i - 1)) / (o.count - 1) or o.first
    end)
  end,
  cases = { { attrs = { count = 5, first = 2, last = 10 } }, { attrs = { count = 4, first = 9, last = 0 } },
    { attrs = { count = 1, first = 3, last = 7 } }, { attrs = { count = 0, first = 0, last = 1 } } },
  bad = { { {}, { count = -1 }, nil } },
}
rows.zeros_like = {
  class = "exact", ref = function(a) return array.fill(a[1].shape, 0) end,
  cases = { { F { 3, 4 } }, { F {} }, { F { 3, 0 } } }, bad = { { { 1 }, nil, "tensor" } },
}
rows.ones_like = {
  class = "exact", ref = function(a) return array.fill(a[1].shape, 1) end,
  cases = { { F { 3, 4 } }, { F {} }, { F { 3, 0 } } }, bad = { { { 1 }, nil, "tensor" } },
}
return rows
