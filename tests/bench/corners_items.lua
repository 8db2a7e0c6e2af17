-- SPDX-License-Identifier: Apache-2.0
-- The items of corners.lua: a name, and what makes the function that is measured of Perigee. Each has its twin in
-- corners_torch.py.

local items = {}
local function item(name, make) items[#items + 1] = { name, make } end

-- Losses: a call, and a call with the way back to the prediction.
local kinds = {
  { "mse", "randn", "randn" }, { "l1", "randn", "randn" }, { "huber", "randn", "randn" },
  { "smooth_l1", "randn", "randn" }, { "bce", "rand", "rand" }, { "bce_with_logits", "randn", "rand" },
  { "kl_div", "logs", "rand" }, { "poisson_nll", "randn", "rand" }, { "soft_margin", "randn", "signs" },
  { "hinge_embedding", "randn", "signs" }, { "gaussian_nll", "randn", "randn" },
}
local function values(pg, kind, shape)
  if kind == "logs" then return pg.rand(shape):log() end
  if kind == "signs" then return pg.rand(shape):gt(0.5):to("float32") * 2 - 1 end
  return pg[kind](shape)
end
for _, size in ipairs { { 32, 10 }, { 1000, 1000 } } do
  for _, kind in ipairs(kinds) do
    local name = ("%s %dx%d"):format(kind[1], size[1], size[2])
    local function tensors(pg)
      local extra = kind[1] == "gaussian_nll" and pg.rand(size) + 0.5 or nil
      return values(pg, kind[2], size), values(pg, kind[3], size), extra
    end
    item(name, function(pg)
      local loss, x, y, v = pg.nn[kind[1]], tensors(pg)
      if v then return function() return loss(x, y, v) end end
      return function() return loss(x, y) end
    end)
    item(name .. ", back", function(pg)
      local loss, x, y, v = pg.nn[kind[1]], tensors(pg)
      x:requires_grad_()
      return function()
        x.grad = nil
        if v then loss(x, y, v):backward() else loss(x, y):backward() end
      end
    end)
  end
end

-- Images, lines and volumes at other sizes: a call, and a call with the way back.
local function resized(name, shape, options)
  item("interpolate " .. name, function(pg)
    local x = pg.randn(shape)
    return function() return pg.interpolate(x, options) end
  end)
  item("interpolate " .. name .. ", back", function(pg)
    local x = pg.randn(shape)
    local dy = pg.randn(pg.interpolate(x, options).shape)
    x:requires_grad_()
    return function()
      x.grad = nil
      pg.interpolate(x, options):backward(dy)
    end
  end)
end
for _, mode in ipairs { "nearest", "bilinear", "bicubic" } do
  resized(mode .. " 224 to 448", { 8, 3, 224, 224 }, { size = 448, mode = mode })
  resized(mode .. " 56 to 112", { 8, 64, 56, 56 }, { size = 112, mode = mode })
  resized(mode .. " 448 to 224", { 8, 3, 448, 448 }, { size = 224, mode = mode })
  resized(mode .. " by 0.5", { 8, 3, 224, 224 }, { scale_factor = 0.5, mode = mode })
  resized(mode .. " 4 to 8", { 1, 1, 4, 4 }, { size = 8, mode = mode })
end
resized("corners, bilinear 224 to 448", { 8, 3, 224, 224 }, { size = 448, mode = "bilinear", align_corners = true })
resized("corners, bicubic 224 to 448", { 8, 3, 224, 224 }, { size = 448, mode = "bicubic", align_corners = true })
resized("bilinear 224 to 300", { 8, 3, 224, 224 }, { size = 300, mode = "bilinear" })
resized("area 448 to 224", { 8, 3, 448, 448 }, { size = 224, mode = "area" })
resized("area 224 to 100", { 8, 3, 224, 224 }, { size = 100, mode = "area" })
resized("linear 1000 to 2000", { 8, 64, 1000 }, { size = 2000, mode = "linear" })
resized("trilinear by 2", { 2, 8, 16, 32, 32 }, { scale_factor = 2, mode = "trilinear" })

-- Bags of embeddings: of 8 to 50 rows, and two of a few.
local function bagged(name, entries, features, lengths, mode, weighed)
  local function make(pg)
    local starts, count = {}, 0
    for i, n in ipairs(lengths) do starts[i], count = count, count + n end
    local o = { offsets = pg.tensor(starts, { dtype = "int64" }), mode = mode,
                per_sample_weights = weighed and pg.rand { count } or nil }
    return pg.randn { entries, features }, pg.randint(0, entries, { count }), o
  end
  item("embedding_bag " .. name, function(pg)
    local weight, index, o = make(pg)
    return function() return pg.embedding_bag(weight, index, o) end
  end)
  item("embedding_bag " .. name .. ", back", function(pg)
    local weight, index, o = make(pg)
    local dy = pg.randn { #lengths, features }
    weight:requires_grad_()
    if weighed then o.per_sample_weights:requires_grad_() end
    return function()
      weight.grad = nil
      if weighed then o.per_sample_weights.grad = nil end
      pg.embedding_bag(weight, index, o):backward(dy)
    end
  end)
end
local lengths = {}
for i = 1, 512 do lengths[i] = 8 + i * 37 % 43 end
for _, kind in ipairs { { "sum", "sum" }, { "mean", "mean" }, { "max", "max" }, { "weighed", "sum", true } } do
  bagged(kind[1], 10000, 64, lengths, kind[2], kind[3])
  bagged("tiny " .. kind[1], 10, 4, { 2, 3 }, kind[2], kind[3])
end

-- Permutations.
for _, n in ipairs { 10, 1000, 100000, 10000000 } do
  item(("randperm of %d"):format(n), function(pg) return function() return pg.randperm(n) end end)
end

-- Functions of lines: many short ones, and lines of doubles. Each forwards, and with the way back.
local function line_item(name, shape, dtype, fn)
  item(name, function(pg)
    local x = pg.randn(shape, { dtype = dtype })
    local run = fn(pg, x)
    return function() return run(x) end
  end)
end
local function line_items(name, shape, dtype, fn)
  line_item(name, shape, dtype, fn)
  item(name .. ", back", function(pg)
    local x = pg.randn(shape, { dtype = dtype })
    local run = fn(pg, x)
    local dy = pg.rand(run(x).shape, { dtype = dtype })
    x:requires_grad_()
    return function()
      x.grad = nil
      run(x):backward(dy)
    end
  end)
end
local function method(name, option)
  return function() return function(x) return x[name](x, option) end end
end
local function softmax(name, axis)
  return function(pg) return function(x) return pg[name](x, axis) end end
end
local function norm(name)
  return function(pg, x)
    local weight, bias = pg.rand { x:size(2) }, pg.rand { x:size(2) }
    if name == "rms_norm" then return function(y) return pg.rms_norm(y, weight) end end
    return function(y) return pg.layer_norm(y, weight, bias) end
  end
end
local function cross_entropy(pg, x)
  local target = pg.randint(0, x:size(2), { x:size(1) })
  return function(y) return pg.nn.cross_entropy(y, target) end
end
for _, n in ipairs { 3, 8, 16, 33 } do
  local shape = { 100000, n }
  local function lines(name, fn) line_items(("%s of 100000x%d"):format(name, n), shape, "float32", fn) end
  lines("softmax", softmax("softmax", 2))
  lines("log_softmax", softmax("log_softmax", 2))
  lines("cross_entropy", cross_entropy)
  lines("layer_norm", norm("layer_norm"))
  lines("rms_norm", norm("rms_norm"))
  for _, name in ipairs { "sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std" } do
    lines(name, method(name, { axis = 2 }))
  end
  lines("norm", method("norm", { p = 2, axis = 2 }))
  line_item(("argmax of 100000x%d"):format(n), shape, "float32", method("argmax", { axis = 2 }))
end
for _, row in ipairs { { { 64, 1000, 64 }, 2 }, { { 1000, 1000 }, 1 }, { { 1000, 1000 }, 2 }, { { 100000, 8 }, 2 } } do
  local shape, axis = row[1], row[2]
  for _, name in ipairs { "softmax", "log_softmax" } do
    local title = ("%s of %s along %d, float64"):format(name, table.concat(shape, "x"), axis)
    line_items(title, shape, "float64", softmax(name, axis))
  end
end

-- Loops that drop what they make.
for _, n in ipairs { 1000, 10000, 25000, 100000, 300000, 1000000 } do
  item(("a + b of %d, dropped"):format(n), function(pg)
    local a, b = pg.rand { n }, pg.rand { n }
    return function() return a + b end
  end)
end
item("(a * b + c):relu() of 100000", function(pg)
  local a, b, c = pg.rand { 100000 }, pg.rand { 100000 }, pg.rand { 100000 }
  return function() return (a * b + c):relu() end
end)
item("c = a + b of 100000", function(pg)
  local a, b, c = pg.rand { 100000 }, pg.rand { 100000 }, nil
  return function() c = a + b return c end
end)

-- Tiny tensors.
item("zero_ of 4", function(pg)
  local a = pg.rand { 4 }
  return function() a:zero_() end
end)
item("fill_ of 4", function(pg)
  local a = pg.rand { 4 }
  return function() a:fill_(2) end
end)
item("a[1] = 0 of 4", function(pg)
  local a = pg.rand { 4 }
  return function() a[1] = 0 end
end)
item("a[{1, 2}] = 0 of 4x4", function(pg)
  local a = pg.rand { 4, 4 }
  return function() a[{ 1, 2 }] = 0 end
end)
item("a[{1, {}}] = 0 of 4x4", function(pg)
  local a = pg.rand { 4, 4 }
  return function() a[{ 1, {} }] = 0 end
end)
item("a[1] = row of 4x4", function(pg)
  local a, row = pg.rand { 4, 4 }, pg.rand { 4 }
  return function() a[1] = row end
end)
item("tril of 4x4", function(pg)
  local a = pg.rand { 4, 4 }
  return function() return a:tril() end
end)
item("triu of 4x4", function(pg)
  local a = pg.rand { 4, 4 }
  return function() return a:triu(1) end
end)
item("tril of 512x512", function(pg)
  local a = pg.rand { 512, 512 }
  return function() return a:tril() end
end)
item("pad of 4x4", function(pg)
  local a = pg.rand { 4, 4 }
  return function() return pg.pad(a, { 1, 1, 1, 1 }) end
end)
item("pad of 64x512", function(pg)
  local a = pg.rand { 64, 512 }
  return function() return pg.pad(a, { 1, 1, 1, 1 }) end
end)
item("stack of 2x4", function(pg)
  local a, b = pg.rand { 4 }, pg.rand { 4 }
  return function() return pg.stack { a, b } end
end)
item("stack of 8x4", function(pg)
  local list = {}
  for i = 1, 8 do list[i] = pg.rand { 4 } end
  return function() return pg.stack(list) end
end)
item("cat of 2x4", function(pg)
  local a, b = pg.rand { 4 }, pg.rand { 4 }
  return function() return pg.cat { a, b } end
end)
for _, mode in ipairs { "reflect", "replicate", "circular" } do
  item("pad, " .. mode .. ", of 4x4", function(pg)
    local a, options = pg.rand { 1, 4, 4 }, { mode = mode }
    return function() return pg.pad(a, { 1, 1, 1, 1 }, options) end
  end)
end
item("pad, reflect, of 16x64x64", function(pg)
  local a, options = pg.rand { 16, 64, 64 }, { mode = "reflect" }
  return function() return pg.pad(a, { 3, 3, 3, 3 }, options) end
end)
item("pad, reflect, back, of 16x64x64", function(pg)
  local a, options, dy = pg.rand({ 16, 64, 64 }, { requires_grad = true }), { mode = "reflect" }, pg.rand { 16, 70, 70 }
  return function()
    a.grad = nil
    pg.pad(a, { 3, 3, 3, 3 }, options):backward(dy)
  end
end)
item("pad, back, of 64x512", function(pg)
  local a, dy = pg.rand({ 64, 512 }, { requires_grad = true }), pg.rand { 66, 514 }
  return function()
    a.grad = nil
    pg.pad(a, { 1, 1, 1, 1 }):backward(dy)
  end
end)
item("cat of 2x4, axis=1", function(pg)
  local a, b = pg.rand { 4 }, pg.rand { 4 }
  return function() return pg.cat { a, b, axis = 1 } end
end)
item("cat of 8 4x4, axis 2", function(pg)
  local list = {}
  for i = 1, 8 do list[i] = pg.rand { 4, 4 } end
  return function() return pg.cat(list, 2) end
end)
item("stack of 8 64x64, axis 2", function(pg)
  local list = {}
  for i = 1, 8 do list[i] = pg.rand { 64, 64 } end
  return function() return pg.stack(list, 2) end
end)
item("a[2] of 4x4", function(pg)
  local a = pg.rand { 4, 4 }
  return function() return a[2] end
end)
item("a[{1, {2, 3}}] of 4x4", function(pg)
  local a = pg.rand { 4, 4 }
  return function() return a[{ 1, { 2, 3 } }] end
end)

-- What is done by one name, on 4 or 4x4 elements.
local function tiny(name, f)
  item(name .. ", tiny", function(pg)
    local a, b = pg.rand { 4, 4 }, pg.rand { 4, 4 }
    local run = f(pg, a, b)
    return run
  end)
end
tiny("clone", function(_, a) return function() return a:clone() end end)
tiny("copy_", function(_, a, b) return function() a:copy_(b) end end)
tiny("narrow", function(_, a) return function() return a:narrow(1, 2, 2) end end)
tiny("select", function(_, a) return function() return a:select(1, 2) end end)
tiny("split", function(_, a) return function() return a:split(2) end end)
tiny("chunk", function(_, a) return function() return a:chunk(2) end end)
tiny("unbind", function(_, a) return function() return a:unbind() end end)
tiny("where", function(pg, a, b)
  local c = a:gt(b)
  return function() return pg.where(c, a, b) end
end)
tiny("where with a number", function(pg, a, b)
  local c = a:gt(b)
  return function() return pg.where(c, a, 0) end
end)
tiny("masked_fill", function(_, a, b)
  local c = a:gt(b)
  return function() return a:masked_fill(c, 0) end
end)
tiny("flip", function(_, a) return function() return a:flip(1) end end)
tiny("roll", function(_, a) return function() return a:roll(1, 1) end end)
tiny("tile", function(_, a) return function() return a:tile(2, 2) end end)
tiny("repeat_interleave", function(_, a) return function() return a:repeat_interleave(2, 1) end end)
tiny("diag of a matrix", function(_, a) return function() return a:diag() end end)
tiny("diag of a vector", function(_, a)
  local row = a[1]:clone()
  return function() return row:diag() end
end)
tiny("diagonal", function(_, a) return function() return a:diagonal() end end)
tiny("one_hot", function(pg)
  local index = pg.tensor({ 0, 2, 1 }, { dtype = "int64" })
  return function() return index:one_hot(4) end
end)
tiny("arange", function(pg) return function() return pg.arange(4) end end)
tiny("zeros", function(pg) return function() return pg.zeros { 4 } end end)
tiny("ones", function(pg) return function() return pg.ones(4, 4) end end)
tiny("full", function(pg) return function() return pg.full({ 4 }, 2) end end)
tiny("zeros_like", function(pg, a) return function() return pg.zeros_like(a) end end)
tiny("full_like", function(pg, a) return function() return pg.full_like(a, 2) end end)
tiny("eye", function(pg) return function() return pg.eye(4) end end)
tiny("linspace", function(pg) return function() return pg.linspace(0, 1, 4) end end)
tiny("tensor", function(pg) return function() return pg.tensor { 1, 2, 3, 4 } end end)
tiny("expand and contiguous", function(_, a)
  local row = a[{ { 1, 1 } }]
  return function() return row:expand(4, 4):contiguous() end
end)
tiny("transpose and contiguous", function(_, a) return function() return a:t():contiguous() end end)
tiny("reshape", function(_, a) return function() return a:reshape(2, 8) end end)
tiny("unsqueeze", function(_, a) return function() return a:unsqueeze(1) end end)
tiny("permute", function(_, a) return function() return a:permute(2, 1) end end)
tiny("gather", function(pg, a)
  local index = pg.tensor({ { 0, 1 }, { 2, 3 } }, { dtype = "int64" })
  return function() return a:gather(index, 2) end
end)
tiny("index_select", function(pg, a)
  local index = pg.tensor({ 0, 2 }, { dtype = "int64" })
  return function() return a:index_select(index, 1) end
end)
tiny("to float64", function(_, a) return function() return a:to "float64" end end)
tiny("item", function(_, a)
  local one = a:sum()
  return function() return one:item() end
end)

return items
