-- SPDX-License-Identifier: Apache-2.0
-- pg.save of sessions: a graph and what it holds, in one file.

local native = require "perigee.native"
local pg = require "perigee"
local document = require "perigee.graph.document"
local freeze = require "perigee.graph.freeze"

local graphs, variables = native.graphs, require("perigee.graph").variables
local WHERE = "save"

local function refuse(message, hint) native.raise("invalid_argument", WHERE, message, hint) end

-- Results are told apart from what they are made of by their keys, texts or positions.
local function by_key(a, b)
  if type(a.key) ~= type(b.key) then return type(a.key) == "number" end
  return a.key < b.key
end

-- What a tensor of the graph is called in the document. A variable stands for itself and its latest value by one name.
local function name_of(graph, t) return graph.sources[t] or graphs.name(t) end

-- All results of a graph: what they are called, and which values they are. Further names of inputs are none.
local function list_results(graph)
  local list = {}
  for key, t in pairs(graph.results) do
    if not graph.inputs or not graph.inputs[key] then list[#list + 1] = { key = key, value = name_of(graph, t) } end
  end
  table.sort(list, by_key)
  return list
end

-- What one entry of inputs= or outputs= stands for.
local function named_value(graph, option, v)
  if native.is_tensor(v) then
    if not native.is_graph_tensor(v) then
      refuse(("%s has an eager tensor; they are tensors of the graph"):format(option))
    end
    return name_of(graph, v)
  end
  if type(v) ~= "string" and type(v) ~= "number" then
    refuse(("%s must be names or tensors of the graph, got %s"):format(option, native.describe(v)))
  end
  local t = graph:find(v)
  return variables(graph)[v] and (not graph.results[v] or graph.sources[t] == v) and v or name_of(graph, t)
end

-- inputs= or outputs=: one name or tensor, a list of them, or a table of them by the names that they get.
local function read_list(graph, option, given)
  if type(given) ~= "table" or native.is_tensor(given) then given = { given } end
  local list, taken = {}, {}
  for key, v in pairs(given) do
    local value = named_value(graph, option, v)
    local own = type(key) == "string" and key or type(v) ~= "number" and v or v
    list[#list + 1] = { key = native.is_tensor(own) and value or own, value = value }
  end
  table.sort(list, by_key)
  for _, entry in ipairs(list) do
    if taken[entry.key] then refuse(("%s has %q twice"):format(option, tostring(entry.key))) end
    taken[entry.key] = true
  end
  return list
end

-- The value that an output needs computed: a variable's own name stands for what it holds, another for its last value.
local function computed(makers, entry)
  local source = makers[entry.value].source
  return source and source.kind == "variable" and entry.key ~= entry.value and source.latest or entry.value
end

local function placeholders_of(graph, needed)
  local list = {}
  for _, source in ipairs(graph.sources) do
    if source.kind == "placeholder" and (not needed or needed[source]) then
      list[#list + 1] = { key = source.name, value = source.name }
    end
  end
  table.sort(list, by_key)
  return list
end

-- Inputs are placeholders, and all that the outputs need.
local function check_inputs(graph, makers, inputs, needed)
  local given, missing = {}, {}
  for _, entry in ipairs(inputs) do
    local source = makers[entry.value].source
    if not source or source.kind ~= "placeholder" then
      refuse(("inputs: %q is no placeholder"):format(tostring(entry.key)))
    end
    given[source] = true
  end
  for _, entry in ipairs(placeholders_of(graph, needed)) do
    if not given[makers[entry.value].source] then missing[#missing + 1] = ("%q"):format(entry.value) end
  end
  if #missing > 0 then
    refuse(("the outputs need %s, which is not among the inputs"):format(table.concat(missing, ", ")))
  end
end

-- What is fed and fetched, and the names of values that fetching needs.
local function make_signature(graph, content, makers, o)
  local given_outputs, given_inputs = o.outputs, o.inputs -- of a graph that was read, what was read
  if given_outputs == nil then given_outputs = graph.outputs end
  if given_inputs == nil and o.outputs == nil then given_inputs = graph.inputs end
  local outputs = given_outputs ~= nil and read_list(graph, "outputs", given_outputs) or list_results(graph)
  local wanted = {}
  for i, entry in ipairs(outputs) do wanted[i] = computed(makers, entry) end
  local needed = document.needed(content, wanted)
  local inputs
  if given_inputs ~= nil then
    inputs = read_list(graph, "inputs", given_inputs)
    check_inputs(content, makers, inputs, needed)
  else
    inputs = placeholders_of(content, (o.outputs ~= nil or o.freeze) and needed or nil)
  end
  return { inputs = pg.json.array(inputs), outputs = pg.json.array(outputs) }, wanted
end

-- A name is for one thing: results that stay may not be called as something of the signature is.
local function check_names(results, signature)
  local known = {}
  for _, entry in ipairs(results) do known[entry.key] = entry.value end
  for _, side in ipairs { "inputs", "outputs" } do
    for _, entry in ipairs(signature[side]) do
      if known[entry.key] and known[entry.key] ~= entry.value then
        refuse(("%s: %q is the name of another result"):format(side, tostring(entry.key)))
      end
      known[entry.key] = entry.value
    end
  end
end

local read_options = native.signature("save", {
  { "inputs", "any", named = true }, { "outputs", "any", named = true }, { "freeze", "boolean", named = true },
  { "notes", "table", named = true } })

---Writes a session's graph with what its variables hold now.
---@param path string
---@param session perigee.Session
---@param options? {inputs?: any, outputs?: any, freeze?: boolean, notes?: table<string, string>}
local function save(path, session, options)
  local o = read_options(options or {})
  local graph = session.graph
  for _, refresh in ipairs(graph.before_run) do refresh(session) end -- a schedule may have set what the next run reads
  local whole = pg.json.decode(graphs.document(graph.native))
  local content, results = whole.graph, list_results(graph)
  local makers = document.makers(content)
  local signature, wanted = make_signature(graph, content, makers, o)
  local folded = {}
  if o.freeze then
    folded = freeze(session, whole, signature, wanted)
    results = signature.outputs
  end
  check_names(results, signature)
  whole.format, whole.version, whole.bodies = document.FORMAT, document.version(whole), nil
  whole.results, whole.signature = pg.json.array(results), signature
  local names, tensors = {}, {}
  for _, source in ipairs(content.sources) do
    if source.kind == "variable" or source.kind == "constant" then
      names[#names + 1] = source.name
      tensors[#tensors + 1] = folded[source.name] or graphs.contents(session.native, source.name)
    end
  end
  local notes = document.to_notes(pg.json.encode(whole))
  for key, text in pairs(o.notes or {}) do
    if document.is_note(key) then refuse(("the note %q is the graph's"):format(key)) end
    notes[key] = text
  end
  native.write(path, names, tensors, notes)
end

return save
