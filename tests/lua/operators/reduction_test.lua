-- SPDX-License-Identifier: Apache-2.0
-- Reductions are dealt out in many ways, by shape, strides and alignment: on shapes drawn at random, odd ones and long
-- ones, turned, stepped and off an aligned address, a device finds what the CPU finds.

local pg = require "perigee"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local ROUNDS = DEVICE:find "^sim" and 2 or 6 -- of each dtype
local SIZES = { 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 47, 64, 65, 100, 127, 129, 255, 257, 300, 513, 1025,
  2049, 4099 }
local TOLERANCE = { float64 = 1e-11, float32 = 1e-5, float16 = 2e-3, bfloat16 = 1.6e-2 }

-- Random choices that are the same on every machine.
local state
local function random(n)
  state = (state * 16807) % 2147483647
  return state % n + 1
end
local function pick(list) return list[random(#list)] end

local function draw_shape(limit)
  local shape, count = {}, 1
  for i = 1, random(4) do
    local size
    repeat size = pick(SIZES) until count * size <= limit or size == 1
    shape[i], count = size, count * size
  end
  return shape
end

-- What is done to a dense tensor to get a view of it: the same on either device.
local function draw_view(shape)
  local steps, rank = {}, #shape
  if random(2) == 1 and rank > 1 then
    local i, j = random(rank), random(rank)
    if i ~= j then steps[1] = function(x) return x:transpose(i, j) end end
  end
  local axis, range = random(rank), pick { { 2, -1 }, { 1, -1, 2 }, { 2, -1, 2 }, { 3, -1 }, { 2, -2 } }
  if random(5) < 3 then
    steps[#steps + 1] = function(x)
      if x.shape[axis] < 4 then return x end
      local index = {}
      for i = 1, rank do index[i] = i == axis and range or {} end
      return x[index]
    end
  end
  return function(x)
    for _, step in ipairs(steps) do x = step(x) end
    return x
  end
end

-- The largest difference, relative to the largest element.
local function compare(got, want, allowed, what)
  got, want = got:cpu():to("float64"):reshape(-1), want:cpu():to("float64"):reshape(-1)
  if want:numel() == 0 then return end
  if got:isnan():ne(want:isnan()):any():item() then error(what .. ": NaN in other places", 0) end
  local difference = ((got - want):abs() / want:abs():amax():clamp { min = 1e-3 }):amax():item()
  if difference > allowed then error(("%s: off by %.3g, allowed %.3g"):format(what, difference, allowed), 0) end
end

-- f(x) -> tensors, of the same x on the CPU and on the device.
local function agree(what, x, view, allowed, f)
  local want = { f(view(x), "cpu") }
  local got = { f(view(x:to(DEVICE)), DEVICE) }
  for i, y in ipairs(got) do compare(y, want[i], allowed, ("%s, result %d"):format(what, i)) end
end

-- Gradients under a cotangent that depends on the place; f(leaf, weight, bias) where `channels` are given.
local function gradients(f, channels)
  return function(x, device)
    local leaves = { x:detach():clone():requires_grad_() }
    if channels then
      leaves[2] = pg.ones({ x.shape[channels] }, { dtype = x.dtype, device = device }):requires_grad_()
      leaves[3] = pg.zeros({ x.shape[channels] }, { dtype = x.dtype, device = device }):requires_grad_()
    end
    local y = f(unpack(leaves))
    pg.manual_seed(5)
    local d = pg.rand({ y:numel() }, { dtype = "float32", device = "cpu" }):to(device):to(x.dtype)
    local total = (y * d:reshape(y.shape)):sum()
    total:backward()
    for i, leaf in ipairs(leaves) do leaves[i] = leaf.grad end
    return unpack(leaves)
  end
end

local function reductions(dtype, x, view, rank)
  local floating, allowed = TOLERANCE[dtype] ~= nil, TOLERANCE[dtype] or 0
  local axes, seen = {}, {}
  for _ = 1, random(rank + 1) - 1 do
    local axis = random(rank)
    if not seen[axis] then axes[#axes + 1], seen[axis] = axis, true end
  end
  local names = floating and { "sum", "mean", "amax", "amin", "any", "all", "logsumexp", "var", "std" }
    or { "sum", "amax", "amin", "any", "all" }
  for _, name in ipairs(names) do
    local more = (name == "var" or name == "std") and 5 or 1
    agree(name, x, view, allowed * more, function(v) return pg[name](v, { axes = axes }) end)
  end
  if dtype == "bool" then return end
  local axis = random(rank)
  for _, name in ipairs { "argmax", "argmin" } do
    agree(name, x, view, 0, function(v) return pg[name](v), pg[name](v, { axis = axis }) end)
  end
  agree("cumsum", x, view, allowed, function(v) return pg.cumsum(v, { axis = axis }) end)
end

local function lines(dtype, x, view, rank)
  local allowed, axis = TOLERANCE[dtype], random(rank)
  agree("softmax", x, view, allowed, function(v) return pg.softmax(v, { axis = axis }) end)
  agree("log_softmax", x, view, allowed, function(v) return pg.log_softmax(v, { axis = axis }) end)
  agree("layer_norm", x, view, allowed * 5,
        function(v) return pg.layer_norm(v, nil, nil, { dims = math.min(2, rank) }) end)
  agree("gradient of layer_norm", x, view, allowed * 100, gradients(pg.layer_norm, rank))
  local several = view(x):numel() > (rank > 1 and view(x).shape[2] or 0)
  if rank < 2 or not several then return end
  agree("gradient of batch_norm", x, view, allowed * 100, gradients(function(v, weight, bias)
    return pg.batch_norm(v, weight, bias, nil, nil, { training = true })
  end, 2))
  local smoothing, reduction = pick { 0, 0.1 }, pick { "mean", "sum" }
  agree("cross_entropy and its gradient", x, view, allowed * 30, function(v, device)
    local shape, classes = {}, v.shape[2]
    for i, size in ipairs(v.shape) do
      if i ~= 2 then shape[#shape + 1] = size end
    end
    pg.manual_seed(5)
    local target = pg.randint(0, classes, shape, { device = "cpu" }):to(device)
    local weight = pg.rand({ classes }, { dtype = "float64", device = "cpu" }):to(dtype):to(device)
    local leaf = v:detach():clone():requires_grad_()
    local loss = pg.cross_entropy(leaf, target, weight,
                                  { label_smoothing = smoothing, ignore_index = 1, reduction = reduction })
    loss:backward()
    return loss, leaf.grad
  end)
end

for number, dtype in ipairs { "float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool" } do
  for round = 1, ROUNDS do
    test(("reduction/%s/%d"):format(dtype, round), function()
      state = number * 1000 + round
      for _ = 1, 5 do random(2) end -- small seeds start alike
      local shape = draw_shape(pick { 200, 5000, 40000 })
      pg.manual_seed(state)
      local x = pg.device("cpu", function()
        local numbers = TOLERANCE[dtype] and pg.randn(shape, { dtype = "float64" }) or pg.randint(0, 5, shape)
        if random(3) == 1 and TOLERANCE[dtype] then numbers = numbers * 3 + 100 end
        return numbers:to(dtype)
      end)
      local view = draw_view(shape)
      reductions(dtype, x, view, #shape)
      if TOLERANCE[dtype] then lines(dtype, x, view, #shape) end
    end)
  end
end

-- Columns are folded as they lie.
test("sums, means and extremes of bfloat16 columns are those of the float32 numbers", function(t)
  if pg.device() ~= "cpu" then t.skip "of the processor's kernels" end
  for _, shape in ipairs { { 1, 3 }, { 7, 5 }, { 33, 64, 2 }, { 300, 1500 }, { 2100, 65 } } do
    for _, way in ipairs { "dense", "every other column", "every other row", "with NaN" } do
      local x = pg.randn(shape):to "bfloat16"
      if way == "every other column" then x = x[{ {}, { 1, -1, 2 } }] end
      if way == "every other row" then x = x[{ { 1, -1, 2 } }] end
      if way == "with NaN" then x[1][1], x[-1][-1] = 0 / 0, math.huge end
      local wide = x:to "float32"
      for _, name in ipairs { "sum", "mean", "amax", "amin" } do
        local got, expected = x[name](x, { 1 }), wide[name](wide, { 1 }):to "bfloat16"
        t.ok(pg.allclose(got:to "float32", expected:to "float32", { rtol = 0, atol = 0, equal_nan = true }),
             ("%s of {%s}, %s"):format(name, table.concat(shape, ", "), way))
      end
    end
  end
end)
