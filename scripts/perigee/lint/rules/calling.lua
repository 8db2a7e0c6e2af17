-- SPDX-License-Identifier: Apache-2.0
-- Dots and colons, and calls that answer two things.

local walk = require "perigee.lint.walk"
local known = require "perigee.lint.known"

local CLASSES = { tensor = true, layer = true, optimizer = true, dataset = true, schedule = true }

-- Names of objects whose class nobody sees, by what they are usually called, and what is called on them.
local USUAL = {
  model = { train = true, eval = true, parameters = true, zero_grad = true, to = true },
  opt = { step = true, zero_grad = true }, loss = { backward = true, item = true },
}
USUAL.net, USUAL.optimizer, USUAL.optim = USUAL.model, USUAL.opt, nil

-- Whether an object whose type is not known may be a table of functions, as modules are.
local function is_outside(variable)
  for _, value in ipairs(variable.values) do
    if value.kind and value.kind ~= "call" and value.kind ~= "method" or value.kind == "call" and
       value.callee.name == "require" then return false end
  end
  return true
end

local function method_by_dot(lint, node, callee)
  local object, type = walk.bare(callee.object), lint.types:of(callee.object)
  if type then return CLASSES[type.is] and known.method(type.is, callee.name) ~= nil end
  local variable = object.kind == "name" and object.name ~= "self" and object.variable
  if not variable or not lint.program.is_ours or not is_outside(variable) then return false end
  local usual = USUAL[variable.name]
  if usual then return usual[callee.name] and not lint.program.defined[callee.name] end
  return #node.args == 0 and lint.types:is_distinct(callee.name) and callee.name ~= "any" and callee.name ~= "all"
end

local dot = {
  name = "dot-for-colon",
  bad = { "print(x.sum())", "model.train()", "opt.step()", "loss.backward()", "print(x.reshape(2, 3))",
          "local function f(model, loss) model.eval() loss.backward() end f()", "print(x.sum{axis=1})" },
  good = { "print(x:sum())", "model:train()", "print(x.sum(x))", "local M = {} function M.step() end M.step()",
           "local M = require 'm' M.train()", "print(pg.sum(x))",
           "local function f(pg) print(pg.detach(x)) end f()", "local f = x.sum print(f(x))" },
}
dot.visit = { call = function(node, lint)
  local callee = walk.bare(node.callee)
  if callee.kind ~= "index" or not callee.dot or not method_by_dot(lint, node, callee) then return end
  local object, first = walk.bare(callee.object), node.args[1] and walk.bare(node.args[1])
  local inner = first and first.kind == "table" and first.items[1] and walk.bare(first.items[1].value) or first
  local name = object.kind == "name" and object.name or "x"
  if object.variable and inner and inner.kind == "name" and inner.variable == object.variable then return end
  lint:report(callee.from, ("a method is called with a colon: %s:%s(...)"):format(name, callee.name))
end }

local colon = {
  name = "colon-for-dot",
  bad = { "print(pg:zeros(2))", "local l = nn:Linear{2, 3} print(l)", "print(optim:Adam{})", "pg.data:range(3)" },
  good = { "print(pg.zeros(2))", "local l = nn.Linear{2, 3} print(l)", "local ds = data.range(3):batch(2) print(ds)" },
}
colon.visit = { method = function(node, lint)
  local type = lint.types:of(node.object)
  if type and type.is == "package" then
    local name = walk.bare(node.object).name or type.name
    lint:report(node.colon, ("%s holds functions, which a dot calls: %s.%s(...)"):format(name, name, node.name))
  end
end }

-- ---- two results where one is meant ----

local JOINS = { ["pg.stack"] = true, ["pg.cat"] = true, ["pg.hstack"] = true, ["pg.vstack"] = true,
                ["pg.dstack"] = true, ["pg.column_stack"] = true, ["pg.block_diag"] = true }

-- The expression that ends what a call is given: the last argument, or the last of the list that is all of it.
local function last_of(args)
  local last = args[#args]
  for i = #args, 1, -1 do
    if args[i].kind == "table" and (i == 1 or i == #args) then
      local item = args[i].items[#args[i].items]
      if item and not item.key and not item.name then return item.value end
    end
  end
  return last
end

local function takes_tensors(lint, node)
  if node.kind == "method" then
    local class = lint.types:class_of(node.object, node.name)
    local callable = class == "tensor" and known.method("tensor", node.name)
    return callable and callable.is_operator
  end
  local fn = lint.types:of(node.callee)
  if not fn or fn.is ~= "fn" then return false end
  local callable = known.fn(fn.name)
  return JOINS[fn.name] or callable and callable.is_operator
end

local function check_spill(node, lint)
  local last = last_of(node.args)
  if not last or not lint.types:gives_two(last) or not takes_tensors(lint, node) then return end
  local name = last.name or walk.bare(last.callee).name
  lint:report(last.from, ("%s gives values and indices, and both go into this call: write (x:%s{...})%s"):format(
                name, name, (name == "max" or name == "min") and (", or a%s"):format(name) or ""))
end

local spill = {
  name = "two-results",
  bad = { "print(pg.stack{x:max{axis=2}})", "print(pg.cat{y, x:sort()})", "print(pg.add(x:max{axis=1}))",
          "print(pg.stack{pg.topk(x, 2)})", "print(y:add(x:min(1)))", "print(pg.stack({y, x:max(2)}, 1))" },
  good = { "print(pg.stack{(x:max{axis=2})})", "print(pg.stack{x:amax{axis=2}})", "print(pg.add(x:max(), y))",
           "local both = {x:max{axis=2}} print(both)", "print(x:max{axis=2})", "print(pg.stack{x:max(), y:max()})",
           "print(pg.cat{x:sort(), y})", "print(pg.maximum(x:max(y), y))" },
}
spill.visit = { call = check_spill, method = check_spill }

return { dot, colon, spill }
