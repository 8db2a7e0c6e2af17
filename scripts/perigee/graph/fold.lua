-- SPDX-License-Identifier: Apache-2.0
-- Constant folding: what a frozen graph would compute of its constants alone, again in every run, is computed once.

local native = require "perigee.native"
local pg = require "perigee"
local document = require "perigee.graph.document"

local graphs = native.graphs

local SMALL = 65536 -- bytes that a file may grow by for one value

local function bytes_of(value)
  local bytes = native.dtypes.by_name[value.dtype].bytes
  for _, d in ipairs(value.shape) do
    if type(d) ~= "number" then return nil end
    bytes = bytes * d
  end
  return bytes
end

-- Whether a node is a call that gives the same in every run: it draws nothing, writes nothing, waits for nothing, and
-- asks for no size that is known only then.
local function is_fixed(node)
  if node.control or node.writes or node.after or node.bound then return false end
  if native.operators.get(node.operator).effect ~= 0 then return false end
  local fixed = true
  document.each_dimension(node, function(d) fixed = fixed and type(d) ~= "string" end)
  return fixed
end

-- What a node's values take if it is to be folded, by name, or nil. Of constants a larger value may be made: that is
-- left to the runs.
local function folded_bytes(node, known)
  if not is_fixed(node) then return nil end
  local before, after, values = 0, 0, {}
  for _, input in ipairs(node.inputs) do
    if type(input) == "string" then
      if not known[input] then return nil end
      before = before + known[input]
    end
  end
  for _, output in ipairs(node.outputs) do
    local bytes = bytes_of(output)
    if not bytes then return nil end
    values[output.name], after = bytes, after + bytes
  end
  return after <= math.max(before, SMALL) and values or nil
end

-- The nodes to fold, as a set.
local function choose(graph)
  local folded, known = {}, {}
  for _, source in ipairs(graph.sources) do
    if source.kind == "constant" then known[source.name] = bytes_of(source) end
  end
  for _, node in ipairs(graph.nodes) do
    local values = folded_bytes(node, known)
    if values then
      folded[node] = true
      for name, bytes in pairs(values) do known[name] = bytes end
    end
  end
  return folded
end

---Folds in the document of a graph what can be; answers its new constants by name. `names`: values that must stay.
---@param session perigee.Session whose graph it is
---@param graph table
---@param names string[]
---@return table<string, perigee.Tensor>
return function(session, graph, names)
  local folded = choose(graph)
  local asked, kept, made, tensors = {}, pg.json.array(), {}, {}
  for _, name in ipairs(names) do asked[name] = true end
  for _, node in ipairs(graph.nodes) do
    if not folded[node] then
      kept[#kept + 1] = node
      document.each_value(node, function(name) asked[name] = true end)
    end
  end
  for _, node in ipairs(graph.nodes) do
    for _, output in ipairs(folded[node] and node.outputs or {}) do
      if asked[output.name] then
        made[#made + 1], tensors[#tensors + 1] = output.name, graphs.find(session.graph.native, output.name)
        graph.sources[#graph.sources + 1] = { name = output.name, kind = "constant", dtype = output.dtype,
                                              shape = output.shape, device = node.device, named = output.named }
      end
    end
  end
  graph.nodes = kept
  if #made == 0 then return {} end
  -- In parts, since a run of parts does nothing but what is asked for.
  local values, by_name = session:partial_run(session:partial_run_setup(tensors), tensors), {}
  for i, name in ipairs(made) do by_name[name] = values[i] end
  return by_name
end
