-- SPDX-License-Identifier: Apache-2.0
-- Goes through the tree of a program.

local walk = {}

-- Fields of nodes that hold a node, and those that hold a list of them, in the order of the text.
local FIELDS = {
  index = { "object", "key" }, call = { "callee", "args" }, method = { "object", "args" },
  binary = { "left", "right" }, unary = { "operand" }, paren = { "inner" }, ["function"] = { "body" },
  table = { "items" }, item = { "key", "value" },
  ["local"] = { "values" }, assign = { "targets", "values" }, call_statement = { "call" }, ["do"] = { "body" },
  ["while"] = { "condition", "body" }, ["repeat"] = { "body", "condition" }, ["if"] = { "clauses" },
  clause = { "condition", "body" }, count = { "first", "last", "step", "body" }, each = { "values", "body" },
  define = { "target", "fn" }, ["return"] = { "values" },
}
local LISTED = { items = "item", clauses = "clause" }

local function visit_one(node, enter, parent)
  node.parent = parent
  if enter(node) == false then return end
  for _, field in ipairs(FIELDS[node.kind] or {}) do
    local child = node[field]
    if child and child.kind then
      visit_one(child, enter, node)
    elseif child then
      for _, each in ipairs(child) do
        each.kind = each.kind or LISTED[field]
        visit_one(each, enter, node)
      end
    end
  end
end

---Calls enter(node) for every node of a list of statements, outer ones first, each of which then knows its `parent`.
---Below a node for which it answers false nothing is visited.
---@param body table[]
---@param enter fun(node: table): boolean?
---@param parent? table
function walk.all(body, enter, parent)
  for _, node in ipairs(body) do visit_one(node, enter, parent) end
end

---Whether some node below a list of statements is what `test` looks for.
---@param body table[]
---@param test fun(node: table): any
---@return boolean
function walk.any(body, test)
  local found = false
  local function look(node)
    if found then return end
    found = test(node) and true or false
    for _, field in ipairs(not found and FIELDS[node.kind] or {}) do
      local child = node[field]
      if child and child.kind then look(child)
      elseif child then
        for _, each in ipairs(child) do look(each) end
      end
    end
  end
  for _, node in ipairs(body) do look(node) end
  return found
end

---An expression without the parentheses around it.
function walk.bare(node)
  while node.kind == "paren" do node = node.inner end
  return node
end

local LOOPS = { ["while"] = true, ["repeat"] = true, count = true, each = true }

---The loop that a node is in, within its function.
---@return table?
function walk.loop_of(node)
  node = node.parent
  while node and node.kind ~= "function" do
    if LOOPS[node.kind] then return node end
    node = node.parent
  end
end

---Whether a node stands in a function that is handed to pg.graph.
function walk.in_graph(node)
  while node do
    local call = node.kind == "function" and node.parent
    local callee = call and call.kind == "call" and walk.bare(call.callee)
    if callee and callee.dot and callee.name == "graph" and callee.object.name == "pg" then return true end
    node = node.parent
  end
  return false
end

return walk
