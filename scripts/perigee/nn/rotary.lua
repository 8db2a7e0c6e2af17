-- SPDX-License-Identifier: Apache-2.0
-- Rotary positions. Angles are taken in double and narrowed last: far positions turn by many radians.

local native = require "perigee.native"
local common = require "perigee.nn.layers_common"

local layers = {}
local function pg() return require "perigee" end
local differ = native.tensor.sizes_differ
local refuse = common.refuse

local function check_scaling(o)
  local scaled, yarn = o.scaling ~= "none", o.scaling == "yarn"
  if scaled ~= (o.factor ~= nil) then
    refuse("RoPE", scaled and ("scaling %q needs a factor"):format(o.scaling) or "a factor needs scaling",
           "scaling=\"linear\", \"ntk\" or \"yarn\", factor=4")
  end
  if scaled and not (o.factor >= 1 and o.factor < math.huge) then
    refuse("RoPE", ("factor must be at least 1, got %g"):format(o.factor))
  end
  if yarn and (o.original_length or 0) < 1 then
    refuse("RoPE", "scaling \"yarn\" needs original_length, a positive number of positions")
  end
  if yarn and not (o.beta_fast > o.beta_slow and o.beta_slow > 0) then
    refuse("RoPE", ("beta_fast must be above beta_slow, and that above 0, got %g and %g"):format(o.beta_fast,
           o.beta_slow))
  end
end

local MOST_WIDTH = 2 ^ 20 -- each pair's speed is kept

local function check_options(o)
  local turned = o.rotary_width or o.width
  if o.width < 2 or o.width % 2 ~= 0 then
    refuse("RoPE", ("width must be even and positive, got %d"):format(o.width))
  end
  if o.width > MOST_WIDTH then refuse("RoPE", ("width must be at most %d, got %d"):format(MOST_WIDTH, o.width)) end
  if turned < 2 or turned % 2 ~= 0 or turned > o.width then
    refuse("RoPE", ("rotary_width must be even and from 2 to width %d, got %d"):format(o.width, turned))
  end
  if o.scaling == "ntk" and turned == 2 then
    refuse("RoPE", "scaling \"ntk\" needs more than one pair", "its exponent is width / (width - 2)")
  end
  if not (o.base > 0 and o.base < math.huge) then
    refuse("RoPE", ("base must be positive, got %g"):format(o.base))
  end
  check_scaling(o)
end

-- How much of a pair's own speed YaRN keeps, 0 to 1. i: the pair, from 0.
local function kept(o, width, i, speed)
  local function part(at, low, high) return math.min(math.max((at - low) / (high - low), 0), 1) end
  if o.ramp == "rotations" then
    return part(o.original_length * speed / (2 * math.pi), o.beta_slow, o.beta_fast)
  end
  local function pair_of(rotations)
    return width * math.log(o.original_length / (rotations * 2 * math.pi)) / (2 * math.log(o.base))
  end
  local low = math.max(math.floor(pair_of(o.beta_fast)), 0)
  local high = math.min(math.ceil(pair_of(o.beta_slow)), width - 1)
  return 1 - part(i, low, high == low and high + 0.001 or high)
end

-- Radians a position of each pair, and what cosines and sines are multiplied by.
local function speeds_of(o)
  local width, speeds, base = o.rotary_width or o.width, {}, o.base
  if o.scaling == "ntk" then base = base * o.factor ^ (width / (width - 2)) end
  for i = 0, width / 2 - 1 do
    local speed = base ^ (-2 * i / width)
    if o.scaling == "linear" then
      speed = speed / o.factor
    elseif o.scaling == "yarn" then
      local own = kept(o, width, i, speed)
      speed = speed / o.factor * (1 - own) + speed * own
    end
    speeds[i + 1] = speed
  end
  return speeds, o.attention_factor or (o.scaling == "yarn" and 0.1 * math.log(o.factor) + 1 or 1)
end

---Rotary positions (Su et al., 2021, RoFormer): turns pairs of the last axis of x [..., L, width] by angles that grow
---with the position: pair i at position m by m base^(-2 i / width), i from 0. layer(x, offset): the first position is
---`offset` (default 0); layer(x, positions): an integer tensor [L], or [N, L] with a row for each x[n], of positions
---from 0. Pairs are the two halves (as in GPT-NeoX and Llama), or neighbours with interleaved=true (as in the paper).
---With rotary_width only the first rotary_width numbers turn (then that is the width of the formula).
---`scaling` reaches beyond the length of training by `factor` s: linear (Chen et al., 2023, Position Interpolation)
---divides positions by s; ntk (NTK-aware; Peng et al., 2023, section 3.1) has base s^(width / (width - 2)) in place of
---base; yarn (Peng et al., 2023, sections 3.2 and 3.4) divides the speed of pairs that make fewer than beta_slow turns
---in original_length positions by s, keeps those of more than beta_fast, goes between them in a line, and multiplies
---cosines and sines by attention_factor, 0.1 ln(s) + 1.
layers.RoPE = common.class("RoPE", {
  { "width", "integer", required = true, doc = "size of the last axis, even" },
  { "base", "number", default = 10000, doc = "how the angles' speeds are spaced" },
  { "interleaved", "boolean", default = false, doc = "whether pairs are neighbours" },
  { "rotary_width", "integer", named = true, doc = "how many of the last axis turn, even; width if not given" },
  { "scaling", "string", named = true, default = "none", choices = { "none", "linear", "ntk", "yarn" },
    doc = "how it reaches beyond the length of training" },
  { "factor", "number", named = true, doc = "how far: new length by old, at least 1" },
  { "original_length", "integer", named = true, doc = "positions of the training, for yarn" },
  { "beta_fast", "number", named = true, default = 32, doc = "turns from which yarn keeps a pair's speed" },
  { "beta_slow", "number", named = true, default = 1, doc = "turns up to which yarn divides a pair's speed" },
  { "ramp", "string", named = true, default = "rotations", choices = { "rotations", "pairs" },
    doc = "yarn's line between them: over turns, as in the paper, or over whole pairs, as in its authors' " ..
      "code and the models that follow that" },
  { "attention_factor", "number", named = true,
    doc = "factor of cosines and sines; if not given 0.1 ln(factor) + 1 with yarn, else 1" },
}, function(self, o)
  check_options(o)
  self.speeds, self.magnitude = speeds_of(o)
end)

-- Cosines and sines [..., L, width / 2] at positions [..., L] of float64.
local function turns(self, positions, dtype)
  local speeds = pg().tensor(self.speeds, { dtype = "float64" }):to(positions.device)
  local angle = positions:unsqueeze(-1) * speeds
  local cos, sin = angle:cos(), angle:sin()
  if self.magnitude ~= 1 then cos, sin = cos * self.magnitude, sin * self.magnitude end
  return cos:to(dtype), sin:to(dtype)
end

-- Those of `length` positions, which may be a symbol.
local function row(self, length, offset, x)
  local ones = pg().ones({ length }, { dtype = "float64", device = x.device })
  return turns(self, ones:cumsum(1) + (offset - 1), x.dtype)
end

-- The same, kept for the next call with these positions.
local function known_row(self, length, offset, x)
  if type(length) ~= "number" or native.is_graph_tensor(x) then return row(self, length, offset, x) end
  local id = table.concat({ length, offset, x.device, x.dtype }, " ")
  local known = rawget(self, "known")
  if not known or known.id ~= id then
    local cos, sin = pg().no_grad(row, self, length, offset, x)
    known = { id = id, cos = cos, sin = sin }
    rawset(self, "known", known)
  end
  return known.cos, known.sin
end

-- Those of a tensor of positions; with a row for each x[n] as many axes as x has.
local function given_rows(self, positions, x)
  local rank, axes = x:dim(), positions:dim()
  if not positions.dtype:find("^u?int") then
    refuse("RoPE", "positions must be integers, got " .. positions.dtype, "positions:to(\"int64\")")
  end
  local fits = axes >= 1 and axes <= math.min(2, rank - 1) and not differ(positions:size(-1), x:size(rank - 1))
  if not fits or axes == 2 and differ(positions:size(1), x:size(1)) then
    refuse("RoPE", ("positions are %s; expected [L] or [N, L] for x %s"):format(tostring(positions.shape),
           tostring(x.shape)))
  end
  local cos, sin = turns(self, positions:to("float64"), x.dtype)
  for _ = 1, axes == 2 and rank - 3 or 0 do cos, sin = cos:unsqueeze(2), sin:unsqueeze(2) end
  return cos, sin
end

local function turned(self, x, cos, sin)
  local rank, half = x:dim(), #self.speeds
  if self.options.interleaved then
    local shape = x.shape
    shape[rank], shape[rank + 1] = half, 2
    local split = x:reshape(shape)
    local a, b = split:select(rank + 1, 1), split:select(rank + 1, 2)
    return pg().stack { a * cos - b * sin, a * sin + b * cos, axis = rank + 1 }:reshape(x.shape)
  end
  local a, b = unpack(x:split({ half, half }, rank))
  return pg().cat { a * cos - b * sin, a * sin + b * cos, axis = rank }
end

function layers.RoPE:forward(x, offset)
  local rank, width = x:dim(), self.options.width
  if rank < 2 or differ(x:size(rank), width) then
    refuse("RoPE", ("expected [..., L, %d], got %s"):format(width, tostring(x.shape)))
  end
  local cos, sin
  if native.is_tensor(offset) then
    cos, sin = given_rows(self, offset, x)
  elseif offset == nil or type(offset) == "number" then
    cos, sin = known_row(self, x:size(rank - 1), offset or 0, x)
  else
    refuse("RoPE", "offset must be a number or a tensor of positions, got " .. native.describe(offset))
  end
  local turning = 2 * #self.speeds
  if turning == width then return turned(self, x, cos, sin) end
  local front, back = unpack(x:split({ turning, width - turning }, rank))
  return pg().cat { turned(self, front, cos, sin), back, axis = rank }
end

return layers
