-- SPDX-License-Identifier: Apache-2.0
-- Errors: their form, their line, and what bad input gets. The process stays usable after each.

local pg = require "perigee"

test("an error is a table that acts like a string", function(t)
  local ok, err = pcall(function() return pg.zeros { -1 } end)
  t.ok(not ok)
  t.equal(err.code, "invalid_argument")
  t.ok(err.message:find("^tests?.*errors_test%.lua:%d+: zeros: ") or err.message:find("errors_test%.lua:%d+: zeros: "))
  t.equal(tostring(err), err.message)
  t.equal(err .. "!", err.message .. "!")
  t.ok(err:find("negative") and err:match("size (%S+)") == "-1" and err:sub(1, 3) == err.message:sub(1, 3))
  t.ok(err:lower() and err:gsub("zeros", "") ~= err.message)
  t.ok(type(err.traceback) == "string")
end)

test("the line is the script's", function(t)
  local function inner(x) local y = x:softmax(7); return y end
  local line = debug.getinfo(inner, "S").linedefined
  local err = t.raises(function() inner(pg.zeros { 2, 3 }) end, "softmax: axis 7")
  t.ok(err:find("errors_test.lua:" .. line .. ": softmax", 1, true), err.message)
  t.ok(err:find("expected 1..2 or -2..-1", 1, true), err.message)
end)

test("a forward that has left the stack with its last call is told by its lines", function(t)
  local Tail = pg.nn.class("Tail")
  function Tail:forward(x)
    return x:softmax(7)
  end
  local info = debug.getinfo(Tail.forward, "S")
  local err = t.raises(function() pg.nn.Sequential { Tail {} }(pg.zeros { 2, 3 }) end, "softmax: axis 7")
  t.ok(err:find(("errors_test.lua:%d-%d: Sequential.0 (Tail): softmax"):format(info.linedefined, info.lastlinedefined),
                1, true), err.message)
end)

test("call grammar errors", function(t)
  t.raises(function() pg.zeros { 2, dtpye = "int64" } end, "unknown option \"dtpye\".*did you mean \"dtype\"")
  t.raises(function() pg.zeros { 2, dtype = "flota32" } end, "did you mean \"float32\"")
  t.raises(function() pg.zeros { 2, nil, 3 } end, "hole")
  t.raises(function() pg.zeros(2, "int64") end)
  t.raises(function() pg.zeros() end, "missing")
  t.raises(function() pg.zeros { 2.5 } end, "whole")
  local x = pg.zeros { 2, 3 }
  t.raises(function() x:sum { dim = 0 } end, "dim=0 is axis=1")
  t.raises(function() x:sum { axis = 0 } end, "count from 1")
  t.raises(function() x:sum(3) end, "axis 3 is out of range.*1%.%.2")
  t.raises(function() x:sum { axis = 1, keepdims = true } end, "did you mean \"keepdim\"")
  t.raises(function() x:sum { 1, axis = 1 } end, "given twice")
  t.raises(function() x:relu(1) end, "too many")
  t.raises(function() pg.relu() end, "missing")
  t.raises(function() pg.relu("a") end, "must be a tensor")
  t.raises(function() return x + "a" end, "tensor or a number")
  t.raises(function() return x + {} end)
  t.raises(function() pg.add(1, 2) end, "only one")
  t.raises(function() x:reshape(4, 4) end)
  t.raises(function() return x + pg.zeros { 5 } end)
end)

test("fields", function(t)
  local x = pg.zeros { 2 }
  t.raises(function() return x.shpae end, "no field or method \"shpae\".*did you mean \"shape\"")
  t.raises(function() x.foo = 1 end, "foo")
  t.raises(function() x.shape = { 1 } end, "shape")
  t.raises(function() return pg.zeroes end, "did you mean \"zeros\"")
  t.raises(function() pairs(x) end)
  t.raises(function() x.requires_grad = 1 end, "true or false")
end)

test("what Lua hands to C is never a closed tensor or none at all", function(t)
  local native = require "perigee.native"
  local closed = pg.zeros { 2 }
  closed:free()
  local functions = {
    native.tensor.rank, native.tensor.dtype, native.tensor.strides, native.detach, native.host.numel, native.host.bytes,
    native.identity, native.storage, native.version_of, native.is_graph_tensor, native.autocast_dtype,
    native.backward_plain, native.handles.share,
    function(x) return native.tensor.size(x, 1) end, function(x) return native.tensor.axis_of("x", x, 1) end,
    function(x) return native.set_grad(pg.zeros { 2 }, x) end, function(x) return native.call("neg", { x }) end,
  }
  for _, f in ipairs(functions) do
    t.raises(function() f(closed) end, "this tensor was closed by t:free")
    t.raises(function() f({}) end, "tensor, got a table")
    t.raises(function() f("a") end, 'tensor, got string "a"')
  end
end)

test("data", function(t)
  t.raises(function() pg.tensor { { 1, 2 }, { 3 } } end, "ragged.*%[2%]")
  t.raises(function() pg.tensor { 1, { 2 } } end, "data%[2%]")
  t.raises(function() pg.tensor { { 1 }, 2 } end, "ragged.*%[2%]")
  t.raises(function() pg.tensor { 1, "a" } end, "data%[2%].*string")
  t.raises(function() pg.tensor { 1, true } end, "mixed")
  t.raises(function() pg.tensor { 1, nil, 3 } end, "hole")
  t.raises(function() pg.tensor() end, "missing")
  t.raises(function() pg.tensor({ 1.5 }, { dtype = "int64" }) end, "int64 cannot hold")
  t.raises(function() pg.tensor { pg.zeros { 1 } } end, "pg.stack")
end)

test("sizes that overflow", function(t)
  t.raises(function() pg.zeros { 2 ^ 40, 2 ^ 40 } end)
  t.raises(function() pg.zeros { 1e300 } end)
  t.equal(pg.zeros { 1 }, { 0 })
end)

test("gradient errors", function(t)
  local w = pg.tensor({ 1, 2 }, { requires_grad = true })
  local loss = (w * w):sum()
  loss:backward()
  t.raises(function() loss:backward() end)
  t.raises(function() (w * w):backward() end)
  t.raises(function() pg.zeros { 1 }:backward() end)
  t.raises(function() pg.zeros { 1, dtype = "int64" }.requires_grad = true end)
  local y = w * 2
  local z = y * y
  y:add_(1)
  t.raises(function() z:sum():backward() end)
end)

test("scopes rethrow foreign errors unchanged", function(t)
  local mine = {}
  local ok, err = pcall(pg.no_grad, function() error(mine) end)
  t.ok(not ok and rawequal(err, mine))
  t.ok(pg.is_grad_enabled())
  ok, err = pcall(pg.scope, function() error("plain", 0) end)
  t.ok(not ok and err == "plain")
end)

test("devices", function(t)
  t.raises(function() pg.zeros { 2, device = "quantum:0" } end, "quantum")
  t.raises(function() pg.device("cpu:99", function() end) end, "99")
  t.raises(function() pg.zeros { 2 }:to("flaot32") end)
  t.ok(#pg.devices() >= 1)
  t.equal(pg.zeros { 2, device = "/cpu:0" }.device, "cpu")
end)

test("a layer's misspelt method is suggested where Lua's own message ends the script", function(t)
  local report = require "perigee.printing.report"
  local model = pg.nn.Linear { 2, 2 }
  local _, err = pcall(function() model:forwardd(pg.ones { 1, 2 }) end)
  t.ok(report(err):find("'forwardd' (a nil value) (a layer has \"forward\": did you mean that?)", 1, true), report(err))
  _, err = pcall(function() model:xyzzy() end)
  t.ok(not report(err):find("did you mean", 1, true))
end)
