-- SPDX-License-Identifier: Apache-2.0
-- LuaCATS types as LuaLS reads them, as trees: {kind="name", name=}, {kind="union", ...}, {kind="array", of=},
-- {kind="optional", of=}, {kind="table", fields=}, {kind="function", parameters=, returns=}, {kind="literal", value=},
-- {kind="generic", name=, ...}.
--
--   union  = unit { "|" unit } [ "?" ]
--   unit   = atom { "[]" }
--   atom   = name [ "<" union { "," union } ">" ] | "string" | integer | "(" union ")" | table | function
--   table  = "{" [ (name ["?"] | "[" union "]") ":" union { "," ... } ] "}"
--   function = "fun(" [ (name ["?"] | "...") [":" union] { "," ... } ] ")" [ ":" (results | "(" results ")") ]
--   results = union { "," union }

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
  local fields, names = {}, {}
  while not self:take("}") do
    local field = {}
    if self:take("[") then
      field.key = self:union(true)
      self:need("]")
    else
      field.name, field.optional = self:named()
      if names[field.name] then fail(self, ("field %s stands there twice"):format(field.name)) end
      names[field.name] = true
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

-- What a function gives goes on behind each comma: in a list that makes the next entry one of its results. A
-- parenthesis behind the colon holds the results: it is none of a type, and what would follow such a one is lost.
function Reader:results(inside)
  local list = {}
  if not self:take(":") then return list end
  local held = self:take("(")
  repeat list[#list + 1] = self:union(inside) until inside and not held or not self:take(",")
  if held then self:need(")") end
  self:skip()
  local next_one = self.text:sub(self.at, self.at)
  if held and next_one:find("[%[|?]") then
    fail(self, ("%q is lost behind the results of a function"):format(next_one))
  end
  if inside and next_one == "," and not held then fail(self, "a function in a list needs parentheses") end
  return list
end

function Reader:literal()
  local text = self:match('"[^"]*"') or self:match("'[^']*'")
  if text then return text end
  local number = self:match("%-?%d[%d.]*")
  if number and number:find(".", 1, true) then fail(self, ("%s is no whole number"):format(number)) end
  return number
end

function Reader:atom(inside)
  if self:take("(") then
    local inner = self:union()
    self:need(")")
    return inner
  end
  if self:take("{") then return self:table() end
  local literal = self:literal()
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

function Reader:unit(inside)
  local node = self:atom(inside)
  while self:take("[]") do node = { kind = "array", of = node } end
  return node
end

-- A "?" stands behind the whole of it, once: a type goes on neither with | nor with [] behind one.
function Reader:union(inside)
  local node = self:unit(inside)
  if self:take("|") then
    node = { kind = "union", node }
    repeat node[#node + 1] = self:unit(inside) until not self:take("|")
  end
  if not self:take("?") then return node end
  self:skip()
  local next_one = self.text:sub(self.at, self.at)
  if next_one:find("[|%[?]") then fail(self, ("%q is lost behind a ?"):format(next_one)) end
  return { kind = "optional", of = node }
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
