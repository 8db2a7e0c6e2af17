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
