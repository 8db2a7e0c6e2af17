-- SPDX-License-Identifier: Apache-2.0
-- Numbers are read and written alike whatever the locale says of decimal points: an embedding program, or a script, may
-- have set one with a comma.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

-- What a script prints under a locale of decimal commas, and under none.
local script = [[
local pg = require "perigee"
local nn = pg.nn
local locale, folder = arg[1], arg[2]
if locale ~= "" then
  assert(os.setlocale(locale, "all"), "no locale " .. locale)
end
local function show(...) print(pg.tensor({ ... }, { dtype = "float64" }), ...) end

local file = io.open(folder .. "/a.csv", "w")
file:write("1.5,1e-400,-2.25e-3\n0.1,1.5e-330,4\n0.", ("0"):rep(400), "1,1000e-402,", "1", ("0"):rep(400), "e-400\n")
file:close()
print(pg.data.csv { folder .. "/a.csv", dtype = "float64" })
print(pg.data.csv { folder .. "/a.csv" })
file = io.open(folder .. "/a.csv", "w")
file:write("1,5\n")
file:close()
print(pg.data.csv { folder .. "/a.csv" })
print(pcall(pg.data.csv, { folder .. "/a.csv", delimiter = ";" }))

local x = pg.tensor({ 0.5, 2.5 }, { dtype = "float64" })
x:save_npy(folder .. "/x.npy")
show(pg.load_npy(folder .. "/x.npy"):totable()[1])
pg.save(folder .. "/x.safetensors", { x = x }, { notes = { half = 0.5 } })
local tensors, note = pg.load(folder .. "/x.safetensors")
show(tensors.x:totable()[2], tonumber(note "half"))

pg.manual_seed(1)
local model = nn.Sequential { nn.Linear { 2, 3 }, nn.Dropout { 0.25 }, nn.LeakyReLU { 0.125 } }
local optimizer = pg.optim.Adam { model:parameters(), lr = 0.0625 }
local manager = pg.CheckpointManager { folder .. "/checkpoints", model = model, optimizer = optimizer }
manager:save { step = 1, third = 1 / 3, tiny = 5e-324, metric = 0.75 }
local values = manager:restore()
show(values.third, values.tiny, values.metric, optimizer.groups[1].lr)
show(pg.tensor { 1, 2, 3, 4 }:quantile(0.3):item())
print(nn.LeakyReLU { 0.125 }, pg.full({ 2 }, 0.5), 1e100, 0.1)
print(pcall(nn.Dropout, { 1.5 }))

local g = pg.graph(function(g)
  local input = g:placeholder { "x", shape = { 2 } }
  return { y = nn.leaky_relu(input * 1.5, 0.125) }
end)
print(g:text())
print(pg.Session { g }:run("y", { x = { -1, 2 } }))
]]

-- LOCPATH with a locale of decimal commas in it; nil and the reason where none can be made.
local function make_locale(folder)
  local text, status = process.run(("localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8'"):format(folder))
  if status > 1 then return nil, text end -- 1: with warnings
  return "de_DE.UTF-8"
end

test("numbers under a locale of decimal commas", function(t)
  local perigee, folder, path = process.need_perigee(t), os.tmpname(), process.file(script)
  os.remove(folder)
  require("perigee.native").make_folder(folder)
  local locale, why = make_locale(folder)
  if not locale then t.skip("no such locale can be made: " .. why) end
  local function run(name)
    local text, status = process.run(("LOCPATH='%s' '%s' '%s' '%s' '%s'"):format(folder, perigee, path, name, folder))
    t.equal({ status, text:find("traceback") }, { 0 }, text)
    return text
  end
  local plain = run("")
  t.ok(plain:find("5e-324", 1, true) and plain:find("0.125", 1, true), plain)
  t.equal(run(locale), plain)
  os.remove(path)
  os.execute("rm -rf '" .. folder .. "'")
end)
