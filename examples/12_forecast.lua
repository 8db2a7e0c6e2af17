-- SPDX-License-Identifier: Apache-2.0
-- A forecast: an LSTM reads ten days of a town's electric load, hour by hour, and says what the next day will be. It
-- is compared with what one would guess without a network: the same hour of the week before.
--   perigee examples/12_forecast.lua [--short] [--device cpu] [--epochs 12] [--seed 1]

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", epochs = 12, seed = 1 }, { epochs = 2 })
local DAY, WEEK = 24, 7 * 24 -- hours
local PAST, AHEAD, YEAR = 10 * DAY, DAY, 365 * DAY

pg.manual_seed(options.seed)

-- ---- two years of load, in gigawatts ----

-- A daily and a weekly rhythm, a season, and weather: a cold spell comes, stays for days and moves the load. The
-- weather is what last week's values do not know and the last hours do.
local function make_load(hours)
  local t = pg.arange(hours):to("float32")
  local daily = (t * (2 * math.pi / DAY) - 2):sin() + 0.4 * (t * (4 * math.pi / DAY)):sin()
  local weekend = t:remainder(WEEK):ge(5 * DAY):to("float32")
  local season = (t * (2 * math.pi / YEAR)):cos()
  local change, weather = (pg.randn(hours) * 0.06):totable(), {}
  local now = 0
  for i, by in ipairs(change) do
    now = 0.992 * now + by
    weather[i] = now
  end
  return 6 + (1 - 0.5 * weekend) * daily + 0.8 * season + pg.tensor(weather) + 0.05 * pg.randn(hours), t
end
local load, hours = make_load(2 * YEAR)

-- What is known of an hour beside its load: where it lies in the day and in the week.
local function clock(period) return (hours * (2 * math.pi / period)):sin(), (hours * (2 * math.pi / period)):cos() end
local day_sin, day_cos = clock(DAY)
local week_sin, week_cos = clock(WEEK)

-- Scaled by what the first year says; the second is not looked at.
local mean, deviation = load[{ { 1, YEAR } }]:mean():item(), load[{ { 1, YEAR } }]:std():item()
local features = pg.stack({ (load - mean) / deviation, day_sin, day_cos, week_sin, week_cos }, 2) -- [hours, 5]

-- A window is PAST hours and the AHEAD loads behind them; windows begin `every` hours after each other.
local function windows(first, last, every)
  local past = features[{ { first, last - AHEAD } }]:unfold(1, PAST, every):transpose(2, 3) -- [n, PAST, 5]
  local ahead = features[{ { first + PAST, last }, 1 }]:unfold(1, AHEAD, every)             -- [n, AHEAD]
  return { x = past:contiguous():to(options.device), y = ahead:contiguous():to(options.device) }
end
local train = windows(1, YEAR + 250 * DAY, 5)
local test = windows(YEAR + 250 * DAY + 1, 2 * YEAR, DAY)

-- ---- the model ----

local Forecaster = nn.class "Forecaster"
function Forecaster:init(o)
  self.lstm = nn.LSTM { 5, o.width }
  self.head = nn.Linear { o.width, AHEAD }
end
function Forecaster:forward(x) -- [n, PAST, 5] -> [n, AHEAD]
  local _, last = self.lstm(x) -- last: the state after the last hour, [layers, n, width]
  return self.head(last[1])
end

local model = Forecaster { width = 48 }:to(options.device)
print(("%d windows to learn from, %d to be judged by; %d parameters"):format(#train.x, #test.x,
      model:count_parameters()))
model:fit {
  data = data.from_slices(train):shuffle { seed = options.seed }:batch { 64 },
  loss = "mse", optimizer = optim.Adam { lr = 4e-3 }, epochs = options.epochs, clip_norm = 1,
  callbacks = {
    pg.callbacks.LRScheduler { function(o) return optim.sched.Cosine { o, t_max = options.epochs } end },
  },
}

-- ---- judged ----

-- Mean absolute error in gigawatts.
local function error_of(forecast) return (forecast - test.y):abs():mean():item() * deviation end

local forecast = model:predict(test.x)
local last_week = test.x[{ {}, { PAST - WEEK + 1, PAST - WEEK + AHEAD }, 1 }]
local yesterday = test.x[{ {}, { PAST - DAY + 1, PAST }, 1 }]
local ours, weekly, daily = error_of(forecast), error_of(last_week), error_of(yesterday)

local shown = math.min(40, #test.x)
local function gigawatts(t) return t:cpu() * deviation + mean end
pg.plot({ load = gigawatts(test.y[shown]), forecast = gigawatts(forecast[shown]) },
        { title = "a day of the test set, gigawatts by hour" })
print(("mean error of the next 24 hours: %.3f GW; the hour a week before %.3f, the day before %.3f"):format(ours,
      weekly, daily))
if ours > (options.is_short and 0.95 or 0.8) * math.min(weekly, daily) then
  error("the model has learnt too little", 0)
end
