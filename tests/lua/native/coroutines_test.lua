-- SPDX-License-Identifier: Apache-2.0
-- Scopes ask which coroutine runs only where there may be one: what makes one is noted.

local tests = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local process = require "process"

-- What a fresh process says of a script's text, as its only output.
local function said(t, text)
  local perigee = process.need_perigee(t)
  local path = process.file('local coroutines = require "perigee.native.coroutines"\n' .. text)
  local out, status = process.run(perigee .. " " .. path)
  os.remove(path)
  t.equal(status, 0, out)
  return (out:gsub("%s+$", ""))
end

test("a script that makes no coroutine has none", function(t)
  t.equal(said(t, [[
    local pg = require "perigee"
    pg.scope(function() return pg.no_grad(function() return pg.ones { 2 } + 1 end) end)
    print(coroutines.possible)
  ]]), "false")
end)

for name, text in pairs {
  ["coroutine.create"] = "coroutine.create(print)",
  ["coroutine.wrap"] = "coroutine.wrap(print)",
  ["a function that was taken from the table"] = "local create = coroutine.create create(print)",
  ["a module of C"] = "package.loadlib('/nowhere.so', 'luaopen_nowhere')",
} do
  test("coroutines are possible after " .. name, function(t)
    t.equal(said(t, text .. "\nprint(coroutines.possible)"), "true")
  end)
end

test("what makes coroutines says what it does without being watched", function(t)
  t.equal(said(t, [[
    local ok, err = pcall(function() coroutine.create(5) end)
    print(ok, err:match "bad argument #1 to 'create' %(function expected, got number%)")
  ]]), "false\tbad argument #1 to 'create' (function expected, got number)")
  t.equal(said(t, "print(coroutine.wrap(function(...) return coroutine.yield(...) end)(1, nil))"), "1\tnil")
end)

test("scopes are left and entered again by coroutines that a script makes late", function(t)
  t.equal(said(t, [[
    local pg = require "perigee"
    local made = {}
    local function inside()
      made[1] = pg.ones { 2 }
      coroutine.yield(pg.is_grad_enabled())
      made[2] = pg.ones { 2 }
      return pg.is_grad_enabled()
    end
    for _ = 1, 200 do pg.no_grad(function() end) end
    local resume = coroutine.wrap(function() return pg.scope(pg.no_grad, inside) end)
    local first = resume()
    local between, outside = pg.is_grad_enabled(), pg.ones { 2 }
    local last = resume()
    print(first, between, last, tostring(made[1]), tostring(made[2]), tostring(outside):match "1")
  ]]), "false\ttrue\tfalse\t<closed tensor>\t<closed tensor>\t1")
end)

test("workers watch too", function(t)
  t.equal(said(t, [[
    local pg = require "perigee"
    local function tell(sample)
      return { x = require("perigee.native.coroutines").possible and 1 or 0, y = sample }
    end
    for _, batch in pg.data.range(2):map { tell, workers = 1 }:batch(2):each() do print(batch.x:sum():item()) end
  ]]), "0")
end)
