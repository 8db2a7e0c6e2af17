-- SPDX-License-Identifier: Apache-2.0
-- Every public function, called in ways that cannot be meant, raises an error with a code and the script's line: never
-- one of Lua's own from inside. What fits somewhere by accident may do what it does.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../?.lua;" .. package.path
local native = require "perigee.native"
local reference = require "perigee.reference"
local arguments = require "mistakes.arguments"
local fitting = require "mistakes.fitting"

-- What is wrong with how a call ended, or nil.
local function complaint(must_fail, ok, err)
  if ok then return must_fail and "nothing is raised" end
  if not native.is_error(err) then return "Lua's own error: " .. tostring(err) end
  if not err.code then return "an error without a code: " .. err.message end
  if not err.message:find "mistakes/arguments%.lua:%d+: " then return "no line of the script: " .. err.message end
end

-- Runs fn while nothing reaches the terminal.
local function quietly(fn, ...)
  local plain = _G.print
  rawset(_G, "print", function() end)
  local ok, err = pcall(fn, ...)
  rawset(_G, "print", plain)
  return ok, err
end

native.make_folder(fitting.folder)
local calls, names = 0, 0 -- a shard of the suite has some of the names
for _, name in ipairs(reference.names()) do
  test("mistaken calls of " .. name, function()
    local wrong = {}
    names = names + 1
    arguments.each(name, function(what, must_fail, fn, n, ...)
      calls = calls + 1
      local said = complaint(must_fail, quietly(fn, ...))
      if said then wrong[#wrong + 1] = ("%s%s: %s"):format(name, what, said) end
    end)
    if #wrong > 0 then error(table.concat(wrong, "\n"), 0) end
  end)
end

test("mistaken calls of everything were tried", function(t)
  os.execute(("rm -rf '%s'"):format(fitting.folder))
  t.ok(names > 0 and calls >= 10 * names, ("tried %d of %d names"):format(calls, names))
end)
