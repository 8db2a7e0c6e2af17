-- SPDX-License-Identifier: Apache-2.0
-- Numbers that a double cannot say: LuaJIT's whole ones (5LL) stay whole in int64, eagerly, in graphs and in their
-- files, on every device.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/native/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local files = require "graph_files"

local ODD = 9007199254740993LL -- 2^53 + 1, which no double holds
local EVEN = 9007199254740992  -- 2^53

-- What is left of a tensor of int64 beyond 2^53.
local function rest(t) return (t - EVEN):to("cpu"):item() end

for _, device in ipairs { "cpu", "sim:0" } do
  test("a whole number fills int64 exactly on " .. device, function(t)
    pg.device(device, function()
      t.equal(rest(pg.full({ 1 }, ODD, { dtype = "int64" })), 1)
      t.equal(rest(-pg.full({ 1 }, -ODD, { dtype = "int64" })), 1)
      t.equal(rest(pg.full({ 1 }, 9007199254740993ULL, { dtype = "int64" })), 1)
      local x = pg.zeros { 2, 3, dtype = "int64" }
      t.equal(rest(x:fill_(ODD):max()), 1)
      t.equal(rest(x:t():fill_(ODD + 2):min()), 3)
      t.equal(rest(x:fill_(EVEN + 2):max()), 2) -- a double's after a whole one
      t.equal(pg.full({ 1 }, 7LL, { dtype = "float32" }):item(), 7)
      t.equal(pg.full({ 1 }, 3LL, { dtype = "bool" }):item(), true)
      t.equal(pg.full({ 1 }, -1LL, { dtype = "int8" }):item(), -1)
    end)
  end)

  test("a whole number is an exact operand of int64 on " .. device, function(t)
    pg.device(device, function()
      local x, zero = pg.full({ 2 }, ODD, { dtype = "int64" }), pg.zeros { 2, dtype = "int64" }
      t.equal(rest((zero + ODD):max()), 1)
      t.equal(rest((ODD + zero):max()), 1)
      t.equal(rest(zero:add(ODD):max()), 1)
      t.equal(x:eq(ODD):to("cpu"), { true, true })
      t.equal(x:eq(EVEN):to("cpu"), { false, false })
      t.equal(x:gt(EVEN):to("cpu"), { true, true })
      t.equal(rest(pg.where(zero:eq(0), x, 0LL):max()), 1)
      t.equal(rest(pg.where(zero:eq(0), ODD, zero):max()), 1)
      t.equal((zero + 5LL).dtype, "int64")
      t.equal((pg.ones { 2 } + 5LL):sum():item(), 12)
      t.equal(rest(zero:clone():add_(ODD):max()), 1)
    end)
  end)
end

test("what int64 does not hold, or another dtype, is refused", function(t)
  t.raises(function() return pg.full({ 1 }, 2 ^ 63 * 1ULL, { dtype = "int64" }) end, "value must be")
  t.raises(function() return pg.full({ 1 }, 300LL, { dtype = "uint8" }) end, "uint8 cannot hold")
  t.raises(function() return pg.zeros({ 1 }, { dtype = "int8" }):fill_(-200LL) end, "int8 cannot hold")
  t.raises(function() return pg.full({ 1 }, 2i) end, "value must be")
end)

test("graphs and their files keep whole numbers whole", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 }, dtype = "int64" }
    return { sum = x + ODD, made = pg.full({ 2 }, ODD, { dtype = "int64" }) + x, plain = x * 3 }
  end)
  local function check(graph)
    local r = pg.Session { graph }:run({ "sum", "made", "plain" }, { x = pg.zeros { 2, dtype = "int64" } })
    t.equal(rest(r.sum:max()), 1)
    t.equal(rest(r.made:max()), 1)
    t.equal(r.plain:max():item(), 0)
  end
  check(g)
  files.with_path(function(path)
    pg.save(path, pg.Session { g })
    check(pg.load_graph(path))
  end)
  t.ok(g:text():find("9007199254740993", 1, true), g:text())
end)
