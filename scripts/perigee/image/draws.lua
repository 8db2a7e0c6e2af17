-- SPDX-License-Identifier: Apache-2.0
-- Random numbers by (seed, epoch, sample) alone: Philox 4x32 with ten rounds (Salmon et al., 2011), whose counter is
-- the block, what draws, the sample and the epoch. No other use of random numbers changes them.

local bit = require "bit"
local native = require "perigee.native"

local draws = {}
local bxor, floor = bit.bxor, math.floor

-- The parameters of functions that draw.
draws.SEED = { "seed", "integer", required = true, named = true, doc = "the run's" }
draws.EPOCH = { "epoch", "integer", default = 1, named = true, doc = "from 1" }
draws.SAMPLE = { "sample", "integer", default = 1, named = true,
                 doc = "the picture's number, from 1; of a batch that of its first, and the others follow" }

local function unsigned(x) return x % 4294967296 end

local function product(a, b) -- of 32 bits each: the upper half and the lower
  local low = a % 65536 * b
  local rest = floor(a / 65536) * b + floor(low / 65536)
  return floor(rest / 65536), rest % 65536 * 65536 + low % 65536
end

---Four numbers of 32 bits from a counter of four and a key of two.
function draws.block(c0, c1, c2, c3, k0, k1)
  for _ = 1, 10 do
    local h0, l0 = product(0xD2511F53, c0)
    local h1, l1 = product(0xCD9E8D57, c2)
    c0, c1, c2, c3 = unsigned(bxor(bxor(h1, c1), k0)), l1, unsigned(bxor(bxor(h0, c3), k1)), l0
    k0, k1 = unsigned(k0 + 0x9E3779B9), unsigned(k1 + 0xBB67AE85)
  end
  return c0, c1, c2, c3
end

local Draws = {}
Draws.__index = Draws

---What `kind`, a number of its own, draws for a sample.
function draws.new(kind, o, sample)
  local seed = o.seed
  return setmetatable({ at = 0, left = 0, kind = kind, sample = unsigned(sample or o.sample), epoch = unsigned(o.epoch),
                        low = unsigned(seed), high = unsigned(floor(seed / 4294967296)) }, Draws)
end

---A number in [0, 1), in steps of 2^-32.
function Draws:uniform()
  if self.left == 0 then
    self[1], self[2], self[3], self[4] = draws.block(self.at, self.kind, self.sample, self.epoch, self.low, self.high)
    self.at, self.left = self.at + 1, 4
  end
  self.left = self.left - 1
  return self[4 - self.left] / 4294967296
end

---A number in [low, high).
function Draws:between(low, high) return low + (high - low) * self:uniform() end

---A whole number in [0, n).
function Draws:below(n) return floor(self:uniform() * n) end

---A normal number, by Box and Muller.
function Draws:normal()
  local radius = math.sqrt(-2 * math.log(1 - self:uniform()))
  return radius * math.cos(2 * math.pi * self:uniform())
end

---Of the gamma distribution of shape `alpha` (Marsaglia and Tsang, 2000).
function Draws:gamma(alpha)
  if alpha < 1 then return self:gamma(alpha + 1) * (1 - self:uniform()) ^ (1 / alpha) end
  local d = alpha - 1 / 3
  local c = 1 / math.sqrt(9 * d)
  while true do
    local x = self:normal()
    local v = (1 + c * x) ^ 3
    if v > 0 and math.log(1 - self:uniform()) < 0.5 * x * x + d - d * v + d * math.log(v) then return d * v end
  end
end

---Of the beta distribution with both parameters `alpha`.
function Draws:beta(alpha)
  local a, b = self:gamma(alpha), self:gamma(alpha)
  if a + b == 0 then return self:below(2) end -- of a small alpha both may be too small for a number
  return a / (a + b)
end

---Checks what functions that draw are given.
function draws.check(where, o)
  for _, name in ipairs { "epoch", "sample" } do
    if o[name] and o[name] < 0 then native.raise("invalid_argument", where, name .. " must not be negative") end
  end
end

return draws
