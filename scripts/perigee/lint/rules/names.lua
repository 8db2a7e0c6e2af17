-- SPDX-License-Identifier: Apache-2.0
-- Names that are not there: of Python, of PyTorch, of nobody.

local foreign = require "perigee.names.foreign"
local known = require "perigee.lint.known"
local walk = require "perigee.lint.walk"

local GLOBALS = {
  torch = "local pg = require \"perigee\"", np = "tensors are pg.tensor{...}", numpy = "tensors are pg.tensor{...}",
  F = "operators are functions of pg and methods: pg.relu(x), x:relu()", tf = "local pg = require \"perigee\"",
  None = "nil", null = "nil", True = "true", False = "false", super = "Base.init(self, o), Base.forward(self, x)",
  len = "#x", range = "for i = 1, n do", enumerate = "for i, v in ipairs(list) do", isinstance = "pg.is_tensor(x)",
  str = "tostring(x)", int = "math.floor(x)", float = "tonumber(x)", sum = "x:sum()", max = "math.max(a, b), x:max()",
  min = "math.min(a, b), x:min()", abs = "math.abs(v), x:abs()",
}

local python = {
  name = "name-from-python",
  bad = { "print(torch.zeros(2))", "local x = None print(x)", "local on = True print(on)", "print(len(list))",
          "local y = F.relu(x) print(y)" },
  good = { "local torch = {} print(torch)", "local F = pg print(F.relu(x))", "local t = {} print(t.None)" },
}
python.visit = { name = function(node, lint)
  local hint = not node.variable and GLOBALS[node.name]
  if hint and _G[node.name] == nil and not lint.program.globals[node.name] then
    lint:report(node.from, ("%s is no name of Lua: %s"):format(node.name, hint))
  end
end }

-- ---- what Perigee has not ----

-- Plugins that the script loads may bring more names.
local function may_have_more(program)
  if program.loads == nil then
    program.loads = walk.any(program.body, function(node)
      return (node.kind == "index" or node.kind == "method") and node.name == "load_plugin"
    end)
  end
  return program.loads
end

local function is_set(node)
  local parent = node.parent
  if parent.kind == "define" then return true end
  for _, target in ipairs(parent.kind == "assign" and parent.targets or {}) do
    if target == node then return true end
  end
  return false
end

local OF_OBJECTS = { layer = true, optimizer = true }

local function check_name(node, lint)
  local type = lint.types:of(node.object)
  if not type or is_set(node) or lint.program.defined[node.name] or may_have_more(lint.program) then return end
  local text
  if type.is == "package" and node.kind == "index" then
    text = known.missing_in_package(type.name, node.name)
  elseif type.is == "tensor" and not type.optional then
    text = known.missing_in_tensor(node.name)
  elseif OF_OBJECTS[type.is] and not known.method(type.is, node.name) then
    local hint = foreign.hint(type.is, node.name)
    text = hint and ("there is no %q: %s"):format(node.name, hint)
  end
  if text then lint:report(node.from, text) end
end

local missing = {
  name = "unknown-name",
  bad = { "print(pg.zeross(2))", "print(nn.functional)", "print(x:cuda())", "print(x.T)", "print(pg.distributions)",
          "print(x:softmaxx())",
          "print(optim.lr_scheduler)", "print(model:state_dict())", "print(opt.param_groups)", "print(pg.linalg.foo)",
          "local y = x:view(2, 3):astype('int') print(y)" },
  good = { "print(pg.zeros(2), nn.Linear, x:t(), optim.sched.Step)", "pg.my_own = 1", "print(x:add_(1), x.grad)",
           "print(model.foo, given:cuda())", "local pq = {} print(pq.zeross)", "print(pg.nn.init.xavier_uniform_)",
           "print(pg.my_own_operator(x), nn.MyPluginLayer, x:my_own_operator())" },
}
missing.visit = {
  method = check_name,
  index = function(node, lint)
    if node.dot then check_name(node, lint) end
  end,
}

-- ---- globals ----

local global = {
  name = "global",
  bad = { "total = 0 print(total)", "for i = 1, 3 do best = i end print(best)" },
  good = { "local total = 0 total = 1 print(total)", "function report(v) print(v) end report(1)", "_G.total = 1",
           "print = io.write" },
}
global.visit = { assign = function(node, lint)
  for _, target in ipairs(node.targets) do
    if target.kind == "name" and not target.variable and _G[target.name] == nil and not lint.globals[target.name] then
      lint.globals[target.name] = true
      lint:report(target.from, ("%s is a global, which outlives its block: local %s"):format(target.name, target.name))
    end
  end
end }

return { python, missing, global }
