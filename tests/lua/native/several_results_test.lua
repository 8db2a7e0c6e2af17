-- SPDX-License-Identifier: Apache-2.0
-- Operators of several results take tensors on a way of their own: it gives what the call by name gives, and leaves to
-- the call grammar whatever it does not know.

local pg = require "perigee"
local native = require "perigee.native"

local function same(t, names, f, inputs, by_name)
  local a, b = { f(unpack(inputs, 1, #names)) }, { f(by_name) }
  t.equal(#a, #b)
  for i = 1, #a do t.equal(a[i], b[i]) end
  return a
end

test("tensors by position are what they are by name", function(t)
  local cell, back = native.op "lstm_cell", native.op "lstm_cell_grad"
  local sort = native.op "sort"
  local x, hidden, c, dh = pg.randn { 3, 8 }, pg.randn { 3, 8 }, pg.randn { 3, 2 }, pg.randn { 3, 2 }
  for _ = 1, 100 do -- interpreted, then compiled
    local h = same(t, { "x", "hidden", "c" }, cell, { x, hidden, c }, { x = x, hidden = hidden, c = c })
    t.equal(#h, 3)
    local gates = h[3]
    same(t, { "dh", "dnext", "gates", "c" }, back, { dh, c, gates, c }, { dh = dh, dnext = c, gates = gates, c = c })
    same(t, { "dh", "dnext", "gates", "c" }, back, { nil, c, gates, c }, { dnext = c, gates = gates, c = c })
    same(t, { "dh", "dnext", "gates", "c" }, back, { dh, nil, gates, c }, { dh = dh, gates = gates, c = c })
    same(t, { "x" }, sort, { x }, { x = x })
    t.equal((sort(x, 1)), (sort { x = x, axis = 1 }))
    t.equal((sort(x, { descending = true })), (sort { x = x, descending = true }))
  end
  local values, places = sort(pg.zeros { 0 })
  t.ok(values:has_shape { 0 } and places:has_shape { 0 })
end)

test("what does not fit is said as ever", function(t)
  local cell = native.op "lstm_cell"
  local x, c, closed = pg.randn { 3, 8 }, pg.randn { 3, 2 }, pg.randn { 3, 8 }
  closed:free()
  local function says(fn, text)
    local message = t.raises(fn).message
    t.ok(message:find(text, 1, true), message)
  end
  for _ = 1, 100 do
    says(function() cell(x, x) end, "argument \"c\" is missing")
    says(function() cell(x, 2, c) end, "hidden must be a tensor, got number 2")
    says(function() cell(x, closed, c) end, "this tensor was closed by t:free()")
    says(function() cell(x, x, c, c) end, "lstm_cell")
    says(function() cell(x, c, c) end, "lstm_cell")
    says(function() pg.stack { pg.randn({ 4 }):sort() } end, "they are the two results of one sort") -- lint: ignore
  end
end)
