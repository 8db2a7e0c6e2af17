-- SPDX-License-Identifier: Apache-2.0
-- pg.quant.qat and convert: layers that round while they train, gradients, what comes out, mistakes.

local pg = require "perigee"
local nn, quant = pg.nn, pg.quant

local function model_of()
  pg.manual_seed(5)
  return nn.Sequential { nn.Linear { 16, 24, activation = "relu" }, nn.Linear { 24, 4 } }
end

local MODES = { { mode = "weight_only" }, { mode = "dynamic" }, { mode = "dynamic", activations = "uint8" },
                { mode = "static" }, { mode = "static", activations = "uint8" }, { dtype = "int4", group_size = 8 } }

test("while it trains it computes what the converted model does", function(t)
  local model, x = model_of(), pg.rand { 32, 16 }
  for _, o in ipairs(MODES) do
    local learner = quant.qat(model, o)
    t.equal(#learner:parameters(), #model:parameters())
    learner:train(true)
    local y = learner(x)
    local small, report = quant.convert(learner:eval())
    t.close(small(x):detach(), y:detach(), 2e-2)
    t.close(small(x):detach(), model(x):detach(), o.dtype == "int4" and 0.3 or 0.05)
    t.equal(#report.rows, 2)
    t.ok(small:size() < model:size())
    if not o.mode or o.mode ~= "static" then
      t.equal(small(x):totable(), quant.ptq(model, o)(x):totable())
    end
  end
end)

test("gradients pass straight through, and training at four bits beats rounding behind it", function(t)
  local model, x = model_of(), pg.randn { 256, 16 }
  local goal = nn.Sequential { nn.Linear { 16, 24, activation = "relu" }, nn.Linear { 24, 4 } }
  local y = goal(x):detach()
  local function fit(m)
    local optimizer = pg.optim.Adam { m:parameters(), lr = 5e-3 }
    for _ = 1, 150 do
      optimizer:zero_grad()
      nn.mse_loss(m(x), y):backward()
      optimizer:step()
    end
    return m
  end
  local function off(m) return pg.no_grad(function() return nn.mse_loss(m(x), y):item() end) end
  fit(model)
  local o = { dtype = "int4", group_size = 8 }
  local behind = off((quant.ptq(model, o)))
  local learner = quant.qat(model, { dtype = "int4", group_size = 8, mode = "static" })
  t.equal(getmetatable(learner[1]).__name, "QuantTrainedLinear")
  fit(learner:train(true))
  t.ok(learner[1].weight.grad:abs():sum():item() > 0)
  t.ok(off((quant.convert(learner))) < behind)
end)

test("a gradient is 0 where numbers are kept within the range", function(t)
  local x = pg.tensor { -200.0, -3.4, 0.2, 126.9, 140.0 }
  x.requires_grad = true
  local y = pg.fake_quantize(x, pg.tensor { 1.0 })
  t.equal(y:detach():totable(), { -127, -3, 0, 127, 127 })
  y:sum():backward()
  t.equal(x.grad:totable(), { 0, 1, 1, 1, 0 })
end)

test("clones, states and files keep what was learnt", function(t)
  local learner = quant.qat(model_of(), { mode = "static" })
  learner:train(true)(pg.rand { 8, 16 })
  local other = quant.qat(model_of(), { mode = "static" })
  other:load_state(learner:state())
  local x = pg.rand { 3, 16 }
  t.equal(quant.convert(other:eval())(x):totable(), quant.convert(learner:clone():eval())(x):totable())
end)

test("mistakes", function(t)
  local function raises(text, fn, ...)
    local arguments = { ... }
    local err = tostring(t.raises(function() fn(unpack(arguments)) end))
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, err))
  end
  local model = model_of()
  raises("Sequential has no layer of pg.quant.qat", quant.convert, model)
  raises("0 has seen no input in training", quant.convert, quant.qat(model, { mode = "static" }))
  raises("0 is quantised already", quant.qat, quant.qat(model))
  raises("0 is quantised already", quant.ptq, quant.qat(model))
  raises("0 is quantised already", quant.qat, (quant.ptq(model)))
  raises("needs a model, got number", quant.qat, 3)
  raises("needs a model, got number", quant.convert, 3)
  raises("group_size=7 does not divide", quant.qat, model, { group_size = 7 })
end)
