-- SPDX-License-Identifier: Apache-2.0
-- Functions and methods with plain arguments: what is missing, too much, of another kind, or not called with a colon.
-- A row is the code and the message behind "script:1: ".

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../?.lua;" .. package.path

require("mistakes.check")(test, {
  { "nn.Conv2d()", 'Conv2d: argument "inputs" is missing' },
  { "x:expand_as()", 'expand_as: argument "other" is missing' },
  { "x:view_as(3)", "view_as: other must be a tensor, got number 3" },
  { "x:reshape_as(y, 1)", "reshape_as: too many arguments: number 1 is one more than it takes" },
  { "x:dim(3)", "dim: takes no arguments, got number 3" },
  { "x:to()", "to: needs a device or a dtype, got nothing" },
  { "optim.LARS({w}, 0.1)",
    "LARS: takes parameters and a table of options, got number 0.1 (optim.LARS{model:parameters(), lr=0.1})" },
  { "opt:add_group(w)",
    "SGD: a parameter group must be a table, got tensor float32 {2} (optimizer:add_group{params=..., lr=0.1})" },
  { "opt:step(nil, 3)", "step: too many arguments: number 3 is one more than it takes" },
  { "model:apply()", 'apply: argument "fn" is missing' },
  { "model:train(3)", "train: on must be true or false, got number 3" },
  { "model:parameters(3)", "parameters: takes no arguments, got number 3" },
  { "model:count_parameters{trainble=true}",
    'count_parameters: unknown option "trainble" (did you mean "trainable"?)' },
  { "pg.metrics.Accuracy{}.value()", "value: self must be a metric, got nil (call it with a colon: metric:value())" },
  { "pg.metrics.MAE{}:value(3)", "value: takes no arguments, got number 3" },
  { "pg.graph(function() return {y=x} end):dot(3)", "dot: path must be a string, got number 3" },
  { "pg.graph(function() return {y=x} end).dot{}", "dot: self must be a graph, got a table (call it with a colon: " ..
    "graph:dot())" },
  { "x:tensor_split{'a'}", 'tensor_split: parts must be a whole number or a list of them, got string "a"' },
  { "x:tensor_split({{1, 2.5}})", "tensor_split: parts must be a whole number or a list of them, got a table" },
  { "x:tensordot(y, true)", "tensordot: axes must be a number or two lists of as many" },
  { "pg.keep()", "keep: self must be a tensor, got nil (call it with a colon: t:keep())" },
  { "pg.get_default_dtype(1)", "get_default_dtype: takes no arguments, got number 1" },
  { "pg.memory.stats('cpu', 1)", "memory.stats: too many arguments: number 1 is one more than it takes" },
  { "pg.adam()", "adam: params is empty; expected at least one tensor" },
  { "pg.tensor{data=print}", "tensor: data must be a number or a boolean, got a function" },
  { "nn.ZeroPad2d('a')", 'ZeroPad2d: padding must be a whole number or a list of them, got string "a"' },
  { "nn.HuberLoss{delta='a'}", 'HuberLoss: delta must be a number, got string "a"' },
  { "nn.mse(x, x, {}, 3)", "mse: too many arguments: number 3 is one more than it takes" },
  { "nn.ModuleDict(3)", "ModuleDict: takes layers by name, got number 3" },
  { "model:append(model)", "Sequential: a layer cannot hold itself" },
  { "model.inner = nn.Sequential{model}", "Sequential: a layer cannot hold the Sequential that holds it" },
  { "model[1].list = {model}", "Linear: a layer cannot hold the Sequential that holds it" },
})
