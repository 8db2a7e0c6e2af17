-- SPDX-License-Identifier: Apache-2.0
-- deterministic=true: every operator and whole trainings give the same bits with any number of threads. Driven from the
-- case table, from its large rows, and from products and convolutions that oneDNN would cut along what is summed.

local here = debug.getinfo(1, "S").source:match("^@(.*)kernels/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check, cases, large = require "cases.check", require "cases", require "cases.large"
local nn, optim = pg.nn, pg.optim

-- make() answers a list of tensors.
local function same_bits(t, make)
  if t.device and t.device ~= "cpu" then t.skip("of the processor's kernels") end
  local before, expected = pg.config.get(), nil
  pg.config.set { deterministic = true }
  local ok, problem = pcall(function()
    for _, threads in ipairs { 1, 2, 3 } do
      pg.config.set { threads = threads }
      pg.manual_seed(17)
      local list = make()
      local bytes = {}
      for i = 1, table.maxn(list) do bytes[i] = list[i] and native.host.bytes(list[i]:detach()) end
      expected = expected or bytes
      for i = 1, table.maxn(list) do
        if bytes[i] ~= expected[i] then error(("result %d differs with %d threads"):format(i, threads), 0) end
      end
    end
  end)
  pg.config.set { deterministic = before.deterministic, threads = before.threads }
  if not ok then error(problem, 0) end
end

-- ---- every operator ----

-- The outputs of a case, hidden ones too, and the gradients of what may have one.
local function results(op, row, case, drawn, dtype)
  local args = check.map_tensors(op, drawn, function(x) return x:clone() end)
  if not check.differentiable(op, row, case) or not native.dtypes.by_name[dtype].floating then
    return check.call(op, args, case.attrs, check.hides(op))
  end
  local leaves = check.leaves(op, row, case, args)
  for _, leaf in ipairs(leaves) do leaf.requires_grad = true end
  local list, total = check.call(op, args, case.attrs), nil
  for _, y in ipairs(list) do
    if y.requires_grad and native.dtypes.by_name[y.dtype].floating then
      local term = (y * (y:detach() + 0.5)):sum()
      total = total and total + term or term
    end
  end
  if not total then return list end
  local found = pg.grad(total, leaves, { allow_unused = true })
  if native.is_tensor(found) then found = { found } end
  for i = 1, #leaves do list[#list + 1] = found and found[i] or false end
  return list
end

local function dtype_of(op, row, case, wanted)
  for _, dtype in ipairs(wanted) do
    if check.takes(op, row, case, dtype) then return dtype end
  end
  return wanted[1]
end

local refused = { all_reduce = true } -- below

for _, name in ipairs(cases.names) do
  local op, row = native.operators.get(name), cases.rows[name]
  local list = {}
  for _, case in ipairs(op and not refused[name] and not check.is_absent(name) and row.cases or {}) do
    list[#list + 1] = case
  end
  for i, case in ipairs(large[name] or {}) do
    case.number = 100 + i
    list[#list + 1] = case
  end
  if #list > 0 then
    test("any number of threads: " .. name, function(t)
      for _, dtype in ipairs(large[name] and { "float32", "bfloat16" } or { "float32" }) do
        local drawn, used = {}, {}
        for i, case in ipairs(list) do
          used[i] = dtype_of(op, row, case, { dtype, "int64" })
          drawn[i] = check.tensors(op, case, used[i])
        end
        same_bits(t, function()
          local all = {}
          for i, case in ipairs(list) do
            for _, y in ipairs(results(op, row, case, drawn[i], used[i])) do all[#all + 1] = y end
          end
          return all
        end)
      end
    end)
  end
end

-- ---- where a library would share sums out ----

-- f's result and the gradients of its square by its arguments.
local function both_ways(list, f, ...)
  local leaves = { ... }
  for i, leaf in ipairs(leaves) do leaves[i] = leaf:detach():requires_grad_() end
  local y = f(unpack(leaves))
  list[#list + 1] = y
  for _, slope in ipairs { pg.grad((y * y):sum(), leaves) } do list[#list + 1] = slope end
end

test("any number of threads: products of many shapes", function(t)
  local shapes = { { 64, 64, 4096 }, { 17, 33, 5000 }, { 1, 64, 10000 }, { 3, 300, 1001 }, { 256, 128, 784 },
                   { 40, 512, 640 }, { 9, 30, 40 }, { 132, 640, 1700 } }
  for _, dtype in ipairs { "float32", "bfloat16", "float16", "float64" } do
    same_bits(t, function()
      local list = {}
      for _, s in ipairs(shapes) do
        local m, n, k = unpack(s)
        for _, turned in ipairs { 0, 1, 2 } do
          local a = turned == 1 and pg.randn { k, m }:to(dtype):transpose(1, 2) or pg.randn { m, k }:to(dtype)
          local b = turned == 2 and pg.randn { n, k }:to(dtype):transpose(1, 2) or pg.randn { k, n }:to(dtype)
          list[#list + 1] = pg.matmul(a, b)
        end
      end
      local bias = pg.randn { 120 }:to(dtype)
      both_ways(list, pg.linear, pg.randn { 130, 2000 }:to(dtype), pg.randn { 120, 2000 }:to(dtype), bias)
      both_ways(list, pg.matmul, pg.randn { 3, 50, 900 }:to(dtype), pg.randn { 3, 900, 60 }:to(dtype))
      both_ways(list, pg.matmul, pg.randn { 20, 2, 30, 40 }:to(dtype), pg.randn { 2, 40, 50 }:to(dtype))
      return list
    end)
  end
end)

test("any number of threads: convolutions of many shapes, both ways", function(t)
  -- n, channels, filters, side, taps, stride, padding, groups
  local shapes = { { 32, 1, 16, 28, 5, 1, 2, 1 }, { 8, 256, 64, 14, 1, 2, 0, 1 }, { 4, 16, 24, 28, 3, 1, 1, 1 },
                   { 2, 64, 64, 40, 3, 1, 1, 1 }, { 1, 32, 48, 40, 3, 1, 1, 1 }, { 5, 3, 64, 64, 7, 2, 3, 1 },
                   { 7, 24, 24, 30, 3, 1, 1, 8 }, { 6, 16, 16, 97, 3, 1, 1, 1 }, { 3, 5, 7, 33, 3, 2, 0, 1 },
                   { 4, 512, 512, 7, 3, 1, 1, 1 } }
  for _, dtype in ipairs { "float32", "bfloat16" } do
    same_bits(t, function()
      local list = {}
      for i, s in ipairs(shapes) do
        local n, c, o, side, k, stride, padding, groups = unpack(s)
        local attrs = { stride = stride, padding = padding, groups = groups }
        local x, w = pg.randn { n, c, side, side }:to(dtype), pg.randn { o, c / groups, k, k }:to(dtype)
        both_ways(list, function(a, b, bias) return pg.conv2d(a, b, bias, attrs) end, x, w,
                  pg.randn { o }:to(dtype))
        if i <= 5 then
          local last = x:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3)
          both_ways(list, function(a, b) return pg.conv2d(a, b, nil, attrs) end, last, w)
        end
      end
      return list
    end)
  end
  same_bits(t, function()
    local list = {}
    both_ways(list, pg.conv1d, pg.randn { 6, 20, 3000 }, pg.randn { 30, 20, 5 }, pg.randn { 30 })
    both_ways(list, pg.conv3d, pg.randn { 3, 8, 12, 20, 20 }, pg.randn { 16, 8, 3, 3, 3 }, pg.randn { 16 })
    both_ways(list, pg.conv_transpose2d, pg.randn { 6, 32, 20, 20 }, pg.randn { 32, 16, 3, 3 }, pg.randn { 16 })
    both_ways(list, pg.conv2d, pg.randn({ 4, 6, 30, 30 }):to("float64"), pg.randn({ 8, 6, 3, 3 }):to("float64"))
    both_ways(list, pg.conv2d_activation, pg.randn { 6, 16, 97, 95 }, pg.randn { 24, 16, 3, 3 }, pg.randn { 24 })
    return list
  end)
end)

test("any number of threads: layers of whole numbers", function(t)
  -- n, channels, filters, height, width, taps, stride, padding, groups
  local shapes = { { 360, 1, 16, 8, 8, 3, 1, 1, 1 }, { 50, 3, 9, 9, 7, 3, 2, 0, 1 }, { 40, 5, 8, 11, 6, 1, 1, 0, 1 },
                   { 9, 16, 33, 14, 14, 3, 1, 1, 1 }, { 20, 21, 24, 13, 5, 3, 1, 1, 1 },
                   { 5, 18, 16, 40, 3, 5, 1, 2, 1 }, { 6, 32, 48, 9, 9, 3, 1, 2, 2 }, { 300, 2, 8, 3, 3, 3, 1, 1, 1 },
                   { 3, 64, 64, 20, 20, 3, 1, 1, 1 } }
  for _, dtype in ipairs { "float32", "bfloat16" } do
    for _, activations in ipairs { "floating", "int8", "uint8" } do
      same_bits(t, function()
        local list = {}
        for _, s in ipairs(shapes) do
          local n, c, o, high, wide, k, stride, padding, groups = unpack(s)
          local weight = pg.randint(-127, 128, { o, c / groups * k * k }):to("int8")
          local x, scale = pg.randn({ n, c, high, wide }):to(dtype), (pg.rand { o, 1 } + 0.1):to(dtype)
          list[#list + 1] = pg.quantized_conv2d(x, weight, scale, pg.randn { o }:to(dtype), nil, nil,
                                                { kernel = { k, k }, stride = { stride }, padding = { padding },
                                                  groups = groups, activations = activations })
        end
        for _, s in ipairs { { 1, 40, 700 }, { 70, 33, 130 }, { 500, 9, 64 } } do
          local rows, outputs, inputs = unpack(s)
          local weight = pg.randint(-127, 128, { outputs, inputs }):to("int8")
          local x, scale = pg.randn({ rows, inputs }):to(dtype), (pg.rand { outputs, 1 } + 0.1):to(dtype)
          list[#list + 1] = pg.quantized_linear(x, weight, scale, pg.randn { outputs }:to(dtype), nil, nil,
                                                { activations = activations })
        end
        return list
      end)
    end
  end
end)

test("any number of threads: attention, recurrent layers, pooling and norms, both ways", function(t)
  for _, dtype in ipairs { "float32", "bfloat16" } do
    same_bits(t, function()
      local list = {}
      local function of(shape) return pg.randn(shape):to(dtype) end
      both_ways(list, function(q, k, v) return pg.scaled_dot_product_attention(q, k, v, { is_causal = true }) end,
                of { 1, 2, 301, 32 }, of { 1, 2, 301, 32 }, of { 1, 2, 301, 40 })
      both_ways(list, function(q, k, v) return pg.scaled_dot_product_attention(q, k, v) end, of { 2, 4, 70, 16 },
                of { 2, 4, 90, 16 }, of { 2, 4, 90, 16 })
      both_ways(list, function(x) return pg.layer_norm(x, { 1001 }) end, of { 300, 1001 })
      both_ways(list, function(x, w, b) return pg.layer_norm(x, { 130 }, w, b) end, of { 3000, 130 }, of { 130 },
                of { 130 })
      both_ways(list, function(x, w) return pg.rms_norm(x, { 130 }, w) end, of { 3000, 130 }, of { 130 })
      both_ways(list, function(x) return pg.group_norm(x, 4) end, of { 4, 16, 61, 63 })
      both_ways(list, function(x) return pg.max_pool2d(x, 3, { stride = 2, padding = 1 }) end, of { 4, 16, 61, 63 })
      both_ways(list, function(x) return pg.avg_pool2d(x, 3, { stride = 2, padding = 1 }) end, of { 4, 16, 61, 63 })
      both_ways(list, function(x) return x:interpolate { scale_factor = 1.7, mode = "bilinear" } end,
                of { 4, 16, 61, 63 })
      both_ways(list, function(x) return pg.embedding(x, pg.randint(0, 300, { 20000 })) end, of { 300, 20 })
      for _, mode in ipairs { "sum", "mean", "max" } do
        both_ways(list, function(x) return x:embedding_bag(pg.randint(0, 300, { 700, 30 }), { mode = mode }) end,
                  of { 300, 20 })
      end
      for _, mode in ipairs { "bicubic", "area" } do
        both_ways(list, function(x) return x:interpolate { size = { 40, 90 }, mode = mode } end, of { 4, 16, 61, 63 })
      end
      both_ways(list, function(x) return x:cumsum(1) end, of { 5000, 7 })
      both_ways(list, function(x) return x:norm() end, of { 300, 1001 })
      both_ways(list, function(x) return nn.cross_entropy(x, pg.randint(0, 517, { 700 })) end, of { 700, 517 })
      return list
    end)
  end
end)

-- ---- trainings ----

local function images()
  local Sequential, input, labels = nn.Sequential, pg.randn { 32, 1, 28, 28 }, pg.randint(0, 10, { 32 })
  local model = Sequential { nn.Conv2d { 1, 8, 5, padding = 2 }, nn.BatchNorm2d { 8 }, nn.ReLU {}, nn.MaxPool2d { 2 },
                             nn.Conv2d { 8, 16, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 }, nn.Flatten {},
                             nn.Linear { 784, 10 } }
  return model, function() return nn.cross_entropy(model(input), labels) end
end

local Block = nn.class "Block"
function Block:init(width)
  self.norm1, self.qkv, self.out = nn.LayerNorm { width }, nn.Linear { width, 3 * width }, nn.Linear { width, width }
  self.norm2, self.mlp = nn.LayerNorm { width },
    nn.Sequential { nn.Linear { width, 4 * width }, nn.GELU {}, nn.Linear { 4 * width, width } }
end
function Block:forward(x)
  local n, length, width = unpack(x.shape)
  local qkv = self.qkv(self.norm1(x)):reshape(n, length, 3, 2, width / 2):permute(3, 1, 4, 2, 5)
  local y = pg.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], { is_causal = true })
  x = x + self.out(y:transpose(2, 3):reshape(n, length, width))
  return x + self.mlp(self.norm2(x))
end

local function text()
  local tokens, labels = pg.randint(0, 50, { 8, 64 }), pg.randint(0, 50, { 512 })
  local model = nn.Sequential { nn.Embedding { 50, 64 }, Block(64), nn.LayerNorm { 64 }, nn.Linear { 64, 50 } }
  return model, function() return nn.cross_entropy(model(tokens):reshape(-1, 50), labels) end
end

local function matrices()
  local model = nn.Sequential { nn.Linear { 300, 120, bias = false }, nn.ReLU {},
                                nn.Linear { 120, 10, bias = false } }
  local x, labels = pg.randn { 64, 300 }, pg.randint(0, 10, { 64 })
  return model, function() return nn.cross_entropy(model(x), labels) end
end

local function train(make, name)
  local model, loss = make()
  local optimizer = optim[name] { model:parameters(), max_iter = name == "LBFGS" and 4 or nil }
  local list = {}
  for step = 1, 2 do
    local function closure()
      optimizer:zero_grad()
      local l = loss()
      l:backward()
      return l
    end
    if name == "LBFGS" then
      optimizer:step(closure)
    else
      list[step] = closure()
      optim.clip_grad_norm_(model:parameters(), 1)
      optimizer:step()
    end
  end
  for _, p in ipairs(model:parameters()) do list[#list + 1] = p end
  return list
end

local optimizers = native.optimizer_names()
for _, name in ipairs { "LAMB", "LARS", "Adafactor", "Muon", "LBFGS" } do optimizers[#optimizers + 1] = name end
for _, name in ipairs(optimizers) do
  test("any number of threads: a convolutional net and a GPT trained with " .. name, function(t)
    if name == "Muon" then return same_bits(t, function() return train(matrices, name) end) end
    same_bits(t, function() return train(images, name) end)
    same_bits(t, function() return train(text, name) end)
  end)
end

test("any number of threads: dropout, half precision, a plan of layers without gradients", function(t)
  same_bits(t, function()
    local model = nn.Sequential { nn.Conv2d { 3, 16, 3, padding = 1 }, nn.ReLU {}, nn.Dropout { 0.3 }, nn.Flatten {},
                                  nn.Linear { 16 * 32 * 32, 40 } }
    local x = pg.randn { 16, 3, 32, 32 }
    local loss = pg.amp.autocast("bfloat16", function() return model(x):square():mean() end)
    loss:backward()
    local list = { loss, pg.no_grad(function() return model(x) end) }
    for _, p in ipairs(model:parameters()) do list[#list + 1] = p.grad end
    return list
  end)
end)

-- ---- the setting ----

test("the setting tells, pg.reset takes it back, and what only a number of devices decides is refused", function(t)
  t.equal(pg.config.get().deterministic, false)
  local ok, problem = pcall(function()
    local x = pg.randn { 5 }
    native.call("all_reduce", { { x, x } }, {})
    pg.config.set { deterministic = true }
    t.equal(pg.config.get().deterministic, true)
    t.raises(function() native.call("all_reduce", { { x, x } }, {}) end,
             "all_reduce: adds up as many tensors as there are devices, and deterministic=true", "not_supported")
    native.call("all_reduce", { { x } }, {})
    native.call("all_reduce", { { x, x } }, { op = "max" })
    native.call("all_reduce", { { x:to("int64"), x:to("int64") } }, {})
  end)
  pg.reset()
  if not ok then error(problem, 0) end
  t.equal(pg.config.get().deterministic, false)
end)
