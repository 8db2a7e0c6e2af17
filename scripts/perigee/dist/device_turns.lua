-- SPDX-License-Identifier: Apache-2.0
-- Turns of replicas that are devices of one process (lockstep.lua): what is in force while one of them computes.

local native = require "perigee.native"

local M = {}

local PART = 2 ^ 40 -- random numbers that a replica may draw

-- Random numbers of a step: each replica draws from another part of the sequence; behind the step the process goes on
-- behind what was drawn.
local function begin_draws(self)
  local seed, offset = native.rng_state()
  self._draws = { seed = seed, base = offset }
  for k = 1, self.num_replicas_in_sync do self._draws[k] = offset + (k - 1) * PART end
end

local function end_draws(self)
  local draws, drawn = self._draws, 0
  for k = 1, self.num_replicas_in_sync do drawn = math.max(drawn, draws[k] - (k - 1) * PART - draws.base) end
  native.set_rng_state(draws.seed, draws.base + drawn)
end

-- What is in force while replica k computes: a pair for native.with.
local function turn(self, k)
  local number, twins, draws = self._numbers[k], self._twins, self._draws
  local function enter()
    local outer = { device = native.set_device(number), work = rawget(native, "strategy"), rank = self.rank,
                    replicas = rawget(native, "replicas") }
    native.strategy, native.replicas, self.rank = self._at_work, self._asking[k], k - 1
    if k > 1 then twins:exchange(k) end
    native.set_rng_state(draws.seed, draws[k])
    return outer
  end
  local function leave(outer)
    draws[k] = select(2, native.rng_state())
    if k > 1 then twins:exchange(k) end
    native.strategy, native.replicas, self.rank = outer.work, outer.replicas, outer.rank
    native.set_device(outer.device)
  end
  return enter, leave
end

---fn(...) in the turn of replica k, whose device, parameters and buffers are those that handles show.
function M.call(self, k, fn, ...)
  if k > 1 then self._twins:fill() end
  local enter, leave = turn(self, k)
  return native.with(enter, leave, fn, ...)
end

-- From here on gradients count so much and may be sent; nil: none are.
local function send(self, weights)
  self._sending = weights
  for _, reducer in pairs(self._reducers) do reducer:send(weights) end
end

---fn(), in which replicas take turns, and their gradients count so much.
---@param weights number[]
function M.run(self, weights, fn)
  self._twins:follow()
  begin_draws(self)
  local function back()
    end_draws(self)
    send(self, nil)
  end
  return native.with(function() send(self, weights) end, back, fn)
end

return M
