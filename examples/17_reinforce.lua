-- SPDX-License-Identifier: Apache-2.0
-- REINFORCE with a baseline (Williams 1992): a policy learns to balance a pole on a cart, from nothing but how long
-- the pole stayed up. The carts are tensors: many episodes are played at once, with no loop over them.
--   perigee examples/17_reinforce.lua [--short] [--device cpu] [--rounds 60] [--seed 1]

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", rounds = 60, seed = 1 }, { rounds = 12 })
local CARTS, STEPS, DISCOUNT = 32, 200, 0.99

-- ---- the carts (Barto, Sutton, Anderson 1983; metres, seconds, kilograms, radians) ----

local GRAVITY, CART, POLE, HALF, FORCE, INTERVAL = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
local MOST_ANGLE, MOST_WAY = 12 * math.pi / 180, 2.4

-- States [n, 4]: place, speed, angle, its speed. Actions [n]: 0 pushes to the left, 1 to the right.
local function advance(state, action)
  local place, speed, angle, turning = unpack(state:unbind(2))
  local force = (action:to("float32") * 2 - 1) * FORCE
  local sin, cos = angle:sin(), angle:cos()
  local pull = (force + POLE * HALF * turning * turning * sin) / (CART + POLE)
  local turned = (GRAVITY * sin - cos * pull) / (HALF * (4 / 3 - POLE / (CART + POLE) * cos * cos))
  local pushed = pull - POLE * HALF / (CART + POLE) * turned * cos
  return pg.stack({ place + INTERVAL * speed, speed + INTERVAL * pushed,
                    angle + INTERVAL * turning, turning + INTERVAL * turned }, 2)
end
local function has_fallen(state)
  return state[{ {}, 1 }]:abs():gt(MOST_WAY):logical_or(state[{ {}, 3 }]:abs():gt(MOST_ANGLE))
end

-- ---- policy and baseline ----

pg.manual_seed(options.seed)
local policy = nn.Sequential { nn.Linear { 4, 64 }, nn.Tanh {}, nn.Linear { 64, 2 } }:to(options.device)
local baseline = nn.Sequential { nn.Linear { 4, 64 }, nn.Tanh {}, nn.Linear { 64, 1 } }:to(options.device)
local optimizer = optim.Adam { {
  { params = policy:parameters(), lr = 1e-2 },
  { params = baseline:parameters(), lr = 2e-2 },
} }

-- Plays CARTS episodes: what was seen [t, n, 4] and done [t, n], and which carts still stood then [t, n].
local function play(choose)
  return pg.no_grad(function()
    local state = (pg.rand(CARTS, 4, { device = options.device }) - 0.5) * 0.1
    local standing = pg.ones { CARTS, device = options.device }
    local states, actions, alive = {}, {}, {}
    for step = 1, STEPS do
      local action = choose(policy(state))
      states[step], actions[step], alive[step] = state, action, standing
      state = advance(state, action)
      standing = standing * (1 - has_fallen(state):to("float32"))
      if standing:sum():item() == 0 then break end
    end
    return pg.stack(states), pg.stack(actions), pg.stack(alive)
  end)
end
local function drawn(logits) return logits:softmax(-1):multinomial(1):squeeze(-1) end
local function likeliest(logits) return logits:argmax(-1) end

-- Each step that a cart stands earns 1; what a step is worth is what comes from it on, discounted.
local function worth(alive)
  local ahead, values = pg.zeros_like(alive[1]), {}
  for step = #alive, 1, -1 do
    ahead = alive[step] * (1 + DISCOUNT * ahead)
    values[step] = ahead
  end
  return pg.stack(values)
end

local started, lengths = os.clock(), {}
for round = 1, options.rounds do
  local states, actions, alive = play(drawn)
  local values, count = worth(alive), alive:sum()
  local expected = baseline(states / 2):squeeze(-1) * 50
  local advantage = (values - expected):detach() * alive
  advantage = advantage / (advantage:pow(2):sum() / count + 1e-6):sqrt()

  optimizer:zero_grad()
  local chosen = policy(states):log_softmax(-1):gather(3, actions:unsqueeze(-1)):squeeze(-1)
  local loss = -(chosen * advantage):sum() / count
  local miss = ((values - expected) * alive / 50):pow(2):sum() / count
  local total = loss + miss
  total:backward()
  optimizer:step()

  lengths[round] = count:item() / CARTS
  if round % 10 == 0 or round == options.rounds then
    print(("round %3d  the pole stays up for %5.1f steps of %d  (%.0f s)"):format(round, lengths[round], STEPS,
          os.clock() - started))
  end
end

pg.plot(lengths, { title = "steps until the pole falls, by round" })
local _, _, alive = play(likeliest)
local steps = alive:sum():item() / CARTS
print(("without drawing: %.1f steps; %.1f in the first round"):format(steps, lengths[1]))
if steps < (options.is_short and 1.3 * lengths[1] or 150) then error("the policy has learnt too little", 0) end
