-- SPDX-License-Identifier: Apache-2.0
-- LuaCATS types as LuaLS reads them, as trees: {kind="name", name=}, {kind="union", ...}, {kind="array", of=},
-- {kind="optional", of=}, {kind="table", fields=}, {kind="function", parameters=, returns=}, {kind="literal", value=},
-- {kind="generic", name=, ...}.
--
--   union  = suffixed { "|" suffixed }
--   suffixed = atom { "[]" | "?" }
--   atom   = name [ "<" union { "," union } ">" ] | "string" | number | "(" union ")" | table | function
--   table  = "{" [ (name ["?"] | "[" union "]") ":" union { "," ... } ] "}"
--   function = "fun(" [ (name ["?"] | "...") [":" union] { "," ... } ] ")" [ ":" union { "," union } ]

local types = {}

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until
               while]]):gmatch("%a+") do KEYWORDS[word] = true end
types.keywords = KEYWORDS

local Reader = {}
Reader.__index = Reader

local function fail(self, text) error({ cats = text .. (" in %q"):format(self.text) }, 0) end

function Reader:skip() self.at = self.text:match("^%s*()", self.at) end

-- Takes what stands next if it is `symbol`.
function Reader:take(symbol)
  self:skip()
  if self.text:sub(self.at, self.at + #symbol - 1) ~= symbol then return false end
  self.at = self.at + #symbol
  return true
end

function Reader:need(symbol)
  if not self:take(symbol) then fail(self, ("%q expected before %q"):format(symbol, self.text:sub(self.at))) end
end

function Reader:match(pattern)
  self:skip()
  local found, stop = self.text:match("^(" .. pattern .. ")()", self.at)
  if found then self.at = stop end
  return found
end

-- A name of a parameter or a field, and whether a "?" follows.
function Reader:named()
  local name = self:match("[%a_][%w_]*") or fail(self, ("a name expected before %q"):format(self.text:sub(self.at)))
  if KEYWORDS[name] then fail(self, ("the keyword %q is no name"):format(name)) end
  return name, self:take("?")
end

function Reader:table()
  local fields = {}
  while not self:take("}") do
    local field = {}
    if self:take("[") then
      field.key = self:union(true)
      self:need("]")
    else
      field.name, field.optional = self:named()
    end
    self:need(":")
    field.type = self:union(true)
    fields[#fields + 1] = field
    if not self:take(",") then
      self:need("}")
      break
    end
  end
  return { kind = "table", fields = fields }
end

function Reader:parameters()
  local list = {}
  while not self:take(")") do
    local p = {}
    if self:take("...") then p.name = "..." else p.name, p.optional = self:named() end
    if self:take(":") then p.type = self:union(true) end
    list[#list + 1] = p
    if not self:take(",") then
      self:need(")")
      break
    end
  end
  return list
end

-- What a function gives goes on behind each comma: in a list that makes the next entry one of its results.
function Reader:results(inside)
  local list = {}
  if not self:take(":") then return list end
  repeat list[#list + 1] = self:union(inside) until inside or not self:take(",")
  self:skip()
  if inside and self.text:sub(self.at, self.at) == "," then fail(self, "a function in a list needs parentheses") end
  return list
end

function Reader:atom(inside)
  if self:take("(") then
    local inner = self:union()
    self:need(")")
    return inner
  end
  if self:take("{") then return self:table() end
  local literal = self:match('"[^"]*"') or self:match("'[^']*'") or self:match("%-?%d[%d.]*")
  if literal then return { kind = "literal", value = literal } end
  local name = self:match("[%a_][%w_.]*")
  if not name then fail(self, ("a type expected before %q"):format(self.text:sub(self.at))) end
  if name == "fun" and self:take("(") then
    return { kind = "function", parameters = self:parameters(), returns = self:results(inside) }
  end
  if not self:take("<") then return { kind = "name", name = name } end
  local generic = { kind = "generic", name = name }
  repeat generic[#generic + 1] = self:union(true) until not self:take(",")
  self:need(">")
  return generic
end

function Reader:suffixed(inside)
  local node = self:atom(inside)
  while true do
    if self:take("[]") then node = { kind = "array", of = node }
    elseif self:take("?") then node = { kind = "optional", of = node }
    else return node end
  end
end

function Reader:union(inside)
  local first = self:suffixed(inside)
  if not self:take("|") then return first end
  local node = { kind = "union", first }
  repeat node[#node + 1] = self:suffixed(inside) until not self:take("|")
  return node
end

---Reads a type at the beginning of a text. Raises { cats = message } where there is none.
---@param text string
---@return table tree
---@return string rest what stands behind it, without blanks before
function types.read(text)
  local reader = setmetatable({ text = text, at = 1 }, Reader)
  local tree = reader:union()
  reader:skip()
  return tree, text:sub(reader.at)
end

---Calls fn(name) for each name of a type in a tree.
function types.names(tree, fn)
  if tree.kind == "name" or tree.kind == "generic" then fn(tree.name) end
  if tree.of then types.names(tree.of, fn) end
  for _, part in ipairs(tree) do types.names(part, fn) end
  for _, list in ipairs { tree.fields or {}, tree.parameters or {} } do
    for _, entry in ipairs(list) do
      if entry.key then types.names(entry.key, fn) end
      if entry.type then types.names(entry.type, fn) end
    end
  end
  for _, part in ipairs(tree.returns or {}) do types.names(part, fn) end
end

return types
