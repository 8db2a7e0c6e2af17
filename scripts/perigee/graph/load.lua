-- SPDX-License-Identifier: Apache-2.0
-- pg.load_graph: graphs of files that pg.save wrote of sessions.

local native = require "perigee.native"
local pg = require "perigee"
local document = require "perigee.graph.document"
local graph = require "perigee.graph"

local graphs, damaged = native.graphs, document.damaged
local WHERE = "load_graph"

local function is_object(v) return type(v) == "table" and not pg.json.is_array(v) end

-- Everything that stands in an object is one of these.
local function check_fields(path, what, object, fields)
  if not is_object(object) then damaged(path, what .. " is not an object") end
  for key in pairs(object) do
    if not fields[key] then damaged(path, ("%s: it has an unknown %q"):format(what, key)) end
  end
  for key in pairs(fields) do
    if object[key] == nil then damaged(path, ("%s: it has no %q"):format(what, key)) end
  end
end

-- Backward passes through the graph's branches and loops come here, and through what a function of a script computed
-- the gradient of, which no file holds.
local function restore_gradients(graph_handle)
  for _, hung in ipairs(native.control.hung(graph_handle)) do
    local name = hung.name
    native.custom.answer_for(hung.number, hung.inputs, hung.count,
      not hung.lost and require("perigee.control.nodes").restored(hung) or function()
        native.raise("not_supported", "gradients",
                     ("%s: its gradient was a Lua function (pg.custom_grad), which a graph file does not hold"):format(
                       name), "save the graph with the gradients in it: g:gradients, opt:minimize")
      end)
  end
end

local function check_format(path, whole)
  if not is_object(whole) or whole.format ~= document.FORMAT or type(whole.version) ~= "number" then
    damaged(path, ("the graph does not say that it is a %q"):format(document.FORMAT))
  end
  if whole.version ~= 1 and whole.version ~= document.VERSION then
    native.raise("not_supported", WHERE, ("%s: version %s of the format; this Perigee reads up to %d"):format(
                   path, tostring(whole.version), document.VERSION))
  end
  check_fields(path, "the graph", whole, { format = true, version = true, operators = true, graph = true,
                                           results = true, signature = true })
  check_fields(path, "the signature", whole.signature, { inputs = true, outputs = true })
end

-- All operators that are not here, or not as the file means them.
local function check_operators(path, whole)
  local unknown, other, used = {}, {}, {}
  if not is_object(whole.operators) then damaged(path, "the operators are not an object") end
  document.each_node(whole.graph, function(node)
    if type(node.operator) == "string" then used[node.operator] = true end
  end)
  for name in pairs(used) do
    if not whole.operators[name] then damaged(path, ("operator %q is not among its operators"):format(name)) end
  end
  for name, said in pairs(whole.operators) do
    local what = ("operator %q"):format(name)
    check_fields(path, what, said, { version = true, plugin = true })
    if type(said.plugin) ~= "string" or type(said.version) ~= "number" then
      damaged(path, what .. ": its version is not a number, or its plugin not a text")
    end
    if not used[name] then damaged(path, what .. " is of no node") end
    local here = native.operators.get(name)
    if not here then
      unknown[#unknown + 1] = ("%s (plugin %s)"):format(name, said.plugin)
    elseif said.version ~= here.version then
      other[#other + 1] = ("%s %s, here %s"):format(name, tostring(said.version), tostring(here.version))
    end
  end
  if #unknown > 0 then
    table.sort(unknown)
    native.raise("not_supported", WHERE,
                 ("%s: operators that are not here: %s"):format(path, table.concat(unknown, ", ")),
                 "pg.load_plugin(path) loads a plugin; PERIGEE_PLUGIN_PATH names folders of them")
  end
  if #other > 0 then
    table.sort(other)
    native.raise("not_supported", WHERE, ("%s: versions of operators that are others here: %s"):format(
                   path, table.concat(other, ", ")))
  end
end

-- Handles of the sources, by name; a variable's stands for its latest value.
local function add_sources(self, whole)
  local handles, is_placeholder = {}, {}
  for _, source in ipairs(whole.graph.sources) do
    local name = source.name
    if source.kind ~= "description" then
      local t = graphs.find(self.native, name)
      handles[name] = t
      self.sources[t] = name
      if source.kind ~= "constant" then self.names[#self.names + 1] = name end
      if source.kind == "placeholder" then
        graphs.declare(t, self.symbols)
        is_placeholder[t] = true
      end
    end
  end
  return handles, is_placeholder
end

-- The tensors of a list of results, by key. `only`: what they must be.
local function read_results(self, path, what, list, handles)
  local found = {}
  if not pg.json.is_array(list) then damaged(path, what .. " are not a list") end
  for _, entry in ipairs(list) do
    check_fields(path, what, entry, { key = true, value = true })
    local key, value = entry.key, entry.value
    local is_position = type(key) == "number" and key >= 1 and key % 1 == 0
    if not is_position and (type(key) ~= "string" or key == "") or type(value) ~= "string" then
      damaged(path, what .. ": a key is no name or position, or a value no name")
    end
    if found[key] then damaged(path, ("%s: %q stands there twice"):format(what, tostring(key))) end
    if not handles[value] then
      local ok, t = pcall(graphs.find, self.native, value)
      if not ok then damaged(path, ("%s: %q is %q, which the graph has not"):format(what, tostring(key), value)) end
      handles[value] = t
    end
    found[key] = handles[value]
  end
  return found
end

local function add_results(self, path, whole, handles, is_placeholder)
  local results = read_results(self, path, "the results", whole.results, handles)
  self.inputs = read_results(self, path, "the inputs", whole.signature.inputs, handles)
  self.outputs = read_results(self, path, "the outputs", whole.signature.outputs, handles)
  for key, t in pairs(self.inputs) do
    if not is_placeholder[t] then damaged(path, ("input %q is no placeholder"):format(tostring(key))) end
  end
  for _, list in ipairs { results, self.inputs, self.outputs } do
    for key, t in pairs(list) do -- inputs by their own names are found as they are
      local other = self.results[key]
      if other and other ~= t then damaged(path, ("%q is two results"):format(tostring(key))) end
      if list ~= self.inputs or self.sources[t] ~= key then self.results[key] = t end
    end
  end
end

local read_options = native.signature("load_graph", {
  { "device", "string", named = true, doc = "where all of it goes, instead of where the file says" } })

---Reads a graph that pg.save wrote of a session. `pg.Session{g}` runs it; its variables hold at first what they held
---when it was saved. g.inputs and g.outputs are the tensors to feed and to fetch, by the names for that. What a file
---says is checked call by call; operators that are not here are refused, all at once, with their plugins' names. A
---device that is not here is the default one, with a warning.
---@param path string "m.pgraph"
---@param options? {device?: string} where all of it goes
---@return perigee.Graph
local function load_graph(path, options)
  if type(path) ~= "string" or path == "" then
    native.raise("invalid_argument", WHERE, "path must be a string, got " .. native.describe(path))
  end
  local o = read_options(options or {})
  local device = o.device and native.process.find_device(o.device, WHERE) or nil
  local contents, _, note = native.read(path, nil, WHERE)
  local text = document.from_notes(note)
  if not text then damaged(path, "it holds no graph", "pg.load(path) reads tensors") end
  local ok, whole = pcall(pg.json.decode, text)
  if not ok then damaged(path, "the graph is not JSON: " .. whole.message:match("decode: (.*)")) end
  check_format(path, whole)
  check_operators(path, whole)
  local handle = graphs.read(text, contents, device, path)
  restore_gradients(handle)
  local self = graph.new(handle)
  add_results(self, path, whole, add_sources(self, whole))
  return self
end

return { load_graph = load_graph }
