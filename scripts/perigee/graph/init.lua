-- SPDX-License-Identifier: Apache-2.0
-- pg.graph: graphs that are built once; sessions run them.

local native = require "perigee.native"
local pg = require "perigee"
local initial = require "perigee.graph.initial"

local graphs = native.graphs

---@class perigee.Graph
local Graph = {}

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

-- Notes a tensor that has a name of its own.
local function add_source(self, t)
  local name = graphs.name(t)
  self.sources[t], self.names[#self.names + 1] = name, name
  return t
end

---An input: `g:placeholder{"x", shape={"batch", 3}, dtype="float32"}`. Strings name sizes that the feeds
---decide; such a size, `x:size(1)`, is a value to compute with: `x:reshape{x:size(1) * 3}`.
---@return perigee.Tensor
function Graph:placeholder(...)
  local o = read_placeholder(...)
  check_dimensions(o.shape)
  local dtype = native.dtypes.find(o.dtype or native.default_dtype(), "placeholder")
  return add_source(self, graphs.placeholder(self.native, o.name, dtype, o.shape, self.symbols))
end

local read_variable = native.signature("variable", {
  { "name", "string", required = true }, { "shape", "table", named = true }, { "init", "any", named = true,
    type = '"zeros"|"ones"|"uniform"|"normal"|"glorot_uniform"|"glorot_normal"|number|table|function|perigee.Tensor' },
  { "dtype", "dtype", named = true } })

---State that lives between runs: `g:variable{"w", shape={3, 2}, init="glorot_uniform"}`. init is a tensor, numbers, a
---function of the shape, or zeros, ones, uniform, normal, glorot_uniform or glorot_normal (nn.init.xavier_*).
---@return perigee.Tensor
function Graph:variable(...)
  local o = read_variable(...)
  local variable = graphs.variable(self.native, o.name, initial.value(o))
  if native.dtypes.by_name[variable.dtype].floating then variable.requires_grad = true end
  local name = graphs.name(variable)
  self.results[name] = variable -- stands for the last value that the graph writes
  return add_source(self, variable)
end

local read_constant = native.signature("constant", {
  { "value", "any", required = true, type = "number|boolean|table|perigee.Tensor" },
  { "name", "string", named = true }, { "dtype", "dtype", named = true } })

-- A list alone is the value: {5} has shape [1], {{1, 2}} shape [1, 2]. With names in it its first entry is the value.
local function constant_options(value, ...)
  local whole = type(value) == "table" and getmetatable(value) == nil and select("#", ...) == 0
  if not whole then return read_constant(value, ...) end
  for key in pairs(value) do
    if type(key) == "string" then return read_constant(value) end
  end
  return { value = value }
end

---A tensor that never changes: `g:constant({1, 2, 3}, {name="a"})`. A list alone, `g:constant{5}`, is the value.
---@return perigee.Tensor
function Graph:constant(...)
  local o = constant_options(...)
  local t = graphs.constant(self.native, o.name, initial.tensor("constant", o.value, o.dtype))
  self.sources[t] = graphs.name(t)
  return t
end

---The graph's variables by name, as what a session holds of them: g:variable's, and parameters and buffers of the
---layers that were called in it. Their number may grow as long as something is recorded.
local function variables(self)
  local list = self.listed
  while true do
    local variable = graphs.variable_at(self.native, list.count + 1)
    if not variable then return list.by_name end
    list.count = list.count + 1
    list.by_name[graphs.name(variable)] = variable
  end
end

local function not_found(self, message, name)
  local names = {}
  for known in pairs(self.results) do names[#names + 1] = tostring(known) end
  table.sort(names)
  local near = type(name) == "string" and native.suggest(name, names)
  native.raise("not_found", "graph", message,
               near and ("did you mean %q?"):format(near) or "its results are: " .. table.concat(names, ", "))
end

---A tensor of the graph by name, or by the name (of a list, the position) that it was returned under.
---@param name string|integer
---@return perigee.Tensor?
function Graph:find(name)
  if self.results[name] then return self.results[name] end
  if type(name) == "number" then not_found(self, ("the graph has no result %s"):format(name), name) end
  if type(name) ~= "string" then
    native.raise("invalid_argument", "find", "needs a name, got " .. native.describe(name))
  end
  local ok, found = pcall(graphs.find, self.native, name)
  if ok then return found end
  not_found(self, found.message:match("the graph has no tensor.*") or found.message, name)
end

-- Runs fn so that operators are recorded into this graph, whose names of sizes hold.
local function record(self, fn, ...)
  return native.with(function()
    local outer = { graph = graphs.set_current(self.native), names = native.size.enter(self.symbols),
                    front = graphs.front }
    graphs.front = self
    return outer
  end, function(outer)
    graphs.front = outer.front
    native.size.enter(outer.names)
    graphs.set_current(outer.graph)
  end, fn, ...)
end

-- The tensor of the graph that v names; `leaf`: of an eager result the tensor itself, which gradients are taken by.
local function resolve(self, v, leaf)
  if native.is_tensor(v) then return v end
  if type(v) ~= "string" and type(v) ~= "number" then
    native.raise("invalid_argument", "graph", "needs a name or a tensor of the graph, got " .. native.describe(v))
  end
  return leaf and self.eager[v] or self:find(v)
end

local read_options = native.signature("gradients", {
  { "allow_unused", "boolean", named = true, doc = "nil for a source that the target does not depend on" } })

---Adds the gradients of one tensor with respect to others: `g:gradients("loss", {"w"})` is a list. That the target
---does not depend on a source is an error, or nil in the list with `{allow_unused=true}`.
---@param target string|perigee.Tensor
---@param sources (string|perigee.Tensor)[]
---@param options? {allow_unused?: boolean}
---@return perigee.Tensor[]
function Graph:gradients(target, sources, options)
  local list = {}
  if type(sources) == "string" or native.is_tensor(sources) then sources = { sources } end
  if type(sources) ~= "table" then
    native.raise("invalid_argument", "gradients", "needs a list of names or tensors, got " .. native.describe(sources))
  end
  local o = read_options(options or {})
  for i, v in ipairs(sources) do list[i] = resolve(self, v, true) end
  local root = resolve(self, target)
  local found = record(self, pg.name_scope, "gradients", function()
    return (native.gradients({ root }, nil, list, true, true))
  end)
  for i, v in ipairs(sources) do
    if not found[i] and not o.allow_unused then
      native.raise("failed_precondition", "gradients", ("the target does not depend on source %d%s"):format(
                     i, type(v) == "string" and (" (%q)"):format(v) or ""), "allow_unused=true gives nil for it")
    end
  end
  return found
end

-- Tensors for what names tensors of the graph: one, or a list.
local function resolve_all(self, where, list)
  if native.is_tensor(list) or type(list) == "string" then list = { list } end
  if type(list) ~= "table" or #list == 0 then
    native.raise("invalid_argument", where, "needs tensors of the graph or their names, got " ..
                 (type(list) == "table" and "none" or native.describe(list)))
  end
  local tensors = {}
  for i, v in ipairs(list) do tensors[i] = resolve(self, v) end
  return tensors
end

---Order: what fn(...) records runs after the nodes that made `deps`, which a run of any of it brings about, too:
---`g:after({update}, function() return w * 1 end)`. deps: a tensor of the graph, a name, or a list of them. Answers
---what fn returns.
---@param deps perigee.Tensor|string|(perigee.Tensor|string)[]
---@param fn function
---@param ... any arguments of fn
---@return any ...
function Graph:after(deps, fn, ...)
  native.checked.need_function("after", fn)
  local tensors = resolve_all(self, "after", deps)
  if graphs.recording then return native.control.after(graphs.current, tensors, fn, ...) end
  return record(self, native.control.after, self.native, tensors, fn, ...)
end

---One tensor to fetch for several: `train = g:group{update1, update2}`. A run of it runs all of them; it is true, a
---bool tensor without axes.
---@param members (perigee.Tensor|string)[]
---@return perigee.Tensor
function Graph:group(members)
  return pg.name_scope("group", function()
    return self:after(resolve_all(self, "group", members), pg.full, { {}, true })
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
  native.write_text(path, text)
end

native.checked.class(Graph, { noun = "a graph", call = "graph", fields = "inputs outputs",
  kinds = { dot = { { "path", "string" } },
            gradients = { { "target", "single" }, { "sources", "any" },
                          { "options", "table" } } } })

function Graph:__tostring()
  local results = {}
  for name in pairs(self.results) do
    if not self.sources[self.results[name]] then results[#results + 1] = tostring(name) end
  end
  table.sort(results)
  return ("Graph(%s -> %s)"):format(table.concat(self.names, ", "), table.concat(results, ", "))
end

-- An eager tensor as a node that reads it, or the variable that it means, at each run: what operators take in stays the
-- tensor itself.
local function captured(t)
  return pg.no_grad(function() return pg.where(pg.full { {}, true, device = t.device }, t, t) end)
end

-- Notes a result. A placeholder keeps its own name, which feeds and messages use.
local function add_result(self, name, t)
  if not native.is_tensor(t) then
    native.raise("invalid_argument", "graph",
                 ("result %s must be a tensor, got %s"):format(tostring(name), native.describe(t)))
  end
  if not native.is_graph_tensor(t) then
    self.eager[name] = t
    local variable = graphs.variable_of(self.native, t)
    if variable and graphs.name(variable) == name then return end -- it has that name already
    t = record(self, captured, t)
  end
  self.results[name] = t
  if type(name) ~= "string" or self.sources[t] == name then return end
  if not self.sources[t] then
    local ok, e = pcall(graphs.set_name, self.native, t, name)
    if not ok then native.raise(e.code, "graph", ("result %q: %s"):format(name, e.message:match("name: (.*)"))) end
  elseif pcall(graphs.find, self.native, name) then
    native.raise("invalid_argument", "graph", ("result %q: the graph already has a tensor of that name"):format(name))
  end
end

-- `inputs` and `outputs`: of graphs that were read, what files say is to be fed and fetched.
local function new(native_graph)
  return setmetatable({ native = native_graph, results = {}, eager = {}, sources = {}, symbols = {}, names = {},
                        listed = { count = 0, by_name = {} }, optimizers = {}, scalers = {}, before_run = {} }, Graph)
end

---Builds a graph: fn(g) makes its nodes, and answers the results as a table by name, as a list, or one tensor, which
---is called "output". Eager tensors among them are read at each run. A run does what its fetches need, no more: to
---update variables, fetch what was computed of their new values, or the variables themselves under names of their own:
---`return { loss = loss, train = w }`.
---
---Layers that are called in fn are part of the graph as in TensorFlow: their parameters and buffers become its
---variables, named by their path in the outermost layer ("blocks.0.weight"). A session begins with what they hold when
---it is made; it updates its own, batch norm's statistics too where a run asks for its output; session:commit(model)
---writes them back. Models whose names clash get their class in front: "Linear_1.weight". Eager tensors that no layer
---holds are taken in as they are, and runs see what they hold then.
---@param fn fun(g: perigee.Graph): perigee.Tensor|table<string|integer, perigee.Tensor>
---@return perigee.Graph
local function graph(fn)
  native.checked.need_function("graph", fn)
  local self = new(graphs.create())
  local usual = native.default_device() or native.first_accelerator()
  if usual then graphs.set_device(self.native, usual) end
  local results = record(self, fn, self)
  if native.is_tensor(results) then results = { output = results } end
  if results ~= nil and (type(results) ~= "table" or getmetatable(results)) then
    native.raise("invalid_argument", "graph",
                 "the function must return a tensor or a table of tensors, got " .. native.describe(results))
  end
  for name, t in pairs(results or {}) do add_result(self, name, t) end
  return self
end

return { graph = graph, Graph = Graph, new = new, resolve = resolve, variables = variables }
