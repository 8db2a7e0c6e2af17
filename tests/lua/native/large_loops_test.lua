-- SPDX-License-Identifier: Apache-2.0
-- Loops that LuaJIT has no room for once it has taken out of them what stays the same: they compile all the same.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

-- A loop's last instruction becomes another one, two numbers on, when the loop has been compiled. What LuaJIT looks at
-- where is a matter of chance, so that a few copies are tried.
local script = [[
local pg = require "perigee"
local bytecode = require "jit.util".funcbc
local nn = pg.nn
local code = "local call, x = ... for _ = 1, 3000 do call(x):free() end"
local loops = {}

local function operations(fn)
  local list, pc = {}, 1
  while bytecode(fn, pc) do
    list[pc] = bytecode(fn, pc) % 256
    pc = pc + 1
  end
  return list
end

local function compiles(call, x)
  for _ = 1, 10 do
    local loop = loadstring(code)
    loops[#loops + 1] = loop
    local before = operations(loop)
    loop(call, x)
    local after = operations(loop)
    for pc = 1, #after do if after[pc] == before[pc] + 2 then return true end end
    jit.flush()
    jit.opt.start "hotloop=56"
  end
  return false
end

local count = 0
for layers = 2, 6 do
  local list = {}
  for i = 1, layers do list[i] = i % 2 == 0 and nn.LayerNorm { 8 } or nn.Linear { 8, 8 } end
  local model = nn.Sequential(list):eval()
  local function call(v) return model(v) end
  local function without(v) return pg.no_grad(call, v) end
  local calls = { ["without gradients"] = without, ["in a scope"] = function(v) return pg.scope(without, v) end,
                  compiled = pg.compile(without), frozen = pg.compile(call, { frozen = true }) }
  for name, fn in pairs(calls) do
    if compiles(fn, pg.ones { 1, 8 }) then count = count + 1 else print(layers, name, "does not compile") end
  end
end
local on = false
for _, flag in ipairs { jit.status() } do on = on or flag == "loop" end
print("loops that compile: " .. count .. "; loops are optimized: " .. tostring(on))
]]

test("loops over models of a few layers compile", function(t)
  local path = process.file(script)
  local text = process.run(("'%s' '%s'"):format(process.need_perigee(t), path))
  os.remove(path)
  t.equal(text:gsub("%s+$", ""), "loops that compile: 20; loops are optimized: true")
end)
