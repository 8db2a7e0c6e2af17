-- SPDX-License-Identifier: Apache-2.0
-- Recurrent layers beside their numbers, which recurrent_vectors_test.lua has: sizes, sequences of several lengths,
-- dtypes, devices, graphs, and what they refuse.

local pg = require "perigee"
local nn = pg.nn

local KINDS = { "RNN", "LSTM", "GRU" }
local CELLS = { "RNNCell", "LSTMCell", "GRUCell" }

local function far(a, b) return (a:to("float64") - b:to("float64")):abs():max():item() end
-- The message has this text, which is no pattern.
local function raises(t, fn, text)
  local ok, problem = pcall(fn)
  t.ok(not ok and tostring(problem):find(text, 1, true), ("%q, not %q"):format(tostring(problem), text))
end
local function no_grad(layer, ...)
  local args, n = { ... }, select("#", ...)
  return pg.no_grad(function() return layer(unpack(args, 1, n)) end)
end

test("parameters are PyTorch's by name, order, shape and bound", function(t)
  pg.manual_seed(1)
  local layer = nn.LSTM { 4, 16, 2, bidirectional = true, proj_size = 3 }
  local names = {}
  for name, p in layer:named_parameters() do
    names[#names + 1] = name
    t.ok(p:abs():max():item() <= 1 / 4 and p:abs():max():item() > 0.1 / 4, name)
  end
  t.equal(table.concat(names, " "), ("weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 weight_hr_l0 #_reverse " ..
    "weight_ih_l1 weight_hh_l1 bias_ih_l1 bias_hh_l1 weight_hr_l1 %_reverse"):gsub("#_reverse",
    "weight_ih_l0_reverse weight_hh_l0_reverse bias_ih_l0_reverse bias_hh_l0_reverse weight_hr_l0_reverse"):gsub(
    "%%_reverse", "weight_ih_l1_reverse weight_hh_l1_reverse bias_ih_l1_reverse bias_hh_l1_reverse " ..
      "weight_hr_l1_reverse"))
  t.ok(layer.weight_ih_l1:has_shape { 64, 6 } and layer.weight_hh_l1:has_shape { 64, 3 })
  t.ok(layer.weight_hr_l1_reverse:has_shape { 3, 16 })
  t.ok(nn.GRU { 4, 5, bias = false }.weight_ih_l0:has_shape { 15, 4 })
  t.equal(#nn.GRU { 4, 5, bias = false }:parameters(), 2)
  t.ok(nn.RNNCell { 4, 5 }.weight_hh:has_shape { 5, 5 })
end)

test("printing tells the options", function(t)
  t.equal(tostring(nn.GRU { 4, 5 }), "GRU(input_size=4, hidden_size=5, num_layers=1, bias=true, batch_first=true, " ..
          "dropout=0, bidirectional=false)")
  t.equal(tostring(nn.LSTMCell { 5 }), "LSTMCell(hidden_size=5, bias=true)")
end)

test("one number is the hidden size: the input's comes with the first input", function(t)
  for _, name in ipairs { "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell" } do
    local is_cell = name:find "Cell"
    pg.manual_seed(1)
    local layer = nn[name] { 5 }
    local weight = is_cell and "weight_ih" or "weight_ih_l0"
    t.equal(layer[weight]:numel(), 0)
    raises(t, function() layer:count_parameters() end, "sizes are not known before the first input")
    local held = layer:parameters()[1]
    layer(is_cell and pg.rand { 2, 3 } or pg.rand { 2, 4, 3 })
    t.ok(layer[weight]:size(2) == 3 and held:size(2) == 3 and held.requires_grad)
    t.ok(layer[weight]:abs():max():item() <= 1 / math.sqrt(5))
    raises(t, function() layer(is_cell and pg.rand { 2, 4 } or pg.rand { 2, 4, 4 }) end, "a last axis of 3, input_size")
  end
  local both = nn.LSTM { 5, num_layers = 2, bidirectional = true }
  both(pg.rand { 2, 4, 3 })
  t.ok(both.weight_ih_l0_reverse:has_shape { 20, 3 } and both.weight_ih_l1:has_shape { 20, 10 })
  local loaded = nn.GRU { 5 }
  loaded:load_state(nn.GRU { 3, 5 }:state())
  local before = loaded.weight_ih_l0:clone()
  raises(t, function() loaded(pg.rand { 2, 4, 7 }) end, "weight_ih_l0 was loaded as {15, 3}")
  loaded(pg.rand { 2, 4, 3 })
  t.equal(loaded.weight_ih_l0, before)
  local sixteen = nn.GRU { hidden_size = 5 }:to("float64")
  t.equal(sixteen(pg.rand({ 2, 4, 3 }, { dtype = "float64" })).dtype, "float64")
end)

-- What a layer makes of padded sequences is what it makes of each by itself.
test("lengths: each sequence by itself, with gradients", function(t)
  local lengths = { 3, 6, 1, 6, 2 }
  for _, name in ipairs(KINDS) do
    pg.manual_seed(2)
    local layer = nn[name] { 4, 5, num_layers = 2, bidirectional = true }:to("float64")
    local x = pg.randn({ 5, 6, 4 }, { dtype = "float64", requires_grad = true })
    local y, h, c = layer(x, { lengths = pg.tensor(lengths) })
    t.ok(y:has_shape { 5, 6, 10 })
    local loss, total = y:square():sum() + h:sum() + (c and c:square():sum() or 0), 0
    for i, n in ipairs(lengths) do
      local yi, hi, ci = layer(x[i][{ { 1, n } }])
      t.ok(far(yi, y[i][{ { 1, n } }]) < 1e-12 and far(hi, h[{ {}, i }]) < 1e-12)
      t.ok(not c or far(ci, c[{ {}, i }]) < 1e-12)
      if n < 6 then t.equal(y[i][{ { n + 1, -1 } }]:abs():max():item(), 0) end
      total = total + yi:square():sum() + hi:sum() + (c and ci:square():sum() or 0)
    end
    local wanted = { x, unpack(layer:parameters()) }
    local one, other = { pg.grad(loss, wanted) }, { pg.grad(total, wanted) }
    for i in ipairs(wanted) do t.ok(far(one[i], other[i]) < 1e-11, i) end
    local full = layer(x, { lengths = { 6, 6, 6, 6, 6 } })
    t.ok(far(full, layer(x)) < 1e-12)
  end
end)

test("packed sequences: there and back, and through layers", function(t)
  pg.manual_seed(3)
  local x = pg.randn { 3, 5, 4 }
  local packed = nn.utils.pack_padded_sequence(x, { 5, 3, 2 })
  t.ok(packed.data:has_shape { 10, 4 } and packed.sorted_indices == nil)
  t.equal(packed.batch_sizes:totable(), { 3, 3, 2, 1, 1 })
  t.equal(packed.data[4], x[1][2])
  t.equal(tostring(packed), "PackedSequence(data float32 {10, 4}, 3 sequences, 5 steps)")
  local other = nn.utils.pack_padded_sequence { x, pg.tensor { 2, 5, 3 }, enforce_sorted = false }
  t.equal(other.sorted_indices:totable(), { 1, 2, 0 })
  t.equal(other.unsorted_indices:totable(), { 2, 0, 1 })
  local back, lengths = nn.utils.pad_packed_sequence(other, { padding_value = 7 })
  t.equal(lengths:totable(), { 2, 5, 3 })
  t.equal(back[1][{ { 1, 2 } }], x[1][{ { 1, 2 } }])
  t.equal(back[1][{ { 3, 5 } }], pg.full({ 3, 4 }, 7))
  t.equal(back[2], x[2])
  local long = nn.utils.pad_packed_sequence(packed, { total_length = 9, batch_first = false, padding_value = 2 })
  t.ok(long:has_shape { 9, 3, 4 })
  t.equal(long[5][1], x[1][5])
  t.equal(long[{ { 6, 9 } }], pg.full({ 4, 3, 4 }, 2))
  t.equal(t.raises(function() nn.utils.pad_packed_sequence(packed, { total_length = 2 ^ 40 }) end).code,
          "out_of_memory") -- what is padding needs no list of its rows
  local turned = nn.utils.pack_padded_sequence { x:transpose(1, 2), { 2, 5, 3 }, enforce_sorted = false,
                                                 batch_first = false }
  t.equal(turned.data, other.data)
  for _, name in ipairs(KINDS) do
    local layer = nn[name] { 4, 3, bidirectional = true }
    local y, h, c = layer(x, { lengths = { 2, 5, 3 } })
    local z, k, d = layer(other)
    t.equal(nn.utils.pad_packed_sequence(z), y)
    t.equal(h, k)
    if c then t.equal(c, d) end
    local again = layer(other:to("float32"), { h0 = h, c0 = c }) -- states in the order of the sequences
    t.ok(far(nn.utils.pad_packed_sequence(again), (layer(x, { h0 = h, c0 = c, lengths = { 2, 5, 3 } }))) == 0)
  end
end)

test("nn.utils: sequences of a list", function(t)
  local a, b = pg.ones { 2, 3 }, pg.full({ 4, 3 }, 2)
  local padded = nn.utils.pad_sequence { { a, b }, padding_value = -1 }
  t.ok(padded:has_shape { 2, 4, 3 })
  t.equal(padded[1][3], pg.full({ 3 }, -1))
  t.ok(nn.utils.pad_sequence({ a, b }, { batch_first = false }):has_shape { 4, 2, 3 })
  local packed = nn.utils.pack_sequence { { a, b }, enforce_sorted = false }
  t.equal(packed.batch_sizes:totable(), { 2, 2, 1, 1 })
  raises(t, function() nn.utils.pack_sequence { { a, b } } end, "lengths must fall: lengths[2] is 4, behind 2")
  raises(t, function() nn.utils.pad_sequence { {} } end, "sequences is empty")
end)

test("states go on where a call ended", function(t)
  for _, name in ipairs(KINDS) do
    pg.manual_seed(4)
    local layer = nn[name] { 4, 5, num_layers = 2 }:to("float64")
    local x = pg.randn({ 2, 6, 4 }, { dtype = "float64" })
    local y, h, c = layer(x)
    local y1, h1, c1 = layer(x[{ {}, { 1, 2 } }])
    local y2, h2, c2 = layer(x[{ {}, { 3, 6 } }], c1 and { h1, c1 } or h1)
    t.ok(far(pg.cat { y1, y2, axis = 2 }, y) < 1e-12 and far(h2, h) < 1e-12 and (not c or far(c2, c) < 1e-12))
    local y3 = layer(x[{ {}, { 3, 6 } }], h1, c1)
    t.equal(y3, y2)
    local y4 = layer(x[{ {}, { 3, 6 } }], { h0 = h1, c0 = c1 })
    t.equal(y4, y2)
  end
end)

test("a cell is a layer's step", function(t)
  for i, name in ipairs(CELLS) do
    pg.manual_seed(5)
    local layer, cell = nn[KINDS[i]] { 4, 5 }, nn[name] { 4, 5 }
    local state = {}
    for key, v in pairs(layer:state()) do state[key:gsub("_l0", "")] = v end
    cell:load_state(state)
    local x, h, c = pg.randn { 2, 6, 4 }, nil, nil
    local y = layer(x)
    for step = 1, 6 do
      if name == "LSTMCell" then h, c = cell(x[{ {}, step }], h, c) else h = cell(x[{ {}, step }], h) end
      t.ok(far(h, y[{ {}, step }]) < 1e-6)
    end
    local alone = cell(x[1][1])
    t.ok(alone:has_shape { 5 } and far(alone, y[1][1]) < 1e-6)
  end
end)

test("16-bit dtypes, autocast and policies", function(t)
  for _, name in ipairs(KINDS) do
    pg.manual_seed(6)
    local layer, x = nn[name] { 4, 8, num_layers = 2, bidirectional = true }, pg.randn { 2, 5, 4 }
    local y = no_grad(layer, x)
    for _, dtype in ipairs { "float16", "bfloat16" } do
      local narrow = layer:clone():to(dtype)
      local z, h, c = narrow(x:to(dtype))
      t.ok(z.dtype == dtype and h.dtype == dtype and (not c or c.dtype == dtype))
      t.ok(far(z, y) < 0.05, far(z, y))
      z:sum():backward()
      t.equal(narrow.weight_hh_l1.grad.dtype, dtype)
      local w = narrow(x:to(dtype), { h0 = h, c0 = c })
      t.equal(w.dtype, dtype)
    end
    layer:zero_grad()
    local z, h, c = pg.amp.autocast({ device = pg.device():match "^%a+", dtype = "bfloat16" },
                                    function() return layer(x) end)
    t.equal(z.dtype, "bfloat16")
    t.ok(far(z, y) < 0.05)
    z:to("float32"):sum():backward()
    t.equal(layer.weight_hh_l0.grad.dtype, "float32")
    pg.amp.autocast({ device = pg.device():match "^%a+", dtype = "bfloat16" }, function()
      t.equal(layer(x, { h0 = h, c0 = c }).dtype, "bfloat16")
      t.equal(layer(x, { h0 = h:to("float32"), c0 = c and c:to("float32") }).dtype, "bfloat16")
    end)
    pg.amp.policy("mixed_bfloat16")
    local ok, w = pcall(layer, x)
    pg.amp.policy("float32")
    t.ok(ok and w.dtype == "bfloat16", w)
  end
end)

test("dropout between layers, while training alone", function(t)
  pg.manual_seed(7)
  local layer, x = nn.GRU { 4, 8, num_layers = 2, dropout = 0.5 }, pg.randn { 2, 5, 4 }
  t.ok(far((layer(x)), (layer(x))) > 1e-3)
  layer:eval()
  t.equal(layer(x), (layer(x)))
  local all = nn.GRU { 4, 8, num_layers = 2, dropout = 1 }
  local _, h = all(x)
  local _, other = all(pg.randn { 2, 5, 4 })
  t.equal(h[2], other[2]) -- nothing of x comes through
  t.ok(far(h[1], other[1]) > 1e-3)
  local single = nn.GRU { 4, 8, dropout = 1 }
  t.ok(single(x):abs():max():item() > 0) -- none behind the last layer
end)

test("no sequences, one step, a view as input", function(t)
  for _, name in ipairs(KINDS) do
    local layer = nn[name] { 4, 5, bidirectional = true }
    local y, h = layer(pg.zeros { 0, 3, 4 })
    t.ok(y:has_shape { 0, 3, 10 } and h:has_shape { 2, 0, 5 })
    t.ok(layer(pg.zeros { 2, 1, 4 }):has_shape { 2, 1, 10 })
    local x = pg.randn { 4, 6, 2 }
    t.ok(far((layer(x:permute(3, 2, 1))), (layer(x:permute(3, 2, 1):contiguous()))) < 1e-6)
  end
end)

test("clones, state, hooks, summary, weight normalisation, Sequential", function(t)
  pg.manual_seed(8)
  local layer, x = nn.LSTM { 4, 5 }, pg.randn { 2, 3, 4 }
  local copy = layer:clone()
  t.equal(copy(x), (layer(x)))
  pg.no_grad(function() copy.weight_hh_l0:zero_() end)
  t.ok(far((copy(x)), (layer(x))) > 0)
  local seen
  local handle = layer:hook("backward", function(_, inputs) seen = inputs[1] end)
  local input = x:clone():requires_grad_()
  layer(input):sum():backward()
  t.ok(seen:has_shape { 2, 3, 4 })
  t.equal(seen, input.grad)
  handle:remove()
  nn.utils.weight_norm(layer, "weight_hh_l0")
  layer(x):sum():backward()
  t.ok(layer.weight_hh_l0_g.grad:abs():sum():item() > 0)
  local model = nn.Sequential { nn.GRU { 6 }, nn.GRU { 5 }, function(y) return y[{ {}, -1 }] end, nn.Linear { 2 } }
  t.ok(model(x):has_shape { 2, 2 })
  local said, old = {}, print
  _G.print = function(text) said[#said + 1] = text end
  local ok, summary = pcall(model.summary, model, { input = { 3, 4 } })
  _G.print = old
  t.ok(ok and summary.parameters == model:count_parameters(), summary)
end)

test("weights go through a file by name", function(t)
  local path = os.tmpname() .. ".safetensors"
  local layer = nn.LSTM { 4, 5, num_layers = 2, bidirectional = true, proj_size = 2 }
  pg.save(path, layer)
  local other = nn.LSTM { hidden_size = 5, num_layers = 2, bidirectional = true, proj_size = 2 }
  pg.load(path, other)
  os.remove(path)
  local x = pg.randn { 2, 3, 4 }
  t.equal(other(x), (layer(x)))
end)

test("backward behind the scope of the call, and after a parameter was written to", function(t)
  local layer, x = nn.GRU { 4, 5 }, pg.randn { 2, 3, 4 }
  local loss = pg.scope(function() return layer(x):sum() end)
  loss:backward()
  t.ok(layer.weight_hh_l0.grad:abs():sum():item() > 0)
  loss = layer(x):sum()
  pg.no_grad(function() layer.weight_hh_l0:mul_(2) end)
  raises(t, function() loss:backward() end, "weight_hh {15, 5} was modified in place before backward")
end)

test("training leaves nothing behind", function(t)
  pg.manual_seed(9)
  local layer, x = nn.LSTM { 4, 8 }, pg.randn { 2, 5, 4 }
  local native = require "perigee.native"
  local function train() layer(x):sum():backward() end
  train()
  collectgarbage()
  collectgarbage()
  local before = native.custom.alive()
  for _ = 1, 20 do train() end
  collectgarbage()
  collectgarbage()
  t.ok(native.custom.alive() <= before, native.custom.alive())
end)

-- Batches of few rows, and of more, by weights that are laid out once for all steps; sizes that no panel divides.
test("all steps of an LSTM at once are its cell's, one by one", function(t)
  local TOLERANCE = { float32 = 2e-6, float64 = 1e-12, bfloat16 = 0.05, float16 = 0.01 }
  for dtype, tolerance in pairs(TOLERANCE) do
    for _, batch in ipairs { 1, 2, 3, 4, 5, 9 } do
      pg.manual_seed(13)
      local layer, cell = nn.LSTM { 6, 102 }, nn.LSTMCell { 6, 102 }
      cell:load_state {
        weight_ih = layer.weight_ih_l0, weight_hh = layer.weight_hh_l0, bias_ih = layer.bias_ih_l0,
        bias_hh = layer.bias_hh_l0,
      }
      layer:to(dtype)
      cell:to(dtype)
      local x, far_out = pg.randn({ batch, 4, 6 }):to(dtype), pg.randn({ batch, 4, 102 }):to(dtype)
      local a, b = x:clone():requires_grad_(), x:clone():requires_grad_()
      local h0, c0 = pg.randn({ 1, batch, 102 }):to(dtype), (pg.randn({ 1, batch, 102 }) * 40):to(dtype)
      local y, hn, cn = layer(a, h0, c0)
      local ys, h, c = {}, h0[1], c0[1]
      for i = 1, 4 do
        h, c = cell(b:select(2, i), h, c)
        ys[i] = h
      end
      local stacked = pg.stack { ys, axis = 2 }
      local what = ("%s, batch %d"):format(dtype, batch)
      t.ok(far(y:detach(), stacked:detach()) < tolerance, what)
      t.ok(far(hn:detach()[1], h:detach()) < tolerance and far(cn:detach()[1], c:detach()) < 40 * tolerance, what)
      local plain = pg.no_grad(function() return (layer(x, h0, c0)) end)
      t.ok(far(plain, y:detach()) < tolerance, what)
      for _ = 1, 2 do t.equal(no_grad(layer, x, h0, c0), plain) end -- by weights that are kept
      local loss, other = (y * far_out):sum(), (stacked * far_out):sum()
      loss:backward()
      other:backward()
      t.ok(far(a.grad, b.grad) < 10 * tolerance, what)
      t.ok(far(layer.weight_hh_l0.grad, cell.weight_hh.grad) < 40 * tolerance, what)
    end
  end
end)

test("gates that are saturated, infinite or NaN", function(t)
  local layer = nn.LSTM { 1, 40, bias = false }
  pg.no_grad(function()
    layer.weight_ih_l0:fill_(1)
    layer.weight_hh_l0:fill_(0)
  end)
  local huge = math.huge
  for x, expected in pairs { [200] = 0.761594, [-200] = 0, [huge] = 0.761594, [-huge] = 0, [0] = 0 } do
    local y = no_grad(layer, pg.full({ 1, 1, 1 }, x))
    t.ok(far(y, pg.full({ 1, 1, 40 }, expected)) < 1e-6, x)
  end
  t.ok(no_grad(layer, pg.full({ 1, 1, 1 }, 0 / 0)):isnan():all():item())
end)

test("in a graph, its number of steps known", function(t)
  for _, name in ipairs(KINDS) do
    pg.manual_seed(10)
    local layer = nn[name] { 4, 5, num_layers = 2, bidirectional = true }
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { "batch", 3, 4 }, dtype = "float32" }
      local y, h, c = layer(x)
      return { y = y, h = h, c = c or h, s = y:square():sum() }
    end)
    local x = pg.randn { 2, 3, 4 }
    local session, y, h, c = pg.Session { g }, layer(x)
    t.ok(far(session:run("y", { x = x }), y) < 1e-6 and far(session:run("h", { x = x }), h) < 1e-6)
    t.ok(not c or far(session:run("c", { x = x }), c) < 1e-6)
  end
end)

test("in a graph, a number of steps that only runs tell, with gradients", function(t)
  for _, name in ipairs(KINDS) do
    pg.manual_seed(12)
    local layer = nn[name] { 4, 5, num_layers = 2, bidirectional = true }
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { "batch", "steps", 4 }, dtype = "float32" }
      local y, h, c = layer(x)
      local loss = y:square():sum() + h:sum()
      return { y = y, h = h, c = c or h, dx = pg.grad(loss, x) }
    end)
    local session = pg.Session { g }
    for _, steps in ipairs { 5, 1, 3 } do
      local x = pg.randn({ 2, steps, 4 }, { requires_grad = true })
      local y, h, c = layer(x)
      local dx = pg.grad(y:square():sum() + h:sum(), x)
      for key, v in pairs { y = y, h = h, c = c or h, dx = dx } do
        t.ok(far(session:run(key, { x = x:detach() }), v:detach()) < 1e-5, key)
      end
    end
    raises(t, function()
      pg.graph(function(graph)
        return { y = (layer(graph:placeholder { "x", shape = { 2, "steps", 4 }, dtype = "float32" },
                            { lengths = { 1, 2 } })) }
      end)
    end, "lengths need a known number of steps")
  end
end)

test("gradients in a graph", function(t)
  local layer = nn.LSTM { 4, 5 }
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2, 3, 4 }, dtype = "float32" }
    local y = layer(x)
    local loss = y:square():sum()
    return { dx = pg.grad(loss, x) }
  end)
  local x = pg.randn({ 2, 3, 4 }, { requires_grad = true })
  layer(x):square():sum():backward()
  t.ok(far(pg.Session { g }:run("dx", { x = x:detach() }), x.grad) < 1e-6)
end)

local function on_another_device(t)
  if #pg.devices "sim" == 0 then t.skip "there is no simulated device" end
  for _, name in ipairs(KINDS) do
    pg.manual_seed(11)
    local layer, x = nn[name] { 4, 5, bidirectional = true }, pg.randn { 2, 4, 4 }
    local y = layer(x, { lengths = { 2, 4 } })
    y:square():sum():backward()
    local far_layer = layer:clone():to("sim:0")
    local z, h = far_layer(x:to("sim:0"), { lengths = { 2, 4 } })
    z:square():sum():backward()
    t.equal(z.device, "sim:0")
    t.ok(far(z:cpu(), y) < 1e-5 and far(far_layer.weight_hh_l0.grad:cpu(), layer.weight_hh_l0.grad) < 1e-4)
    raises(t, function() far_layer(x) end, "x is on cpu, the layer's parameters on sim:0")
    raises(t, function() layer(x, h, name == "LSTM" and h or nil) end, "is on sim:0; expected cpu")
  end
end
test("on another device", function(t)
  require("perigee.native").without_device(on_another_device, t) -- whatever device the suite runs on
end)

-- { what is called, what it says }
local x, h = pg.zeros { 2, 3, 4 }, pg.zeros { 1, 2, 5 }
local function lstm(...) return nn.LSTM { 4, 5 } (...) end
local function gru(...) return nn.GRU { 4, 5 } (...) end
local MISTAKES = {
  { function() nn.LSTM { input_size = 3 } end, 'LSTM: argument "hidden_size" is missing' },
  { function() nn.LSTM {} end, 'LSTM: argument "hidden_size" is missing' },
  { function() nn.LSTM { 4, 0 } end, "LSTM: hidden_size must be positive, got 0" },
  { function() nn.LSTM { 0, 4 } end, "LSTM: input_size must be positive, got 0" },
  { function() nn.GRU { 4, 5, num_layers = 0 } end, "GRU: num_layers must be positive, got 0" },
  { function() nn.GRU { 4, 5, num_layers = 4e9 } end, "GRU: num_layers must be at most 10000, got 4e+09" },
  { function() nn.GRU { 4, 5, dropout = 2 } end, "GRU: dropout must lie in [0, 1], got 2" },
  { function() nn.LSTM { 4, 5, proj_size = 5 } end, "LSTM: proj_size must lie in 0..4, below hidden_size, got 5" },
  { function() nn.GRU { 4, 5, proj_size = 2 } end, 'unknown option "proj_size"' },
  { function() nn.RNN { 4, 5, nonlinearity = "gelu" } end, "nonlinearity" },
  { function() lstm(3) end, "LSTM" },
  { function() lstm(pg.zeros { 4 }) end, "LSTM: x is {4}; expected [N, T, 4] or [T, 4]" },
  { function() nn.GRU { 4, 5, batch_first = false } (pg.zeros { 4 }) end, "expected [T, N, 4] or [T, 4]" },
  { function() lstm(pg.zeros { 2, 3, 7 }) end, "LSTM: x is {2, 3, 7}; expected a last axis of 4, input_size" },
  { function() lstm(pg.zeros { 2, 0, 4 }) end, "expected at least one step" },
  { function() lstm(pg.zeros({ 2, 3, 4 }, { dtype = "int64" })) end, "x is int64; expected a floating dtype" },
  { function() lstm(x, h) end, "LSTM: h0 is given without c0" },
  { function() lstm(x, { c0 = h }) end, "LSTM: c0 is given without h0" },
  { function() lstm(x, h, h, h) end, "takes 2 states, got more" },
  { function() gru(x, h, h) end, "GRU: takes 1 state, got more" },
  { function() gru(x, { c0 = h }) end, 'GRU: unknown option "c0"' },
  { function() gru(x, { length = { 1 } }) end, 'unknown option "length" (did you mean "lengths"?)' },
  { function() gru(x, { h, h0 = h }) end, "h0 is given twice" },
  { function() gru(x, 3) end, "GRU: h0 must be a tensor, got" },
  { function() gru(x, pg.zeros { 2, 5 }) end, "GRU: h0 is {2, 5}; expected {1, 2, 5}" },
  { function() gru(x[1], h) end, "GRU: h0 is {1, 2, 5}; expected {1, 5}" },
  { function() lstm(x, h, pg.zeros { 1, 2, 6 }) end, "LSTM: c0 is {1, 2, 6}; expected {1, 2, 5}" },
  { function() gru(x, h:to("float64")) end, "GRU: h0 is float64; expected float32, as x" },
  { function() gru(x, { lengths = { 3 } }) end, "GRU: got 1 lengths for 2 sequences" },
  { function() gru(x, { lengths = { 3, 0 } }) end, "GRU: lengths[2] is 0; expected 1..3, the number of steps" },
  { function() gru(x, { lengths = { 4, 3 } }) end, "GRU: lengths[1] is 4; expected 1..3" },
  { function() gru(x, { lengths = { 1.5, 3 } }) end, "GRU: lengths[1] must be a whole number, got" },
  { function() gru(x, { lengths = pg.tensor { 1.5, 3 } }) end, "GRU: lengths[1] must be a whole number" },
  { function() gru(x, { lengths = pg.ones({ 2 }, { dtype = "bool" }) }) end,
    "lengths must be numbers [N], got bool {2}" },
  { function() gru(x, { lengths = 3 }) end, "lengths must be a list of numbers or an int64 tensor" },
  { function() gru(x[1], { lengths = { 3 } }) end, "lengths need a batch" },
  { function() nn.utils.pack_padded_sequence(x, { 2, 3 }) end, "lengths must fall: lengths[2] is 3, behind 2" },
  { function() nn.utils.pad_packed_sequence(x) end, "packed must be a PackedSequence" },
  { function() nn.utils.pad_packed_sequence(nn.utils.pack_padded_sequence(x, { 3, 2 }), { total_length = 2 }) end,
    "total_length is 2, but the longest sequence has 3 steps" },
  { function() gru(nn.utils.pack_padded_sequence(x, { 3, 2 }), { lengths = { 3, 2 } }) end,
    "lengths are given, but x is packed" },
  { function() nn.GRUCell { 4, 5 } (x) end, "GRUCell: x is {2, 3, 4}; expected [N, 4] or [4]" },
  { function() nn.GRUCell { 4, 5 } (x[1], h) end, "GRUCell: h0 is {1, 2, 5}; expected {3, 5}" },
  { function() nn.LSTMCell { 4, 5 } (x[1], pg.zeros { 3, 5 }) end, "h0 is given without c0 (cell(x, {h, c}))" },
}
for i, row in ipairs(MISTAKES) do
  test(("mistake %d: %s"):format(i, row[2]), function(t) raises(t, row[1], row[2]) end)
end

-- Sizes that take the ways of one row, of few rows and of panels; what the operator makes and what steps one by one do.
test("an LSTM's steps at once are its steps one by one", function(t)
  pg.manual_seed(9)
  local layer = nn.LSTM { 3, 150, bidirectional = true }
  local least = { float64 = 1e-12, float32 = 1e-5, bfloat16 = 0.05, float16 = 0.01 }
  for dtype, tolerance in pairs(least) do
    layer:to(dtype)
    for _, n in ipairs { 1, 4, 9 } do
      local input = pg.randn { n, 6, 3 }:to(dtype)
      local lengths = {}
      for i = 1, n do lengths[i] = 6 end
      local whole, whole_h, whole_c = no_grad(layer, input)
      local packed = nn.utils.pack_padded_sequence(input, lengths)
      local rows, last_h, last_c = no_grad(layer, packed)
      t.ok(far(nn.utils.pad_packed_sequence(rows), whole) <= tolerance, dtype)
      t.ok(far(last_h, whole_h) <= tolerance and far(last_c, whole_c) <= 2 * tolerance, dtype .. ": last states")
      local y = layer(input)
      t.ok(far(y, whole) <= tolerance, dtype .. ": recorded")
    end
  end
end)

test("an LSTM's output that was modified in place before backward is named", function(t)
  local layer = nn.LSTM { 3, 4 }
  local y, last_h, last_c = layer(pg.randn { 5, 2, 3 })
  pg.no_grad(function()
    last_h:zero_()
    last_c:zero_() -- of memory of their own
  end)
  y:sum():backward()
  y = layer(pg.randn { 5, 2, 3 })
  pg.no_grad(function() y:zero_() end)
  raises(t, function() y:sum():backward() end, "modified in place before backward")
end)
