-- SPDX-License-Identifier: Apache-2.0
-- The reference pages' examples, with a number, a dtype or a word changed: layers, training, data and graphs in the
-- order that programs have.

local reference = require "perigee.reference"
local R = require "fuzz.random"

local M = {}

-- Programs that wait, or that are about what is left out of calls.lua.
local LEFT_OUT = { ["pg.load_plugin"] = true, ["pg.reset"] = true, ["config.visible_devices"] = true,
                   ["pg.bench"] = true, ["pg.bench_compare"] = true,
                   ["pg.while_loop"] = true } -- with another number it may never end

local list

local function add(name, code)
  if not LEFT_OUT[name] then list[#list + 1] = { name = name, code = code } end
end

local function programs()
  if list then return list end
  list = {}
  for _, file in ipairs { "other", "function", "program" } do
    for name, code in pairs(require("perigee.reference." .. file .. "_examples")) do add(name, code) end
  end
  for name, own in pairs(require "perigee.reference.layer_examples") do
    add("nn." .. name, own[3] or ("local layer = %s\nlocal y = layer(%s)"):format(own[1], own[2]))
  end
  for _, name in ipairs(reference.names()) do
    if reference.all()[name].kind == "optimizer" then
      add(name, ("local w = pg.tensor({1, -2}, {requires_grad=true})\nlocal optimizer = %s{{w}, lr=0.1}\n" ..
                 "for _ = 1, 3 do (w * w):sum():backward() optimizer:step() end"):format(name))
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- Small enough that a loop of so many steps ends.
local NUMBERS = { "0", "-1", "1", "2", "3", "7", "33", "0.5", "-0.5", "0/0", "-1e308", "-math.huge", "nil", "true",
                  "\"x\"", "{}", "-2^63", "1e-320", "300" }
local WORDS = { "\"float32\"", "\"int64\"", "\"bool\"", "\"float64\"", "\"bfloat16\"", "\"complex64\"", "\"uint8\"",
                "\"\"", "\"x\"", "nil", "1", "{}", "true" }

-- Where numbers and strings stand.
local function places(code)
  local found = {}
  for from, to in code:gmatch "()%f[%w_%.]%d+%.?%d*e?%-?%d*()" do found[#found + 1] = { from, to, NUMBERS } end
  for from, to in code:gmatch "()\"[^\"\n]*\"()" do found[#found + 1] = { from, to, WORDS } end
  return found
end

function M.draw(only)
  local program
  if only then
    for _, p in ipairs(programs()) do if p.name == only then program = p end end
  end
  program = program or R.pick(programs())
  local code = program.code
  for _ = 1, R.weighted { { 1, 0 }, { 6, 1 }, { 3, 2 } } do
    local found = places(code)
    if #found > 0 then
      local place = R.pick(found)
      local loops = code:sub(1, place[1]):match("[^\n]*$"):find "for%s"
      local value = loops and tostring(R.int(0, 5)) or R.pick(place[3])
      code = ("%s(%s)%s"):format(code:sub(1, place[1] - 1), value, code:sub(place[2]))
    end
  end
  return nil, loadstring(code) and code or program.code, program.name -- a word within a word makes no script
end

return M
