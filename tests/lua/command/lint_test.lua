-- SPDX-License-Identifier: Apache-2.0
-- perigee lint, run on files made here.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

local function command(t, words) return process.run(("'%s' lint %s"):format(process.need_perigee(t), words)) end

test("perigee lint prints what it finds, and answers whether it found something", function(t)
  local folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir -p '%s/inner folder'"):format(folder))
  local bad, good = folder .. "/inner folder/bad.lua", folder .. "/good.lua"
  process.write(bad, "local pg = require 'perigee'\nlocal x = pg.rand{3}\nif x:gt(0):any() then print(x[0]) end\n" ..
                     "print(x == 0) -- lint: ignore\n")
  process.write(good, "local pg = require 'perigee'\nprint(pg.rand{3}:sum():item())\n")
  process.write(folder .. "/broken.txt", "x += 1\n")
  local all, found = command(t, ("'%s'"):format(folder))
  local one, clean = command(t, ("'%s'"):format(good))
  local text, wrong = command(t, ("'%s/broken.txt' '%s'"):format(folder, good))
  os.execute(("rm -r '%s'"):format(folder))
  t.equal({ all, found }, {
    bad .. ":3:12: a tensor is true in Lua, whatever it holds: :item() gives the boolean (tensor-condition)\n" ..
    bad .. ":3:31: positions count from 1: the first is 1, the last -1 (position-from-zero)\n" ..
    "2 findings in 2 scripts\n", 1 })
  t.equal({ one, clean }, { "0 findings in 1 script\n", 0 })
  t.equal({ text:match "broken.txt:1:1: .*%+=.*%(syntax%)\n1 finding in 2 scripts\n$" ~= nil, wrong }, { true, 1 })
end)

test("perigee lint refuses what is not there, and shows its rules", function(t)
  t.equal({ command(t, "nowhere.lua") }, { "perigee lint: there is no nowhere.lua\n", 2 })
  t.equal({ command(t, "--all") }, { "perigee lint: unknown option --all\n", 2 })
  local rules, status = command(t, "--rules")
  t.equal({ status, rules:match "\ntensor%-comparison\n  finds  if a == b then print%(a%) end\n  not    " ~= nil },
          { 0, true })
end)
