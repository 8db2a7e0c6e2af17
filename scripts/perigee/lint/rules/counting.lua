-- SPDX-License-Identifier: Apache-2.0
-- Axes, positions and loops that begin at 0.

local walk = require "perigee.lint.walk"
local types = require "perigee.lint.types"
local known = require "perigee.lint.known"

local function is_zero(node) return types.literal(node) == 0 end

-- What is called, if Perigee has it; and the arguments' places of axes are those of what.
local function callable_of(lint, node)
  if node.kind == "method" then
    local class = lint.types:class_of(node.object, node.name)
    return class and known.method(class, node.name)
  end
  local fn = lint.types:of(node.callee)
  return fn and fn.is == "fn" and known.fn(fn.name) or nil
end

local AXES = { axis = true, axes = true }
local DIMS = { dim = true, dims = true }

-- The 0 of axis=0 and axis={0, 1}, or nil.
local function zero_in(node)
  if is_zero(node) then return node end
  for _, item in ipairs(node.kind == "table" and node.items or {}) do
    if not item.key and not item.name and is_zero(item.value) then return item.value end
  end
end

local AXIS_TEXT = "axes count from 1: the first is axis 1, the last -1"

local function check_options(lint, callable, options)
  for _, item in ipairs(options.items) do
    if AXES[item.name] and callable.has[item.name] and zero_in(item.value) then
      lint:report(zero_in(item.value).from, AXIS_TEXT)
    elseif DIMS[item.name] and not callable.has[item.name] then
      lint:report(item.from, ("%s= is axis= here, and counts from 1: dim=0 is axis=1"):format(item.name))
    end
  end
end

-- f{x, 0} and f(x, 0): the arguments by position.
local function positional(args)
  local only = args[1]
  if #args ~= 1 or only.kind ~= "table" then return args, 0 end
  local list = {}
  for _, item in ipairs(only.items) do
    if not item.key and not item.name then list[#list + 1] = item.value end
  end
  return list, 1
end

local function check_call(node, lint)
  local callable = callable_of(lint, node)
  if not callable then return end
  for _, argument in ipairs(node.args) do
    if argument.kind == "table" then check_options(lint, callable, argument) end
  end
  local list, spread = positional(node.args)
  for place in pairs(callable.axes) do
    local zero = list[place] and (spread == 0 and zero_in(list[place]) or is_zero(list[place]) and list[place])
    if zero then lint:report(zero.from, AXIS_TEXT) end
  end
end

local axes = {
  name = "axis-from-zero",
  bad = { "print(x:sum(0))", "print(x:sum{axis=0})", "print(x:mean{dim=1})", "print(x:transpose(0, 1))",
          "print(x:permute(1, 0))", "print(pg.cat{x, y, axis=0})", "print(pg.softmax(x, 0))", "print(x:size(0))",
          "print(pg.stack({x, y}, 0))", "print(x:flip{0})", "print(given:unsqueeze(0))", "print(x:argmax{dim=-1})" },
  good = { "print(x:sum(1))", "print(x:sum{axis=1})", "print(x:transpose(1, 2))", "print(pg.cat{x, y, axis=1})",
           "print(x:roll(0, 1), x:clamp(0, 1), x:tril(0))", "print(x:repeat_interleave(2), pg.arange(0, 3))",
           "print(given.sum{axis=0})" },
}
axes.visit = { call = check_call, method = check_call }

-- ---- positions ----

-- The 0 of x[0], x[{0, 1}] and x[{{0, 2}}].
local function zero_position(key)
  if is_zero(key) then return key end
  for _, item in ipairs(key.kind == "table" and key.items or {}) do
    if is_zero(item.value) then return item.value end
    local first = item.value.kind == "table" and item.value.items[1]
    if first and not first.key and not first.name and is_zero(first.value) then return first.value end
  end
end

local COUNTED = { tensor = true, layer = true, shape = true }

local position = {
  name = "position-from-zero",
  bad = { "print(x[0])", "print(x.shape[0])", "print(x[{0, 1}])", "print(x[{{0, 2}}])", "print(model[0])",
          "local s = x.shape print(s[0])", "x[0] = 1" },
  good = { "print(x[1])", "print(x.shape[1])", "print(x[{{1, 2}}])", "local t = {[0]=1} print(t[0], arg[0])",
           "print(x[pg.tensor({0, 1}, {dtype='int64'})])" },
}
position.visit = { index = function(node, lint)
  if node.dot then return end
  local object, zero = lint.types:of(node.object), zero_position(node.key)
  local shape = walk.bare(node.object)
  local is_shape = shape.kind == "index" and shape.dot and shape.name == "shape"
  if zero and (is_shape or object and COUNTED[object.is]) then
    lint:report(zero.from, "positions count from 1: the first is 1, the last -1")
  end
end }

-- ---- loops ----

-- "#x - 1", or of a tensor any bound: the variable x.
local function bound_of(node)
  node = walk.bare(node)
  local left = node.kind == "binary" and node.op == "-" and types.literal(node.right) == 1 and walk.bare(node.left)
  local counted = left and left.kind == "unary" and left.op == "#" and walk.bare(left.operand)
  return counted and counted.variable
end

local loops = {
  name = "loop-from-zero",
  bad = { "for i = 0, #x - 1 do print(x[i]) end", "local l = {1, 2} for i = 0, #l - 1 do print(l[i]) end" },
  good = { "for i = 1, #x do print(x[i]) end", "local l = {1, 2} for i = 0, #l - 1 do print(i, l[i + 1]) end",
           "for i, row in x:rows() do print(i, row) end" },
}
loops.visit = { count = function(node, lint)
  local variable = is_zero(node.first) and bound_of(node.last)
  if not variable then return end
  local picks = walk.any(node.body, function(inner)
    if inner.kind ~= "index" or inner.dot then return false end
    return walk.bare(inner.key).variable == node.variable and walk.bare(inner.object).variable == variable
  end)
  if picks then lint:report(node.first.from, ("positions count from 1: for %s = 1, #%s do"):format(
                              node.variable.name, variable.name)) end
end }

return { axes, position, loops }
