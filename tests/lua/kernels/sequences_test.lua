-- SPDX-License-Identifier: Apache-2.0
-- ctc_loss on the device in force (or else the simulated one) against the CPU: batches of sequences of all lengths,
-- with labels that repeat, and what is said of wrong numbers.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/kernels/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local draws = require "draws"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"

-- Batch of `count`, with lengths from the most down to 0.
local function batch(seed, steps, count, classes, length, blank)
  local draw = draws.generator(seed)
  return pg.device("cpu", function()
    local labels, input, target = {}, {}, {}
    for n = 1, count do
      labels[n] = {}
      for i = 1, length do
        local label = draw(0, classes - 2)
        labels[n][i] = label >= blank and label + 1 or label
      end
      input[n], target[n] = n == 1 and steps or draw(0, steps), n == 1 and length or draw(0, length)
    end
    return { x = pg.randn { steps, count, classes } * 2, labels = pg.tensor(labels, { dtype = "int64" }),
             input = pg.tensor(input, { dtype = "int64" }), target = pg.tensor(target, { dtype = "int64" }) }
  end)
end

local function run(device, b, dtype, options, turn)
  return pg.device(device, function()
    local x = b.x:to(device):to(dtype):requires_grad_()
    local p = pg.log_softmax(x, -1)
    if turn then p = p:permute(3, 1, 2):contiguous():permute(2, 3, 1) end
    local loss = pg.ctc_loss(p, b.labels:to(device), b.input:to(device):to(turn and "int32" or "int64"),
                             b.target:to(device), options)
    local d = pg.grad({ (loss * (pg.arange(loss.shape[1]):to(dtype):to(device) + 1)):sum() }, { x })
    return loss:detach():to("float64"):cpu(), d:to("float64"):cpu()
  end)
end

local function near(t, label, got, expected, within)
  t.equal(got:isnan():totable(), expected:isnan():totable())
  t.equal(got:isinf():totable(), expected:isinf():totable())
  local a, b = got:nan_to_num(), expected:nan_to_num()
  local far = ((a - b):abs() / (b:abs() + 1)):max():item()
  t.ok(far <= within, ("%s: %g off, at most %g"):format(label, far, within))
end

for dtype, within in pairs { float64 = 1e-11, float32 = 2e-6, float16 = 4e-3, bfloat16 = 3e-2 } do
  test("ctc_loss in " .. dtype, function(t)
    local shapes = { { 12, 6, 5, 4 }, { 40, 3, 4, 9 }, { 30, 2, 90, 5 }, { 9, 5, 300, 1 }, { 90, 1, 3, 40 } }
    for seed, shape in ipairs(shapes) do
      for _, options in ipairs { { blank = 0 }, { blank = 2, zero_infinity = true } } do
        local b = batch(seed, shape[1], shape[2], shape[3], shape[4], options.blank)
        for _, turn in ipairs { false, true } do
          local loss, slope = run(DEVICE, b, dtype, options, turn)
          local expected, slope_expected = run("cpu", b, dtype, options, turn)
          near(t, "loss", loss, expected, within)
          near(t, "slope", slope, slope_expected, within)
        end
      end
    end
  end)
end

test("sequences without labels, without steps, and none at all", function(t)
  for _, shape in ipairs { { 5, 3, 4, 0 }, { 0, 2, 4, 3 }, { 4, 0, 4, 2 } } do
    local function sizes(device)
      return pg.device(device, function()
        local p = pg.log_softmax(pg.zeros { shape[1], shape[2], shape[3] }, -1)
        local labels = pg.ones({ shape[2], shape[4] }, { dtype = "int64" })
        local steps = pg.full({ shape[2] }, shape[1], { dtype = "int64" })
        local lengths = pg.full({ shape[2] }, shape[4], { dtype = "int64" })
        return pg.ctc_loss(p, labels, steps, lengths):cpu():totable()
      end)
    end
    local got, expected = sizes(DEVICE), sizes "cpu"
    t.equal(#got, #expected)
    for i, loss in ipairs(got) do
      t.ok(loss == expected[i] or math.abs(loss - expected[i]) < 1e-5, ("%g, expected %g"):format(loss, expected[i]))
    end
  end
end)

test("of several wrong numbers of ctc_loss the first one is told", function(t)
  local function message(change)
    return pg.device(DEVICE, function()
      local o = { labels = pg.ones({ 4, 3 }, { dtype = "int64" }), input = pg.full({ 4 }, 6, { dtype = "int64" }),
                  target = pg.full({ 4 }, 3, { dtype = "int64" }) }
      change(o)
      local p = pg.log_softmax(pg.zeros { 6, 4, 5 }, -1)
      return tostring(t.raises(function() return pg.ctc_loss(p, o.labels, o.input, o.target):cpu() end))
    end)
  end
  local cases = {
    { function(o) o.labels[3][2], o.input[4] = 5, 9 end, "a label of sequence 2 is 5; expected 0 to 4" },
    { function(o) o.input[2], o.target[2] = 7, -1 end, "the input length of sequence 1 is 7; expected 0 to 6" },
    { function(o) o.target[1], o.labels[1][1] = 4, 7 end, "the target length of sequence 0 is 4; expected 0 to 3" },
    { function(o) o.labels[2][3] = 0 end, "a label of sequence 1 is the blank, 0" },
  }
  for _, case in ipairs(cases) do
    local text = message(case[1])
    -- The simulated device has words of its own.
    local want = DEVICE:match "^sim" and case[2]:match "sequence %d" or case[2]
    t.ok(text:find(want, 1, true), text)
  end
end)
