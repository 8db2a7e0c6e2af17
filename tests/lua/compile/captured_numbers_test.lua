-- SPDX-License-Identifier: Apache-2.0
-- Numbers that change from call to call, of every operator that takes some and in every dtype, where plans are
-- captured: the bits of eager code, whether a kernel finds them renewed on the device or the plan is cut around it.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local STEPS = 7

-- make(): a function of a step's number that gives a list of tensors.
local function trace(make, compiled)
  pg.manual_seed(5)
  return pg.device(DEVICE, function()
    local f = make()
    local step = compiled and pg.compile(f, { fuse = false }) or f
    local seen = {}
    for i = 1, STEPS do
      seen[i] = {}
      for k, y in ipairs(step(i)) do seen[i][k] = y:detach():cpu():to("float64"):totable() end
    end
    return seen, step
  end)
end

-- most: captures; each launch whose numbers it keeps can cost one, and those that change in one call cost one together.
local function same(name, most, make)
  test(name, function(t)
    local expected, got, step = trace(make, false), trace(make, true)
    local s = step:stats()
    for i = 1, STEPS do
      t.equal(#got[i], #expected[i])
      for k = 1, #expected[i] do
        local ok, problem = pcall(t.equal, got[i][k], expected[i][k])
        if not ok then error(("step %d, result %d: %s\n%s"):format(i, k, tostring(problem), step:explain()), 0) end
      end
    end
    t.ok(s.captures >= 1 and s.captures <= most and s.captured > 0, step:explain())
    t.ok(s.hits >= STEPS - 3, step:explain())
    if most == 1 then t.equal(s.pieces, 1, step:explain()) end
  end)
end

-- As they lie in memory, turned, and beginning off the packets' alignment.
local LAYOUTS = {
  dense = function(x) return x end,
  turned = function(x) return x:t() end,
  shifted = function(x) return x:narrow(2, 2, 8) end,
}
local FLOATS = { "float32", "float64", "float16", "bfloat16" }
local INTEGERS = { "int64", "int32", "int16", "int8", "uint8" }

local function each(what, dtypes, most, body)
  for _, dtype in ipairs(dtypes) do
    for layout, view in pairs(LAYOUTS) do
      same(("%s, %s, %s"):format(what, dtype, layout), most, function()
        local function tensor(low, high) return view(pg.randint(low, high, { 9, 10 }):to(dtype)) end
        return body(tensor, dtype)
      end)
    end
  end
end

each("numbers of float operators", FLOATS, 1, function(tensor)
  local x, y, z = tensor(-4, 5) * 0.75, tensor(-4, 5) * 0.5, tensor(1, 5)
  local mask = x:gt(0)
  return function(i)
    local k = i * 0.5
    return {
      x * k, k - x, x / k, pg.maximum(x, k), pg.minimum(x, -k), pg.fmax(x, k), x:gt(k), x:le(-k), x:eq(k),
      pg.where(mask, x, k), pg.where(mask, k, x), x:masked_fill(mask, k), pg.lerp(x, y, k),
      pg.addcmul(x, y, z, { value = k }), pg.addcdiv(x, y, z, { value = k }), x:clamp(-k, k),
      pg.hardtanh(x, { min_val = -k, max_val = k }), pg.leaky_relu(x, { negative_slope = k }),
      pg.elu(x, { alpha = k }), pg.celu(x, { alpha = k }), pg.softplus(x, { beta = k, threshold = 4 - k }),
      pg.threshold(x, { threshold = k, value = -k }), pg.hardshrink(x, { lambd = k }),
      pg.softshrink(x, { lambd = k }), pg.logit(x * 0.1 + 0.5, { eps = k * 0.05 }),
      pg.nan_to_num(x / 0, { nan = k, posinf = 2 * k, neginf = -k }), pg.copysign(x, -k),
    }
  end
end)

-- Kernels that note faults, or choose what they compute by the number, keep theirs.
each("numbers that powers and quotients keep", FLOATS, 3, function(tensor)
  local x = tensor(1, 6) * 0.5
  return function(i)
    local k = (i - 1) * 0.5
    return { x * 2 + 1, x:pow(k), pg.remainder(x, k + 1), pg.fmod(x, k + 1), pg.floor_div(x, k + 1), pg.atan2(x, k) }
  end
end)

each("numbers of integer operators", INTEGERS, 3, function(tensor)
  local x, y = tensor(0, 9), tensor(1, 4)
  local mask = x:gt(4)
  return function(i)
    return {
      x * i, x + i, pg.maximum(x, i), x:lt(i), x:ne(i), pg.where(mask, x, i), x:masked_fill(mask, i), x:clamp(i, i + 2),
      pg.addcmul(x, y, y, { value = i }), pg.floor_div(x, i), pg.remainder(x, i), pg.pow(y, i % 3),
    }
  end
end)

for _, dtype in ipairs(FLOATS) do
  same("numbers of what is made from nothing, " .. dtype, 1, function()
    local x = pg.ones({ 5, 6 }):to(dtype)
    return function(i)
      local options = { dtype = dtype }
      return {
        x * 2, pg.uniform({ 5, 6 }, { low = -i, high = i, dtype = dtype }), pg.rand({ 5, 6 }, options) * i,
        pg.normal({ mean = i, std = i * 0.5, shape = { 5, 6 }, dtype = dtype }), pg.randn({ 31 }, options),
        pg.randint(-i, i, { 5, 6 }), pg.dropout(x, i * 0.1), pg.dropout(x:t(), i * 0.1), x + 1,
      }
    end
  end)
end

same("numbers of sequences", 3, function()
  local x = pg.ones { 6 }
  return function(i)
    return {
      x * i, pg.arange(i, i + 6), pg.linspace(-i, i, 6), pg.full({ 6 }, i), pg.full({ 6 }, i, { dtype = "int64" }),
      x + i,
    }
  end
end)

-- Then it is a copy, and all of the mask.
for layout, view in pairs(LAYOUTS) do
  same("gradients of dropout in evaluation, " .. layout, 1, function()
    local x = view(pg.randn { 9, 10 }):detach()
    x.requires_grad = true
    return function(i)
      x.grad = nil
      local y = pg.dropout(x, { p = 0.3, training = false })
      local loss = (y * 3):sum()
      loss:backward()
      return { y, x.grad }
    end
  end)
end

-- Draws that the device does not find renewed are launched by themselves, and draw anew.
same("draws of other kernels", 1 + STEPS, function()
  local p = pg.rand { 8, 8 }
  return function(i) return { p * i + 1, pg.bernoulli(p), pg.randperm(32), (p + i) * 2 } end
end)

-- What every optimizer's numbers come to, on parameters of all dtypes, dense and not.
local RULES = { "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "Lion" }
for _, rule in ipairs(RULES) do
  same("the numbers of " .. rule, 2, function()
    local list = {}
    for _, dtype in ipairs(FLOATS) do
      list[#list + 1] = pg.randn({ 5, 6 }):to(dtype)
      list[#list + 1] = pg.randn({ 5, 6 }):to(dtype):t()
    end
    for _, w in ipairs(list) do w.requires_grad = true end
    local optimizer = pg.optim[rule](list, { lr = 0.1 })
    return function(i)
      optimizer.groups[1].lr = 0.1 / i
      optimizer:zero_grad()
      local loss = 0
      for _, w in ipairs(list) do loss = loss + (w * w):sum():to("float32") end
      loss:backward()
      optimizer:step()
      local seen = {}
      for k, w in ipairs(list) do seen[k] = w:detach():clone() end
      return seen
    end
  end)
end
