-- SPDX-License-Identifier: Apache-2.0
-- Tensors where Lua wants a boolean.

local walk = require "perigee.lint.walk"
local types = require "perigee.lint.types"

local CALLS = { call = true, method = true, binary = true }

-- Whether an expression is a tensor and nothing else: no nil that somebody may ask for.
local function is_tensor(lint, node)
  node = walk.bare(node)
  local type = lint.types:of(node)
  if not type or type.is ~= "tensor" or type.optional then return false end
  return CALLS[node.kind] and node.op ~= "or" and node.op ~= "and" or node.kind == "name" and type.mask
end

local function text_of(lint, node)
  local type = lint.types:of(node)
  local whole = walk.bare(node).name
  if whole == "any" or whole == "all" then return ":item() gives the boolean" end
  return type and type.mask and ":all():item() or :any():item() gives a boolean" or ":item() gives its number"
end

-- `loops`: it decides whether something is done again.
local function check(lint, node, loops)
  node = walk.bare(node)
  if node.kind == "unary" and node.op == "not" then return check(lint, node.operand, loops) end
  if node.kind == "binary" and (node.op == "and" or node.op == "or") then
    check(lint, node.left, loops)
    return check(lint, node.right, loops)
  end
  if not is_tensor(lint, node) then return end
  local text = "a tensor is true in Lua, whatever it holds: " .. text_of(lint, node)
  if walk.in_graph(node) then
    text = "a tensor is true in Lua, and the graph's has no contents yet: " ..
           (loops and "pg.while_loop{...} repeats at each run" or "pg.cond(tensor, fn, fn) decides at each run")
  end
  lint:report(node.from, text)
end

local condition = {
  name = "tensor-condition",
  bad = { "if x:gt(0):any() then print(x) end", "while loss:lt(0.1) do break end", "local found = not x:eq(y):all()",
          "local done = x:gt(0):all() and 1 or 2", "assert(x:eq(y):all())",
          "local d = given and x:any() and list print(d)",
          "local function same(p, q) return p:eq(q):all() end if same(x, y) then print(x) end",
          "local same = x:eq(y):all() if same then print(x) end", "repeat x = x * 2 until x:gt(9):any()" },
  good = { "if x:gt(0):any():item() then print(x) end", "while loss:item() < 0.1 do break end",
           "local mask = given and x:gt(0)", "if x.grad then print(x) end", "if x then print(x:sum()) end",
           "local function find(p) if p then return nil end return x:gt(p) end if find(1) then print(x) end",
           "local function same(p, q) return p:eq(q):all():item() end if same(x, y) then print(x) end",
           "local done = x:gt(0):all():item() and 1 or 2", "local z = given and x:sum() or y:sum() print(z)",
           "local z = given and x:sum() or list and y:sum() or x print(z)", "if pg.allclose(x, y) then print(x) end" },
}
condition.visit = {
  ["if"] = function(node, lint)
    for _, clause in ipairs(node.clauses) do
      if clause.condition then check(lint, clause.condition) end
    end
  end,
  ["while"] = function(node, lint) check(lint, node.condition, true) end,
  ["repeat"] = function(node, lint) check(lint, node.condition, true) end,
  unary = function(node, lint)
    if node.op == "not" then check(lint, node.operand) end
  end,
  binary = function(node, lint)
    local left = walk.bare(node.left)
    if node.op == "and" and left.op == "and" then left = left.right end
    -- In "c and x or y" the x is a value, not a condition.
    if (node.op == "and" or node.op == "or") and left.op ~= "and" and left.op ~= "or" then check(lint, left) end
  end,
  call = function(node, lint)
    if node.callee.name == "assert" and not node.callee.variable and node.args[1] then check(lint, node.args[1]) end
  end,
}

-- ---- == and its kin ----

local COMPARES = { ["=="] = "eq", ["~="] = "ne", ["<"] = "lt", ["<="] = "le", [">"] = "gt", [">="] = "ge" }
local LITERALS = { number = true, string = true, ["true"] = true, ["false"] = true }

-- Made in this place: no other object is the same.
local function is_new(type, node)
  return type and type.is == "tensor" and type.fresh and CALLS[node.kind] and node.op ~= "or" and node.op ~= "and"
end

local function is_named(type, node)
  return type and type.is == "tensor" and type.fresh and not type.optional and node.kind == "name"
end

local equality = {
  name = "tensor-comparison",
  bad = { "if a == b then print(a) end", "print(x:sum() == 0)", "print(x:sum() ~= y:sum())", "print(a * 2 == b)",
          "print(x:mean() < 3)", "local best = a if best == 0 then print(a) end" },
  good = { "print(x:sum():item() == 0)", "print(a:eq(b):all():item())", "print(x.grad == nil)",
           "print(a.shape == b.shape, x.dtype == 'float32')", "print(x:to('cpu') == x)",
           "print(#x < 3, x:size(1) == 2)",
           "print(model.weight == given)", "print(x:requires_grad_() == x)", "print(x:retain_grad() == x)" },
}
equality.visit = { binary = function(node, lint)
  local name = COMPARES[node.op]
  if not name then return end
  local left, right = walk.bare(node.left), walk.bare(node.right)
  local a, b = lint.types:of(left), lint.types:of(right)
  if left.kind == "nil" or right.kind == "nil" then return end
  local identity = node.op == "==" or node.op == "~="
  local surely
  if identity then
    surely = is_new(a, left) or is_new(b, right) or
             is_named(a, left) and (is_named(b, right) or LITERALS[right.kind]) or
             is_named(b, right) and LITERALS[left.kind]
  else
    surely = a and a.is == "tensor" and not a.optional or b and b.is == "tensor" and not b.optional
  end
  if not surely then return end
  local both = a and b and a.is == "tensor" and b.is == "tensor"
  local hint = both and (identity and "a:%s(b):all():item() compares what they hold" or "a:%s(b) compares elements") or
               ":item() gives the number that a tensor holds, a:%s(b) compares elements"
  lint:report(node.from, (identity and "%s asks whether tensors are the same object: " or
                          "%s gives no tensor: "):format(node.op) .. hint:format(name))
end }

-- ---- indices as positions ----

-- A list that was written as one: {"cat", "dog"}, with no entry 0.
local function is_list(type)
  local listed = false
  for _, item in ipairs(type.node.items) do
    if item.key and types.literal(item.key) == 0 then return false end
    listed = listed or not item.key and not item.name
  end
  return listed
end

local function is_written(node)
  for _, target in ipairs(node.parent.kind == "assign" and node.parent.targets or {}) do
    if target == node then return true end
  end
  return false
end

local positions = {
  name = "index-as-position",
  bad = { "print(names[x:argmax():item()])", "local i = x:argmax():item() print(x[i])",
          "local names = {'cat', 'dog'} local c = x:argmax{axis=1}[1]:item() print(names[c])",
          "local v, at = x:topk(3) print(v, rows[at[1]:item()])", "local l = pg.randperm(9) print(rows[l[1]:item()])" },
  good = { "print(names[x:argmax():item() + 1])", "local i = x:argmax():item() + 1 print(x[i])",
           "local seen = {} local c = x:argmax():item() seen[c] = true print(seen[c])",
           "local names = {[0]='cat', 'dog'} print(names[x:argmax():item()])", "print(x[x:argmax()])",
           "local v, at = x:topk(3) print(v[1]:item(), x[v[1]:item()], at)" },
}
positions.visit = { index = function(node, lint)
  local key = not node.dot and lint.types:of(node.key)
  if not key or key.is ~= "number" or not key.places or is_written(node) then return end
  local object, variable = lint.types:of(node.object), walk.bare(node.object).variable
  if object and object.is == "table" and (not object.node or not is_list(object)) then return end
  if variable and variable.filled and not (object and object.is == "tensor") then return end
  lint:report(node.from, "what a tensor holds counts from 0, positions count from 1: " ..
              (object and object.is == "tensor" and "x[index] takes the tensor, x[index:item() + 1] a number" or
               "list[index:item() + 1]"))
end }

return { condition, equality, positions }
