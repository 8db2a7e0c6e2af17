-- SPDX-License-Identifier: Apache-2.0
-- Freezing: of a graph only what its outputs need, with variables as constants of what they hold, and what is computed
-- of constants alone as constants.

local pg = require "perigee"
local document = require "perigee.graph.document"
local fold = require "perigee.graph.fold"

local function keep(list, needed)
  local kept = pg.json.array()
  for _, item in ipairs(list) do
    if needed[item] then kept[#kept + 1] = item end
  end
  return kept
end

-- What is said of values for the sake of variables and of gradients by them.
local function forget_variables(graph)
  local was = {}
  for _, source in ipairs(graph.sources) do
    if source.kind == "variable" then
      was[source.name] = true
      source.kind, source.latest = "constant", nil
    end
  end
  for _, node in ipairs(graph.nodes) do
    for _, list in ipairs { node.outputs, node.writes or {} } do
      for _, value in ipairs(list) do
        value.variable = nil
        if was[value.leaf] then value.leaf = nil end
        value.custom = nil
      end
    end
  end
end

-- Symbols of what is left.
local function prune_symbols(graph)
  local used, nodes = {}, {}
  for _, source in ipairs(graph.sources) do
    for _, d in ipairs(source.shape) do used[d] = true end
  end
  for _, node in ipairs(graph.nodes) do nodes[node.name] = true end
  local kept = pg.json.array()
  for _, symbol in ipairs(graph.symbols) do
    if symbol.node and nodes[symbol.node] or not symbol.node and used[symbol.id] then kept[#kept + 1] = symbol end
  end
  graph.symbols = kept
end

local function prune_operators(whole)
  local kept = {}
  document.each_node(whole.graph, function(node)
    if node.operator then kept[node.operator] = whole.operators[node.operator] end
  end)
  whole.operators = kept
end

-- Only what the named values need.
local function prune(graph, names)
  local needed = document.needed(graph, names)
  graph.sources, graph.nodes = keep(graph.sources, needed), keep(graph.nodes, needed)
end

---Changes a document; answers tensors by name that take the place of what the session holds.
---@param session perigee.Session
---@param whole table
---@param signature table
---@param wanted string[] values that the outputs need computed
---@return table<string, perigee.Tensor>
return function(session, whole, signature, wanted)
  local graph = whole.graph
  local names = {}
  for i, entry in ipairs(signature.outputs) do entry.value = wanted[i] end
  for _, side in ipairs { signature.inputs, signature.outputs } do
    for _, entry in ipairs(side) do names[#names + 1] = entry.value end
  end
  prune(graph, names)
  forget_variables(graph)
  local folded = fold(session, graph, names)
  prune(graph, names)
  prune_symbols(graph)
  prune_operators(whole)
  return folded
end
