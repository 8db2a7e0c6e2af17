-- SPDX-License-Identifier: Apache-2.0
-- Rotary positions: precision, positions a row, a part of the width, scaling beyond the length of training.

local pg = require "perigee"
local nn = pg.nn

local function near(t, got, wanted, tolerance)
  local difference = (got - wanted):abs():max():item()
  t.ok(difference <= tolerance, ("differs by %g, more than %g"):format(difference, tolerance))
end

-- What a layer makes of pairs (1, 0), which are their cosines and sines, at one position: lists by pair.
local function pairs_at(layer, position)
  local half = #layer.speeds
  local x = pg.cat { pg.ones { 1, half, dtype = "float64" }, pg.zeros { 1, half, dtype = "float64" }, axis = 2 }
  local y = layer(x, position)
  local cos, sin = {}, {}
  for i = 1, half do cos[i], sin[i] = y[1][i]:item(), y[1][half + i]:item() end
  return cos, sin
end

local function check_angles(t, layer, position, speed, magnitude)
  local cos, sin = pairs_at(layer, position)
  for i = 0, #cos - 1 do
    local angle = position * speed(i)
    t.ok(math.abs(cos[i + 1] - magnitude * math.cos(angle)) < 1e-10, ("cosine of pair %d"):format(i))
    t.ok(math.abs(sin[i + 1] - magnitude * math.sin(angle)) < 1e-10, ("sine of pair %d"):format(i))
  end
end

test("RoPE's angles are those of float64, far from 0 too", function(t)
  local function speed(i) return 10000 ^ (-2 * i / 8) end
  for _, position in ipairs { 1, 1000, 100000 } do check_angles(t, nn.RoPE { 8 }, position, speed, 1) end
  local x = pg.randn { 3, 8, dtype = "float64" }
  for _, interleaved in ipairs { false, true } do
    local rope = nn.RoPE { 8, interleaved = interleaved }
    near(t, rope(x:to("float32"), 100000):to("float64"), rope(x, 100000), 1e-6)
    t.equal(rope(x).dtype, "float64")
  end
end)

test("RoPE takes positions of its own for each row", function(t)
  local rope = nn.RoPE { 4 }
  local x = pg.randn { 2, 3, 5, 4 }
  local places = pg.tensor({ { 0, 1, 2, 3, 4 }, { 7, 8, 9, 10, 11 } }, { dtype = "int64" })
  local y = rope(x, places)
  near(t, y[1], rope(x[1]), 1e-6)
  near(t, y[2], rope(x[2], 7), 1e-6)
  near(t, rope(x, places[2]), rope(x, 7), 1e-6)
  near(t, rope(x:select(2, 1), places)[2], rope(x[2][1], 7), 1e-6)
  t.raises(function() rope(x, places:transpose(1, 2)) end, "expected %[L%] or %[N, L%]")
  t.raises(function() rope(x[1][1], places) end, "expected %[L%] or %[N, L%]")
  t.raises(function() rope(x, places:to("float32")) end, "positions must be integers, got float32")
end)

test("RoPE turns a part of the width", function(t)
  local x = pg.randn { 2, 5, 6 }
  for _, interleaved in ipairs { false, true } do
    local y = nn.RoPE { 6, rotary_width = 4, interleaved = interleaved } (x, 3)
    near(t, y[{ {}, {}, { 1, 4 } }], nn.RoPE { 4, interleaved = interleaved } (x[{ {}, {}, { 1, 4 } }], 3), 0)
    near(t, y[{ {}, {}, { 5, 6 } }], x[{ {}, {}, { 5, 6 } }], 0)
  end
  t.raises(function() nn.RoPE { 6, rotary_width = 8 } end, "rotary_width must be even and from 2 to width 6, got 8")
  t.raises(function() nn.RoPE { 6, rotary_width = 3 } end, "rotary_width must be even")
end)

test("RoPE scales positions as the papers have it", function(t)
  local function speed(i) return 10000 ^ (-2 * i / 8) end
  check_angles(t, nn.RoPE { 8, scaling = "linear", factor = 4 }, 50, function(i) return speed(i) / 4 end, 1)
  check_angles(t, nn.RoPE { 8, scaling = "ntk", factor = 4 }, 50,
               function(i) return (10000 * 4 ^ (8 / 6)) ^ (-2 * i / 8) end, 1)
  -- In 1000 positions the pairs make 159.15, 15.915, 1.5915 and 0.159 turns: kept whole, the part (n - 1) / 31, none.
  local own = { 1, (500 / math.pi / 10 - 1) / 31, (500 / math.pi / 100 - 1) / 31, 0 }
  local function yarn(i) return speed(i) * (own[i + 1] + (1 - own[i + 1]) / 4) end
  check_angles(t, nn.RoPE { 8, scaling = "yarn", factor = 4, original_length = 1000 }, 50, yarn, 0.1 * math.log(4) + 1)
  -- Over pairs: beta_fast is at 4 log10(1000 / 64 pi) / 4 = 0.697, beta_slow at 2.202: from 0 to 3.
  local function by_pair(i) return speed(i) * (i / 3 / 4 + 1 - i / 3) end
  check_angles(t, nn.RoPE { 8, scaling = "yarn", factor = 4, original_length = 1000, ramp = "pairs",
                            attention_factor = 1 }, 50, by_pair, 1)
  t.raises(function() nn.RoPE { 8, scaling = "yarn", factor = 4 } end, "needs original_length")
  t.raises(function() nn.RoPE { 8, scaling = "linear" } end, "needs a factor")
  t.raises(function() nn.RoPE { 8, factor = 2 } end, "a factor needs scaling")
  t.raises(function() nn.RoPE { 2, scaling = "ntk", factor = 2 } end, "more than one pair")
end)
