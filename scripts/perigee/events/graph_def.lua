-- SPDX-License-Identifier: Apache-2.0
-- A graph as TensorFlow's GraphDef, which TensorBoard's GRAPHS page draws: scopes of names become boxes.

local native = require "perigee.native"
local pg = require "perigee"
local protobuf = require "perigee.events.protobuf"

local bytes, int = protobuf.bytes, protobuf.int

local DTYPES = { float32 = 1, float64 = 2, int32 = 3, uint8 = 4, int16 = 5, int8 = 6, complex64 = 8, int64 = 9,
                 bool = 10, bfloat16 = 14, complex128 = 18, float16 = 19 }
local PRODUCER = 27 -- from this version of GraphDef on attributes are read as they are written here
local KINDS = { placeholder = "Placeholder", variable = "VariableV2", constant = "Const" }

-- Sizes that only a run tells are -1, as ten bytes of a negative number.
local UNKNOWN = ("\255"):rep(9) .. "\1"
local function shape_of(shape)
  local dims = {}
  for i, d in ipairs(shape or {}) do
    dims[i] = bytes(2, type(d) == "number" and int(1, d) or "\8" .. UNKNOWN)
  end
  return table.concat(dims)
end

local function attribute(name, value) return bytes(5, bytes(1, name) .. bytes(2, value)) end

local function attributes_of(outputs)
  local parts, shapes = {}, {}
  local dtype = outputs[1] and DTYPES[outputs[1].dtype]
  if dtype then parts[1] = attribute("T", int(6, dtype)) end
  for i, output in ipairs(outputs) do shapes[i] = bytes(7, shape_of(output.shape)) end
  parts[#parts + 1] = attribute("_output_shapes", bytes(1, table.concat(shapes)))
  return table.concat(parts)
end

local function text_attribute(name, v)
  if type(v) == "boolean" then return attribute(name, protobuf.bool(5, v)) end
  if type(v) == "number" and v >= 0 and v % 1 == 0 then return attribute(name, int(3, v)) end
  return attribute(name, bytes(2, type(v) == "string" and v or pg.json.encode(v)))
end

-- The name of a node's output as inputs of others write it: the first without a number.
local function output_names(content)
  local names = {}
  for _, source in ipairs(content.sources) do names[source.name] = source.name end
  for _, node in ipairs(content.nodes) do
    for i, output in ipairs(node.outputs) do
      names[output.name] = i == 1 and node.name or ("%s:%d"):format(node.name, i - 1)
    end
    for _, written in ipairs(node.writes or {}) do names[written.name] = node.name end
  end
  return names
end

local function device_of(item) return item.device and bytes(4, "/device:" .. item.device) or "" end

local function node_of(node, names)
  local parts = { bytes(1, node.name), bytes(2, node.operator) }
  for _, input in ipairs(node.inputs) do
    if type(input) == "string" then parts[#parts + 1] = bytes(3, names[input] or input) end
  end
  for _, before in ipairs(node.after or {}) do
    parts[#parts + 1] = bytes(3, "^" .. (names[before] or before):gsub(":%d+$", ""))
  end
  parts[#parts + 1] = device_of(node) .. attributes_of(node.outputs)
  if node.origin then parts[#parts + 1] = attribute("line", bytes(2, node.origin)) end
  local keys = {}
  for key in pairs(node.attributes or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local value = node.attributes[key].value
    if value ~= nil then parts[#parts + 1] = text_attribute(key, value) end
  end
  return bytes(1, table.concat(parts))
end

---@param graph perigee.Graph
---@return string message
return function(graph)
  local content = pg.json.decode(native.graphs.document(graph.native)).graph
  local names, parts = output_names(content), {}
  for _, source in ipairs(content.sources) do
    parts[#parts + 1] = bytes(1, bytes(1, source.name) .. bytes(2, KINDS[source.kind] or source.kind) ..
                                 device_of(source) .. attributes_of { source })
  end
  for _, node in ipairs(content.nodes) do parts[#parts + 1] = node_of(node, names) end
  return table.concat(parts) .. bytes(4, int(1, PRODUCER))
end
