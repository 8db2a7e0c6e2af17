-- SPDX-License-Identifier: Apache-2.0
-- Cases of a size that is dealt out to several threads, by operator: simulated device against CPU,
-- which share no loops.

local S = require "cases.specs"
local F, D, I, B, V = S.F, S.D, S.I, S.B, S.V

local wide, long = { 130, 517 }, { 70001 }
local cases = {}

local function add(name, ...) cases[name] = { ... } end
local function add_more(name, ...)
  cases[name] = cases[name] or {}
  for _, case in ipairs { ... } do table.insert(cases[name], case) end
end

for _, name in ipairs { "add", "sub", "mul", "div", "maximum", "minimum", "remainder", "floor_div", "eq", "lt",
                        "logical_and", "atan2" } do
  local positive = function(shape) return F(shape, 0.5, 3) end
  add(name, { F(wide), positive(wide) }, { F(wide), positive { 517 } }, { F { 130, 1 }, positive { 517 } },
      { F(long), 1.5 })
end
add("pow", { F(wide, 0.5, 3), F(wide) }, { F(wide), 2 }, { F(wide), 3 })
for _, name in ipairs { "neg", "abs", "sign", "square", "exp", "expm1", "sin", "cos", "tanh", "erf", "erfc", "sigmoid",
                        "relu", "silu", "softplus", "floor", "round", "isnan", "logical_not", "atan", "elu",
                        "leaky_relu", "clone" } do
  add(name, { F(wide) }, { F(long, -8, 8) })
end
-- Far below 0, 1 + erf(x) is a few units of erf's last place, which devices round each in their own way.
add("gelu", { F(wide) }, { F(long, -8, 8), within = "sum" })
for _, name in ipairs { "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal" } do add(name,
  { F(long, 0.01, 50) }) end
add("clamp", { F(wide), attrs = { min = -1, max = 1 } })
add("where", { B(wide), F(wide), F { 517 } })
add("masked_fill", { F(wide), B { 130, 1 }, attrs = { value = 2 } })

for _, name in ipairs { "sum", "mean", "prod", "amax", "amin", "logsumexp", "any", "all", "var", "std" } do
  local spec = name == "prod" and function(s) return F(s, 0.97, 1.03) end or F
  add(name, { spec(wide) }, { spec(wide), attrs = { axes = { 1 } } }, { spec(wide), attrs = { axes = { 2 } } },
      { spec { 40, 33, 52 }, attrs = { axes = { 2 } } }, { spec { 40, 33, 52 }, attrs = { axes = { 1, 3 } } })
end
for _, name in ipairs { "argmax", "argmin" } do
  add(name, { D(long) }, { D(wide), attrs = { axis = 1, flat = false } },
    { D(wide), attrs = { axis = 2, flat = false } })
end
add("cumsum", { F(wide), attrs = { axis = 1 } }, { F(wide), attrs = { axis = 2 } })
add("cumprod", { F(wide, 0.97, 1.03), attrs = { axis = 1 } })
add("sum_like", { F(wide), F { 517 } }, { F(wide), F { 130, 1 } })

add("cat", { { F(wide), F { 70, 517 } }, attrs = { axis = 1 } }, { { F(wide), F { 130, 9 } }, attrs = { axis = 2 } })
add("gather", { F(wide), I({ 130, 700 }, 0, 516), attrs = { axis = 2 } },
  { F(wide), I({ 99, 517 }, 0, 129), attrs = { axis = 1 } })
add("gather_grad", { F { 130, 700 }, I({ 130, 700 }, 0, 516), F(wide), attrs = { axis = 2 } })
add("index_select", { F(wide), I({ 700 }, 0, 129), attrs = { axis = 1 } },
  { F(wide), I({ 700 }, 0, 516), attrs = { axis = 2 } })
add("index_select_grad", { F { 700, 517 }, I({ 700 }, 0, 129), F(wide), attrs = { axis = 1 } })
add("embedding", { F { 300, 65 }, I({ 40, 50 }, 0, 299) })
add("embedding_grad", { F { 40, 50, 65 }, I({ 40, 50 }, 0, 299), F { 300, 65 } })
for _, mode in ipairs { "sum", "mean" } do
  local function attrs() return { mode = mode } end
  add_more("embedding_bag", { F { 300, 65 }, I({ 90, 50 }, 0, 299), false, false, attrs = attrs() })
  add_more("embedding_bag_grad", { F { 90, 65 }, I({ 90, 50 }, 0, 299), false, false, F { 300, 65 }, attrs = attrs() })
end
add_more("embedding_bag", { F { 300, 65 }, I({ 90, 50 }, 0, 299), false, F { 90, 50 } })
add_more("embedding_bag_grad", { F { 90, 65 }, I({ 90, 50 }, 0, 299), false, F { 90, 50 }, F { 300, 65 } })
add("embedding_bag_grad_weights", { F { 90, 65 }, F { 300, 65 }, I({ 90, 50 }, 0, 299), false })
add("embedding_bag_max", { F { 300, 65 }, I({ 90, 50 }, 0, 299), false })
add("embedding_bag_max_grad", { F { 900, 65 }, I({ 900, 65 }, -1, 299), F { 300, 65 } })
add("masked_select", { F(wide), B(wide) })
add("nonzero", { V(long, { 0, 1, 0, 0, 2, 3, 0 }) })
add("one_hot", { I({ 5000 }, 0, 16), attrs = { classes = 17 } })

add("index", { F { 70, 80, 9 }, { I({ 9000 }, 0, 69), I({ 9000 }, 0, 79) } },
  { F(wide), { I({ 90000 }, 0, 129), I({ 90000 }, 0, 516) } }, { F { 40, 130, 60 }, { I({ 30, 40 }, 0, 129) },
    attrs = { axis = 2 } })
-- Few rows in front, many behind, one place a target, and indices that every thread must look at.
for _, accumulate in ipairs { false, true } do
  local function attrs(axis) return { axis = axis, accumulate = accumulate } end
  add_more("index_put", { F(wide), { I({ 90000 }, 0, 129), I({ 90000 }, 0, 516) }, F { 90000 }, attrs = attrs(1) },
           { F { 300, 333 }, { I({ 400 }, 0, 299) }, F { 400, 333 }, attrs = attrs(1) },
           { F { 2, 70, 7 }, { I({ 90, 70 }, 0, 69) }, F { 2, 90, 1, 7 }, attrs = attrs(2) },
           { F { 90, 30, 40 }, { I({ 60 }, 0, 29) }, F {}, attrs = attrs(2) })
end
for _, name in ipairs { "scatter", "scatter_add" } do
  add(name, { F(wide), I({ 130, 700 }, 0, 516), F { 130, 700 }, attrs = { axis = 2 } },
      { F(wide), I({ 300, 517 }, 0, 129), F { 300, 517 }, attrs = { axis = 1 } },
      { F { 5000 }, I({ 70001 }, 0, 4999), F(long), attrs = { axis = 1 } },
      { F { 3, 40, 5 }, I({ 3, 9000, 5 }, 0, 39), F { 3, 9000, 5 }, attrs = { axis = 2 } })
end
for _, reduce in ipairs { "prod", "mean", "amax", "amin" } do
  local spread = function(shape) return F(shape, 0.97, 1.03) end
  for _, include_self in ipairs { true, false } do
    local function attrs(axis) return { axis = axis, reduce = reduce, include_self = include_self } end
    add_more("scatter_reduce", { spread { 5000 }, I({ 70001 }, 0, 4999), spread(long), attrs = attrs(1) },
             { spread(wide), I({ 300, 517 }, 0, 129), spread { 300, 517 }, attrs = attrs(1) })
  end
end
for _, name in ipairs { "sort", "argsort" } do
  add(name, { F(wide) }, { F(wide), attrs = { axis = 1, descending = true } }, { F(long) },
      { F { 140001 }, attrs = { descending = true } }, { V(long, { 3, 1, 2, 3, 0 }) })
end
add("topk", { F(wide), attrs = { k = 5 } }, { F(long), attrs = { k = 300 } },
    { F(wide), attrs = { k = 100, axis = 1 } })
add("kthvalue", { F(wide), attrs = { k = 200 } })
add("median", { F(wide) }, { F(wide), attrs = { axis = 1 } })
add("mode", { V(wide, { 1, 2, 3, 2, 5, 3, 3, 7, 1 }) })
add("unique_rows", { V(long, { 3, 0.5, 2, 3, 0 }) }, { F(long) }, { V({ 9000, 3 }, { 1, 0, 1, 1, 0, 2, 2 }) })
add("searchsorted", { V({ 5 }, { 0, 0, 1, 2, 3 }), F(long) }, { V({ 90, 3 }, { 1, 2, 3 }), F { 90, 800 } })
add("unfold", { F(wide), attrs = { axis = 2, size = 7, step = 3 } })
add("unfold_grad", { F { 130, 171, 7 }, F(wide), attrs = { axis = 2, size = 7, step = 3 } })

add("matmul", { F { 130, 97 }, F { 97, 115 } }, { F { 12, 33, 40 }, F { 12, 40, 29 } },
    { F { 65, 300 }, F { 300, 65 }, attrs = {} }, { F { 97, 130 }, F { 97, 115 }, attrs = { transpose_x = true } })
add("linear", { F { 130, 97 }, F { 115, 97 }, F { 115 } })
add("conv2d", { F { 4, 8, 24, 20 }, F { 12, 8, 3, 3 }, F { 12 }, attrs = { padding = 1 } },
    { F { 4, 8, 24, 20 }, F { 8, 1, 3, 3 }, false, attrs = { groups = 8, stride = 2 } })
add("conv2d_activation", { F { 4, 8, 24, 20 }, F { 12, 8, 3, 3 }, F { 12 }, attrs = { padding = 1 } },
    { F { 4, 8, 24, 20 }, F { 16, 8, 3, 3 }, F { 16 }, attrs = { padding = 1 } })
add("conv2d_grad_input", { F { 4, 12, 24, 20 }, F { 12, 8, 3, 3 }, F { 4, 8, 24, 20 }, attrs = { padding = 1 } })
-- Parts of a batch: by Winograd's way behind a ReLU, directly without, of few channels without dx.
add("conv2d_grad", { F { 8, 16, 64, 64 }, F { 8, 16, 64, 64 }, F { 16, 16, 3, 3 }, F { 8, 16, 64, 64 },
                     attrs = { padding = 1 } },
    { F { 8, 16, 32, 32 }, F { 8, 32, 64, 64 }, F { 16, 32, 2, 2 }, false, attrs = { stride = 2 } },
    { F { 9, 24, 60, 61 }, F { 9, 3, 60, 61 }, F { 24, 3, 3, 3 }, F { 9, 24, 60, 61 },
      attrs = { padding = 1, with_dx = false } })
add("conv2d_grad_weight", { F { 4, 12, 24, 20 }, F { 4, 8, 24, 20 }, F { 12, 8, 3, 3 }, attrs = { padding = 1 } })
add("max_pool2d", { D { 5, 16, 30, 30 }, attrs = { kernel = 3, stride = 2, padding = 1 } })
add("avg_pool2d", { F { 5, 16, 30, 30 }, attrs = { kernel = 3, stride = 2, padding = 1 } })
for _, mode in ipairs { "nearest", "linear", "cubic", "area" } do
  for _, size in ipairs { { 130, 150 }, { 23, 31 }, { 70, 20 } } do
    local attrs = { size = size, mode = mode }
    add_more("resample2d", { F { 2, 3, 61, 67 }, attrs = attrs })
    add_more("resample2d_grad", { F { 2, 3, size[1], size[2] }, F { 2, 3, 61, 67 }, attrs = attrs })
  end
end
add("resample", { F(wide), attrs = { size = 900 } },
    { F { 7, 40, 300 }, attrs = { axis = 2, size = 77, mode = "cubic" } })
add("resample_grad", { F { 130, 900 }, F(wide), attrs = { size = 900 } },
    { F { 7, 77, 300 }, F { 7, 40, 300 }, attrs = { axis = 2, size = 77, mode = "cubic" } })
add("avg_pool2d_grad", { F { 5, 16, 15, 15 }, F { 5, 16, 30, 30 }, attrs = { kernel = 3, stride = 2, padding = 1 } })
add("batch_norm", { F { 6, 16, 24, 20 }, F { 16 }, F { 16 }, F { 16 }, F({ 16 }, 0.5, 2), attrs = { training = true } },
    { F { 600, 70 }, F { 70 }, F { 70 }, F { 70 }, F({ 70 }, 0.5, 2), attrs = { training = false } })
add("layer_norm", { F(wide), F { 517 }, F { 517 } })
add("softmax", { F(wide) }, { F(wide), attrs = { axis = 1 } })
add("log_softmax", { F(wide) }, { F(wide), attrs = { axis = 1 } })
for _, name in ipairs { "softmax_grad", "log_softmax_grad" } do
  add(name, { F(wide), F(wide) }, { F(wide), F(wide), attrs = { axis = 1 } })
end
add("cross_entropy", { F(wide), I({ 130 }, 0, 516) }, { F { 9, 30, 40, 11 }, I({ 9, 40, 11 }, 0, 29) })

add("uniform", { attrs = { shape = long } })
add("normal", { attrs = { shape = long } })
add("randint", { attrs = { shape = long, low = -5, high = 12345 } })
add("randperm", { attrs = { n = 70001 } })
add("exponential", { attrs = { shape = long, rate = 2 } })
add("multinomial", { F({ 60, 700 }, 0, 1), attrs = { num_samples = 30 } },
    { F({ 60, 700 }, 0, 1), attrs = { num_samples = 900, replacement = true } })
add("bernoulli", { F(long, 0, 1) })
add("dropout", { F(wide), attrs = { p = 0.3, training = true } })

local function positive(shape) return F(shape, 0.1, 1) end
local states = { sgd = { F }, adam = { F, positive, positive }, rmsprop = { positive, F }, lion = { F },
                 adagrad = { positive }, adadelta = { positive, positive }, adamax = { F, positive },
                 nadam = { F, positive }, radam = { F, positive }, rprop = { F, positive } }
for name, kinds in pairs(states) do
  local case = { { F(wide), F(long), F { 3 } }, { F(wide), F(long), F { 3 } },
                 attrs = { lr = 0.1, step = 20, weight_decay = 0.1, eps = name ~= "sgd" and name ~= "lion" and
                           name ~= "rprop" and 0.1 or nil, momentum = name == "sgd" and 0.9 or nil } }
  for k, kind in ipairs(kinds) do case[2 + k] = { kind(wide), kind(long), kind { 3 } } end
  add(name, case)
end

return cases
