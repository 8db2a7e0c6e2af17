-- SPDX-License-Identifier: Apache-2.0
-- tests/luacats itself: what it takes for wrong in a definition file, what it finds behind expressions, and what it
-- marks in a script, as LuaLS does.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../../.."
package.path = root .. "/tests/?.lua;" .. root .. "/tests/?/init.lua;" .. package.path

local luacats = require "luacats"
local complete = require "luacats.complete"
local calls = require "luacats.calls"

local HEAD = "---@class A\nlocal A = {}\n"

-- What is wrong with a snippet below HEAD, or one that begins with @meta; and what the first complaint says.
local WRONG = {
  { "---@parm x any", "unknown tag @parm" },
  { "---@return string", "@param or @return above no function" },
  { "---@param x string|\n---@return A\nfunction A.f(x) end", 'a type expected before ""' },
  { "---@return table<string A>\nfunction A.f() end", '">" expected before "A>"' },
  { "---@return (string\nfunction A.f() end", '")" expected' },
  { "---@return {a: string, b}\nfunction A.f() end", '":" expected before "}"' },
  { "---@return {end: string}\nfunction A.f() end", 'the keyword "end" is no name' },
  { "---@return {f: fun(): A, b: string}\nfunction A.f() end", "a function in a list needs parentheses" },
  { "---@return B[]\nfunction A.f() end", "?:3: no type is called B" },
  { "---@return fun(x: A): B\nfunction A.f() end", "no type is called B" },
  { "---@class C: B", "no type is called B" },
  { "---@return string text, B\nfunction A.f() end", "no type is called B" },
  { "---@param x A []\n---@param y any\nfunction A.f(x) end", "?:5: the function has no argument y" },
  { "---@param x A [N, C]\nfunction A.f(x) end", "reads as part of the type: put # before it" },
  { '---@param x A # "a" or more\nfunction A.f(x) end', "what stands behind the quotes is not shown" },
  { "---@param x A\n---@param x A\nfunction A.f(x) end", "@param x stands there twice" },
  { "---@param y A\n---@param x A\nfunction A.f(x, y) end", "@param x is out of order" },
  { "---@param y A\nfunction A.f(x) end", "the function has no argument y" },
  { "---@param x A\nfunction A.f(x, ...) end", "argument ... has no @param" },
  { "---@param ...? A\nfunction A.f(...) end", "... is optional without a ?" },
  { "---@param x\nfunction A.f(x) end", "@param needs a name and a type" },
  { "function A.f(x) end", "argument x has no @param" },
  { "---@class A", "class A is declared a second time" },
  { "---@alias A string", "alias A is declared a second time" },
  { "---@class C\n---@field x A\n---@field x A", "field C.x is declared a second time" },
  { "---@class C\n---@field [integer] A\n---@field x A", "field x stands behind a [type]: names come first" },
  { "---@field x A", "no @class above @field" },
  { "function A.f() end\nfunction A.f() end", "?:4: A.f is defined a second time" },
  { "---@class C\n---@field x A\nlocal C = {}\nfunction C:x() end", "C:x is defined a second time" },
  { "---@class C\n---@operator eq(C): boolean", "LuaLS knows no operator eq" },
  { "---@class C\n---@operator unm(C): C", "operator unm has no operand" },
  { "---@class C\n---@operator add(C, C): C", "one operand" },
  { "---@class C\n---@operator add C", "@operator needs name(type): type" },
  { "---@class C\n---@overload A", "@overload needs a fun()" },
  { "B = {}", "assigns the global B" },
  { "function B() end", "assigns the global B" },
  { "function B.f() end", "assigns the global B" },
  { "local C = {}", "local C has no @class" },
  { "print(1)", "no line of a definition file" },
  { "----a dash too many", "four dashes make no annotation" },
  { "---|x| is large", "a text that begins with |" },
  { "---@meta", "@meta must be the first line" },
  { "---@param x A?|A[]\nfunction A.f(x) end", '"|" is lost behind a ?' },
  { "---@param x A?[]\nfunction A.f(x) end", '"[" is lost behind a ?' },
  { "---@param x A??\nfunction A.f(x) end", '"?" is lost behind a ?' },
  { "---@return fun(): (A|string)[]\nfunction A.f() end", '"[" is lost behind the results of a function' },
  { "---@return {f: fun(): (A)|string}\nfunction A.f() end", '"|" is lost behind the results of a function' },
  { "---@param x 1.5|2.5\nfunction A.f(x) end", "1.5 is no whole number" },
  { "---@param x {a: A, a?: string}\nfunction A.f(x) end", "field a stands there twice" },
  { "---@class C A", '"A" behind the name is a comment; parents stand behind a colon' },
  { "---@class C\n---@field package A[]", "package says who may see a field: it is no name" },
}

test("the reader of annotations says what is wrong, and where", function(t)
  for _, case in ipairs(WRONG) do
    local _, problems = luacats.read(HEAD .. case[1] .. "\n")
    t.ok(problems[1] and problems[1]:find(case[2], 1, true),
         ("%s: got %s, expected %s"):format(case[1], problems[1] or "nothing", case[2]))
  end
end)

test("the reader of annotations accepts what LuaLS does", function(t)
  local _, problems = luacats.read(HEAD .. [[

---@alias Kind "a"|"b"

---Text, and - a dash.
---@class C: A
---@field kind Kind? # "a"
---@field get? fun(self: C, i: integer): string, any # the i-th
---@field rows {name: string, parts?: (A|C)[], [string]: number}[]
---@field [integer] table<string|integer, A>
---@operator add(C|number): C
---@operator len: integer
---@overload fun(x: A, ...: any): C
local C = {}

---@param fn fun(a: A, b?: integer): boolean what decides
---@param rest? {f: (fun(): A), kind: Kind}|any
---@param ... any|-1
---@return C? found, string? why where there is none
---@return fun() ...
function C:each(fn, rest, ...) end

---@return fun(): (A, C?) both
---@return (A|C)[]? # of either
function C:pairs() end
]])
  t.equal(problems, {})
end)

local CLASSES = [[
---@meta m

---@class A
---@field rows integer
---@field [table] A
---@field [string] any
---@operator add(A): A
---@overload fun(x: integer): A
local A = {}

---@class B: A
local B = {}

---@return B
function B:new() end

---@param x A
---@param kind? "one"|"two"
---@param options? integer|{axis?: integer}
---@return A
function A.f(x, kind, options) end

---@param x A
---@overload fun(arguments: {x?: A, axis?: integer}): A
---@return A
function A.g(x) end

---@param ... A|A[]
function A.list(...) end

---@param n number
---@param rest? boolean
function A:h(n, rest) end

return A
]]

test("what classes do not inherit, or LuaLS does not look up, has no type", function(t)
  local completer = complete.new(luacats.read(CLASSES), { a = "A", b = "B" })
  local function name(text) return completer:name_of(completer:type_of(text)) end
  t.equal({ name "a(1)", name "a + a", name "b:new()", name "b.rows" }, { "A", "A", "B", "integer" })
  t.equal(name "b(1)", nil)
  t.equal(name "b + a", nil)
  t.equal(name "a[{1}]", nil)
end)

local CALLS = {
  { "f(a, 'one', {axis=1})" }, { "f(a, nil, 2)" }, { "f(a, kind())" }, { "f(rest())" }, { "g{a, axis=1}" }, { "g(a)" },
  { "list(a, a)" }, { "list{a, a}" }, { "a:h(1.5, true)" }, { "f(a) -- f({})" }, { "x = 'f({})'" },
  { "f(a, choose(function(x, y) return x, y end, 1))" }, { "other({})" },
  { "f{a}", "argument 1: fields of a A are missing in the table" },
  { "f(\n  {a},\n  'one')", "1: f( {a}, 'one'): argument 1: fields" }, { "\ng({})\nf({})", "3: f({})" },
  { "f()", "needs 1 arguments" }, { "g(a, 2)", "argument 2: there is no such argument" },
  { "f(a, 'three')", "argument 2: no type takes the string" }, { "f(a, 'one', 'x')", "argument 3: no type takes" },
  { "f(a, 'one', true)", "argument 3: no type takes the boolean" }, { "f(a, 'one', 1.5)", "takes the number" },
  { "a:h()", "needs 1 arguments" }, { "a:h({})", "argument 1: no type takes the table" },
  { "a:h(1, 2)", "argument 2: no type takes the integer" }, { "local c = a(1)\nc:h('x')", "no type takes the string" },
}

test("calls of a script are marked where their literals do not fit", function(t)
  local completer = complete.new(luacats.read(CLASSES), { a = "A" })
  for _, name in ipairs { "f", "g", "list" } do
    completer.variables[name] = completer:field(completer.variables.a, name)
  end
  for _, case in ipairs(CALLS) do
    local problems = calls.check(completer, case[1])
    local found = problems[1]
    t.ok(case[2] == nil and found == nil or case[2] and found and found:find(case[2], 1, true),
         ("%s: got %s, expected %s"):format(case[1], tostring(found), tostring(case[2])))
  end
end)
