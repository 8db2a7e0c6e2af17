-- SPDX-License-Identifier: Apache-2.0
-- Loops of training.

local walk = require "perigee.lint.walk"

-- By a dot, too, which is another finding.
local function is_backward(node)
  return node.kind == "method" and node.name == "backward" or
         node.kind == "call" and node.callee.kind == "index" and node.callee.name == "backward"
end

local function runs_backward(node, variable)
  return is_backward(node) and walk.bare(node.object or node.callee.object).variable == variable
end

-- In "a = a + b" or "a = b + a" the variable that is added, or nil.
local function added(target, value)
  value = walk.bare(value)
  if not target.variable or target.kind ~= "name" or value.kind ~= "binary" or value.op ~= "+" then return nil end
  local left, right = walk.bare(value.left), walk.bare(value.right)
  if left.variable == target.variable and left.kind == "name" then return right.kind == "name" and right.variable end
  if right.variable == target.variable and right.kind == "name" then return left.kind == "name" and left.variable end
end

local graphs = {
  name = "graphs-kept",
  bad = { "local total = 0 for _ = 1, 3 do local l = (x * w):sum() l:backward() total = total + l end print(total)",
          "local total = 0 for _, l in ipairs(list) do l:backward() total = l + total end print(total)" },
  good = { "local total = 0 for _ = 1, 3 do local l = (x * w):sum() l:backward() total = total + l:item() end " ..
           "print(total)",
           "local total = 0 for _ = 1, 3 do local l = (x * w):sum() total = total + l end total:backward()",
           "local total = 0 for _ = 1, 3 do local l = (x * w):sum() l:backward() l = l:detach() total = total + l " ..
           "end print(total)" },
}
graphs.visit = { assign = function(node, lint)
  local loop = #node.targets == 1 and walk.loop_of(node)
  local variable = loop and added(node.targets[1], node.values[1])
  if not variable or node.targets[1].variable.depth >= variable.depth or #variable.values > 1 then return end
  if walk.any(loop.body, function(inner) return runs_backward(inner, variable) end) then
    lint:report(node.from, ("a sum of losses keeps the graph of each: %s:item() adds the number"):format(variable.name))
  end
end }

-- ---- gradients that pile up ----

-- What may clear gradients in a file: zero_grad, `w.grad = nil`, layers and helpers that are told to.
local function clears(program)
  return walk.any(program.body, function(node)
    if node.kind == "method" or node.kind == "index" and node.dot then
      return node.name:find "zero_?[gG]rad" or node.name == "minimize" or node.name == "clear_grads" or
             node.kind == "index" and node.name == "grad" and node.parent and node.parent.kind == "assign"
    end
  end)
end

local piling = {
  name = "no-zero-grad",
  bad = { "for _ = 1, 9 do (x * w):sum():backward() opt:step() end",
          "for _ = 1, 9 do local l = given(x) l:backward() opt:step() end" },
  good = { "for _ = 1, 9 do opt:zero_grad() (x * w):sum():backward() opt:step() end",
           "(x * w):sum():backward() opt:step()",
           "for _ = 1, 9 do model:zero_grad() (x * w):sum():backward() opt:step() end",
           "for _ = 1, 9 do w.grad = nil; (x * w):sum():backward() opt:step() end" },
}
piling.visit = { method = function(node, lint)
  if node.name ~= "step" or #node.args > 0 then return end
  local type, loop = lint.types:of(node.object), walk.loop_of(node)
  if not loop or not type or type.is ~= "optimizer" or clears(lint.program) then return end
  if walk.any(loop.body, is_backward) then
    lint:report(node.from, "gradients add up from step to step: opt:zero_grad() before backward")
  end
end }

return { graphs, piling }
