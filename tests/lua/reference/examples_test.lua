-- SPDX-License-Identifier: Apache-2.0
-- The command line that the examples share.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../../.."
package.path = root .. "/tests/?.lua;" .. package.path
local process = require "process"

local SCRIPT = [[
package.path = %q .. "/examples/?.lua;" .. package.path
local o = require "options"({ epochs = 12, device = "cpu", save = os.tmpname() .. ".safetensors" },
                            { epochs = 1, device = "sim:0" })
print(o.epochs, o.device, o.is_short)
]]

local function run(t, arguments)
  local path = process.file(SCRIPT:format(root))
  local text, status = process.run(("'%s' '%s' %s"):format(process.need_perigee(t), path, arguments))
  os.remove(path)
  return text, status
end

test("options of examples: what is given wins, in any order", function(t)
  t.equal(run(t, ""), "12\tcpu\tfalse\n")
  t.equal(run(t, "--short"), "1\tsim:0\ttrue\n")
  t.equal(run(t, "--epochs 3 --short"), "3\tsim:0\ttrue\n")
  t.equal(run(t, "--short --epochs 3 --device cuda:1"), "3\tcuda:1\ttrue\n")
  local help, status = run(t, "--help")
  t.ok(help:find("  --epochs 12\n", 1, true) and help:find("--short") and status == 0, help)
end)

test("options of examples: mistakes are told in a line, before anything is trained", function(t)
  for arguments, message in pairs {
    ["--epoch 3"] = 'there is no option "--epoch"', ["3"] = 'there is no option "3"', ["--epochs"] = "needs a value",
    ["--epochs x"] = '--epochs needs a number, got "x"', ["--save a.pt"] = "no .safetensors file",
    ["--save /no/where/a.safetensors"] = "No such file or directory" } do
    local text, status = run(t, arguments)
    t.equal({ status, select(2, text:gsub("\n", "")) }, { 1, 1 }, text)
    t.ok(text:find(message, 1, true), text)
  end
end)

test("the digits end the same on one device, on four, and by two processes", function(t)
  local perigee = process.need_perigee(t)
  local script = root .. "/examples/18_many_processes.lua --epochs 1"
  local function ends(before, after)
    local text, status = process.run(("%s timeout 300 '%s' %s %s %s"):format(
      before, perigee, after:match "^launch.*" or "", script, after:match "^%-%-.*" or ""))
    if status ~= 0 then error(text, 0) end
    return text:match "(%d+) replica%(s%): (loss %S+ accuracy on held%-out digits %S+)"
  end
  local one, expected = ends("", "")
  local four, on_four = ends("PERIGEE_SIM_DEVICES=4", "--devices sim:0,sim:1,sim:2,sim:3")
  t.equal({ one, four }, { "1", "4" })
  t.equal(on_four, expected)
  if select(2, process.run "command -v mpirun") ~= 0 or not process.run(perigee .. " plugins"):find "\nmpi +coll" then
    t.skip "processes cannot be launched here"
  end
  local two, by_two = ends("", "launch -n 2 --allow-root")
  t.equal({ two, by_two }, { "2", expected })
end)
