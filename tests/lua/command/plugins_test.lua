-- SPDX-License-Identifier: Apache-2.0
-- Folders of plugins with what does not belong there: nothing waits, and the built-in plugins stay what they are.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local process = require "process"

local pg = require "perigee"

local function path_of(name)
  for _, plugin in ipairs(pg.plugins()) do
    if plugin.name == name then return plugin.path end
  end
end

-- What `perigee plugins` says, and whether operators compute, with a folder that the shell commands make.
local function listed(t, commands)
  local perigee, folder = process.need_perigee(t), os.tmpname()
  os.remove(folder)
  process.run(("mkdir '%s' && cd '%s' && %s"):format(folder, folder, commands))
  local environment = ("PERIGEE_PLUGIN_PATH='%s' timeout 20 '%s'"):format(folder, perigee)
  local text = process.run(environment .. " plugins")
  local script = process.file 'local pg = require "perigee" print("sum", pg.ones(3):sum():item())'
  local sum = process.run(environment .. " " .. script)
  os.remove(script)
  process.run(("rm -r '%s'"):format(folder))
  t.ok(sum:find("sum\t3", 1, true), sum)
  t.ok(text:find("ops +ops +[%d.]+ +available"), text)
  return text
end

test("plugins: pipes are no plugins and no manifests", function(t)
  local text = listed(t, "mkfifo pipe.so && mkfifo other.json && echo no > other.so")
  t.ok(text:find("pipe +unavailable .*pipe.so +the file is no regular file"), text)
  t.ok(text:find("other.json: it is no regular file", 1, true), text)
end)

test("plugins: folders that others can write to are refused", function(t)
  local ops = path_of "ops"
  local copy = ("cp '%s' mine.so"):format(ops)
  t.ok(listed(t, copy .. " && chmod 777 ."):find("mine.so +its folder can be written by everyone; chmod o%-w"))
end)

test("plugins: a foreign plugin named like a built-in one is the one that is refused", function(t)
  for _, name in ipairs { "ops.so", "zzz.so", "aaa.so" } do
    local text = listed(t, ("cp '%s' %s"):format(path_of "ops", name))
    t.ok(text:find(name .. " +two plugins are named 'ops'"), text)
  end
end)
