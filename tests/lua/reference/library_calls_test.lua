-- SPDX-License-Identifier: Apache-2.0
-- Scripts written as the documentation has them are marked nowhere by an editor that has docs/library/perigee.lua.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../../.."
package.path = root .. "/tests/?.lua;" .. root .. "/tests/?/init.lua;" .. package.path

local calls = require "luacats.calls"
local complete = require "luacats.complete"
local library = require "luacats.library"
local keywords = require("luacats.types").keywords
local native = require "perigee.native"

local MODULES = { nn = "perigee.nn", optim = "perigee.optim", data = "perigee.data", amp = "perigee.amp" }

local function read(path)
  local file = assert(io.open(path, "r"))
  local text = file:read("*a")
  file:close()
  return text
end

-- The snippets of a page, each behind as many lines as stand before it there; a script is one.
local function snippets_of(path, text)
  if path:find("%.lua$") then return { text } end
  local list = {}
  for at, code in text:gmatch("```lua\n()(.-)```") do
    local _, lines = text:sub(1, at - 1):gsub("\n", "")
    list[#list + 1] = ("\n"):rep(lines) .. code
  end
  return list
end

local function check_all(paths)
  local completer = complete.new(library.read(root), MODULES)
  local wrong, looked_at = {}, 0
  local pipe = assert(io.popen(("cd '%s' && %s | LC_ALL=C sort"):format(root, paths)))
  for path in pipe:lines() do
    for _, code in ipairs(snippets_of(path, read(root .. "/" .. path))) do
      local problems, count = calls.check(completer, code)
      for _, line in ipairs(problems) do wrong[#wrong + 1] = path .. ":" .. line end
      looked_at = looked_at + count
    end
  end
  pipe:close()
  return wrong, looked_at
end

test("docs/library: an editor marks no call of the pages", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local wrong, count = check_all("find docs README.md scripts -name '*.md'")
  t.equal(wrong, {})
  t.ok(count > 2000, "looked at " .. count)
end)

test("docs/library: an editor marks no call of the examples", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local wrong, count = check_all("find examples -name '*.lua'")
  t.equal(wrong, {})
  t.ok(count > 100, "looked at " .. count)
end)

-- Adds the calls of an operator's function or method, `prefix`, by a table and by options behind what tensors it needs.
local function add_forms(lines, prefix, entry, skipped)
  local names, options = {}, entry.parameters[1] ~= nil
  for i = skipped + 1, #entry.inputs do
    local input = entry.inputs[i]
    if not input.optional then names[#names + 1] = input.variadic and "{x, x}" or "x" end
  end
  if names[1] or options then lines[#lines + 1] = ("%s{%s}"):format(prefix, table.concat(names, ", ")) end
  names[#names + 1] = options and "{}" or nil
  if options then lines[#lines + 1] = ("%s(%s)"):format(prefix, table.concat(names, ", ")) end
end

test("docs/library: an editor marks no operator that is called with a table, or options behind tensors", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local lines = { "pg.zeros_like{x, dtype='int64'}", "pg.full_like{x, 3}", "x:full_like{3}", "x:eq(true)",
                  "pg.index_add{x, i, y, 1}", "x:index_add{i, y, 1}", "x:logical_and(false)", "x:add(1)" }
  for name, entry in pairs(require("perigee.reference").all()) do
    local plain = name:match("^pg%.(%w+)$")
    if plain and entry.kind == "operator" and entry.inputs[1] and not keywords[plain] then
      add_forms(lines, "pg." .. plain, entry, 0)
      if native.operators.is_method(plain) then add_forms(lines, "x:" .. plain, entry, 1) end
    end
  end
  local completer = complete.new(library.read(root), { x = "perigee.Tensor" })
  local problems, count = calls.check(completer, table.concat(lines, "\n"))
  t.equal(problems, {})
  t.equal(count, #lines)
end)
