-- SPDX-License-Identifier: Apache-2.0
-- Nodes of a graph that own bodies, with their gradients. The gradient of a body is recorded into a body of its own,
-- inside of the first: what it needs of the first becomes an output of the node (stacked by step, for loops) and an
-- input of the gradient's node, which is again one of these. So gradients of gradients come of themselves.

local native = require "perigee.native"
local pg = require "perigee"

local control = native.control
local nodes = {}

-- A form is a node in the making, then the node: see native/control.lua, and `graph`, `node` and `where`.

---A tensor as an input of the node, which a body knows under the argument `inner`.
local function add_input(form, t, body, inner)
  local key = native.is_graph_tensor(t) and control.key(t) or t
  local place = form.places[key]
  if not place then
    place = #form.inputs + 1
    form.inputs[place], form.places[key] = t, place
  end
  body.arguments[place] = inner
end

---A form with no inputs yet.
function nodes.form(kind, where, graph)
  return { kind = kind, where = where, graph = control.borrow(graph), name = control.name(graph, kind), inputs = {},
           places = {}, bodies = {} }
end

---Another body of a form, inside of a graph; names in it begin with the node's and its own.
function nodes.add_body(form, name, around)
  local body = { graph = control.body(around), name = name, arguments = {}, results = {} }
  form.bodies[#form.bodies + 1] = body
  function body.record(fn, ...) return control.record(body.graph, form.name .. "/" .. name, fn, ...) end
  return body
end

---An input that has its own place, whatever other inputs are: one that is handed on, or gone through by step.
function nodes.add_own_input(form, t, arguments)
  local place = #form.inputs + 1
  form.inputs[place] = t
  for b, body in ipairs(form.bodies) do body.arguments[place] = arguments[b] or false end
end

---What the bodies took in from around them become inputs.
function nodes.add_taken(form)
  for _, body in ipairs(form.bodies) do
    for _, taken in ipairs(control.taken(body.graph)) do add_input(form, taken.outer, body, taken.inner) end
  end
end

local gradients_of -- by kind

-- Computes the gradients of outputs by the inputs at `places`. flows(cotangents) tells what flowed into which results
-- of the bodies: a list of { cotangent, inner = result by body, carry = which of those that are handed on, or nil }.
local function answer_of(form, places, flows)
  return function(pass)
    local wanted, list = {}, {}
    for n, place in ipairs(places) do wanted[place] = pass.needed[n] or nil end
    local found = gradients_of[form.kind](form, flows(pass.cotangents), wanted)
    for n, place in ipairs(places) do list[n] = found[place] or false end
    return list
  end
end

-- The inputs that gradients go to, and where they stand.
local function linked_inputs(form)
  local inputs, places = {}, {}
  for i, t in ipairs(form.inputs) do
    if t.requires_grad then inputs[#inputs + 1], places[#places + 1] = t, i end
  end
  return inputs, places
end

-- Hangs outputs on the tape.
local function hang(form, outputs, flows)
  local inputs, places = linked_inputs(form)
  if #inputs == 0 or #outputs == 0 or not native.grad_enabled() then return outputs end
  return native.custom.record(inputs, outputs, answer_of(form, places, flows))
end

-- What flows into the outputs that the node was made with.
local function own_flows(form)
  local results = {}
  for b, body in ipairs(form.bodies) do
    local is_condition = form.kind == "while_loop" and b == 1
    results[b] = is_condition and {} or body.results
  end
  return function(cotangents)
    local list = {}
    for k, cotangent in ipairs(cotangents) do
      if cotangent then
        local inner = {}
        for b in ipairs(results) do inner[b] = results[b][k] or false end
        list[#list + 1] = { cotangent = cotangent, inner = inner,
                            carry = form.kind ~= "cond" and k <= form.carries and k or nil }
      end
    end
    return list
  end
end

-- What flows into one that was kept of a body.
local function kept_flows(form, b, inner)
  return function(cotangents)
    local by_body = {}
    for n = 1, #form.bodies do by_body[n] = n == b and inner end
    return { { cotangent = cotangents[1], inner = by_body } }
  end
end

---Appends the node. Answers its outputs.
function nodes.add(form)
  for i, t in ipairs(form.inputs) do form.inputs[i] = control.take(form.graph, t, form.where) end -- what is around it
  for _, body in ipairs(form.bodies) do
    for i = 1, #form.inputs do body.arguments[i] = body.arguments[i] or false end
  end
  local outputs
  form.node, outputs = control.add(form.graph, form, form.where)
  return hang(form, outputs, own_flows(form))
end

-- A value of a node's body as an output, which knows its history.
local function keep(form, b, inner)
  local kept = control.keep(form.graph, form.node, b, inner, form.where)
  if not inner.requires_grad then return kept end
  return hang(form, { kept }, kept_flows(form, b, inner))[1]
end

-- Which input of a node a value of its body stands for, or nil.
local function input_of(body, inner)
  local value = control.value_key(inner)
  for i, argument in ipairs(body.arguments) do
    if argument and control.value_key(argument) == value then return i end
  end
end

-- The gradients, in a body that is being recorded, of what flows into the results of another by those of its arguments
-- that are wanted; seed(result, flow) gives the argument for what flows into one. Answers them by argument.
local function body_gradients(results, arguments, wanted)
  local roots, seeds, sources, places, found = {}, {}, {}, {}, {}
  for _, result in ipairs(results) do roots[#roots + 1], seeds[#seeds + 1] = result.inner, result.seed end
  for place in pairs(wanted) do
    if arguments[place] and arguments[place].requires_grad then
      sources[#sources + 1], places[#places + 1] = arguments[place], place
    end
  end
  if #roots == 0 or #sources == 0 then return found end
  local gradients = native.gradients(roots, seeds, sources, true, native.grad_enabled())
  for n, place in ipairs(places) do found[place] = gradients[n] end
  return found
end

local function sorted(set)
  local list = {}
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list)
  return list
end

-- An argument for what flows into a result.
local function seed_for(body, inner)
  return (control.argument(body.graph, "gradient", inner, false, native.grad_enabled()))
end

-- One of two gradients, by the same condition.
local function cond_gradients(form, flows, wanted)
  local back = nodes.form("cond", form.where, control.graph_for(flows[1].cotangent))
  back.inputs[1] = form.inputs[1]
  local found, any = {}, {}
  for b, body in ipairs(form.bodies) do
    local part = nodes.add_body(back, body.name, body.graph)
    found[b] = part.record(function()
      local results = {}
      for _, flow in ipairs(flows) do
        local inner = flow.inner[b]
        if inner and inner.requires_grad then
          local seed = seed_for(part, inner)
          results[#results + 1] = { inner = inner, seed = seed }
          add_input(back, flow.cotangent, part, seed)
        end
      end
      return body_gradients(results, body.arguments, wanted)
    end)
    for place in pairs(found[b]) do any[place] = true end
  end
  local places = sorted(any)
  if #places == 0 then return {} end
  for b, part in ipairs(back.bodies) do
    part.record(function()
      for n, place in ipairs(places) do
        part.results[n] = control.take(part.graph, found[b][place] or pg.zeros_like(form.inputs[place]), form.where)
      end
    end)
    for _, taken in ipairs(control.taken(part.graph)) do
      local outer = taken.outer
      if control.is_of(outer, form.bodies[b].graph) then
        local place = input_of(form.bodies[b], outer)
        outer = place and form.inputs[place] or keep(form, b, outer)
      end
      add_input(back, outer, part, taken.inner)
    end
  end
  local by_input = {}
  for n, gradient in ipairs(nodes.add(back)) do by_input[places[n]] = gradient end
  return by_input
end

-- What a step of the backward scan does: part.results become what is handed on (gradients of what was handed on, sums
-- of those by what was the same in all steps) and its outputs. Answers what the scan gets for them.
local function record_step_back(form, part, flows, wanted)
  local body = form.bodies[#form.bodies]
  local plan = { carried = {}, sums = {}, stacked = {}, seeds = {} }
  part.record(function()
    local results, asked = {}, {}
    for place = 1, form.carries do
      local argument, result = body.arguments[place], body.results[place]
      if argument.requires_grad then
        local seed = seed_for(part, argument)
        plan.carried[#plan.carried + 1] = { place = place, inner = seed }
        asked[place] = true
        if result.requires_grad then results[#results + 1] = { inner = result, seed = seed } end
      end
    end
    for _, flow in ipairs(flows) do
      local inner = not flow.carry and flow.inner[#form.bodies]
      if inner and inner.requires_grad then
        local seed = seed_for(part, inner)
        plan.seeds[#plan.seeds + 1] = { outer = flow.cotangent, inner = seed }
        results[#results + 1] = { inner = inner, seed = seed }
      end
    end
    for place in pairs(wanted) do asked[place] = true end
    local found = body_gradients(results, body.arguments, asked)
    for _, carried in ipairs(plan.carried) do
      local gradient = found[carried.place] or pg.zeros_like(body.arguments[carried.place])
      part.results[#part.results + 1] = control.take(part.graph, gradient, form.where)
    end
    for _, place in ipairs(sorted(found)) do
      if place > form.carries + form.steps then
        local sum = seed_for(part, body.arguments[place])
        plan.sums[#plan.sums + 1] = { place = place, inner = sum }
        part.results[#part.results + 1] = control.take(part.graph, sum + found[place], form.where)
      end
    end
    for _, place in ipairs(sorted(found)) do
      if place > form.carries and place <= form.carries + form.steps then
        plan.stacked[#plan.stacked + 1] = { place = place }
        part.results[#part.results + 1] = control.take(part.graph, found[place], form.where)
      end
    end
  end)
  return plan
end

-- Of what the body of a loop held, what differs by step, and what is the same in all of them: lists of
-- { outer, inner }.
local function split_taken(form, part)
  local b = #form.bodies
  local by_step, fixed = {}, {}
  for _, taken in ipairs(control.taken(part.graph)) do
    local list, outer = fixed, taken.outer
    if control.is_of(outer, form.bodies[b].graph) then
      local place = input_of(form.bodies[b], outer)
      if place and place > form.carries then
        list, outer = place <= form.carries + form.steps and by_step or fixed, form.inputs[place]
      else
        list, outer = by_step, keep(form, b, outer)
      end
    end
    list[#list + 1] = { outer = outer, inner = taken.inner }
  end
  return by_step, fixed
end

-- A scan the other way over what the steps held.
local function loop_gradients(form, flows, wanted)
  local back = nodes.form("scan", form.where, control.graph_for(flows[1].cotangent))
  local part = nodes.add_body(back, "step", form.bodies[#form.bodies].graph)
  local plan = record_step_back(form, part, flows, wanted)
  local by_step, fixed = split_taken(form, part)
  local arrived = {}
  for _, flow in ipairs(flows) do
    if flow.carry then arrived[flow.carry] = flow.cotangent end
  end
  for _, carried in ipairs(plan.carried) do
    local first = arrived[carried.place] or pg.zeros_like(form.inputs[carried.place])
    nodes.add_own_input(back, first, { carried.inner })
  end
  for _, sum in ipairs(plan.sums) do nodes.add_own_input(back, pg.zeros_like(form.inputs[sum.place]), { sum.inner }) end
  back.carries = #back.inputs
  for _, list in ipairs { plan.seeds, by_step } do
    for _, entry in ipairs(list) do nodes.add_own_input(back, entry.outer, { entry.inner }) end
  end
  if form.kind == "while_loop" and #back.inputs == back.carries then -- how many rounds there were
    nodes.add_own_input(back, keep(form, #form.bodies, form.bodies[#form.bodies].arguments[1]), {})
  end
  back.steps = #back.inputs - back.carries
  back.length = back.steps > 0 and back.inputs[back.carries + 1]:size(1) or form.length
  back.reverse = not form.reverse
  for _, entry in ipairs(fixed) do add_input(back, entry.outer, part, entry.inner) end
  if #part.results == 0 then return {} end
  local by_input, outputs, n = {}, nodes.add(back), 0
  for _, list in ipairs { plan.carried, plan.sums, plan.stacked } do
    for _, entry in ipairs(list) do
      n = n + 1
      by_input[entry.place] = outputs[n]
    end
  end
  return by_input
end

---The gradients of a node of a graph that was read, for what hangs on the tape there (native/control.lua): its own
---outputs, or one that was kept. The node is looked at when a pass comes by.
function nodes.restored(hung)
  return function(pass)
    local form = control.read(hung.graph, hung.node)
    form.where = form.kind
    local _, places = linked_inputs(form)
    if hung.first == 0 then return answer_of(form, places, own_flows(form))(pass) end
    for b, body in ipairs(form.bodies) do
      local inner = body.results[hung.first + 1]
      if inner then return answer_of(form, places, kept_flows(form, b, inner))(pass) end
    end
  end
end

gradients_of = { cond = cond_gradients, scan = loop_gradients, while_loop = loop_gradients }

return nodes
