-- SPDX-License-Identifier: Apache-2.0
-- pg.Session: runs graphs.

local native = require "perigee.native"
local pg = require "perigee"
local graph = require "perigee.graph"

local graphs, resolve, variables = native.graphs, graph.resolve, graph.variables

---@class perigee.Session
---@field graph perigee.Graph
local Session = {}

local read_gpu_options = native.signature("Session: gpu_options", {
  { "allow_growth", "boolean", named = true, doc = "pg.config.memory_growth of every accelerator" },
  { "per_process_gpu_memory_fraction", "number", named = true, doc = "pg.config.memory_fraction of every accelerator" },
})

-- TensorFlow's options of a session are settings of the process here.
local function set_gpu_options(options)
  local o = read_gpu_options(options)
  for _, device in ipairs(pg.devices "gpu") do
    if o.allow_growth ~= nil then pg.config.memory_growth(device.name, o.allow_growth) end
    if o.per_process_gpu_memory_fraction then
      pg.config.memory_fraction(device.name, o.per_process_gpu_memory_fraction)
    end
  end
end

local function live(self, where)
  return self.native or native.raise("failed_precondition", where, "the session is closed")
end

-- Before a run: what optimizers' hyperparameters are now.
local function ready(self, where)
  local session = live(self, where)
  for _, refresh in ipairs(self.graph.before_run) do refresh(self) end
  return session
end

-- Values of variables, as copies: a list beside `wanted`.
local function read(self, where, wanted) return graphs.run(live(self, where), wanted, {}, {}) end

-- What the session holds of a model: tensors, each once, with their names in the model's state and the variables that
-- they are in the graph. What the graph has not used is no variable, and keeps what it holds.
local function variables_of(self, where, model)
  if not pg.nn.is_layer(model) then
    native.raise("invalid_argument", where, "needs a layer, got " .. native.describe(model))
  end
  local names, tensors, wanted, known = {}, {}, {}, false
  local class, all, held = graphs.tensors_of(model)
  for i, t in ipairs(held) do
    local variable = graphs.variable_of(self.graph.native, t)
    known = known or variable ~= nil or graphs.knows(self.graph.native, t)
    if variable then names[#names + 1], tensors[#tensors + 1], wanted[#wanted + 1] = all[i], t, variable end
  end
  if not known then
    native.raise("invalid_argument", where, ("the graph does not know this %s: it was never called in it"):format(
                   class))
  end
  return names, tensors, wanted
end

local read_session = native.signature("Session", {
  { "graph", "table", required = true, type = "perigee.Graph", doc = "what pg.graph made" },
  { "log_device_placement", "boolean", named = true, doc = "writes session:placement() to standard error" },
  { "allow_soft_placement", "boolean", named = true,
    doc = "runs on another device what cannot be where it was placed; a warning names each. Otherwise one error does" },
  { "commit", "table", named = true, doc = "a model that session:close() writes what was learnt back into" },
  { "fuse", "boolean", default = true, named = true,
    doc = "whether nodes may be joined into one kernel where a plugin can; PERIGEE_COMPILE=off or plan: nowhere" },
  { "gpu_options", "table", named = true,
    doc = "allow_growth and per_process_gpu_memory_fraction: pg.config's settings, of the process" } })
---Runs a graph: `pg.Session{g}`, then session:run("y", { x = ... }).
---@return perigee.Session
local function new_session(...)
  local o = read_session(...)
  if getmetatable(o.graph) ~= graph.Graph then
    native.raise("invalid_argument", "Session", "needs a graph from pg.graph")
  end
  if o.gpu_options then set_gpu_options(o.gpu_options) end
  local mode = native.compiled.mode "Session"
  local fuse = o.fuse and mode ~= "off" and mode ~= "plan"
  local session = graphs.create_session(o.graph.native, o.allow_soft_placement, fuse)
  local self = setmetatable({ graph = o.graph, native = session,
                              committed = o.commit or false, names = {}, seen = {} }, Session)
  if o.commit then variables_of(self, "Session", o.commit) end
  if o.log_device_placement then io.stderr:write(self:placement()) end
  return self
end

---Where everything is, as TensorFlow writes it: a mapping of the names of devices (`/gpu:0 -> cuda:0, NVIDIA H100`), a
---line a node (`add_1: (Add): /gpu:0`), and what a run copies between devices, in bytes, in which sizes that are not
---known before stand by their names. Constants are copied once for all runs.
---@return string
function Session:placement() return graphs.placement(live(self, "placement")) end

---What the run that was asked for last does: how many kernels, views and copies between devices, and how large the
---block is in which what nobody fetches lies; then a line a step, with the bytes of its results and where they lie in
---the block. It is laid out when sizes come a second time, and is not there where sizes are known only when it runs
---(loops, dynamic results).
---@return string
function Session:plan() return graphs.plan(live(self, "plan")) end

-- What names of this session's fetches and feeds mean, as long as nothing is recorded into the graph.
local function names_of(self)
  local revision = graphs.revision(self.graph.native)
  local names = self.names
  if names.revision ~= revision then
    names = { revision = revision, fetches = {}, feeds = {} }
    self.names = names
  end
  return names
end

-- The tensor that is fed under a name.
local function target(self, names, name)
  local t = names[name]
  if t and t.ptr ~= nil then return t end -- it may have been made, and closed, in a pg.scope
  t = resolve(self.graph, name)
  if type(name) == "string" then names[name] = t end
  return t
end

local function read_feed(self, where, names, name, value)
  local t = target(self, names, name)
  if native.is_tensor(value) then return t, value end
  if value == nil then
    native.raise("invalid_argument", where, ("%s was fed nothing"):format(native.describe(name)))
  end
  return t, pg.tensor(value, { dtype = t.dtype })
end

-- What is fed, in an order that does not depend on the hash, so that errors do not.
local function sorted_names(feeds)
  local names = {}
  for name in pairs(feeds) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  return names
end

local function feed_lists(self, feeds, where)
  local targets, values = {}, {}
  if feeds == nil then return targets, values end
  if type(feeds) ~= "table" then
    native.raise("invalid_argument", where, "feeds must be a table by name, got " .. native.describe(feeds))
  end
  local names, taken, fed, count = names_of(self).feeds, 0, native.entries.keys(feeds)
  for i = 1, count do
    local t, value = names[fed[i]], feeds[fed[i]]
    if t == nil or t.ptr == nil or not native.is_tensor(value) then break end
    taken = i
    targets[i], values[i] = t, value
  end
  if taken == count then return targets, values end
  for i, name in ipairs(sorted_names(feeds)) do
    targets[i], values[i] = read_feed(self, where, names, name, feeds[name])
  end
  return targets, values
end

-- The tensor that a fetch asks for. A variable's own name is for what the session holds, and asks for no update.
local function fetched(self, v)
  local names = names_of(self).fetches
  local known = type(v) == "string" and names[v]
  if known and known.ptr ~= nil then return known end
  local variable, result = variables(self.graph)[v], self.graph.results[v]
  local t = variable and (not result or self.graph.sources[result] == v) and variable or resolve(self.graph, v)
  if type(v) == "string" then names[v] = t end
  return t
end

-- What a fetch asks for: tensors, and the key that each result goes under.
local function read_fetches(self, fetches)
  local wanted, keys, count = {}, native.entries.keys(fetches)
  for i = 1, count do
    local key, v = keys[i], fetches[keys[i]]
    wanted[i] = fetched(self, v)
    keys[i] = type(key) == "number" and type(v) == "string" and v or key
  end
  return wanted, keys
end

local function run(self, where, issue, handle, fetches, feeds)
  if type(fetches) ~= "table" then
    local wanted = { fetched(self, fetches) }
    return issue(handle, wanted, feed_lists(self, feeds, where))[1]
  end
  local wanted, keys = read_fetches(self, fetches)
  local results, named = issue(handle, wanted, feed_lists(self, feeds, where)), {}
  for i = 1, #keys do named[keys[i]] = results[i] end
  return named
end

---Runs what is fetched: one name (of a list of results, a position) or tensor gives one result; a table gives a table:
---by name for what is listed by name, else by the key that stood there. Feeds are tensors, or numbers and tables of
---them, which take the placeholder's dtype. Any tensor of the graph can be fed: what it is computed of is then not
---needed, and symbols in its shape take their sizes from it. A variable's name gives what the variable holds after the
---run, and is no reason to update it.
---@param fetches string|integer|perigee.Tensor|(string|integer|perigee.Tensor)[]|table<string, string|perigee.Tensor>
---@param feeds? table<string, any>
---@return any
function Session:run(fetches, feeds)
  return run(self, "Session:run", graphs.run, ready(self, "run"), fetches, feeds)
end

---@class perigee.PartialRun
local PartialRun = {}
PartialRun.__index = PartialRun
function PartialRun.__tostring() return "PartialRun" end

---Begins a run in parts: all that its parts will fetch, and names of all that they will feed. Answers what
---session:partial_run takes. Variables are what they are now, but for what the parts write.
---@param fetches (string|integer|perigee.Tensor)[]
---@param feeds? (string|perigee.Tensor)[]
---@return perigee.PartialRun
function Session:partial_run_setup(fetches, feeds)
  local session = ready(self, "partial_run_setup")
  if type(fetches) ~= "table" then fetches = { fetches } end
  local targets = {}
  for i, name in ipairs(feeds or {}) do targets[i] = resolve(self.graph, name) end
  return setmetatable({ session = self, native = graphs.begin(session, (read_fetches(self, fetches)), targets) },
                      PartialRun)
end

---A part of a run that partial_run_setup began: fetches some of what it told, with what has been fed up to now. What
---earlier parts have computed is not computed again. Everything is fed once.
---@param handle perigee.PartialRun
---@param fetches string|integer|perigee.Tensor|table
---@param feeds? table<string, any>
---@return any
function Session:partial_run(handle, fetches, feeds)
  live(self, "partial_run")
  if getmetatable(handle) ~= PartialRun or handle.session ~= self then
    native.raise("invalid_argument", "partial_run", "needs what partial_run_setup of this session answered, got " ..
                   native.describe(handle))
  end
  return run(self, "Session:partial_run", graphs.run_part, handle.native, fetches, feeds)
end

local default -- session of t:eval

---Calls fn(...) with this session as the default one: `t:eval(feeds)` in it is `session:run(t, feeds)`.
---@param fn function
---@param ... any arguments of fn
---@return any ... what fn returns
function Session:as_default(fn, ...)
  live(self, "as_default")
  native.checked.need_function("as_default", fn)
  return native.with(function()
    local outer = default
    default = self
    return outer or false
  end, function(outer) default = outer or nil end, fn, ...)
end

---The value of a tensor of a graph, by the default session: `session:as_default(function() print(y:eval{x = 1}) end)`.
---@param t perigee.Tensor
---@param feeds? table<string, any> as session:run takes them
---@return any
local function eval(t, feeds)
  if not native.is_graph_tensor(t) then
    native.raise("invalid_argument", "eval", "needs a tensor of a graph, got one that has its contents already")
  end
  if not default then
    native.raise("failed_precondition", "eval", "there is no default session",
                 "call it in session:as_default(fn), or session:run(t, feeds)")
  end
  return default:run(t, feeds)
end

---What the variables hold, by name: `pg.save("w.safetensors", session:state())`. Of a model whose layers were called in
---the graph, session:state(model) gives what it would hold, by its own names: model:load_state takes that.
---@param model? perigee.Layer
---@return table<string, perigee.Tensor>
function Session:state(model)
  local names, wanted, state = {}, {}, {}
  if model ~= nil then
    local _
    names, _, wanted = variables_of(self, "state", model)
  else
    for name, variable in pairs(variables(self.graph)) do
      names[#names + 1], wanted[#wanted + 1] = name, variable
    end
  end
  for i, value in ipairs(read(self, "state", wanted)) do state[names[i]] = value end
  return state
end

---Writes what the session holds into the parameters and buffers of a model whose layers were called in the graph. They
---stay the tensors that they are, wherever the model is now. Everything is checked before anything is changed. The
---session goes on with what it holds. An optimizer that was recorded in the graph gets its state and step counts.
---@param model perigee.Layer|perigee.Optimizer
function Session:commit(model)
  for _, record in ipairs(self.graph.optimizers) do
    if record.optimizer == model then
      return record.commit(record, self.graph, function(wanted) return read(self, "commit", wanted) end)
    end
  end
  local names, tensors, wanted = variables_of(self, "commit", model)
  local values = read(self, "commit", wanted)
  for i, t in ipairs(tensors) do
    local value = values[i]
    if t.dtype ~= value.dtype or t.shape ~= value.shape then
      native.raise("failed_precondition", "commit", ("%s is %s %s in the model now; the session holds %s %s"):format(
                     names[i], t.dtype, tostring(t.shape), value.dtype, tostring(value.shape)))
    end
  end
  native.graphs.outside(pg.no_grad, function()
    for i, t in ipairs(tensors) do t:copy_(values[i]) end
  end)
end

---Ends the session and lets go of what it holds: first written back into the model that pg.Session's `commit` named.
---What was fetched stays. A session that nobody refers to ends by itself, and then writes nothing back.
function Session:close()
  if not self.native then return end
  if self.committed then self:commit(self.committed) end
  graphs.close_session(self.native)
  self.native = false
end

---Gives the variables values as state() gave them: all of the graph's, of their shapes and dtypes.
---@param state table<string, perigee.Tensor>
function Session:load_state(state)
  live(self, "load_state")
  local known = variables(self.graph)
  if type(state) ~= "table" or native.is_tensor(state) then
    native.raise("invalid_argument", "load_state", "needs tensors by name, got " .. native.describe(state))
  end
  for name in pairs(state) do
    if not known[name] then
      native.raise("invalid_argument", "load_state", ("the graph has no variable %q"):format(tostring(name)))
    end
  end
  for name, variable in pairs(known) do
    local value = state[name]
    if not native.is_tensor(value) then
      native.raise("invalid_argument", "load_state", ("variable %q must be a tensor, got %s"):format(
                     name, native.describe(value)))
    elseif value.dtype ~= variable.dtype or value.shape ~= variable.shape then
      native.raise("invalid_argument", "load_state", ("variable %q is %s %s; got %s %s"):format(
                     name, variable.dtype, tostring(variable.shape), value.dtype, tostring(value.shape)))
    end
  end
  for name, variable in pairs(known) do graphs.assign(self.native, variable, state[name]) end
end

native.checked.class(Session, { noun = "a session", call = "session",
  kinds = { run = { { "fetches", "any" }, { "feeds", "table" } },
            partial_run_setup = { { "fetches", "any", required = true }, { "feeds", "table" } },
            partial_run = { { "handle", "any" }, { "fetches", "any" }, { "feeds", "table" } },
            state = { { "model", "table" } }, commit = { { "model", "table", required = true } },
            load_state = { { "state", "table", required = true }, { "notes", "function" } } } }) -- both of pg.load

function Session:__tostring() return ("Session(%s)"):format(tostring(self.graph)) end

-- For pg.save, whose room does not know this one.
function graphs.is_session(v) return type(v) == "table" and getmetatable(v) == Session end
function graphs.save_session(...) return require("perigee.graph.save")(...) end

return { Session = new_session, eval = eval }
