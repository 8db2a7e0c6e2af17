-- SPDX-License-Identifier: Apache-2.0
-- Random operators. `holds(list, attrs)` says what must be true of the elements; the bits are compared between devices
-- and builders.

local S = require "cases.specs"
local F, V = S.F, S.V

local function mean(list)
  local s = 0
  for _, x in ipairs(list) do s = s + x end
  return s / #list
end
local function within(list, low, high)
  for _, x in ipairs(list) do
    if not (x >= low and x < high) then error(("%g is not in [%g, %g)"):format(x, low, high), 0) end
  end
end
local function near(got, want, slack, what)
  if math.abs(got - want) > slack then error(("the %s is %g, expected about %g"):format(what, got, want), 0) end
end

local rows = {}
rows.uniform = {
  random = true, creates = true,
  holds = function(list, o)
    local low, high = o.low or 0, o.high or 1
    within(list, low, high)
    if #list > 1000 then near(mean(list), (low + high) / 2, 0.05 * (high - low), "mean") end
  end,
  cases = { { attrs = { shape = { 40, 50 } } }, { attrs = { shape = { 7 }, low = -2, high = 3 } },
    { attrs = { shape = {} } }, { attrs = { shape = { 0, 3 } } } },
  bad = { { {}, { shape = { -1 } }, nil }, { {}, { shape = { 2 }, dtype = "int64" }, "int64" } },
}
rows.normal = {
  random = true, creates = true,
  holds = function(list, o)
    if #list < 1000 then return end
    local m, s = mean(list), 0
    for _, x in ipairs(list) do s = s + (x - m) ^ 2 end
    near(m, o.mean or 0, 0.15 * (o.std or 1), "mean")
    near(math.sqrt(s / #list), o.std or 1, 0.1 * (o.std or 1), "deviation")
  end,
  cases = { { attrs = { shape = { 40, 50 } } }, { attrs = { shape = { 2000 }, mean = 3, std = 0.5 } },
    { attrs = { shape = { 5 } } },
            { attrs = { shape = {} } }, { attrs = { shape = { 0 } } } },
  bad = { { {}, { shape = { 2 }, dtype = "bool" }, "bool" } },
}
rows.exponential = {
  random = true, creates = true,
  holds = function(list, o)
    within(list, 0, math.huge)
    if #list > 1000 then near(mean(list), 1 / (o.rate or 1), 0.1 / (o.rate or 1), "mean") end
  end,
  cases = { { attrs = { shape = { 40, 50 } } }, { attrs = { shape = { 2000 }, rate = 3 } }, { attrs = { shape = {} } },
    { attrs = { shape = { 0, 3 } } } },
  bad = { { {}, { shape = { 2 }, dtype = "int64" }, "int64" }, { {}, { shape = { 2 }, rate = 0 }, "above 0" } },
}
-- Of one row: no category twice, none that is impossible.
local function drawn(chances, replacement)
  return function(list)
    local seen = {}
    for _, c in ipairs(list) do
      if not (chances[c + 1] and chances[c + 1] > 0) then error(c .. " cannot be drawn", 0) end
      if seen[c] and not replacement then error(c .. " is there twice", 0) end
      seen[c] = true
    end
  end
end
rows.multinomial = {
  random = true,
  holds = function(list, o)
    if #list == 4 then drawn({ 0.1, 0, 3, 1, 2 }, o.replacement)(list) end
    if #list == 3000 then
      local ones = 0
      for _, c in ipairs(list) do ones = ones + c end
      near(ones / #list, 0.75, 0.05, "share of category 1")
    end
  end,
  cases = { { V({ 5 }, { 0.1, 0, 3, 1, 2 }), attrs = { num_samples = 4 } },
    { V({ 5 }, { 0.1, 0, 3, 1, 2 }), attrs = { num_samples = 4, replacement = true } },
    { V({ 2 }, { 1, 3 }), attrs = { num_samples = 3000, replacement = true } },
    { F({ 3, 7 }, 0, 1), attrs = { num_samples = 2 } }, { F({ 30, 40 }, 0, 1), attrs = { num_samples = 40 } },
    { F({ 3, 7 }, 0, 1), attrs = { num_samples = 9, replacement = true } },
    { F { 0, 3 }, attrs = { num_samples = 2 } } },
  bad = { { { F({ 3 }, 0, 1) }, { num_samples = 4 }, "at most as many" },
    { { V({ 3 }, { 1, -1, 1 }) }, { num_samples = 1 }, "p is %-1 at row 0, category 1" },
    { { V({ 3 }, { 1, 0, 1 }) }, { num_samples = 3 }, "2 categories" },
    { { V({ 3 }, { 0 }) }, { num_samples = 1, replacement = true }, "0 categories" },
    { { F({ 3 }, 0, 1) }, { num_samples = 0 }, "at least 1" }, { { F({ 3 }, 0, 1) }, nil, "missing" } },
}
rows.randint = {
  random = true, creates = true, integers = true,
  holds = function(list, o)
    within(list, o.low or 0, o.high)
    for _, x in ipairs(list) do if x ~= math.floor(x) then error("not whole", 0) end end
  end,
  cases = { { attrs = { shape = { 100 }, low = 2, high = 9 } }, { attrs = { shape = {}, high = 3 } },
    { attrs = { shape = { 0 }, high = 3 } } },
  bad = { { {}, { shape = { 2 }, low = 3, high = 3 }, nil }, { {}, { shape = { 2 } }, "missing" } },
}
rows.randperm = {
  random = true, creates = true, integers = true,
  holds = function(list, o)
    local seen = {}
    for _, x in ipairs(list) do seen[x] = true end
    for i = 0, o.n - 1 do if not seen[i] then error(i .. " is missing", 0) end end
  end,
  cases = { { attrs = { n = 100 } }, { attrs = { n = 1 } }, { attrs = { n = 0 } } },
  bad = { { {}, { n = -1 }, "at least 0" } },
}
rows.bernoulli = {
  random = true,
  holds = function(list)
    for _, x in ipairs(list) do if x ~= 0 and x ~= 1 then error(x .. " is neither 0 nor 1", 0) end end
  end,
  cases = { { F({ 30, 7 }, 0, 1) }, { V({ 4 }, { 0, 1, 0, 1 }), expect = { 0, 1, 0, 1 } }, { F({}, 0, 1) },
    { F({ 0 }, 0, 1) } },
  bad = { { { S.I({ 2 }, 0, 1) }, nil, "int64" },
          { { V({ 2, 2 }, { 0.5, 1, 1.5, 2 }) }, nil, "p is 1%.5 at position %[2, 1%]" },
          { { V({ 2 }, { 0 / 0, 1 }) }, nil, "expected 0 to 1" }, { { V({ 1 }, { -1e-3 }) }, nil, "expected 0 to 1" } },
}
rows.dropout = {
  random = true,
  holds = function(list, o)
    if not o.training or #list < 100 then return end
    local zeros = 0
    for _, x in ipairs(list) do if x == 0 then zeros = zeros + 1 end end
    near(zeros / #list, o.p or 0.5, 0.15, "share of zeros")
  end,
  cases = { { F({ 30, 10 }, 1, 2), attrs = { p = 0.3, training = true } },
    { F { 3, 4 }, attrs = { p = 0.5, training = false } },
            { V({ 3 }, { 1, 2, 3 }), attrs = { p = 1, training = true }, expect = { 0, 0, 0 } },
            { V({ 3 }, { 1, 2, 3 }), attrs = { p = 0, training = true }, expect = { 1, 2, 3 } },
              { F({}, 1, 2), attrs = { training = true } },
            { F { 0, 3 }, attrs = { training = true } } },
  bad = { { { F { 2 } }, { p = 1.5, training = true }, nil }, { { S.I({ 2 }, 0, 1) }, nil, "int64" } },
}
rows.dropout_mask = {
  random = true,
  holds = function(list, o)
    local kept = 0
    for _, x in ipairs(list) do kept = kept + x end
    if #list >= 100 then near(kept / #list, 1 - o.p, 0.15, "share of what is kept") end
  end,
  cases = { { V({ 2 }, { 3, 9 }, "index"), F { 30, 10 }, attrs = { p = 0.3 } },
            { V({ 2 }, { 3, 9 }, "index"), F { 3 }, attrs = { p = 0 }, expect = { 1, 1, 1 } },
            { V({ 2 }, { 3, 9 }, "index"), F { 3 }, attrs = { p = 1 }, expect = { 0, 0, 0 } },
            { V({ 2 }, { 3, 9 }, "index"), F { 0, 3 }, attrs = { p = 0.5 } } },
  bad = { { { V({ 2 }, { 3, 9 }, "index"), F { 3 } }, { p = 2 }, "p is 2; expected 0 to 1" },
          { { V({ 1 }, { 3 }, "index"), F { 3 } }, { p = 0.5 }, "a seed and an offset" } },
}
return rows
