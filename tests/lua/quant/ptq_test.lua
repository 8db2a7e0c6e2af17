-- SPDX-License-Identifier: Apache-2.0
-- pg.quant.ptq: weights of whole numbers in copies of models, what they take and compute, files of them, mistakes.

local pg = require "perigee"
local nn, quant = pg.nn, pg.quant

local function seq(...)
  local n = 1
  for _, size in ipairs { ... } do n = n * size end
  return ((pg.arange(n):to("float64") * 0.7):sin() + (pg.arange(n):to("float64") ^ 1.3):cos()):reshape(...)
end

local function model_of(dtype)
  local model = nn.Sequential { nn.Linear { 64, 48, activation = "relu" }, nn.ReLU {},
                                nn.Linear { 48, 10, bias = false } }
  pg.no_grad(function()
    for i, p in ipairs(model:parameters()) do
      p:copy_((seq(p:numel() + i):narrow(1, i, p:numel()) / 8):reshape(p.shape))
    end
  end)
  return model:to(dtype or "float32")
end

local function names_of(model)
  local names = {}
  for name, t in pairs(model:state()) do names[#names + 1] = name .. " " .. t.dtype .. " " .. tostring(t.shape) end
  table.sort(names)
  return names
end

test("int8: a scale a row, every number within half a step, the sizes and names that it has", function(t)
  local model = model_of()
  local before = tostring(model)
  local small, report = quant.ptq(model, { dtype = "int8", mode = "weight_only" })
  t.equal(tostring(model), before)
  t.equal(names_of(small), { "0.bias float32 {48}", "0.weight_int8 int8 {48, 64}", "0.weight_scale float32 {48, 1}",
                             "2.weight_int8 int8 {10, 48}", "2.weight_scale float32 {10, 1}" })
  t.equal(small:size(), 48 * 64 + 48 * 4 + 48 * 4 + 10 * 48 + 10 * 4)
  t.equal({ report.bytes, report.bytes_before, #report.rows, #report.left }, { small:size(), model:size(), 2, 0 })
  t.ok(tostring(small):find("dtype=int8, group_size=64, activation=relu", 1, true), tostring(small))
  local weight = model[1].weight:detach()
  local scale = small[1].weight_scale
  t.close(scale, weight:abs():amax { axis = 2, keepdim = true } / 127, 1e-7)
  local off = (pg.dequantize(small[1].weight_int8, scale) - weight):abs()
  t.ok((off / scale):amax():item() <= 0.5001)
  t.equal(small[1].weight_int8:abs():amax():item(), 127)
  t.close(report.rows[1].largest, off:amax():item(), 1e-9)
  t.ok(report.rows[1].error > 0 and report.rows[1].error < 0.01)
  local x = seq(5, 64):to("float32")
  t.close(small(x):detach(), model(x):detach(), 0.05)
end)

test("int4: groups, two numbers a byte, and what is default", function(t)
  local model = model_of()
  local small, report = quant.ptq(model, { dtype = "int4", group_size = 16 })
  t.equal(names_of(small), { "0.bias float32 {48}", "0.weight_int4 uint8 {48, 32}", "0.weight_scale float32 {48, 4}",
                             "2.weight_int4 uint8 {10, 24}", "2.weight_scale float32 {10, 3}" })
  t.equal({ report.rows[1].group_size, report.rows[2].group_size }, { 16, 16 })
  t.ok(report.rows[1].error > 0.01 and report.rows[1].error < 0.15, report.rows[1].error)
  local x = seq(5, 64):to("float32")
  local whole = pg.dequantize(small[1].weight_int4, small[1].weight_scale, { format = "int4" })
  t.close(small[1](x):detach(), pg.linear(x, whole, model[1].bias):relu():detach(), 1e-4)
  local coarse = select(2, quant.ptq(model, { dtype = "int4", group_size = 48, targets = { "2" } }))
  t.equal({ #coarse.rows, coarse.rows[1].name, coarse.rows[1].group_size }, { 1, "2", 48 })
  for inputs, group in pairs { [4096] = 64, [784] = 56, [34] = 34, [48] = 48, [74] = 74, [100] = 50 } do
    local _, one = quant.ptq(nn.Linear { inputs, 2 }, { dtype = "int4" })
    t.equal({ one.rows[1].name, one.rows[1].group_size }, { "", group })
  end
end)

test("rows of zeros stay zeros, in all dtypes; the model itself may be a Linear", function(t)
  for _, dtype in ipairs { "float64", "float32", "bfloat16", "float16" } do
    for _, format in ipairs { "int8", "int4" } do
      local layer = nn.Linear { 32, 4, bias = false }
      pg.no_grad(function()
        layer.weight:copy_(seq(4, 32))
        layer.weight[2] = 0
      end)
      layer:to(dtype)
      local small, report = quant.ptq(layer, { dtype = format })
      local x = seq(3, 32):to(dtype)
      local y = small(x)
      t.equal({ y.dtype, small.weight_scale.dtype, #report.rows }, { dtype, dtype, 1 })
      t.equal(y[{ {}, 2 }]:to("float64"):totable(), { 0, 0, 0 })
      t.ok(report.rows[1].error < (format == "int8" and 0.02 or 0.2), dtype .. format .. report.rows[1].error)
      t.close(y:to("float64"), layer(x):detach():to("float64"), format == "int8" and 0.4 or 3)
    end
  end
end)

test("clones, moves, training mode, files; what was saved in one format does not load into another", function(t)
  local model = model_of():eval()
  local path = os.tmpname()
  local x = seq(2, 64):to("float32")
  for _, o in ipairs { { dtype = "int8" }, { dtype = "int8", group_size = 8 }, { dtype = "int4", group_size = 16 } } do
    local small = quant.ptq(model, o)
    t.equal({ small.training, small[1].training }, { false, false })
    local want = small(x)
    t.equal(small:clone()(x):totable(), want:totable())
    pg.save(path .. ".safetensors", small)
    local other = quant.ptq(model_of():to("float32"), o)
    pg.no_grad(function() other[1].bias:fill_(7) end)
    other[1].weight_scale:fill_(3)
    other:load_state((pg.load(path .. ".safetensors")))
    t.equal(other(x):totable(), want:totable())
    t.equal(pg.load(path .. ".safetensors")["0.weight_" .. o.dtype].dtype, o.dtype == "int8" and "int8" or "uint8")
    t.ok(tostring(t.raises(function() model:load_state(small:state()) end)):find("weight_" .. o.dtype, 1, true))
    local second = quant.ptq(model, { dtype = o.dtype == "int8" and "int4" or "int8" })
    t.raises(function() second:load_state(small:state()) end)
    local narrow = small:clone():to("bfloat16")
    t.equal({ narrow[1].weight_scale.dtype, narrow(x:to("bfloat16")).dtype }, { "bfloat16", "bfloat16" })
    t.close(narrow(x:to("bfloat16")):detach():to("float32"), want:detach(), 0.2)
  end
  os.remove(path)
  os.remove(path .. ".safetensors")
end)

test("gradients reach inputs and biases, through a graph too", function(t)
  local model = model_of("float64")
  local small = quant.ptq(model, { dtype = "int4", group_size = 8 })
  local x = seq(3, 64)
  x.requires_grad = true
  local loss = small(x):square():sum()
  loss:backward()
  t.ok(x.grad:abs():sum():item() > 0 and small[1].bias.grad:abs():sum():item() > 0)
  t.equal(#small:parameters(), 1)
  local step = pg.compile(function(v) return small(v) end)
  t.close(step(x:detach()):detach(), small(x):detach(), 1e-12)
  local g = pg.graph(function(graph)
    local p = graph:placeholder { "x", shape = { 3, 64 }, dtype = "float64" }
    return { y = small(p) }
  end)
  t.close(pg.Session { g }:run("y", { x = x:detach() }), small(x):detach(), 1e-12)
end)

test("in a model of one's own: lists, attention, one layer in two places; what cannot be is left and told", function(t)
  local Net = nn.class "Net"
  function Net:init()
    self.first = nn.Linear { 16, 16 }
    self.again = self.first
    self.list = { nn.Linear { 16, 16 }, nn.Linear { 16, 16 } }
    self.tied = nn.Linear { 16, 16 }
    self.other = nn.Linear { 16, 16 }
    self.other.weight = self.tied.weight
    self.attention = nn.MultiheadAttention { 16, 2 }
  end
  function Net:forward(x)
    x = self.again(self.first(x))
    for _, layer in ipairs(self.list) do x = layer(x) end
    x = self.other(self.tied(x))
    return (self.attention(x, x, x))
  end
  local net = Net {}:eval()
  pg.prune.l1_unstructured(net.list[2], 0.5)
  local small, report = quant.ptq(net)
  local seen, left = {}, {}
  for i, row in ipairs(report.rows) do seen[i] = row.name end
  for i, entry in ipairs(report.left) do left[i] = entry.name end
  t.equal(seen, { "first", "list.0", "attention.out_proj" })
  t.equal(left, { "list.1", "tied", "other" })
  t.ok(small.first == small.again and small.first ~= net.first)
  local x = pg.rand { 2, 3, 16 }
  t.close(small(x):detach(), net(x):detach(), 0.05)
  t.ok(tostring(report):find("tied stays: it shares its weight with another layer", 1, true), tostring(report))
end)

test("float8: the nearest numbers of the format, a byte each", function(t)
  local model = model_of()
  local x = seq(5, 64):to("float32")
  for dtype, most in pairs { float8_e4m3fn = 0.04, float8_e5m2 = 0.08 } do
    local small, report = quant.ptq(model, { dtype = dtype })
    t.equal({ small[1]["weight_" .. dtype].dtype, report.rows[1].group_size }, { "uint8", 64 })
    t.equal(small:size(), 48 * 64 + 48 * 4 + 48 * 4 + 10 * 48 + 10 * 4)
    t.ok(report.rows[1].error > 0.005 and report.rows[1].error < most, report.rows[1].error)
    local whole = pg.dequantize(small[1]["weight_" .. dtype], small[1].weight_scale, { format = dtype })
    t.close(small[1](x):detach(), pg.linear(x, whole, model[1].bias):relu():detach(), 1e-4)
    t.close(small:clone():to("bfloat16")(x:to("bfloat16")):detach():to("float32"), small(x):detach(), 0.2)
  end
end)

test("dynamic: rows as whole numbers by scales of their own", function(t)
  local model = model_of()
  for _, dtype in ipairs { "int8", "int4" } do
    for _, activations in ipairs { "int8", "uint8" } do
      local small = quant.ptq(model, { dtype = dtype, mode = "dynamic", activations = activations })
      local only = quant.ptq(model, { dtype = dtype })
      t.equal(names_of(small), names_of(only))
      t.ok(tostring(small):find("activations=" .. activations .. ", dynamic", 1, true), tostring(small))
      local x = seq(5, 64):to("float32")
      t.close(small(x):detach(), only(x):detach(), 0.05)
      t.ok((small(x) - only(x)):abs():amax():item() > 0)
    end
  end
end)

test("static: one scale of what data puts into a layer, by its extremes, a percentile or the least error", function(t)
  local model = model_of()
  local x = pg.rand { 40, 64 }
  local want = model(x):detach()
  local sets = { x, { x[{ { 1, 10 } }], x[{ { 11, 40 } }] },
                 pg.data.from_slices { x = x, y = pg.zeros { 40 } }:batch(8) }
  for _, data in ipairs(sets) do
    for _, activations in ipairs { "int8", "uint8" } do
      local small = quant.ptq(model, { data = data, activations = activations })
      t.close(small[1].input_scale:item(), x:amax():item() / (activations == "int8" and 127 or 255), 1e-6)
      t.equal(small[1].input_zero_point and small[1].input_zero_point:item(), activations == "uint8" and 0 or nil)
      t.close(small(x):detach(), want, 0.06)
      t.ok(tostring(small):find("static", 1, true))
    end
  end
  local far = pg.rand { 400, 64 }
  far[{ 1, 1 }] = 3
  local scales = {}
  for _, observer in ipairs { "minmax", "percentile", "mse" } do
    local small = quant.ptq(model, { data = far, observer = observer, percentile = 99 })
    scales[observer] = small[1].input_scale:item()
    t.equal(model.training, small.training)
  end
  t.close(scales.minmax, 3 / 127, 1e-6)
  t.ok(scales.percentile < 1.001 / 127 and scales.mse < scales.minmax and scales.mse > 2 / 127)
  local path = os.tmpname()
  local small = quant.ptq(model, { data = far, activations = "uint8" })
  pg.save(path .. ".safetensors", small)
  local other = quant.ptq(model, { data = x, activations = "uint8" })
  other:load_state((pg.load(path .. ".safetensors")))
  t.equal(other(x):totable(), small(x):totable())
  t.equal(small:clone():to("bfloat16")[1].input_scale.dtype, "bfloat16")
  os.remove(path)
  os.remove(path .. ".safetensors")
end)

test("mistakes", function(t)
  local function raises(text, model, o)
    local err = tostring(t.raises(function() quant.ptq(model, o) end))
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, err))
  end
  local model = model_of()
  local small = quant.ptq(model)
  raises("0 is quantised already", small)
  raises("0 is quantised already", small, { dtype = "int4", targets = { "0" } })
  raises("QuantizedLinear is quantised already", (quant.ptq(nn.Linear { 4, 2 })))
  raises("group_size=7 does not divide its 64 inputs", model, { group_size = 7 })
  raises("group_size must be at least 1, got 0", model, { group_size = 0 })
  raises("int4 needs an even number of inputs, it has 5", nn.Linear { 5, 2 }, { dtype = "int4" })
  raises("int5", model, { dtype = "int5" })
  raises("mode=\"static\" finds the scales", model, { mode = "static" })
  raises("mode=\"dynamic\" does not look at data", model, { mode = "dynamic", data = { pg.rand { 2, 64 } } })
  raises("data holds no inputs", model, { data = {} })
  raises("data must be a dataset", model, { data = 3 })
  raises("percentile must be above 50", model, { data = { pg.rand { 2, 64 } }, percentile = 3 })
  raises("NaN or infinite values go into 0", model, { data = { pg.full({ 2, 64 }, 0 / 0) } })
  local Apart = nn.class "Apart"
  function Apart:init() self.used, self.idle = nn.Linear { 4, 2 }, nn.Linear { 4, 2 } end
  function Apart:forward(x) return self.used(x) end
  raises("nothing of data goes into idle", Apart {}, { data = pg.rand { 3, 4 } })
  raises("Sequential has no Linear or Conv2d layer to quantise", nn.Sequential { nn.ReLU {}, nn.Conv1d { 1, 2, 3 } })
  raises("dtype=\"float8_e5m2\" is for weights alone", model, { dtype = "float8_e5m2", mode = "dynamic" })
  raises("dtype=\"float8_e4m3fn\" is for weights alone", model, { dtype = "float8_e4m3fn", data = pg.rand { 2, 64 } })
  raises("0 stays: its weight is computed by", (pg.prune.l1_unstructured(nn.Sequential { nn.Linear { 4, 2 } }, 0.5)))
  raises("no layer fits \"9\" of targets", model, { targets = { "9" } })
  raises("1 (ReLU) cannot be quantised: it is no Linear or Conv2d", model, { targets = { "ReLU" } })
  raises("targets must be names", model, { targets = { 3 } })
  raises("needs a model, got number", 3)
  raises("sizes are not known", nn.Sequential { nn.Linear { out = 3 } })
  local bad = model_of()
  pg.no_grad(function() bad[1].weight[3] = 0 / 0 end)
  raises("the weight of 0 holds NaN", bad)
  local part = quant.ptq(model, { targets = { "0" } })
  t.equal(#select(2, quant.ptq(part, { dtype = "int4", targets = { "2" } })).rows, 1)
end)
