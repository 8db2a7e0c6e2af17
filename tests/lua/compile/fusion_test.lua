-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions whose operators are joined into one kernel: the bits of eager code, what is never given memory,
-- and what is left alone. Where the device in force has no compiler only the bits are looked at. PERIGEE_FUSED says how
-- many random functions; PERIGEE_FUSED_ONE runs that one.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local fuses = require "fusing"()
local generator = require("draws").generator -- not of numbers that are compared

local INF, NAN = math.huge, 0 / 0

local text = require "bits"

-- Calls fn(i, ...) as it is and compiled, each on inputs of its own, and demands the same results and the same inputs
-- afterwards. Answers the compiled function.
local function compare(name, make, fn, calls)
  pg.manual_seed(7)
  local plain = make()
  pg.manual_seed(7)
  local mine = make()
  local step = pg.compile(fn)
  for i = 1, calls or 5 do
    local expected = { pcall(fn, i, unpack(plain)) }
    local got = { pcall(step, i, unpack(mine)) }
    for _, result in ipairs { expected, got } do
      if not result[1] then -- a compiled function meets it where a value is needed
        result[2] = tostring(result[2]):gsub("item: to_host: index_select: ", "")
        result[2] = result[2]:gsub(" %(number %d+%)", "") -- of the launch, where faults are told later
      end
    end
    local a, b = text(expected) .. " | " .. text(plain), text(got) .. " | " .. text(mine)
    a, b = a:gsub("%S-%.lua:%d+: ", ""), b:gsub("%S-%.lua:%d+: ", "")
    if a ~= b then
      local form = "%s, call %d:\n%s\n-- instead of\n%s\n%s"
      error(form:format(name, i, b:sub(1, 2000), a:sub(1, 2000), step:explain()), 0)
    end
  end
  return step
end

test("a chain is one kernel", function(t)
  t.uncompiled()
  local step = compare("chain", function() return { pg.randn { 5, 7 }, pg.randn { 5, 7 } } end, function(_, x, y)
    local a = (x * 2 + y):relu() - 0.5
    return (a * a):abs():sqrt():minimum(y):neg()
  end)
  local s = step:stats()
  t.ok(s.hits > 0 and s.launches >= 8, s.launches)
  if not fuses then return t.equal(s.kernels, s.launches) end
  t.equal(s.kernels, 1)
  t.equal(s.bytes, 0) -- nothing lies between the operators
  local line = ("one kernel of %s: "):format(pg.device():match "^%a+") ..
    "mul add relu sub mul abs sqrt minimum neg (2 inputs, 1 outputs)"
  t.ok(step:explain():find(line, 1, true))
end)

test("what is kept, and what others read, gets memory", function(t)
  t.uncompiled()
  local step = compare("kept", function() return { pg.randn { 33 }, pg.randn { 33 } } end, function(_, x, y)
    local a = x * y
    local b = a + 1
    local c = b:relu()
    return a, c, b:cumsum(1), (c - a):tanh()
  end)
  t.ok(step:stats().hits > 0)
  if not fuses then return end
  t.equal(step:stats().kernels, 3) -- the running sum reads what came before it, and stands alone
  t.equal(step:stats().regions[1].outputs, 3)
  t.equal(step:stats().regions[2].outputs, 1)
end)

test("numbers of each call", function(t)
  t.uncompiled()
  local step = compare("numbers", function() return { pg.randn { 100 } } end, function(i, x)
    return (x * (0.1 * i) + i):clamp(-i, 2 * i) / (i + 1)
  end)
  t.equal(step:stats().plans, 1)
  if fuses then t.equal(step:stats().kernels, 1) end
end)

test("no other device's plugin is loaded for its compiler", function(t)
  local process = require "process"
  local script = process.file [[
    local pg = require "perigee"
    local step = pg.compile(function(x) return (x + 1):relu() * 2 end)
    pg.device("cpu", function() for _ = 1, 4 do step(pg.ones { 8 }) end end)
    for _, plugin in ipairs(pg.plugins()) do
      if plugin.kinds:find "device" and plugin.state ~= "found" then print(plugin.name) end
    end
  ]]
  t.equal(process.run(("%s %s"):format(process.need_perigee(t), script)), "cpu\n")
end)

test("fuse=false joins nothing", function(t)
  t.uncompiled()
  local step = pg.compile(function(x) return (x + 1):relu() * 2 end, { fuse = false })
  for _ = 1, 4 do step(pg.ones { 3 }) end
  t.equal(step:stats().kernels, 3)
  t.ok(step:explain():find("fusion: off", 1, true))
end)

test("broadcast operands and views", function(t)
  t.uncompiled()
  for _, shape in ipairs { { 3, 4 }, { 300, 7 }, { 7, 300 }, { 2, 5, 400 }, { 1, 1 }, { 6 }, { 3, 0 } } do
    local rank = #shape
    local row, column = { unpack(shape) }, { unpack(shape) }
    row[1], column[rank] = 1, 1
    local turned = { unpack(shape) }
    turned[1], turned[rank] = shape[rank], shape[1]
    local name = table.concat(shape, "x")
    compare(name, function()
      return { pg.randn(shape), pg.randn(row), pg.randn(column), pg.randn(turned), pg.randn { 1 }:sum() }
    end, function(_, x, r, c, w, one)
      local y = (x + r) * c - one
      local z = y:maximum(rank > 1 and w:transpose(1, rank) or w)
      return z:exp() + r, z:gt(c), pg.where(z:lt(one), x, c)
    end)
  end
end)

test("writes in place", function(t)
  t.uncompiled()
  local step = compare("in place", function() return { pg.randn { 4, 5 }, pg.randn { 4, 5 } } end, function(_, x, y)
    local before = x * 1
    x:mul_(0.9):add_(y)
    local seen = x:t() * 1 -- another view: what was written must be there
    x[2]:sub_(1)
    y:copy_(x)
    y:add_(before)
    return seen, x + y
  end)
  if fuses then t.ok(step:stats().kernels < step:stats().launches) end
end)

test("copies that lie where the other's source did", function(t)
  t.uncompiled()
  for _, dtype in ipairs { "float32", "float64", "bfloat16" } do
    local step = compare("copies of " .. dtype, function()
      return { pg.randn({ 17, 17 }):to(dtype), pg.randn({ 17, 17 }):to(dtype), pg.randn({ 17, 17 }):to(dtype) }
    end, function(_, x, y, z)
      local a, b = x:matmul(y), y:matmul(z)
      local sum = a + b
      local p, q = b:clone(), a:clone()
      return p:matmul(q), sum
    end)
    if fuses then
      t.equal(step:stats().regions[1].operators, "add clone clone")
      t.equal(step:stats().regions[1].outputs, 3)
    end
  end
end)

test("chains of any length", function(t) -- what looks at all launches for each kernel would take minutes
  t.uncompiled()
  local step = compare("a long chain", function() return { pg.randn { 3 } } end, function(_, x)
    for _ = 1, 20000 do x = x * 1.0001 end
    return x
  end, 3)
  t.equal(step:stats().launches, 20000)
  t.equal(step:stats().kernels, fuses and math.ceil(20000 / 48) or 20000)
end)

test("a fault between writes finds what eager code has written", function(t)
  t.uncompiled()
  local step = compare("fault", function()
    return { pg.randn { 6 }, pg.tensor({ 1, 2, 3 }, { dtype = "int64" }) }
  end, function(i, x, index)
    x:mul_(2):add_(1)
    local picked = x:index_select(1, index + (i > 3 and 5 or 0))
    x:sub_(0.5):neg_()
    return picked:sum():item()
  end, 5)
  t.ok(step:stats().hits > 0)
end)

test("large results go past the caches", function(t)
  t.uncompiled()
  local n = 1024 * 1024 + 13
  local x = pg.randn { n }
  local fn = function() return (x * 2 + 1):relu() - x end
  local step = pg.compile(fn)
  for _ = 1, 3 do t.ok(step():eq(fn()):all():item()) end
  local half = x:to "bfloat16"
  local narrow = function()
    local y = (half * 2 + 1):relu() - half
    return y, y:gt(0)
  end
  step = pg.compile(narrow)
  for _ = 1, 3 do
    local a, b = step()
    local c, d = narrow()
    t.ok(a:eq(c):all():item())
    t.ok(b:eq(d):all():item())
  end
  if fuses then t.equal(step:stats().kernels, 1) end
end)

-- ---- random functions ----

local FLOATS, WHOLE = { "float32", "bfloat16", "float16", "float64" }, { "int32", "int64", "int8", "uint8", "int16" }

local UNARY = { "relu", "tanh", "sigmoid", "exp", "neg", "abs", "square", "sqrt", "log", "floor", "gelu", "silu",
                "sign", "reciprocal", "sin", "erf", "hardswish", "softplus", "relu6", "rsqrt", "trunc" }
local BINARY = { "add", "sub", "mul", "div", "maximum", "minimum", "atan2", "fmod", "copysign", "fmax" }
local WHOLE_UNARY = { "neg", "abs", "square", "sign", "bitwise_not", "relu" }
local WHOLE_BINARY = { "add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_xor" }
local COMPARE = { "eq", "ne", "lt", "le", "gt", "ge" }

local function random_function(seed)
  local draw = generator(seed)
  local real = draw(4) > 1
  local dtype = real and FLOATS[draw(#FLOATS)] or WHOLE[draw(#WHOLE)]
  local unary, binary = real and UNARY or WHOLE_UNARY, real and BINARY or WHOLE_BINARY
  local shapes = { { 5 }, { 3, 70 }, { 2, 3, 5 }, { 300 }, { 4, 1 }, { 0, 3 }, {}, { 2, 260 } }
  local shape = shapes[draw(#shapes)]
  local special = draw(3) == 1
  local steps = {}
  for k = 1, 3 + draw(12) do steps[k] = { draw(9), draw(64), draw(64), draw(64), draw(64) } end
  local results = {}
  for k = 1, draw(3) do results[k] = draw(64) end
  local other = real and dtype ~= "float64" and ({ "float32", "bfloat16", "float16" })[draw(3)] or dtype
  local function make()
    pg.manual_seed(seed)
    local function values(s)
      local n = #s == 0 and { 1 } or s
      local x = real and pg.randn(n) * 2 or pg.randint(-20, 20, n)
      if #s == 0 then x = x:sum() end
      if special and real and #s > 0 and x:numel() > 3 then
        x:reshape { -1 }[{ { 1, 4 } }]:copy_(pg.tensor { INF, -INF, NAN, -0.0 })
      end
      return x:to(dtype)
    end
    local row = { unpack(shape) }
    if #row > 1 then row[1] = 1 end
    return { values(shape), values(shape), values(row), values(shape) }
  end
  local function fn(i, a, b, c, d)
    local list, truths = { a, b, c, d }, { a:gt(b) }
    local function pick(n) return list[n % #list + 1] end
    for _, s in ipairs(steps) do
      local kind, x, y = s[1], pick(s[2]), pick(s[3])
      local made
      if kind <= 2 then
        made = x[unary[s[4] % #unary + 1]](x)
      elseif kind <= 4 then
        made = x[binary[s[4] % #binary + 1]](x, y)
      elseif kind == 5 then
        made = real and x * (0.25 * i) + 0.7 or x * 3 + i
      elseif kind == 6 then
        truths[#truths + 1] = x[COMPARE[s[4] % #COMPARE + 1]](x, y)
        if s[5] % 3 == 0 then truths[#truths + 1] = truths[#truths]:logical_and(truths[1]):logical_not() end
      elseif kind == 7 then
        local m = truths[s[4] % #truths + 1]
        made = s[5] % 2 == 0 and pg.where(m, x, y) or x:masked_fill(m, 3)
      elseif kind == 8 then
        if s[5] % 3 == 0 then
          d:add_(d)
        else
          made = s[5] % 3 == 1 and x:to(other):to(dtype) or truths[1]:to(dtype)
        end
      else
        made = s[5] % 2 == 0 and x:clamp(-2, 2) or x:sum(-1, true) * 1
      end
      if made then list[#list + 1] = made:to(dtype) end
    end
    local out = { list[#list], truths[#truths] }
    for k, n in ipairs(results) do out[k + 2] = pick(n) end
    return unpack(out)
  end
  return make, fn
end

test("memory that has been given back is not read", function(t)
  t.uncompiled()
  local x = pg.randn { 4096 }
  local step = pg.compile(function() return (x * 2 + 1):relu() end)
  for _ = 1, 4 do step() end
  t.ok(step:stats().hits > 0)
  if fuses then t.ok(step:stats().kernels < step:stats().launches) end
  native.dist.drop_memory(x)
  t.raises(function() step() end, "has been given back")
  native.dist.renew_memory(x)
  x:fill_(1)
  t.equal(step()[1]:item(), 3)
end)

test("memory that was taken again elsewhere is read there, where plans are captured", function(t)
  t.uncompiled()
  local device = pg.device() ~= "cpu" and pg.device() or pg.devices("sim")[1] and pg.devices("sim")[1].name
  if not device then t.skip("there is no second device") end
  pg.device(device, function()
    local x, w = pg.randn { 4096 }, pg.zeros { 4096 }
    local step = pg.compile(function()
      w:add_(x)
      return x * 2
    end)
    for _ = 1, 4 do step() end
    t.ok(step:stats().hits > 0)
    for _, moved in ipairs { x, w } do
      native.dist.drop_memory(moved)
      t.raises(function() step() end, "has been given back")
      local there = pg.full({ 4096 }, -7) -- where it was
      native.dist.renew_memory(moved)
      x:fill_(3)
      w:fill_(1)
      for i = 1, 3 do
        t.equal({ step():sum():item(), w:sum():item() }, { 6 * 4096, (1 + 3 * i) * 4096 })
      end
      t.equal(there:sum():item(), -7 * 4096)
    end
  end)
end)

test("random functions", function(t)
  t.uncompiled()
  local only = tonumber(os.getenv "PERIGEE_FUSED_ONE")
  local saved, total = 0, 0
  for seed = only or 1, only or tonumber(os.getenv "PERIGEE_FUSED") or 400 do
    local make, fn = random_function(seed)
    local step = compare("function " .. seed, make, fn, 4)
    local s = step:stats()
    saved, total = saved + (s.kernels < s.launches and 1 or 0), total + 1
  end
  t.ok(only or not fuses or saved > total / 4, ("operators were joined in %d of %d functions"):format(saved, total))
end)
