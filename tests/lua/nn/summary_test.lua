-- SPDX-License-Identifier: Apache-2.0
-- model:summary and print(model).

local pg = require "perigee"
local nn = pg.nn

-- Runs with print caught; answers the text and the result.
local function quietly(fn)
  local plain, lines = _G.print, {}
  _G.print = function(...) lines[#lines + 1] = tostring((...)) end
  local ok, result = pcall(fn)
  _G.print = plain
  if not ok then error(result, 0) end
  return table.concat(lines, "\n"), result
end

local function summarise(model, options) return quietly(function() return model:summary(options) end) end

test("summary: a line a layer", function(t)
  local model = nn.Sequential { nn.Conv2d { 1, 4, 3, padding = 1 }, nn.BatchNorm2d { 4 }, nn.ReLU {}, nn.Flatten {},
                                nn.Linear { 10 } }
  local text, s = summarise(model, { input = { 1, 8, 8 } })
  t.equal(text, tostring(s))
  t.equal(text, table.concat({
    "layer              output        parameters   bytes",
    "---------------------------------------------------",
    "Sequential         {1, 10}",
    "  0 (Conv2d)       {1, 4, 8, 8}          40     160",
    "  1 (BatchNorm2d)  {1, 4, 8, 8}           8      64",
    "  2 (ReLU)         {1, 4, 8, 8}",
    "  3 (Flatten)      {1, 256}",
    "  4 (Linear)       {1, 10}            2,570  10,280",
    "---------------------------------------------------",
    "2,618 parameters, 2,618 trainable",
    "10.3 KiB of parameters and buffers, 4.0 KiB of outputs" }, "\n"))
  t.equal({ s.parameters, s.trainable, s.bytes, #s.rows }, { 2618, 2618, 10504, 6 })
  t.ok(model.training, "left as it was")
  t.equal(model[2].running_mean, { 0, 0, 0, 0 })
end)

test("summary: several inputs, nested and shared layers", function(t)
  local Two = nn.class("Two")
  function Two:init()
    self.inner = nn.Sequential { nn.Linear { 3, 3 }, nn.ReLU {} }
    self.twice = nn.Linear { 3, 3 }
    self.again = self.twice
    self.unused = nn.Linear { 3, 2 }
  end
  function Two:forward(x, ids) return self.twice(self.again(self.inner(x))) + ids:to("float32") end
  local model = Two()
  model.inner:freeze()
  local text, s = summarise(model, { input = { { 3 }, { 3 } }, dtype = { "float32", "int64" }, batch = 5 })
  t.equal({ s.parameters, s.trainable }, { 32, 20 })
  t.ok(text:find("Two +{5, 3}\n"), text)
  t.ok(text:find("\n  inner %(Sequential%) +{5, 3}\n    0 %(Linear%) +{5, 3} +12 +48\n"), text)
  t.ok(text:find("\n  twice %(Linear%) x2 +{5, 3} +12"), text)
  t.ok(text:find("\n  again %(Linear%) +shared, see above\n"), text)
  t.ok(text:find("\n  unused %(Linear%) +not called +8"), text)
  local _, of_tensors = summarise(model, { input = { pg.ones { 2, 3 }, pg.ones { 2, 3 } } })
  t.equal(of_tensors.rows[1].output, "{2, 3}")
end)

test("summary: what is wrong is said", function(t)
  local model = nn.Sequential { nn.Linear { 3, 2 } }
  t.raises(function() model:summary() end, "summary: needs the shape of one sample.*summary{input={1, 28, 28}}")
  t.raises(function() model:summary { 3 } end, "needs the shape of one sample")
  t.raises(function() model:summary { input = 3 } end, "needs the shape of one sample")
  t.raises(function() model:summary { input = { "a" } } end, "needs the shape of one sample")
  t.raises(function() model:summary { inputs = { 3 }, input = { 3 } } end, "did you mean \"input\"")
  t.raises(function() model:summary { input = { 4 } } end, "linear")
  t.ok(model.training and model[1].training)
end)

test("print(model)", function(t)
  local Net = nn.class("Net")
  function Net:init()
    self.blocks = { nn.Linear { 2, 2 }, nn.Linear { 2, 2 } }
    self.head = nn.Sequential { nn.ReLU {}, nn.Linear { 2, 1 } }
  end
  t.equal(tostring(Net()), table.concat({
    "Net(", "  (blocks[1]): Linear(inputs=2, out=2)", "  (blocks[2]): Linear(inputs=2, out=2)",
    "  (head): Sequential(", "    (1): ReLU()", "    (2): Linear(inputs=2, out=1)", "  )", ")" }, "\n"))
end)
