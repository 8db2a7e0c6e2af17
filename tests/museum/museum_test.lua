-- SPDX-License-Identifier: Apache-2.0
-- What plugins that were built when the interfaces froze still do. PERIGEE_PLUGIN_PATH names the folder they are in.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local function with_path(extension, fn)
  local name = os.tmpname()
  os.remove(name)
  local ok, e = pcall(fn, name .. extension)
  os.remove(name .. extension)
  if not ok then error(e, 0) end
end

local function list(x) return x:to("float64"):totable() end

local function session(fn) return pg.Session { pg.graph(fn) } end

test("plain: an elementwise operator is its expression, eager, in place, in a graph and compiled", function(t)
  local x = pg.tensor { 1, -2, 3 }
  t.equal(list(pg.plain_scale(x, { factor = 3 })), { 3, -6, 9 })
  t.equal(list(pg.plain_scale(x)), { 2, -4, 6 })
  t.equal(list(pg.plain_scale(x, { factor = 3, mode = "squared", negate = true })), { -9, 18, -27 })
  t.equal(list(pg.plain_scale(pg.tensor({ 1, 2 }, { dtype = "bfloat16" }), { factor = 0.5 })), { 0.5, 1 })
  t.equal(list(x:clone():plain_scale_ { factor = 10 }), { 10, -20, 30 })
  t.raises(function() pg.plain_scale(x, { axis = 3 }) end, "there is no such axis of 1")
  t.raises(function() pg.plain_scale(x, { repeats = { 1, 0 } }) end, "two numbers above 0")
  t.raises(function() pg.plain_scale(x, { mode = "square" }) end, "squared")
  local sess = session(function(g)
    local v = g:placeholder { "v", shape = { "n" } }
    return { y = pg.plain_scale(v, { factor = 4 }) }
  end)
  t.equal(list(sess:run("y", { v = x })), { 4, -8, 12 })
  sess:close()
  local step = pg.compile(function(v) return pg.plain_scale(v, { factor = 4 }) + 1 end)
  for _ = 1, 4 do t.equal(list(step(x)), { 5, -7, 13 }) end
end)

test("plain: groups, optional inputs, hidden outputs and gradients", function(t)
  local a, b, w = pg.tensor { 1, 2 }, pg.tensor { 3, 6 }, pg.tensor { 10, 100 }
  t.equal(list(pg.plain_mean { a, b }), { 2, 4 })
  t.equal(list(pg.plain_mean({ a, b }, w)), { 20, 400 })
  for _, x in ipairs { a, b, w } do x:requires_grad_() end
  pg.plain_mean({ a, b }, w):sum():backward()
  t.equal(list(a.grad), { 5, 50 })
  t.equal(list(b.grad), { 5, 50 })
  t.equal(list(w.grad), { 2, 4 })
  t.raises(function() pg.plain_mean({}) end, "xs is empty")
end)

test("plain: a view shares its memory", function(t)
  local x = pg.tensor { 1, 2, 3, 4, 5 }
  local y = pg.plain_every(x, 2)
  t.equal(list(y), { 1, 3, 5 })
  x:fill_(7)
  t.equal(list(y), { 7, 7, 7 })
  t.raises(function() pg.plain_every(pg.zeros { 2, 2 }, 2) end, "got 2 axes; expected one")
end)

test("plain: a layer and an optimizer train", function(t)
  local layer = nn.PlainGain { begin = 3 }
  local x = pg.tensor { { 1, 2 }, { 3, 4 } }
  t.equal(list(layer(x)), { { 3, 6 }, { 9, 12 } })
  local opt = optim.PlainDescent(layer:parameters(), { lr = 0.5 })
  for _ = 1, 2 do
    opt:zero_grad()
    layer(x):sum():backward()
    opt:step()
  end -- 3 - 0.5 * 4 - 0.5 * 8, and so on
  t.equal(list(layer.gain), { -3, -6 })
  t.raises(function() optim.PlainDescent(layer:parameters(), { lr = 0 }) end, "lr must be above 0")
  t.raises(function() nn.PlainGain { -1 } end, "features must be above 0")
end)

test("plain: files are written and read", function(t)
  with_path(".plain", function(path)
    pg.save(path, { a = pg.tensor { { 1, 2, 3 }, { 4, 5, 6 } }, b = pg.zeros { 0, 2 } }, { notes = { note = "kept" } })
    local read, note = pg.load(path)
    t.equal(list(read.a), { { 1, 2, 3 }, { 4, 5, 6 } })
    t.equal(tostring(read.b.shape), tostring(pg.zeros { 0, 2 }.shape))
    t.equal(note "note", "kept")
    local file = assert(io.open(path, "w"))
    file:write("OTHER 1")
    file:close()
    t.equal(t.raises(function() pg.load(path) end, "does not begin as such files do").code, "data_loss")
  end)
end)

test("sdk: attributes of every kind", function(t)
  local x = pg.tensor { { 1, 2 }, { 3, 6 } }
  t.equal(list(pg.sdk_axes(x, { axes = { 1 } })), { 2, 4 })
  t.equal(list(pg.sdk_axes(x, { axes = -1, keepdim = true, factor = 2 })), { { 3 }, { 9 } })
  t.equal(pg.sdk_axes(x, { power = "two" }):item(), 12.5)
  t.equal(pg.sdk_axes(x, { dtype = "float64" }).dtype, "float64")
  t.raises(function() pg.sdk_axes(x, { axes = 3 }) end, "axis 3 is out of range")
  t.equal(list(pg.sdk_gate(x, pg.tensor { 7, 8 }, { limit = 2 })), { { 7, 8 }, { 3, 6 } })
  t.equal(list(pg.sdk_gate(x, 0, { limit = 2 })), { { 0, 0 }, { 3, 6 } })
  t.equal(list(pg.sdk_gate(pg.tensor { 1, 9 }, -1, { limit = 5LL })), { -1, 9 })
end)

test("sdk: a view with symbols, gradients and writes", function(t)
  local x = pg.tensor { 1, 2, 3, 4 }
  local y = pg.sdk_tail(x, 2)
  y:add_(10)
  t.equal(list(x), { 1, 2, 13, 14 })
  local w, by = pg.tensor { 1, 2, 3 }:requires_grad_(), pg.tensor { 5, 6 }
  pg.sdk_tail(w):mul(by):sum():backward()
  t.equal(list(w.grad), { 0, 5, 6 })
  local z = pg.tensor { 1, 2, 3 }:requires_grad_() -- writes through the view are recorded by write_back
  local copy = z * 1
  pg.sdk_tail(copy):mul_(pg.tensor { 2, 3 })
  copy:sum():backward()
  t.equal(list(z.grad), { 1, 2, 3 })
  local sess = session(function(g)
    local v = g:placeholder { "v", shape = { "n", 2 } }
    return { y = pg.sdk_tail(v, 1) }
  end)
  t.equal(list(sess:run("y", { v = pg.tensor { { 1, 2 }, { 3, 4 } } })), { { 3, 4 } })
  sess:close()
  t.raises(function() pg.sdk_tail(x, 9) end, "skip is more than there are")
  t.raises(function() pg.sdk_tail(x, -1) end, "skip must not be negative, but is %-1")
end)

test("sdk: a layer of two inputs and outputs, an optimizer of two slots, checkpoints of both", function(t)
  local layer = nn.SdkMixer { begin = 0.25, shared = false }
  local a, b = pg.tensor { { 4, 8 } }, pg.tensor { { 0, 4 } }
  local mixed, difference = layer(a, b)
  t.equal(list(difference), { { 4, 4 } })
  t.equal(tostring(mixed.shape), tostring(a.shape))
  t.equal(list(layer.mix), { 0.25, 0.25 })
  local opt = optim.SdkHeavy(layer:parameters(), { lr = 0.5, momentum = 0.5, slow = true })
  local function step()
    opt:zero_grad()
    local y = layer(a, b)
    y:sum():backward()
    opt:step()
  end
  step()
  t.close(layer.mix, { 0.25 - 0.5 * 4 / 17, 0.25 - 0.5 * 4 / 17 }, 1e-6)
  local slots, weights = opt:state(), layer:state()
  for name, w in pairs(weights) do weights[name] = w:clone() end
  step()
  local want = list(layer.mix)
  opt:load_state(slots)
  layer:load_state(weights)
  step()
  t.equal(list(layer.mix), want)
  t.raises(function() optim.SdkHeavy(layer:parameters(), { momentum = 2 }) end, "momentum")
end)

test("sdk: files with options", function(t)
  with_path(".sdklines", function(path)
    pg.save(path, { lines = pg.tensor({ 1.5, -2 }, { dtype = "float64" }) })
    local read, note = pg.load(path)
    t.equal(list(read.lines), { 1.5, -2 })
    t.equal(note "count", "2")
    t.equal(list(pg.load(path, { scale = 3 }).lines), { 4.5, -6 })
    t.raises(function() pg.load(path, { scales = 3 }) end, "scale")
    t.raises(function() pg.save(path, { a = pg.zeros { 2 } }) end, "one tensor of float64")
  end)
end)
