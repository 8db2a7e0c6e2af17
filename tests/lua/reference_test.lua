-- SPDX-License-Identifier: Apache-2.0
-- docs/reference and docs/library are what the schemas and annotations of this build say; their examples run for it.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../.."
package.path = root .. "/tests/?.lua;" .. root .. "/tests/?/init.lua;" .. package.path

local function read(path)
  local file = io.open(path, "r")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- The same but for the last digits of numbers, which depend on the processor.
local function same(a, b)
  if a == b then return true end
  local numbers, at = {}, 0
  for number in b:gmatch("%-?%d+%.%d*e?[-+]?%d*") do numbers[#numbers + 1] = tonumber(number) or 0 end
  for number in a:gmatch("%-?%d+%.%d*e?[-+]?%d*") do
    at = at + 1
    local x, y = tonumber(number) or 0, numbers[at]
    if not y or math.abs(x - y) > 2e-4 * math.max(1, math.abs(y)) then return false end
  end
  local function bare(text) return (text:gsub("%-?%d+%.%d*e?[-+]?%d*", "#"):gsub("[ \n]+", " ")) end
  return at == #numbers and bare(a) == bare(b)
end

test("docs: the comparison sees what differs", function(t)
  t.ok(same("a 1.5000 b", "a 1.5001 b") and not same("a 1.50 b", "a 1.60 b") and not same("a", "b"))
  t.ok(not same("1.0 2.0", "1.0") and not same("x 1.0", "y 1.0"))
end)

local STALE = " is stale: run scripts/dev/docs and commit docs/"

test("docs/reference is what this build says", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local cases, specs = require "cases", require "cases.specs"
  for name, text in pairs(require("perigee.reference.pages").make(cases, specs)) do
    local path = "docs/reference/" .. name
    local kept = read(root .. "/" .. path)
    t.ok(kept, path .. STALE)
    t.ok(same(kept, text), path .. STALE)
  end
end)

test("docs/library is what this build says", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local text = require "perigee.reference.stubs"()
  t.ok(read(root .. "/docs/library/perigee.lua") == text, "docs/library/perigee.lua" .. STALE)
  t.ok(loadstring(text), "it is no Lua")
end)
