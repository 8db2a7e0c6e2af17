-- SPDX-License-Identifier: Apache-2.0
-- pg.scan: a loop over the steps of tensors, which hands something on from step to step.

local native = require "perigee.native"
local pg = require "perigee"
local structure = require "perigee.control.structure"

local WHERE = "scan"
local CARRY, OUTPUT = "the carry that the body returned", "the output that the body returned"
local KEEPS = "what is handed on keeps its dtype and sizes"

-- The steps of a tensor as tensors of their own, whose gradients come together at once: those of slices would each be
-- as large as the whole.
local function separate(x)
  local list = pg.no_grad(function()
    local slices = x:unbind(1)
    for i, slice in ipairs(slices) do slices[i] = slice:clone() end
    return slices
  end)
  local kind = { shape = list[1].shape, dtype = x.dtype, device = x.device }
  return native.custom.record({ x }, list, function(pass)
    local gradients, zeros = {}, nil
    for i, cotangent in ipairs(pass.cotangents) do
      zeros = zeros or not cotangent and pg.zeros(kind.shape, { dtype = kind.dtype, device = kind.device })
      gradients[i] = cotangent or zeros
    end
    return { pg.stack { gradients, axis = 1 } }
  end)
end

-- A list of the steps of each tensor.
local function steps_of(xs)
  local list = {}
  for k, x in ipairs(xs) do
    list[k] = x.requires_grad and native.grad_enabled() and separate(x) or x:unbind(1)
  end
  return list
end

-- What the body answers in a step that there is not: it is recorded, not run.
local function record_step(o, init, xs)
  local graphs = native.graphs
  local graph, count = graphs.create(), 0
  local function stand_in(t, first)
    local shape = {}
    for axis = first, t:dim() do shape[#shape + 1] = t:size(axis) end
    count = count + 1
    return graphs.placeholder(graph, "argument_" .. count, native.dtypes.by_name[t.dtype], shape, {})
  end
  local carry, x = {}, {}
  for i, t in ipairs(init.leaves) do carry[i] = stand_in(t, 1) end
  for i, t in ipairs(xs.leaves) do x[i] = stand_in(t, 2) end
  return native.with(function() return graphs.set_current(graph) end, graphs.set_current, o.body,
                     structure.build(init.spec, carry), xs.spec and structure.build(xs.spec, x))
end

-- The outputs of no steps.
local function no_outputs(o, init, xs)
  local ok, answer, y = pcall(record_step, o, init, xs)
  if not ok then
    native.raise("failed_precondition", WHERE, "there are no steps, and what the body would return in one is told " ..
                 "by recording it, which failed: " .. tostring(answer))
  end
  if y == nil then return nil end
  local leaves, spec = structure.flatten(WHERE, OUTPUT, y)
  for i, t in ipairs(leaves) do
    local shape = { 0 }
    for axis = 1, t:dim() do
      local size = t:size(axis)
      shape[axis + 1] = type(size) == "number" and size or 0
    end
    leaves[i] = pg.zeros { shape, dtype = t.dtype, device = t.device }
  end
  return structure.build(spec, leaves)
end

-- What the steps gave, each leaf as one tensor.
local function stacked(outputs, spec)
  local leaves = {}
  for i = 1, #outputs[1] do
    local list = {}
    for step, leaf in ipairs(outputs) do list[step] = leaf[i] end
    leaves[i] = pg.stack { list, axis = 1 }
  end
  return structure.build(spec, leaves)
end

-- The leaves of what the body returned; `wanted` has the leaves and the spec of what it must be like.
local function read(what, v, wanted, hint)
  local leaves, spec, names = structure.flatten(WHERE, what, v, wanted.leaves)
  structure.check_same(WHERE, what, spec, wanted.spec)
  structure.check_kinds(WHERE, names, leaves, wanted.leaves, hint)
  return leaves
end

local function run_eagerly(o, init, xs, length)
  if length == 0 then return structure.build(init.spec, init.leaves), no_outputs(o, init, xs) end
  local steps, outputs, first = steps_of(xs.leaves), {}, nil
  local carry = init.leaves
  for n = 1, length do
    local at, x = o.reverse and length + 1 - n or n, {}
    for k = 1, #steps do x[k] = steps[k][at] end
    local answer, y = o.body(structure.build(init.spec, carry), xs.spec and structure.build(xs.spec, x))
    carry = read(CARRY, answer, init, KEEPS)
    if n == 1 and y ~= nil then
      first = {}
      first.leaves, first.spec = structure.flatten(WHERE, OUTPUT, y)
    elseif (y ~= nil) ~= (first ~= nil) then
      native.raise("invalid_argument", WHERE, ("the body returned %s output in step %d, but %s in the first"):format(
                     y ~= nil and "an" or "no", n, first and "one" or "none"))
    end
    if first then outputs[at] = n == 1 and first.leaves or read(OUTPUT, y, first, "each step gives the same") end
  end
  return structure.build(init.spec, carry), first and stacked(outputs, first.spec)
end

-- How many steps there are: xs tell, or `length`.
local function count_steps(o, xs)
  local length = o.length
  if type(length) == "number" and length < 0 then
    native.raise("invalid_argument", WHERE, ("length must be 0 or more, got %d"):format(length))
  end
  for i, x in ipairs(xs.leaves) do
    if x:dim() == 0 then
      native.raise("invalid_argument", WHERE, xs.names[i] .. " has no axes; its first one is that of the steps")
    end
    local size = x:size(1)
    if length ~= nil and native.tensor.sizes_differ(size, length) then
      native.raise("invalid_argument", WHERE, ("%s has %s steps; expected %s"):format(xs.names[i], tostring(size),
                                                                                      tostring(length)))
    end
    if length == nil or type(size) == "number" then length = size end
  end
  if length == nil then
    native.raise("invalid_argument", WHERE, "needs xs, whose first axis is that of the steps, or length")
  end
  return length
end

local read_scan = native.signature(WHERE, {
  { "init", "any", required = true, named = true, type = "perigee.Tensor|number|table",
    doc = "what the first step is handed: a tensor, or a table of them" },
  { "xs", "any", named = true, type = "perigee.Tensor|table", doc = "a tensor or a table of them, steps along axis 1" },
  { "body", "function", required = true, named = true, type = "fun(carry, x): any, any?" },
  { "length", "size", named = true, doc = "how many steps, where xs do not tell" },
  { "reverse", "boolean", named = true, doc = "from the last step to the first; outputs stand where their x stood" } })

---A loop over the steps of tensors: `local last, ys = pg.scan{init=h, xs=x, body=function(h, x) h = cell(h, x);
---return h, h end}`. body(carry, x) gets what the step before handed on, at first `init`, and the step of xs; it
---returns what is handed on, of the same dtypes and sizes, and if it likes an output. Answers what the last step handed
---on, and the outputs stacked along axis 1. Carry, x and output each are a tensor or a table of them, by position or
---name; `init={}` hands nothing on. Gradients flow through it. In a graph the body is recorded once, as a part of one
---node, and the number of steps may be one that only a run tells; it may use tensors from outside, but not write into
---them.
---@return perigee.Tensor|table carry
---@return perigee.Tensor|table? outputs
local function scan(...)
  local o = read_scan(...)
  local init, xs = {}, { leaves = {} }
  init.leaves, init.spec, init.names = structure.flatten(WHERE, "init", o.init)
  if o.xs ~= nil then xs.leaves, xs.spec, xs.names = structure.flatten(WHERE, "xs", o.xs) end
  local length = count_steps(o, xs)
  if not structure.is_recorded(init.leaves, xs.leaves) then return run_eagerly(o, init, xs, length) end
  return require("perigee.control.recorded").scan(WHERE, o, init, xs, length, {
    carry = function(answer, wanted) return read(CARRY, answer, wanted, KEEPS) end,
    output = function(y) return structure.flatten(WHERE, OUTPUT, y) end,
  })
end

return { scan = scan }
