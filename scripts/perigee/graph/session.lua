-- SPDX-License-Identifier: Apache-2.0
-- pg.Session: runs graphs.

local native = require "perigee.native"
local pg = require "perigee"
local graph = require "perigee.graph"

local graphs, resolve = native.graphs, graph.resolve

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

local read_session = native.signature("Session", {
  { "graph", "table", required = true, type = "perigee.Graph", doc = "what pg.graph made" },
  { "log_device_placement", "boolean", named = true, doc = "writes session:placement() to standard error" },
  { "allow_soft_placement", "boolean", named = true,
    doc = "runs what its device has no kernel for on the processor; a warning names each" },
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
  local self = setmetatable({ graph = o.graph, native = graphs.create_session(o.graph.native) }, Session)
  if o.allow_soft_placement then graphs.allow_soft_placement(self.native, true) end
  if o.log_device_placement then io.stderr:write(self:placement()) end
  return self
end

---Where each node of the graph runs, a line a node: `add_1: (add): gpu:0`. Soft placement moves nodes when they run.
---@return string
function Session:placement() return graphs.placement(self.native) end

local function feed_lists(self, feeds)
  local targets, values = {}, {}
  if feeds ~= nil and type(feeds) ~= "table" then
    native.raise("invalid_argument", "Session:run", "feeds must be a table by name, got " .. native.describe(feeds))
  end
  local names = {}
  for name in pairs(feeds or {}) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end) -- so that errors do not depend on the hash
  for i, name in ipairs(names) do
    local value = feeds[name]
    targets[i] = resolve(self.graph, name)
    values[i] = native.is_tensor(value) and value or pg.tensor(value, { dtype = targets[i].dtype })
  end
  return targets, values
end

-- The tensor that a fetch asks for. A variable's own name is for what the session holds, and asks for no update.
local function fetched(self, v)
  local variable = self.graph.variables[v]
  return variable and self.graph.sources[self.graph.results[v]] == v and variable or resolve(self.graph, v)
end

-- What a fetch asks for: tensors, and the key that each result goes under.
local function read_fetches(self, fetches)
  local wanted, keys = {}, {}
  for key, v in pairs(fetches) do
    wanted[#wanted + 1] = fetched(self, v)
    keys[#keys + 1] = type(key) == "number" and type(v) == "string" and v or key
  end
  return wanted, keys
end

---Runs what is fetched: one name (of a list of results, a position) or tensor gives one result; a table gives a table:
---by name for what is listed by name, else by the key that stood there. Feeds are tensors, or numbers and tables of
---them, which take the placeholder's dtype. A variable's name gives what the variable holds after the run, and is no
---reason to update it.
---@param fetches string|integer|perigee.Tensor|table
---@param feeds? table<string, any>
---@return any
function Session:run(fetches, feeds)
  if type(fetches) ~= "table" then
    local targets, values = feed_lists(self, feeds)
    return graphs.run(self.native, { fetched(self, fetches) }, targets, values)[1]
  end
  local wanted, keys = read_fetches(self, fetches)
  local targets, values = feed_lists(self, feeds)
  local results, named = graphs.run(self.native, wanted, targets, values), {}
  for i, key in ipairs(keys) do named[key] = results[i] end
  return named
end

---What the variables hold, by name: `pg.save("w.safetensors", session:state())`.
---@return table<string, perigee.Tensor>
function Session:state()
  local names, wanted, state = {}, {}, {}
  for name, variable in pairs(self.graph.variables) do
    names[#names + 1], wanted[#wanted + 1] = name, variable
  end
  for i, value in ipairs(graphs.run(self.native, wanted, {}, {})) do state[names[i]] = value end
  return state
end

---Gives the variables values as state() gave them: all of the graph's, of their shapes and dtypes.
---@param state table<string, perigee.Tensor>
function Session:load_state(state)
  if type(state) ~= "table" or native.is_tensor(state) then
    native.raise("invalid_argument", "load_state", "needs tensors by name, got " .. native.describe(state))
  end
  for name in pairs(state) do
    if not self.graph.variables[name] then
      native.raise("invalid_argument", "load_state", ("the graph has no variable %q"):format(tostring(name)))
    end
  end
  for name, variable in pairs(self.graph.variables) do
    local value = state[name]
    if not native.is_tensor(value) then
      native.raise("invalid_argument", "load_state", ("variable %q must be a tensor, got %s"):format(
                     name, native.describe(value)))
    elseif value.dtype ~= variable.dtype or value.shape ~= variable.shape then
      native.raise("invalid_argument", "load_state", ("variable %q is %s %s; got %s %s"):format(
                     name, variable.dtype, tostring(variable.shape), value.dtype, tostring(value.shape)))
    end
  end
  for name, variable in pairs(self.graph.variables) do graphs.assign(self.native, variable, state[name]) end
end

native.checked.class(Session, { noun = "a session", call = "session",
  kinds = { run = { { "fetches", "any" }, { "feeds", "table" } },
            load_state = { { "state", "table", required = true }, { "notes", "function" } } } }) -- both of pg.load

function Session:__tostring() return ("Session(%s)"):format(tostring(self.graph)) end

return { Session = new_session }
