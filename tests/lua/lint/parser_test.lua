-- SPDX-License-Identifier: Apache-2.0
-- The tree that rules of the checker look at.

local parser = require "perigee.lint.parser"
local walk = require "perigee.lint.walk"

-- An expression as text with all its parentheses.
local function show(node)
  if node.kind == "binary" then return ("(%s %s %s)"):format(show(node.left), node.op, show(node.right)) end
  if node.kind == "unary" then return ("(%s %s)"):format(node.op, show(node.operand)) end
  if node.kind == "paren" then return "<" .. show(node.inner) .. ">" end
  if node.kind == "index" then
    return ("%s[%s]"):format(show(node.object), node.dot and node.name or show(node.key))
  end
  local args = {}
  for i, v in ipairs(node.args or {}) do args[i] = show(v) end
  args = table.concat(args, ", ")
  if node.kind == "call" then return ("%s(%s)"):format(show(node.callee), args) end
  if node.kind == "method" then return ("%s:%s(%s)"):format(show(node.object), node.name, args) end
  if node.kind == "table" then return "{" .. #node.items .. "}" end
  return node.text or node.name or node.kind
end

local function expression(code) return show(parser.parse("return " .. code).body[1].values[1]) end

test("operators bind as they do in Lua", function(t)
  local rows = {
    ["a or b and c"] = "(a or (b and c))", ["not a == b"] = "((not a) == b)", ["-a ^ b"] = "(- (a ^ b))",
    ["a ^ b ^ c"] = "(a ^ (b ^ c))", ["a .. b .. c"] = "(a .. (b .. c))", ["a - b - c"] = "((a - b) - c)",
    ["a + b * c % d"] = "(a + ((b * c) % d))", ["a < b == c"] = "((a < b) == c)", ["#a + 1"] = "((# a) + 1)",
    ["2 ^ -3"] = "(2 ^ (- 3))", ["not -x"] = "(not (- x))", ["a .. b + c"] = "(a .. (b + c))",
    ["(a or b) and c"] = "(<(a or b)> and c)",
  }
  for code, tree in pairs(rows) do t.equal(expression(code), tree) end
end)

test("calls, fields and tables in all forms", function(t)
  local rows = {
    ["f 'x'"] = "f('x')", ["f{1, 2}"] = "f({2})", ["f[[x]]"] = "f([[x]])", ["a.b.c:d(1)[2]"] = "a[b][c]:d(1)[2]",
    ["('x'):rep(2)"] = "<'x'>:rep(2)", ["f()()"] = "f()()", ["{a = 1, [2] = 3; 4, f()}"] = "{4}",
    ["x:f{}:g''"] = "x:f({0}):g('')", ["0x10LL"] = "0x10LL", ["1e-3"] = "1e-3", ["2i"] = "2i", [".5"] = ".5",
    ["[==[ ]] ]==]"] = "[==[ ]] ]==]", ["'a\\'b'"] = "'a\\'b'",
  }
  for code, tree in pairs(rows) do t.equal(expression(code), tree) end
end)

-- Every use of a name, and the place of the declaration that it means.
local function uses(code)
  local list = {}
  walk.all(parser.parse(code).body, function(node)
    if node.kind == "name" then list[#list + 1] = node.name .. (node.variable and node.variable.from or "?") end
  end)
  return list
end

test("names know their variables", function(t)
  t.equal(uses "local x = x; return x", { "x?", "x7" })
  t.equal(uses "local x; do local x = x; print(x) end print(x)", { "x7", "print?", "x19", "print?", "x7" })
  t.equal(uses "repeat local q until q; return q", { "q14", "q?" })
  t.equal(uses "local function f(outer) return f(outer) end return outer", { "f16", "outer18", "outer?" })
  t.equal(uses "for i, v in pairs(v) do print(i, v) end", { "pairs?", "v?", "print?", "i5", "v8" })
  t.equal(uses "function t:m() return self end", { "t?", "self1" })
  t.equal(uses "local größe = 1 return größe", { "größe7" })
end)

test("everything that LuaJIT compiles is read", function(t)
  local programs = {
    "#!/usr/bin/perigee\nlocal x = 1\r\nreturn x", "goto out; do local goto_ = 1 end ::out::", "local a; local b;",
    "for i = 10, 1, -1 do if i > 5 then break end end", "while true do return end", "return", "return;", "",
    "local function f(...) local a, b = ... return select('#', ...), a, b end", "do end -- end",
    "if a then elseif b then else end", "a.b.c, d[1] = 1, 2", "function a.b.c:d(...) return function() end end",
    "local t = {function() return 1 end, [1] = 2, x = {}; }", "f{}.x = 1", "--[==[ long\ncomment ]==] return 1",
    "return function() return end", "local größe = 1 return größe", "while a do ::next:: goto next end",
  }
  for _, code in ipairs(programs) do
    t.ok(loadstring((code:gsub("^#[^\n]*", ""))), code)
    t.ok(parser.parse(code), code)
  end
end)
