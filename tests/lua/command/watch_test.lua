-- SPDX-License-Identifier: Apache-2.0
-- perigee watch and perigee top, run as commands.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"

local function command(t, words) return process.run(("'%s' %s"):format(process.need_perigee(t), words)) end

local function folder()
  local name = os.tmpname()
  os.remove(name)
  return name .. ".runs"
end

test("perigee watch draws the curves of runs over each other", function(t)
  local dir = folder()
  for _, name in ipairs { "first", "second" } do
    local writer = pg.SummaryWriter { dir .. "/" .. name }
    for step = 1, 20 do writer:add_scalar("loss", (name == "first" and 1 or 2) / step, step) end
    writer:add_scalar("accuracy", 0.5, 20)
    writer:close()
  end
  local both, status = command(t, ("watch '%s'"):format(dir))
  local one = command(t, ("watch '%s/first' --tag '^loss$' --once"):format(dir))
  local none, failed = command(t, ("watch '%s/nowhere'"):format(dir))
  os.execute(("rm -r '%s'"):format(dir))
  t.equal(status, 0)
  t.ok(both:find("accuracy  (0.5, 0.5)", 1, true), both)
  t.ok(both:find("loss  (0.05, 0.1)", 1, true), both)
  t.ok(both:find("* first   + second", 1, true), both)
  t.ok(one:find("loss  (0.05)", 1, true) and not one:find("accuracy", 1, true), one)
  t.equal({ none:match "perigee watch: there is no .*nowhere", failed }, { none:gsub("\n$", ""), 2 })
end)

test("perigee watch bears a torn file and tells of damage", function(t)
  local dir = folder()
  local writer = pg.SummaryWriter { dir }
  for step = 1, 3 do writer:add_scalar("loss", step, step) end
  writer:close()
  local file = assert(io.open(writer.path, "rb"))
  local text = file:read("*a")
  file:close()
  process.write(writer.path, text:sub(1, -5))
  local torn, status = command(t, ("watch '%s'"):format(dir))
  process.write(writer.path, text:sub(1, -5) .. "oops")
  local damaged = command(t, ("watch '%s'"):format(dir))
  os.execute(("rm -r '%s'"):format(dir))
  t.equal({ torn:match "^ *loss  %b()", status }, { torn:match "^ *loss  %(2%)", 0 })
  t.ok(damaged:find("is damaged: wrong checksum of its content", 1, true), damaged)
end)

test("perigee watch and top refuse wrong words", function(t)
  t.equal({ command(t, "watch") }, { "perigee watch: needs a folder of event files\n", 2 })
  t.equal({ command(t, "watch . --every 0") },
          { "perigee watch: --every must be a number of seconds from 0.1, got 0\n", 2 })
  t.equal({ command(t, "watch . --tag '['") }, { "perigee watch: --tag: [ is no Lua pattern\n", 2 })
  t.equal({ command(t, "watch . --all") }, { "perigee watch: unknown option --all\n", 2 })
  t.equal({ command(t, "top --every") }, { "perigee top: --every needs a value\n", 2 })
  t.equal({ command(t, "top 3") }, { "perigee top: takes no words, got 3\n", 2 })
end)

test("perigee top shows the devices and the processes that use them", function(t)
  pg.ones { 2 } -- this process has the library
  local text, status = command(t, "top --once")
  t.equal(status, 0)
  t.ok(text:find "\ncpu ", text)
  t.ok(text:find "\nPROCESS +PROCESSOR +MEMORY +DEVICES +COMMAND\n%d+ ", text)
  local own = io.open("/proc/self/stat"):read "*n"
  t.ok(text:find(("\n%d +%%d+ %%%% +[%%d.]+ MB +cpu"):format(own)), text)
end)
