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
  bad = { { { S.I({ 2 }, 0, 1) }, nil, "int64" } },
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
