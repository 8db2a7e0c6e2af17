-- SPDX-License-Identifier: Apache-2.0
-- Branches and loops in a graph: the script's functions are recorded as bodies of a node.

local native = require "perigee.native"
local pg = require "perigee"
local nodes = require "perigee.control.nodes"
local structure = require "perigee.control.structure"

local control = native.control
local recorded = {}

-- Whether gradients may be asked for by a tensor that is handed on, whatever it begins as.
local function may_need_gradient(t)
  return native.grad_enabled() and not not native.dtypes.by_name[t.dtype].floating
end

-- A result of a body on a device.
local function result_of(body, t, where, device)
  if device and t.device ~= device then t = t:to(device) end
  return control.take(body.graph, t, where)
end

-- Arguments of a body for tensors, and what the script's function gets for them. A name: "init.h" becomes "carry.h".
local function add_arguments(body, leaves, names, name, step)
  local arguments, twins = {}, {}
  for i, t in ipairs(leaves) do
    local differentiable
    if step then differentiable = t.requires_grad else differentiable = may_need_gradient(t) end
    arguments[i], twins[i] = control.argument(body.graph, names[i]:gsub("^%a+", name):gsub("[%[%]]+", "_"), t, step,
                                              differentiable)
  end
  return arguments, twins
end

-- Raises unless what the second function returned can stand where that of the first does.
local function check_alike(where, names, first, second)
  for i, t in ipairs(first) do
    local x = second[i]
    if x.dtype ~= t.dtype or x:dim() ~= t:dim() then
      native.raise("invalid_argument", where, ("%s is %s %s; the first function returned %s %s"):format(
                     names[i], x.dtype, tostring(x.shape), t.dtype, tostring(t.shape)),
                   "both give the same dtypes and numbers of axes")
    end
  end
end

---pg.cond by a tensor of a graph.
function recorded.cond(where, pred, a, b, ...)
  local graph = control.graph_for(pred)
  local form = nodes.form("cond", where, graph)
  form.inputs[1] = pred
  local first, spec
  for n, fn in ipairs { a, b } do
    local body = nodes.add_body(form, n == 1 and "then" or "else", graph)
    body.record(function(...)
      local what = n == 1 and "the first function" or "the second function"
      local leaves, other, names = structure.call(where, what, first, fn, ...)
      if first then
        structure.check_same(where, "what " .. what .. " returned", other, spec)
        check_alike(where, names, first, leaves)
      end
      for i, t in ipairs(leaves) do body.results[i] = result_of(body, t, where, first and first[i].device) end
      first, spec = first or leaves, spec or other
    end, ...)
  end
  nodes.add_taken(form)
  return structure.build(spec, nodes.add(form))
end

---pg.scan in a graph. init and xs: { leaves, spec, names }; read: as of scan.lua.
function recorded.scan(where, o, init, xs, length, read)
  local graph = control.graph_for(init.leaves[1] or xs.leaves[1])
  local form = nodes.form("scan", where, graph)
  local body = nodes.add_body(form, "step", graph)
  local carry, steps, y_spec
  body.record(function()
    local carry_twins, step_twins
    carry, carry_twins = add_arguments(body, init.leaves, init.names, "carry", false)
    steps, step_twins = add_arguments(body, xs.leaves, xs.names or {}, "x", true)
    local answer, y = o.body(structure.build(init.spec, carry_twins), xs.spec and structure.build(xs.spec, step_twins))
    local leaves = read.carry(answer, { leaves = carry, spec = init.spec })
    for i, t in ipairs(leaves) do body.results[i] = result_of(body, t, where, carry[i].device) end
    if y == nil then return end
    leaves, y_spec = read.output(y)
    for _, t in ipairs(leaves) do body.results[#body.results + 1] = result_of(body, t, where) end
  end)
  for i, t in ipairs(init.leaves) do nodes.add_own_input(form, t, { carry[i] }) end
  for i, t in ipairs(xs.leaves) do nodes.add_own_input(form, t, { steps[i] }) end
  form.carries, form.steps, form.length, form.reverse = #carry, #steps, length, o.reverse or false
  nodes.add_taken(form)
  local outputs = nodes.add(form)
  return structure.build(init.spec, outputs), y_spec and structure.build(y_spec, { unpack(outputs, #carry + 1) })
end

---pg.while_loop in a graph. read: condition(answer), body(state).
function recorded.while_loop(where, o, state, read)
  local graph = control.graph_for(state.leaves[1])
  local form = nodes.form("while_loop", where, graph)
  local condition, body = nodes.add_body(form, "cond", graph), nodes.add_body(form, "body", graph)
  local arguments = {}
  condition.record(function()
    local twins
    arguments[1], twins = add_arguments(condition, state.leaves, state.names, "state", false)
    local go_on = read.condition(o.cond(structure.build(state.spec, twins)))
    if type(go_on) == "boolean" then go_on = pg.tensor(go_on) end
    condition.results[1] = result_of(condition, go_on, where)
  end)
  body.record(function()
    local twins
    arguments[2], twins = add_arguments(body, state.leaves, state.names, "state", false)
    local leaves = read.body({ leaves = arguments[2], spec = state.spec }, structure.build(state.spec, twins))
    for i, t in ipairs(leaves) do body.results[i] = result_of(body, t, where, arguments[2][i].device) end
  end)
  for i, t in ipairs(state.leaves) do nodes.add_own_input(form, t, { arguments[1][i], arguments[2][i] }) end
  form.carries, form.steps, form.most, form.reverse = #state.leaves, 0, o.max_iterations, false
  nodes.add_taken(form)
  return structure.build(state.spec, nodes.add(form))
end

return recorded
