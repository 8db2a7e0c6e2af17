-- SPDX-License-Identifier: Apache-2.0
-- pg.graph and pg.Session: graphs that are built once and run often.

local native = require "perigee.native"
local pg = require "perigee"

local graphs = native.graphs

---@class perigee.Graph
local Graph = {}
Graph.__index = Graph

local read_placeholder = native.signature("placeholder", {
  { "name", "string", required = true }, { "shape", "table", required = true, named = true },
  { "dtype", "dtype", named = true } })

-- Sizes from 0 and names of symbols, without holes.
local function check_dimensions(shape)
  local count = 0
  for i, d in pairs(shape) do
    count = count + 1
    local fits = type(d) == "string" and d ~= "" or type(d) == "number" and d >= 0 and d == math.floor(d) and d < 2 ^ 53
    if type(i) ~= "number" or not fits and not native.size.is_symbol(d) then
      native.raise("invalid_argument", "placeholder",
                   ("shape[%s] must be a size or the name of a symbol, got %s"):format(tostring(i), native.describe(d)),
                   native.size.is(d) and "what is computed of other sizes cannot be fed" or nil)
    end
  end
  if count ~= #shape or count > 0 and shape[1] == nil then
    native.raise("invalid_argument", "placeholder", "the shape has a hole")
  end
end

---An input: `g:placeholder{"x", shape={"batch", 3}, dtype="float32"}`. Strings name sizes that the feeds
---decide; such a size, `x:size(1)`, is a value to compute with: `x:reshape{x:size(1) * 3}`.
---@return perigee.Tensor
function Graph:placeholder(...)
  local o = read_placeholder(...)
  check_dimensions(o.shape)
  local dtype = native.dtypes.find(o.dtype or native.default_dtype(), "placeholder")
  return graphs.placeholder(self.native, o.name, dtype, o.shape)
end

-- Runs fn outside of the graph that is being recorded: initial values are eager.
local function eagerly(fn, ...)
  return native.with(function() return graphs.set_current(nil) end, graphs.set_current, fn, ...)
end

local function glorot(shape, normal)
  local fan_in, fan_out = shape[#shape], shape[1]
  local limit = math.sqrt((normal and 2 or 6) / (fan_in + fan_out))
  return normal and pg.randn(shape) * limit or (pg.rand(shape) * 2 - 1) * limit
end

local initializers = {
  zeros = function(shape) return pg.zeros(shape) end,
  ones = function(shape) return pg.ones(shape) end,
  uniform = function(shape) return pg.rand(shape) end,
  normal = function(shape) return pg.randn(shape) end,
  glorot_uniform = function(shape) return glorot(shape, false) end,
  glorot_normal = function(shape) return glorot(shape, true) end,
}

local read_variable = native.signature("variable", {
  { "name", "string", required = true }, { "shape", "table", named = true }, { "init", "any", named = true,
    type = '"zeros"|"ones"|"uniform"|"normal"|"glorot_uniform"|"glorot_normal"|function|perigee.Tensor' },
  { "dtype", "dtype", named = true } })

---State that lives between runs: `g:variable{"w", shape={3, 2}, init="glorot_uniform"}`; init may be a tensor.
---@return perigee.Tensor
function Graph:variable(...)
  local o = read_variable(...)
  local value = o.init
  if not native.is_tensor(value) then
    local make = type(value) == "function" and value or initializers[value or "zeros"]
    if not make or not o.shape then
      local near = type(value) == "string" and native.suggest(value, { "zeros", "ones", "uniform", "normal",
                                                                       "glorot_uniform", "glorot_normal" })
      native.raise("invalid_argument", "variable",
                   "needs init as a tensor, or a shape and init as a name or a function of the shape",
                   near and ("did you mean %q?"):format(near))
    end
    value = eagerly(make, o.shape)
  end
  if o.dtype then value = eagerly(value.to, value, o.dtype) end
  local variable = graphs.variable(self.native, o.name, value)
  if native.dtypes.by_name[variable.dtype].floating then variable.requires_grad = true end
  self.results[o.name] = variable -- a tensor of its own: what is found by name again has no history
  return variable
end

local read_constant = native.signature("constant", {
  { "value", "any", required = true, type = "number|boolean|table|perigee.Tensor" },
  { "name", "string", named = true }, { "dtype", "dtype", named = true } })

---A tensor that never changes: `g:constant({1, 2, 3}, {name="a"})`.
---@return perigee.Tensor
function Graph:constant(...)
  local o = read_constant(...)
  local value = native.is_tensor(o.value) and o.value or eagerly(pg.tensor, o.value, { dtype = o.dtype })
  self.constants = self.constants + 1
  return graphs.constant(self.native, o.name or ("constant_" .. self.constants), value)
end

---A tensor of the graph by name, or by the name it was returned under.
---@param name string
---@return perigee.Tensor?
function Graph:find(name)
  if self.results[name] then return self.results[name] end
  local ok, found = pcall(graphs.find, self.native, name)
  if ok then return found end
  local names = {}
  for known in pairs(self.results) do names[#names + 1] = tostring(known) end
  table.sort(names)
  local near = native.suggest(name, names)
  native.raise("not_found", "graph", found.message:match("the graph has no tensor.*") or found.message,
               near and ("did you mean %q?"):format(near) or "its results are: " .. table.concat(names, ", "))
end

local function resolve(self, v)
  if native.is_tensor(v) then return v end
  if type(v) ~= "string" then
    native.raise("invalid_argument", "graph", "needs a name or a tensor of the graph, got " .. native.describe(v))
  end
  return self:find(v)
end

-- Runs fn so that operators are recorded into this graph.
local function record(self, fn, ...)
  return native.with(function() return graphs.set_current(self.native) end, graphs.set_current, fn, ...)
end

---Adds the gradients of one tensor with respect to others: `g:gradients("loss", {"w"})` is a list.
---@param target string|perigee.Tensor
---@param sources (string|perigee.Tensor)[]
---@return perigee.Tensor[]
function Graph:gradients(target, sources)
  local list = {}
  if type(sources) == "string" or native.is_tensor(sources) then sources = { sources } end
  if type(sources) ~= "table" then
    native.raise("invalid_argument", "gradients", "needs a list of names or tensors, got " .. native.describe(sources))
  end
  for i, v in ipairs(sources) do list[i] = resolve(self, v) end
  local root = resolve(self, target)
  return record(self, function()
    return (native.gradients({ root }, nil, list, true, true))
  end)
end

---A line per node, as text.
---@return string
function Graph:text() return graphs.text(self.native) end
---Prints the graph's text.
function Graph:print() print(self:text()) end

---The graph in the dot language, written to a file when a path is given.
---@param path? string
---@return string
function Graph:dot(path)
  local text = graphs.dot(self.native)
  if not path then return text end
  local file, message = io.open(path, "wb")
  if not file then native.raise("not_found", "dot", message) end
  file:write(text)
  file:close()
end

---Builds a graph: fn(g) makes its nodes, and answers the results as a table by name, or one tensor.
---@param fn fun(g: perigee.Graph): perigee.Tensor|table<string, perigee.Tensor>
---@return perigee.Graph
local function graph(fn)
  if type(fn) ~= "function" then
    native.raise("invalid_argument", "graph", "needs a function, got " .. native.describe(fn))
  end
  local self = setmetatable({ native = graphs.create(), results = {}, constants = 0 }, Graph)
  local results = record(self, fn, self)
  if native.is_tensor(results) then results = { output = results } end
  if results ~= nil and (type(results) ~= "table" or getmetatable(results)) then
    native.raise("invalid_argument", "graph",
                 "the function must return a tensor or a table of tensors, got " .. native.describe(results))
  end
  for name, t in pairs(results or {}) do
    if not native.is_tensor(t) then
      native.raise("invalid_argument", "graph",
                   ("result %s must be a tensor, got %s"):format(tostring(name), native.describe(t)))
    end
    self.results[name] = t
    if type(name) == "string" then graphs.set_name(self.native, t, name) end
  end
  return self
end

---@class perigee.Session
---@field graph perigee.Graph
local Session = {}
Session.__index = Session

local read_session = native.signature("Session", {
  { "graph", "table", required = true, type = "perigee.Graph", doc = "what pg.graph made" },
  { "log_device_placement", "boolean", named = true, doc = "writes session:placement() to standard error" },
  { "allow_soft_placement", "boolean", named = true,
    doc = "runs what its device has no kernel for on the processor; a warning names each" } })
---Runs a graph: `pg.Session{g}`, then session:run("y", { x = ... }).
---@return perigee.Session
local function new_session(...)
  local o = read_session(...)
  local self = setmetatable({ graph = o.graph }, Session)
  if getmetatable(self.graph) ~= Graph then
    native.raise("invalid_argument", "Session", "needs a graph from pg.graph")
  end
  self.native = graphs.create_session(self.graph.native)
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
  for _, name in ipairs(names) do
    local value = feeds[name]
    targets[#targets + 1] = resolve(self.graph, name)
    values[#values + 1] = native.is_tensor(value) and value or pg.tensor(value)
  end
  return targets, values
end

-- What a fetch asks for: tensors, and the key that each result goes under.
local function read_fetches(self, fetches)
  local wanted, keys = {}, {}
  for key, v in pairs(fetches) do
    wanted[#wanted + 1] = resolve(self.graph, v)
    keys[#keys + 1] = type(key) == "number" and type(v) == "string" and v or key
  end
  return wanted, keys
end

---Runs what is fetched: one name or tensor gives one result; a table gives a table: by name for what is listed by
---name, else by the key that stood there.
---@param fetches string|perigee.Tensor|table
---@param feeds? table<string, any>
---@return any
function Session:run(fetches, feeds)
  if type(fetches) ~= "table" then
    local targets, values = feed_lists(self, feeds)
    return graphs.run(self.native, { resolve(self.graph, fetches) }, targets, values)[1]
  end
  local wanted, keys = read_fetches(self, fetches)
  local targets, values = feed_lists(self, feeds)
  local results, named = graphs.run(self.native, wanted, targets, values), {}
  for i, key in ipairs(keys) do named[key] = results[i] end
  return named
end

return { graph = graph, Session = new_session }
