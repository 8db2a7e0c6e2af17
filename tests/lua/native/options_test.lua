-- SPDX-License-Identifier: Apache-2.0
-- Calls with one table of options take a way of their own: it gives what the same call by position gives, takes nothing
-- over from the call before, and leaves to the call grammar whatever it does not know.

local pg = require "perigee"

local x = pg.randn { 3, 4, 5 }

test("options by name are what they are by position", function(t)
  for _ = 1, 100 do -- interpreted, then compiled
    t.equal(x:sum { axis = 1 }, x:sum(1))
    t.equal(x:sum { axis = 2, keepdim = true }, x:sum(2, true))
    t.equal(x:sum { keepdim = true }, x:sum():reshape { 1, 1, 1 })
    t.equal(x:sum { axis = -1, keepdim = false }, x:sum(3))
    t.equal(x:sum { axis = { 1, 3 } }, x:sum({ 1, 3 }))
    t.equal(x:sum { axis = {} }, x:sum())
    t.equal(x:sum {}, x:sum())
    t.equal(x:softmax { axis = 1 }, x:softmax(1))
    t.equal(x:softmax { axis = -2 }, x:softmax(2))
    t.ok(not x:gelu { approximate = "tanh" }:equal(x:gelu()))
    t.equal(x:gelu { approximate = "none" }, x:gelu())
    t.equal(x:gelu {}, x:gelu())
    t.equal(x:leaky_relu { negative_slope = 0.5 }, x:leaky_relu(0.5))
    t.equal(x:leaky_relu(), x:leaky_relu { negative_slope = 0.01 })
    t.equal(x:cumsum { axis = 2 }, x:cumsum(2))
    t.equal(x:clone():clamp_ { min = 0 }, x:relu())
  end
end)

test("what does not fit is said as ever", function(t)
  local function says(fn, text)
    local message = t.raises(fn).message
    t.ok(message:find(text, 1, true), message)
  end
  local zero = 0
  for _ = 1, 100 do
    says(function() return x:sum { axis = zero } end, "axis is 0, but axes count from 1")
    says(function() return x:sum { axis = 4 } end, "axis 4 is out of range for x [3, 4, 5]")
    says(function() return x:sum { axis = 1.5 } end, "axis must be an axis (a whole number), got number 1.5")
    says(function() return x:sum { axis = { 1, 1 } } end, "axis")
    says(function() return x:sum { axis = { 1, nil, 2 } } end, "axis")
    says(function() return x:sum { axis = "1" } end, "axis must be")
    says(function() return x:sum { keepdim = 1 } end, "keepdim must be true or false, got number 1")
    says(function() return x:sum { axis = 1, keep = true } end, 'unknown option "keep"')
    says(function() return x:cumsum {} end, "axis")
    says(function() return x:gelu { approximate = "tan" } end, "approximate must be")
    says(function() return x:softmax { axis = 2 ^ 63 } end, "axis")
    local closed = pg.ones { 2 }
    closed:free()
    says(function() return closed:sum { axis = 1 } end, "closed")
    t.equal(x:sum(), x:sum {})
  end
end)
