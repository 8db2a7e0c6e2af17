-- SPDX-License-Identifier: Apache-2.0
-- Binary cross entropy of probabilities, with slopes that stay finite where a prediction is certain: at 0 and 1 the
-- logarithm's own are infinite, and autograd makes NaN of them.

local pg = require "perigee"

local TINY = 1e-12 -- least p (1 - p) that is divided by, as in PyTorch
local TINY_FLOAT16 = 2 ^ -15

local function tiny(p) return p.dtype == "float16" and TINY_FLOAT16 or TINY end

-- p (1 - p), which slopes divide by.
local function spread(p) return (p * (1 - p)):clamp { min = tiny(p) } end

-- Logarithms stop at -100, so that a certain and wrong prediction costs much and not infinitely much.
local function clamped_log(p)
  local none = p:eq(0) -- their logarithm is not taken: detect_anomaly would raise
  return p:masked_fill(none, 1):log():clamp { min = -100 }:masked_fill(none, -100)
end

-- What belongs to t, in its dtype.
local function like(t, gradient) return gradient.dtype == t.dtype and gradient or gradient:to(t.dtype) end

-- (p - y) / (p (1 - p)): the slope by p.
local slope = pg.custom_grad {
  forward = function(ctx, p, y)
    ctx.p, ctx.y = p, y
    return (p - y) / spread(p)
  end,
  backward = function(ctx, d)
    local p, y, dp, dy = ctx.p, ctx.y, nil, nil
    if ctx.needed[1] then
      local e = tiny(p)
      dp = like(p, d * (p:square() * (1 - y) + (1 - p):square() * y) / ((p + e) * (1 - p + e)):square())
    end
    if ctx.needed[2] then dy = like(y, -d / spread(p)) end
    return dp, dy
  end,
}

-- log(1 - p) - log(p): the slope by y.
local odds = pg.custom_grad {
  forward = function(ctx, p)
    ctx.p = p
    return clamped_log(1 - p) - clamped_log(p)
  end,
  backward = function(ctx, d) return like(ctx.p, -d / spread(ctx.p)) end,
}

-- The cross entropy of each value.
return pg.custom_grad {
  forward = function(ctx, p, y)
    ctx.p, ctx.y = p, y
    return -(y * clamped_log(p) + (1 - y) * clamped_log(1 - p))
  end,
  backward = function(ctx, d)
    local p, y = ctx.p, ctx.y
    return ctx.needed[1] and like(p, d * slope(p, y)) or nil, ctx.needed[2] and like(y, d * odds(p)) or nil
  end,
}
