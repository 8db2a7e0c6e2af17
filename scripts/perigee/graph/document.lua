-- SPDX-License-Identifier: Apache-2.0
-- What a graph file holds beside tensors (docs/graph_files.md): the names that both who writes and who reads use.

local native = require "perigee.native"

local document = { FORMAT = "perigee.graph", VERSION = 2 }

local NOTE = "perigee.graph"
local PIECE = 2 ^ 21 -- bytes: a note of a safetensors file may have 8 MiB as JSON writes it, quotes twice as long

---A document's text as notes of a file: "perigee.graph", and "perigee.graph.2" and on where it is long.
---@param text string
---@return table<string, string>
function document.to_notes(text)
  local notes, at, count = {}, 1, 0
  while at <= #text do
    local stop = math.min(at + PIECE - 1, #text)
    while stop < #text and text:byte(stop + 1) >= 0x80 and text:byte(stop + 1) < 0xC0 do stop = stop - 1 end
    count = count + 1
    notes[count == 1 and NOTE or NOTE .. "." .. count] = text:sub(at, stop)
    at = stop + 1
  end
  return notes
end

---The text again, or nil where the notes hold none.
---@param note fun(key: string): string?
---@return string?
function document.from_notes(note)
  local parts = { note(NOTE) }
  while #parts > 0 do
    local following = note(NOTE .. "." .. #parts + 1)
    if not following then return table.concat(parts) end
    parts[#parts + 1] = following
  end
end

---Whether a note's name is one of these.
function document.is_note(key) return key == NOTE or key:find("^perigee%.graph%.%d+$") ~= nil end

---The words that expressions of sizes use: symbols, by what document.symbols calls them.
function document.each_word(text, visit)
  for word in text:gmatch "[%a_][%w_]*" do
    if word ~= "max" then visit(word) end
  end
end

---What makes each value: `{ node = }` or `{ source = }`, by the value's name.
function document.makers(graph)
  local makers = {}
  for _, source in ipairs(graph.sources) do makers[source.name] = { source = source } end
  for _, node in ipairs(graph.nodes) do
    for _, list in ipairs { node.outputs, node.writes or {} } do
      for _, value in ipairs(list) do makers[value.name] = { node = node } end
    end
  end
  return makers
end

---Visits the nodes of a graph, and those of their bodies: whatever a file may say.
function document.each_node(graph, visit)
  if type(graph) ~= "table" or type(graph.nodes) ~= "table" then return end
  for _, node in ipairs(graph.nodes) do
    if type(node) == "table" then
      visit(node)
      if type(node.bodies) == "table" then
        for _, body in ipairs(node.bodies) do document.each_node(body, visit) end
      end
    end
  end
end

---The version of the format that a document needs: 2 where nodes own bodies, or gradients were a script's.
function document.version(whole)
  local version = 1
  document.each_node(whole.graph, function(node)
    if node.control then version = document.VERSION end
    for _, output in ipairs(node.outputs) do
      if output.custom then version = document.VERSION end
    end
  end)
  return version
end

---Sizes that a node asks for, also in bodies.
function document.each_dimension(node, visit)
  for _, attribute in pairs(node.attributes or {}) do
    if attribute.type == "dims" then
      for _, d in ipairs(attribute.value) do visit(d) end
    end
  end
  visit(node.length)
  for _, body in ipairs(node.bodies or {}) do
    for _, source in ipairs(body.sources) do
      for _, d in ipairs(source.shape) do visit(d) end
    end
    for _, inner in ipairs(body.nodes) do document.each_dimension(inner, visit) end
  end
end

---The values that a node needs made before it: inputs, those it waits for, and numbers.
function document.each_value(node, visit)
  for _, input in ipairs(node.inputs) do
    if type(input) == "string" then visit(input) end
  end
  for _, name in ipairs(node.after or {}) do visit(name) end
  for _, name in pairs(node.bound or {}) do visit(name) end
end

-- Of each symbol the node that finds it out, or the placeholder that a run has it of.
local function symbol_makers(graph, makers)
  local found = {}
  for _, source in ipairs(graph.sources) do
    for _, d in ipairs(source.kind == "placeholder" and source.shape or {}) do
      if type(d) == "string" and not found[d] then found[d] = { source = source } end
    end
  end
  for _, symbol in ipairs(graph.symbols) do
    if symbol.node then found[symbol.id] = makers[symbol.node] end
  end
  return found
end

---The nodes and sources that values need, as a set.
---@param graph table
---@param names string[] of values
---@return table<table, boolean>
function document.needed(graph, names)
  local makers, needed, open = document.makers(graph), {}, {}
  local symbols = symbol_makers(graph, makers)
  for i, name in ipairs(names) do open[i] = makers[name] end
  local function visit_size(d)
    if type(d) == "string" then document.each_word(d, function(word) open[#open + 1] = symbols[word] end) end
  end
  while #open > 0 do
    local maker = table.remove(open)
    local item = maker.node or maker.source
    if not needed[item] then
      needed[item] = true
      if maker.node then
        document.each_value(item, function(name) open[#open + 1] = makers[name] end)
        document.each_dimension(item, visit_size)
      end
    end
  end
  return needed
end

---Raises what is wrong with a file.
function document.damaged(path, what, hint) native.raise("data_loss", "load_graph", path .. ": " .. what, hint) end

return document
