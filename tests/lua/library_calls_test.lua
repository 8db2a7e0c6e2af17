-- SPDX-License-Identifier: Apache-2.0
-- Scripts written as the documentation has them are marked nowhere by an editor that has docs/library/perigee.lua.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../.."
package.path = root .. "/tests/?.lua;" .. root .. "/tests/?/init.lua;" .. package.path

local calls = require "luacats.calls"
local complete = require "luacats.complete"
local library = require "luacats.library"

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
