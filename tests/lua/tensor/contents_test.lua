-- SPDX-License-Identifier: Apache-2.0
-- Files of the lower rooms run when one of their names is asked for: scripts/perigee/names/contents.lua has the names.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local contents = require "perigee.names.contents"
local process = require "process"
pg.version() -- makes the front end

local parts = { pg = pg, methods = native.methods, hooks = native.hooks, tensor = native.tensor }

-- A table that takes what a file defines, answers what there is already, and notes the names.
local function noting(names, target)
  return setmetatable({}, { __index = target, __newindex = function(t, key, value)
    names[key] = true
    rawset(t, key, value)
  end })
end

test("contents.lua lists what each file defines, no less and no more", function(t)
  native.run_rooms()
  local wrong = {}
  for file, text in pairs(contents) do
    local names = {}
    local noted = {}
    for part, target in pairs(parts) do noted[part] = noting(names, target) end
    rawset(noted.tensor, "define", function(name, f) noted.methods[name] = f end)
    local copy = setmetatable({ methods = noted.methods, hooks = noted.hooks, tensor = noted.tensor },
                              { __index = native })
    require("perigee." .. file)(noted.pg, copy)
    for name in pairs(names) do
      if not (" " .. text .. " "):find(" " .. name .. " ", 1, true) then
        wrong[#wrong + 1] = ("%s lacks %s"):format(file, name)
      end
    end
    for name in text:gmatch "%S+" do
      if not names[name] then wrong[#wrong + 1] = ("%s has no %s"):format(file, name) end
    end
  end
  table.sort(wrong)
  t.equal(wrong, {})
end)

test("no name is in two files", function(t)
  local seen = {}
  for file, text in pairs(contents) do
    for name in text:gmatch "%S+" do
      t.equal(seen[name], nil, ("%s is in %s and %s"):format(name, file, tostring(seen[name])))
      seen[name] = file
    end
  end
end)

test("a script that adds two tensors loads little", function(t)
  local perigee = process.need_perigee(t)
  local script = process.file [[
    local pg = require "perigee"
    local a, b = pg.rand { 10 }, pg.rand { 10 }
    for _ = 1, 10 do local _ = a + b end
    for name in pairs(package.loaded) do
      if name:find "^perigee" then print("<" .. name .. ">") end
    end
  ]]
  local said, status = process.run(("'%s' '%s'"):format(perigee, script))
  os.remove(script)
  t.equal(status, 0)
  t.ok(said:find("<perigee.tensor.plain_draws>", 1, true), said)
  for _, name in ipairs { "tensor.creation", "tensor.views", "autograd", "devices", "neural.functions",
                          "native.gradients", "native.layers", "native.graphs" } do
    t.ok(not said:find("<perigee." .. name .. ">", 1, true), name .. " was loaded")
  end
end)

test("what is loaded later comes after package.loaded was cleared too", function(t)
  t.equal(native.no_such_name, nil)
  local perigee = process.need_perigee(t)
  local script = process.file [[
    local pg = require "perigee"
    local x, old = pg.rand { 2, 2 }, pg.nn.Linear { 3, 1 }
    for name in pairs(package.loaded) do
      if name:find "^perigee" then package.loaded[name] = nil end
    end
    local again = require "perigee"
    local taught = pg.nn.Sequential { pg.nn.Linear { 2, 2 } }
    pcall(taught.fit, taught, { x = x, y = x, loss = "mse", optimizer = "adam", epochs = 1, verbose = 0 })
    local _, said = pcall(old, 1)
    print(said.message:find("Linear: ", 1, true) ~= nil)
    local model = again.nn.Linear { 2, 1 }
    model(x):sum():backward()
    local ok, problem = pcall(again.median, "x")
    print(rawequal(pg, again), x:size(1), model.weight.grad ~= nil, x:exp():std_mean(), problem.code)
  ]]
  local said, status = process.run(("'%s' '%s'"):format(perigee, script))
  os.remove(script)
  t.equal(status, 0, said)
  t.ok(said:find "^true\ntrue\t2\ttrue\ttensor%(.*invalid_argument\n$", said)
end)
