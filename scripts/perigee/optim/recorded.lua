-- SPDX-License-Identifier: Apache-2.0
-- Optimizers in graphs: minimize and apply_gradients record what a step computes, by the code that steps eagerly. State
-- and step counts are variables of the graph, and so are hyperparameters that the update reads at each run: sessions
-- bring those up to date when the optimizer's change, so that schedules work as they do in eager code.

local native = require "perigee.native"
local limits = require "perigee.optim.limits"
local recordable = require "perigee.optim.recordable"

local graphs = native.graphs
local recorded = {}

local OPTIONS = {
  { "accumulate", "integer", named = true, default = 1, doc = "runs whose gradients one update adds up" },
  { "clip_norm", "number", named = true, doc = "as optim.clip_grad_norm_" },
  { "clip_value", "number", named = true, doc = "as optim.clip_grad_value_" },
  { "scaler", "any", named = true, type = "perigee.GradScaler", doc = "of float16" },
  { "lr", "tensor", named = true, doc = "a number that the graph computes, in place of the optimizer's" } }
local read_options = native.signature("minimize", OPTIONS)

local function raise(self, text, hint) native.raise("invalid_argument", self.name, text, hint) end

-- The graph that is being recorded, as scripts see it.
local function current_graph(self, method)
  local graph = graphs.front
  if not graph or not graphs.is_current(graph.native) then
    native.raise("failed_precondition", self.name, ("%s records into the graph of pg.graph, and is not for %s"):format(
                   method, graph and "the functions inside of it" or "eager code"),
                 not graph and "loss:backward() optimizer:step() in eager code" or nil)
  end
  return graph
end

local function check_options(self, options)
  local o = read_options(options or {})
  if o.accumulate < 1 then raise(self, "accumulate must be at least 1, got " .. o.accumulate) end
  if o.clip_norm then limits.check(self.name, o.clip_norm) end
  if o.clip_value then limits.check(self.name, o.clip_value) end
  local scaling = native.grad_scaler -- there where a script has made one
  if o.scaler ~= nil and not (scaling and scaling.is_scaler(o.scaler)) then
    raise(self, "scaler must be an amp.GradScaler, got " .. native.describe(o.scaler))
  end
  if o.scaler and not o.scaler:is_enabled() then o.scaler = nil end
  if o.lr and (o.lr:dim() ~= 0 or not native.dtypes.by_name[o.lr.dtype].floating) then
    raise(self, ("lr must be one floating point number, got %s %s"):format(o.lr.dtype, tostring(o.lr.shape)))
  end
  return o
end

-- ---- variables ----

local function variable(name, value, device)
  return require("perigee").device(device, graphs.variable, graphs.current, name, value)
end

local function number(name, value, dtype)
  return variable(name, graphs.outside(require("perigee").tensor, value, { dtype = dtype, device = "cpu" }), "cpu")
end

-- Through a twin: the tensor itself goes on meaning what the session holds.
local function write(t, value) native.call("copy", { t:detach(), value }) end

-- Eager parameters that no layer has brought in become variables, too.
local function take_in(params)
  local names, tensors = {}, {}
  for _, p in ipairs(params) do
    if not native.is_graph_tensor(p) then
      names[#names + 1], tensors[#tensors + 1] = "parameters." .. #names, p
    end
  end
  graphs.call("optimizer", names, tensors)
end

-- What the graph calls a parameter; nil: it has not used it.
local function name_of(graph, p)
  local v = graphs.variable_of(graph.native, p)
  return v and graphs.name(v)
end

-- All variables of the graph that want gradients: tensors that can be written to.
local function trainable(graph)
  local list, i = {}, 1
  while true do
    local v = graphs.variable_at(graph.native, i)
    if not v then return list end
    local t = graphs.source_at(graph.native, i) or graph.results[graphs.name(v)]
    if t and t.requires_grad then list[#list + 1] = t end
    i = i + 1
  end
end

-- What an optimizer has in a graph: { optimizer, prefix, steps = by parameter's name, slots, hyper, fixed }.
local function record_of(self, graph)
  for _, record in ipairs(graph.optimizers) do
    if record.optimizer == self then return record end
  end
  local count, prefix = 0, self.name:lower()
  local taken = {}
  for _, record in ipairs(graph.optimizers) do taken[record.prefix] = true end
  while taken[prefix] do
    count = count + 1
    prefix = ("%s_%d"):format(self.name:lower(), count)
  end
  local record = { optimizer = self, prefix = prefix, steps = {}, slots = {}, hyper = {}, fixed = {}, step_count = 0,
                   commit = recorded.commit }
  graph.optimizers[#graph.optimizers + 1] = record
  graph.before_run[#graph.before_run + 1] = function(session) recorded.refresh(record, session) end
  return record
end

-- The step count of all these parameters, which begins at what the optimizer has done.
local function step_of(self, record, entries)
  local known, fresh, done
  for _, e in ipairs(entries) do
    local step, count = record.steps[e.name], e.group.steps[e.index]
    if step and known and step ~= known or done and count ~= done or fresh ~= nil and fresh ~= not step then
      native.raise("not_supported", self.name, ("parameter %q has taken another number of steps than others"):format(
                     e.name), "parameters that step together take all their steps together")
    end
    known, done, fresh = step, count, not step
  end
  if known then return known end
  local name = record.step_count == 0 and "step" or "step_" .. record.step_count
  local step = number(name, done, "int64")
  record.step_count = record.step_count + 1
  for _, e in ipairs(entries) do record.steps[e.name] = step end
  return step
end

-- A parameter's state, which begins with what the optimizer holds.
local function slot_of(record, slot, e, zeros_for)
  local slots = record.slots[e.name] or {}
  record.slots[e.name] = slots
  if not slots[slot] then
    local like = e.param
    if native.is_graph_tensor(like) then
      like = graphs.outside(require("perigee").zeros, { e.param.shape, dtype = e.param.dtype, device = e.param.device })
    end
    local own = e.group.slots[slot] and e.group.slots[slot][e.index]
    local first = own or graphs.outside(zeros_for, e.group.attributes, slot, like)
    slots[slot] = graphs.variable_beside(graphs.current, e.name .. "/" .. slot, first, e.param)
  end
  return slots[slot]
end

-- The variable of a group's hyperparameter.
local function hyper_of(record, group, g, key)
  local hyper = record.hyper[group] or {}
  record.hyper[group] = hyper
  if not hyper[key] then
    local value = group.attributes:get(key)
    local name = g == 1 and key or ("group_%d/%s"):format(g, key)
    hyper[key] = { variable = number(name, value, "float64"), first = value }
  end
  return hyper[key].variable
end

-- ---- what runs do ----

-- Before a run: hyperparameters that a script or a schedule has set since this session's last run.
function recorded.refresh(record, session)
  for group, hyper in pairs(record.hyper) do
    for key, h in pairs(hyper) do
      local value, seen = group.attributes:get(key), session.seen[h]
      if seen == nil then seen = h.first end
      if value ~= seen then
        local tensor = require("perigee").tensor(value, { dtype = "float64", device = "cpu" })
        graphs.assign(session.native, h.variable, tensor)
      end
      session.seen[h] = value
    end
  end
  for group, values in pairs(record.fixed) do
    for key, value in pairs(values) do
      if group.attributes:get(key) ~= value then
        native.raise("failed_precondition", record.optimizer.name,
                     ("%s was %s when the graph was recorded, and is %s now"):format(
                       key, tostring(value), tostring(group.attributes:get(key))),
                     "of this hyperparameter a graph has its own")
      end
    end
  end
end

---Writes what a session holds of an optimizer's state into the optimizer; `read` gives what variables hold.
function recorded.commit(record, graph, read)
  local targets, wanted = {}, {}
  local function add(t, put)
    targets[#targets + 1], wanted[#wanted + 1] = put, graphs.variable_of(graph.native, t)
  end
  for _, group in ipairs(record.optimizer.groups) do
    group.plan = false
    for i, p in ipairs(group.params) do
      local name = name_of(graph, p)
      if name and record.steps[name] then
        add(record.steps[name], function(value) group.steps[i] = value:item() end)
        for slot, t in pairs(record.slots[name] or {}) do
          add(t, function(value)
            group.slots[slot] = group.slots[slot] or {}
            group.slots[slot][i] = require("perigee").keep(value)
          end)
        end
      end
    end
  end
  for i, value in ipairs(read(wanted)) do targets[i](value) end
end

-- ---- recording ----

-- The gradients of several runs, added up: answers what tells that this one does not update.
local function accumulate(record, entries, n)
  local pg = require "perigee"
  record.counter = record.counter or number("accumulated", 0, "int64")
  local count = (record.counter + 1) % n
  write(record.counter, count)
  local skip = count:ne(0)
  for _, e in ipairs(entries) do
    local zeros = graphs.outside(pg.zeros, { e.gradient.shape, dtype = e.gradient.dtype, device = e.param.device })
    e.sum = graphs.variable_beside(graphs.current, e.name .. "/gradient", zeros, e.param)
    e.gradient = e.sum + e.gradient
    write(e.sum, native.op "where"(skip, e.gradient, e.gradient:zeros_like()))
  end
  return skip
end

-- Gradients as lists by group, that may be written into.
local function own_gradients(entries)
  local list = {}
  for i, e in ipairs(entries) do
    e.gradient = e.gradient:clone()
    list[i] = e.gradient
  end
  return list
end

-- One group's update: numbers of a plugin's operators are bound to variables, rules in Lua compute with tensors.
local function update_group(record, group, g, batch, next_step, skip, lr)
  local attributes, number_step = group.attributes, next_step:to("float64")
  if attributes.in_lua then
    local values = { lr = lr or hyper_of(record, group, g, "lr"), skip = skip }
    attributes:step(number_step, batch.params, batch.gradients, batch.state,
                    setmetatable(values, { __index = attributes.values }))
  else
    recordable.check(attributes, batch)
    local first = graphs.node_count()
    native.with(function() native.set_condition(skip) end, function() native.set_condition(nil) end,
                attributes.step, attributes, 1, batch.params, batch.gradients, batch.state)
    graphs.bind(first, "step", number_step)
    for _, key in ipairs(attributes.info.names) do
      local is_number = type(attributes:get(key)) == "number"
      if is_number and graphs.has_number(first, key) then
        graphs.bind(first, key, key == "lr" and lr or hyper_of(record, group, g, key))
      end
    end
  end
  local fixed = {}
  for _, key in ipairs(attributes.info.names) do
    if not (record.hyper[group] and record.hyper[group][key]) and not (key == "lr" and lr) then
      fixed[key] = attributes:get(key)
    end
  end
  record.fixed[group] = fixed
end

local function update(self, record, entries, next_step, skip, lr, zeros_for)
  for g, group in ipairs(self.groups) do
    local batch = { params = {}, gradients = {}, state = {} }
    local names = group.attributes:slots()
    for _, slot in ipairs(names) do batch.state[slot] = {} end
    for _, e in ipairs(entries) do
      if e.group == group then
        local n = #batch.params + 1
        batch.params[n], batch.gradients[n] = e.param:detach(), e.gradient
        for _, slot in ipairs(names) do batch.state[slot][n] = slot_of(record, slot, e, zeros_for):detach() end
      end
    end
    if #batch.params > 0 then update_group(record, group, g, batch, next_step, skip, lr) end
  end
end

local function emit(self, record, entries, o, scaling, loss, zeros_for)
  local written = graphs.written()
  local step = step_of(self, record, entries)
  local next_step, skip = step + 1, nil
  local lr = o.lr and o.lr:to("cpu"):to("float64")
  if o.accumulate > 1 then skip = accumulate(record, entries, o.accumulate) end
  if scaling or o.clip_norm or o.clip_value then
    local list, due = own_gradients(entries), skip and skip:logical_not()
    if scaling then
      local found = scaling.unscale(list)
      scaling.update(found, due)
      skip = skip and skip:logical_or(found) or found
    end
    local lists = limits.by_device(list)
    if o.clip_norm then limits.norm(lists, o.clip_norm, limits.total_norm(lists, 2)) end
    if o.clip_value then limits.values(lists, o.clip_value) end
  end
  update(self, record, entries, next_step, skip, lr, zeros_for)
  local now = skip and native.op "where"(skip, step, next_step) or next_step
  write(step, now)
  local train = graphs.after_writes(now, written, loss)
  graphs.forget_writes(written) -- what is recorded later asks for no step
  return train
end

-- Records the update by gradients[name]. Answers the training tensor.
local function apply(self, graph, gradients, o, scaling, loss, zeros_for)
  local entries = {}
  for _, group in ipairs(self.groups) do
    for i, p in ipairs(group.params) do
      local name = name_of(graph, p)
      local gradient = name and gradients[name]
      if gradient then
        entries[#entries + 1] = { group = group, index = i, param = p, name = name, gradient = gradient }
      end
    end
  end
  local pg, record = require "perigee", record_of(self, graph)
  return pg.no_grad(pg.name_scope, record.prefix, function()
    local function record_all() return emit(self, record, entries, o, scaling, loss, zeros_for) end
    if native.in_autocast() then return require("perigee.nn.policy").autocast(nil, nil, record_all) end
    return record_all()
  end)
end

local function scaling_of(graph, o)
  if not o.scaler then return nil end
  return native.grad_scaler.recorded(graph, o.scaler, number)
end

---Records gradients of `loss` and the update by them.
function recorded.minimize(self, loss, options, zeros_for)
  local graph, o = current_graph(self, "minimize"), check_options(self, options)
  if not native.is_tensor(loss) or not native.is_graph_tensor(loss) then
    raise(self, "the loss must be a tensor of the graph, got " .. (native.is_tensor(loss) and "an eager tensor" or
                                                                    native.describe(loss)))
  end
  if loss:numel() ~= 1 then raise(self, "the loss must have one element, got " .. tostring(loss.shape)) end
  local params = {}
  if self:is_bound() then
    for _, group in ipairs(self.groups) do
      for _, p in ipairs(group.params) do
        if p.requires_grad then params[#params + 1] = p end
      end
    end
    take_in(params)
  else
    params = trainable(graph)
  end
  local scaling, target = scaling_of(graph, o), loss
  if o.accumulate > 1 then target = target * (1 / o.accumulate) end
  if scaling then target = scaling.scaled(target) end
  local found, used, by_name = {}, {}, {}
  if target.requires_grad and #params > 0 then
    found = require("perigee").name_scope("gradients", native.gradients, { target }, nil, params, true, false)
  end
  for i, p in ipairs(params) do
    if found[i] then
      used[#used + 1] = p
      by_name[name_of(graph, p)] = found[i]
    end
  end
  if #used == 0 then
    native.raise("failed_precondition", self.name, "the loss depends on no parameter that wants gradients")
  end
  if not self:is_bound() then self:bind(used) end
  return apply(self, graph, by_name, o, scaling, loss, zeros_for)
end

local function check_pair(self, i, pair)
  if type(pair) ~= "table" or getmetatable(pair) ~= nil or not native.is_tensor(pair[2]) then
    raise(self, ("pair %d must be { gradient, variable }, got %s"):format(i, native.describe(pair)))
  end
  local gradient, p = pair[1], pair[2]
  if not native.is_tensor(gradient) then
    raise(self, ("gradient %d must be a tensor, got %s"):format(i, native.describe(gradient)))
  end
  if gradient.dtype ~= p.dtype or tostring(gradient.shape) ~= tostring(p.shape) then
    raise(self, ("gradient %d is %s %s; expected %s %s as its variable"):format(i, gradient.dtype,
                 tostring(gradient.shape), p.dtype, tostring(p.shape)))
  end
end

---Records the update by gradients that are given: { { gradient, variable }, ... }.
function recorded.apply_gradients(self, pairs_given, options, zeros_for)
  local graph, o = current_graph(self, "apply_gradients"), check_options(self, options)
  if not native.is_plain(pairs_given) or #pairs_given == 0 then
    raise(self, "needs a list of { gradient, variable }, got " .. native.describe(pairs_given))
  end
  if o.scaler then raise(self, "minimize alone scales the loss", "opt:minimize(loss, {scaler=scaler})") end
  local params = {}
  for i, pair in ipairs(pairs_given) do
    check_pair(self, i, pair)
    params[i] = pair[2]
  end
  take_in(params)
  if not self:is_bound() then self:bind(params) end
  local held, by_name = {}, {}
  for _, group in ipairs(self.groups) do
    for _, p in ipairs(group.params) do
      local name = name_of(graph, p)
      if name then held[name] = true end
    end
  end
  for i, pair in ipairs(pairs_given) do
    local name = name_of(graph, pair[2])
    if not name or not held[name] then raise(self, ("variable %d is none of its parameters"):format(i)) end
    if by_name[name] then raise(self, ("variable %d, %q, is there twice"):format(i, name)) end
    by_name[name] = o.accumulate > 1 and pair[1] * (1 / o.accumulate) or pair[1]
  end
  return apply(self, graph, by_name, o, nil, nil, zeros_for)
end

return recorded
