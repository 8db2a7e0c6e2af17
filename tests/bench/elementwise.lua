-- SPDX-License-Identifier: Apache-2.0
-- Every elementwise operator against PyTorch: perigee tests/bench/elementwise.lua [--threads N] [--rounds N]
-- [--size N]... [--dtype NAME]... [--python FILE] [PATTERN...]. Perigee and PyTorch take turns; a row is an operator on
-- dense tensors of one size and dtype: nanoseconds of processor time an element on either side, and the ratio (median,
-- least and most of the rounds; below 1: Perigee needs less), the worst ratio first.

local options = { threads = 1, rounds = 3, size = {}, dtype = {}, python = "/usr/bin/python3" }
local patterns = {}
local at = 1
while arg[at] do
  local name = arg[at]:match("^%-%-(%a+)$")
  if not name then
    table.insert(patterns, arg[at])
  else
    at = at + 1
    local value = assert(arg[at], "a value is missing")
    if type(options[name]) == "table" then
      table.insert(options[name], value)
    else
      assert(options[name], "no such option: " .. name)
      options[name] = name == "python" and value or tonumber(value)
    end
  end
  at = at + 1
end
if #options.size == 0 then options.size = { "4096", "4194304" } end
if #options.dtype == 0 then options.dtype = { "float32", "bfloat16", "float16" } end

local pg = require "perigee"
local native = require "perigee.native"
pg.config.set { threads = options.threads }
local folder = arg[0]:match("^(.*)/[^/]*$") or "."

local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do table.insert(list, word) end
  return list
end

-- By what the operand must be: any number, positive, within -0.9 to 0.9, above 1. elementwise_torch.py has the same.
local unary = {
  x = words [[neg abs sign square relu nan_to_num reciprocal exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh erf
              erfc sigmoid floor ceil round trunc frac deg2rad rad2deg sinc isnan isinf isfinite signbit logical_not
              relu6 hardtanh silu gelu softplus elu celu selu mish logsigmoid tanhshrink hardshrink softshrink softsign
              hardswish hardsigmoid leaky_relu]],
  positive = words "sqrt rsqrt log log1p log2 log10 lgamma digamma",
  unit = words "asin acos atanh erfinv",
  above = words "acosh",
}
local binary = words [[add sub mul div maximum minimum pow remainder fmod floor_div fmax fmin atan2 hypot copysign
                       logaddexp logaddexp2 xlogy eq lt logical_and]]
-- Slopes take x (or the result y, for which x does as well) and the cotangent.
local slopes = {
  relu_grad = {}, hardtanh_grad = { min = -1, max = 1 }, leaky_relu_grad = { negative_slope = 0.01 },
  elu_grad = { alpha = 1 }, sigmoid_grad = {}, tanh_grad = {}, silu_grad = {}, softplus_grad = {}, mish_grad = {},
  hardswish_grad = {}, gelu_grad = {},
}

local function wanted(name)
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
  return #patterns == 0
end

local function make_items(size, dtype)
  pg.manual_seed(1)
  local x, d = pg.randn { size }:to(dtype), pg.rand { size }:to(dtype)
  local operands = {
    x = x,
    positive = (x:float():abs() + 0.01):to(dtype),
    unit = (d:float() * 1.8 - 0.9):to(dtype),
    above = (d:float() + 1):to(dtype),
  }
  local items = {}
  for kind, names in pairs(unary) do
    for _, name in ipairs(names) do
      local operand, op = operands[kind], pg[name]
      items[name] = function() return op(operand) end
    end
  end
  for _, name in ipairs(binary) do
    local op, a = pg[name], operands.positive
    items[name] = function() return op(a, d) end
  end
  for name, attrs in pairs(slopes) do
    items[name] = function() return native.call(name, { x, d }, attrs) end
  end
  items.gelu_tanh = function() return pg.gelu(x, { approximate = "tanh" }) end
  items.gelu_tanh_grad = function() return native.call("gelu_grad", { x, d }, { approximate = "tanh" }) end
  items.clamp = function() return x:clamp(-1, 1) end
  items.addcmul = function() return pg.addcmul(x, d, operands.positive) end
  items.addcdiv = function() return pg.addcdiv(x, d, operands.positive) end
  items.lerp = function() return pg.lerp(x, d, operands.positive) end
  items["relu in place"] = function() return operands.positive:relu_() end
  items["add a number"] = function() return x + 1.5 end
  items["pow 3"] = function() return x ^ 3 end
  return items
end

-- Nanoseconds of processor time an element, the best of some samples.
local function measure(fn, size)
  local calls = math.max(1, math.floor(65536 / size))
  local best, samples, spent = math.huge, 0, 0
  local before = fn() -- plans, pools
  while samples < 3 or (spent < 0.02 and samples < 20) do
    local start = os.clock()
    for _ = 1, calls do
      local y = fn()
      if not rawequal(y, before) then y:free() end
    end
    local time = os.clock() - start
    best, samples, spent = math.min(best, time), samples + 1, spent + time
  end
  return best / calls / size * 1e9
end

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

local results, order = {}, {}
local function note(dtype, size, name, side, value)
  local key = ("%s\t%s\t%s"):format(name, dtype, size)
  if not results[key] then
    results[key] = { own = {}, other = {}, ratio = {}, name = name, dtype = dtype, size = size }
    table.insert(order, key)
  end
  table.insert(results[key][side], value)
end

local function own_turn()
  for _, dtype in ipairs(options.dtype) do
    for _, size in ipairs(options.size) do
      for name, fn in pairs(make_items(tonumber(size), dtype)) do
        if wanted(name) then note(dtype, size, name, "own", measure(fn, tonumber(size))) end
      end
      collectgarbage("collect")
    end
  end
end

local function other_turn()
  local command = ("OMP_NUM_THREADS=%d OMP_PROC_BIND=true MALLOC_MMAP_THRESHOLD_=4294967296 " ..
    "MALLOC_TRIM_THRESHOLD_=4294967296 %s %s/elementwise_torch.py %d %s %s 2>/dev/null"):format(
    options.threads, options.python, folder, options.threads, table.concat(options.size, ","),
    table.concat(options.dtype, ","))
  local pipe = assert(io.popen(command))
  for line in pipe:lines() do
    local name, dtype, size, ns = line:match("^([^\t]+)\t(%w+)\t(%d+)\t([%d.]+)$")
    if name and wanted(name) then note(dtype, size, name, "other", tonumber(ns)) end
  end
  pipe:close()
end

for _ = 1, options.rounds do
  other_turn()
  own_turn()
  for _, row in pairs(results) do
    local own, other = row.own[#row.own], row.other[#row.other]
    if own and other then table.insert(row.ratio, own / other) end
  end
end

for _, key in ipairs(order) do
  local row = results[key]
  row.middle = #row.ratio > 0 and median(row.ratio) or 0
end
table.sort(order, function(a, b) return results[a].middle > results[b].middle end)
print(("%-16s %-9s %8s %9s %9s   %s"):format("operator", "dtype", "size", "Perigee", "PyTorch",
                                                  "ratio (least to most)"))
for _, key in ipairs(order) do
  local row = results[key]
  if #row.own > 0 and #row.other > 0 then
    print(("%-16s %-9s %8s %9.3f %9.3f   %.2f (%.2f to %.2f)"):format(row.name, row.dtype, row.size, median(row.own),
      median(row.other), row.middle, row.ratio[1], row.ratio[#row.ratio]))
  end
end
