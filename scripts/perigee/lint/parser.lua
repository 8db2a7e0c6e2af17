-- SPDX-License-Identifier: Apache-2.0
-- A tree of a Lua program (LuaJIT's dialect) in which every name knows its variable. What is read has been compiled by
-- Lua before, so no syntax is checked here.
--
-- Nodes are tables with `kind`, and `from`, where they begin in the text. A call's `from` is its name's.
--   expressions: nil true false vararg number{text} string{text} name{name, variable?} index{object, key, dot?, name?}
--     call{callee, args} method{object, name, args} binary{op, left, right} unary{op, operand} paren{inner}
--     table{items: {value, key?, name?}} function{params, body}
--   statements: local{variables, values} assign{targets, values} call_statement{call} do{body} while{condition, body}
--     repeat{body, condition} if{clauses: {condition?, body}} count{variable, first, last, step?, body}
--     each{variables, values, body} define{target, fn, colon?} return{values} jump

local lexer = require "perigee.prompt.lexer"

local Parser = {}
Parser.__index = Parser

---@class perigee.lint.Variable
---@field name string
---@field from integer where it is declared
---@field values table[] every expression that it is set to; {call=, result=} of a call's further results; {} if unknown
---@field methods table<string, boolean> what is called on it by a colon
---@field filled? boolean whether something is set in it by an index
---@field depth integer how many loops and functions surround its declaration

local PRIORITY = {
  ["or"] = { 1, 1 }, ["and"] = { 2, 2 }, ["<"] = { 3, 3 }, [">"] = { 3, 3 }, ["<="] = { 3, 3 }, [">="] = { 3, 3 },
  ["~="] = { 3, 3 }, ["=="] = { 3, 3 }, [".."] = { 5, 4 }, ["+"] = { 6, 6 }, ["-"] = { 6, 6 }, ["*"] = { 7, 7 },
  ["/"] = { 7, 7 }, ["%"] = { 7, 7 }, ["^"] = { 10, 9 },
}
local UNARY, UNARY_PRIORITY = { ["not"] = true, ["-"] = true, ["#"] = true }, 8
local BLOCK_ENDS = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true }
local VARIADIC = { call = true, method = true, vararg = true }

-- ---- tokens ----

function Parser:peek() return self.tokens[self.at] end

function Parser:word()
  local token = self.tokens[self.at]
  return token and (token.kind == "symbol" or token.kind == "keyword") and token.text or nil
end

function Parser:next()
  local token = self.tokens[self.at] or error("the program ends early", 0)
  self.at = self.at + 1
  return token
end

function Parser:accept(word)
  if self:word() ~= word then return nil end
  return self:next()
end

function Parser:expect(word) return self:accept(word) or error(("%s was expected"):format(word), 0) end

-- ---- variables ----

function Parser:open() self.scope = { outer = self.scope, variables = {} } end
function Parser:close() self.scope = self.scope.outer end

function Parser:declare(token, value)
  local name = token.text
  local variable = { name = name, from = token.from, values = { value }, methods = {}, depth = self.depth }
  self.scope.variables[name] = variable
  return variable
end

function Parser:find(name)
  local scope = self.scope
  while scope do
    if scope.variables[name] then return scope.variables[name] end
    scope = scope.outer
  end
end

-- What the i-th of several names is set to.
local function value_at(values, i)
  local last = values[#values]
  if i < #values or values[i] and not VARIADIC[last.kind] then return values[i] end
  if last and last.kind == "vararg" then return {} end
  if last and VARIADIC[last.kind] then return i == #values and last or { call = last, result = i - #values + 1 } end
  return { kind = "nil" }
end

function Parser:note_value(target, value)
  if target.variable then
    target.variable.values[#target.variable.values + 1] = value
  elseif target.kind == "name" then
    self.globals[target.name] = true
  end
end

-- ---- expressions ----

function Parser:list(read)
  local list = { read(self) }
  while self:accept(",") do list[#list + 1] = read(self) end
  return list
end

function Parser:expressions() return self:list(self.expression) end

function Parser:table_constructor()
  local node = { kind = "table", from = self:expect("{").from, items = {} }
  while not self:accept("}") do
    local item, token, follower = {}, self:peek(), self.tokens[self.at + 1]
    if self:word() == "[" then
      self:next()
      item.key = self:expression()
      self:expect("]")
      self:expect("=")
    elseif token.kind == "name" and follower and follower.kind == "symbol" and follower.text == "=" then
      item.name, item.from = token.text, token.from
      self.at = self.at + 2
    end
    item.value = self:expression()
    node.items[#node.items + 1] = item
    if not self:accept(",") then self:accept(";") end
  end
  return node
end

-- Behind "function" and its name. `colon`: it has a self.
function Parser:function_body(from, colon)
  local node = { kind = "function", from = from, params = {} }
  self:open()
  self.depth = self.depth + 1
  if colon then node.params[1] = self:declare({ text = "self", from = from }, {}) end
  self:expect("(")
  while not self:accept(")") do
    local token = self:next()
    if token.kind == "name" then node.params[#node.params + 1] = self:declare(token, {}) end
    self:accept(",")
  end
  node.body = self:block()
  self:expect("end")
  self.depth = self.depth - 1
  self:close()
  return node
end

function Parser:arguments()
  local token = self:peek()
  if token.kind == "string" then
    self:next()
    return { { kind = "string", from = token.from, text = token.text } }
  end
  if self:word() == "{" then return { self:table_constructor() } end
  self:expect("(")
  if self:accept(")") then return {} end
  local list = self:expressions()
  self:expect(")")
  return list
end

function Parser:name_node(token)
  return { kind = "name", from = token.from, name = token.text, variable = self:find(token.text) }
end

function Parser:primary()
  if self:word() == "(" then
    local from = self:next().from
    local inner = self:expression()
    self:expect(")")
    return { kind = "paren", from = from, inner = inner }
  end
  return self:name_node(self:next())
end

-- Names, fields, indices and calls, one behind the other.
function Parser:suffixed()
  local node = self:primary()
  while true do
    local token, word = self:peek(), self:word()
    if word == "." then
      self:next()
      local name = self:next()
      node = { kind = "index", from = name.from, object = node, dot = true, name = name.text }
    elseif word == "[" then
      self:next()
      local key = self:expression()
      self:expect("]")
      node = { kind = "index", from = token.from, object = node, key = key }
    elseif word == ":" then
      self:next()
      local name = self:next()
      if node.variable then node.variable.methods[name.text] = true end
      node = { kind = "method", from = name.from, colon = token.from, object = node, name = name.text }
      node.args = self:arguments()
    elseif word == "(" or word == "{" or token and token.kind == "string" then
      node = { kind = "call", from = node.from, callee = node }
      node.args = self:arguments()
    else
      return node
    end
  end
end

function Parser:simple()
  local token, word = self:peek(), self:word()
  if token.kind == "number" or token.kind == "string" then
    self:next()
    return { kind = token.kind, from = token.from, text = token.text }
  end
  if word == "nil" or word == "true" or word == "false" or word == "..." then
    self:next()
    return { kind = word == "..." and "vararg" or word, from = token.from }
  end
  if word == "{" then return self:table_constructor() end
  if word == "function" then return self:function_body(self:next().from) end
  return self:suffixed()
end

function Parser:expression(limit)
  local op, node = (self:word())
  if UNARY[op] then
    local from = self:next().from
    node = { kind = "unary", from = from, op = op, operand = self:expression(UNARY_PRIORITY) }
  else
    node = self:simple()
  end
  while true do
    op = self:word()
    local priority = PRIORITY[op]
    if not priority or priority[1] <= (limit or 0) then return node end
    local from = self:next().from
    node = { kind = "binary", from = from, op = op, left = node, right = self:expression(priority[2]) }
  end
end

-- ---- statements ----

function Parser:scoped_block()
  self:open()
  local body = self:block()
  self:close()
  return body
end

function Parser:loop_block()
  self.depth = self.depth + 1
  local body = self:scoped_block()
  self.depth = self.depth - 1
  return body
end

local statements = {}

statements["local"] = function(self, from)
  if self:accept("function") then
    local variable = self:declare(self:next(), {})
    local fn = self:function_body(from)
    variable.values[1] = fn
    return { kind = "define", from = from, fn = fn, variable = variable }
  end
  local tokens = self:list(self.next)
  local values = self:accept("=") and self:expressions() or {}
  local node = { kind = "local", from = from, variables = {}, values = values }
  for i, token in ipairs(tokens) do node.variables[i] = self:declare(token, value_at(values, i)) end
  return node
end

statements["function"] = function(self, from)
  local target, colon = self:name_node(self:next()), nil
  while self:word() == "." or self:word() == ":" do
    colon = self:next().text == ":"
    local name = self:next()
    target = { kind = "index", from = name.from, object = target, dot = true, name = name.text }
    self.defined[name.text] = true
  end
  local fn = self:function_body(from, colon)
  self:note_value(target, fn)
  return { kind = "define", from = from, target = target, fn = fn, colon = colon }
end

statements["if"] = function(self, from)
  local node = { kind = "if", from = from, clauses = {} }
  repeat
    local clause = { condition = self:expression() }
    self:expect("then")
    clause.body = self:scoped_block()
    node.clauses[#node.clauses + 1] = clause
  until not self:accept("elseif")
  if self:accept("else") then node.clauses[#node.clauses + 1] = { body = self:scoped_block() } end
  self:expect("end")
  return node
end

statements["while"] = function(self, from)
  local condition = self:expression()
  self:expect("do")
  local body = self:loop_block()
  self:expect("end")
  return { kind = "while", from = from, condition = condition, body = body }
end

statements["repeat"] = function(self, from)
  self:open() -- its condition sees the locals of its body
  self.depth = self.depth + 1
  local body = self:block()
  self:expect("until")
  local condition = self:expression()
  self.depth = self.depth - 1
  self:close()
  return { kind = "repeat", from = from, body = body, condition = condition }
end

statements["for"] = function(self, from)
  local tokens = self:list(self.next)
  local node = { kind = "each", from = from, variables = {} }
  if self:accept("=") then
    local bounds = self:expressions()
    node = { kind = "count", from = from, first = bounds[1], last = bounds[2], step = bounds[3] }
  else
    self:expect("in")
    node.values = self:expressions()
  end
  self:expect("do")
  self:open()
  self.depth = self.depth + 1
  if node.kind == "count" then
    node.variable = self:declare(tokens[1], { kind = "number", text = "1" })
  else
    for i, token in ipairs(tokens) do node.variables[i] = self:declare(token, {}) end
  end
  node.body = self:block()
  self.depth = self.depth - 1
  self:close()
  self:expect("end")
  return node
end

statements["do"] = function(self, from)
  local body = self:scoped_block()
  self:expect("end")
  return { kind = "do", from = from, body = body }
end

statements["return"] = function(self, from)
  local node = { kind = "return", from = from, values = {} }
  local word = self:word()
  if self:peek() and not BLOCK_ENDS[word] and word ~= ";" then node.values = self:expressions() end
  self:accept(";")
  return node
end

statements["break"] = function(_, from) return { kind = "jump", from = from } end

statements["::"] = function(self, from)
  self:next()
  self:expect("::")
  return { kind = "jump", from = from }
end

function Parser:assignment_or_call()
  local first = self:suffixed()
  if first.kind == "call" or first.kind == "method" then
    return { kind = "call_statement", from = first.from, call = first }
  end
  local targets = { first }
  while self:accept(",") do targets[#targets + 1] = self:suffixed() end
  local from = self:expect("=").from
  local values = self:expressions()
  for i, target in ipairs(targets) do
    if target.kind == "name" then
      self:note_value(target, value_at(values, i))
    elseif target.dot and values[i] and values[i].kind == "function" then
      self.defined[target.name] = true
    elseif target.key and target.object.variable then
      target.object.variable.filled = true
    end
  end
  return { kind = "assign", from = from, targets = targets, values = values }
end

function Parser:statement()
  local token, word = self:peek(), self:word()
  if statements[word] then
    self:next()
    return statements[word](self, token.from)
  end
  local follower = self.tokens[self.at + 1]
  if token.text == "goto" and follower and follower.kind ~= "symbol" and follower.kind ~= "string" then
    self.at = self.at + 2
    return { kind = "jump", from = token.from }
  end
  return self:assignment_or_call()
end

function Parser:block()
  local list = {}
  while self:peek() and not BLOCK_ENDS[self:word()] do
    if not self:accept(";") then list[#list + 1] = self:statement() end
  end
  return list
end

local parser = {}

---The tree of a program that compiles.
---@param text string
---@return table program body, comments (tokens), the names of what it defines: `defined`, methods and fields that are
---functions, and `globals`; and `is_ours`, whether it has to do with Perigee at all
function parser.parse(text)
  local tokens, comments, is_ours = {}, {}, false
  local code = text:gsub("^#[^\n]*", function(line) return (" "):rep(#line) end)
  for _, token in ipairs(lexer.tokens(code)) do
    local list = token.kind == "comment" and comments or tokens
    list[#list + 1] = token
    is_ours = is_ours or token.text == "pg" or token.kind == "string" and token.text:find "perigee" ~= nil
  end
  local self = setmetatable({ tokens = tokens, at = 1, depth = 0, defined = {}, globals = {} }, Parser)
  self:open()
  local body = self:block()
  if self:peek() then error("an end too many", 0) end
  return { body = body, defined = self.defined, globals = self.globals, comments = comments,
           is_ours = is_ours }
end

return parser
