-- SPDX-License-Identifier: Apache-2.0
-- perigee tests/fuzz/main.lua [--seconds N] [--calls N] [--seed N] [--from N] [--only NAME] [--show]

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../?.lua;" .. here .. "/../?/init.lua;" .. package.path

local process = require "process"
local fuzz = require "fuzz.run"

local o = { seed = 1, from = 1, calls = 2 ^ 40, seconds = 60 }
local i = 1
while arg[i] do
  local name = arg[i]:match "^%-%-(%a+)$"
  if name == "show" then
    o.show = true
  elseif name == "only" then
    o.only, i = arg[i + 1], i + 1
  elseif name and o[name] and tonumber(arg[i + 1]) then
    o[name], i = tonumber(arg[i + 1]), i + 1
  else
    io.stderr:write("fuzz: what is ", arg[i], "? Options: --seconds, --calls, --seed, --from N, --only NAME, --show\n")
    os.exit(2)
  end
  i = i + 1
end

if o.show then -- the script alone, without running it
  print(fuzz.script(o, o.from))
  os.exit(0)
end

o.perigee = process.perigee()
o.say = function(text) io.stderr:write(text, "\n") end
local sum = fuzz.run(o)
local failures = fuzz.failures(o, { crashes = {}, raw = sum.raw, problems = sum.problems })
if failures ~= "" then print(failures) end
print(fuzz.summary(sum))
os.exit((#sum.crashes > 0 or failures ~= "") and 1 or 0)
