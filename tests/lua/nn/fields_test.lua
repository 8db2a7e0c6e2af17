-- SPDX-License-Identifier: Apache-2.0
-- What may be assigned to a layer's fields: parameters and buffers stay what they are.

local pg = require "perigee"
local nn = pg.nn

test("a parameter gives way to a parameter, a layer or nil only", function(t)
  local l = nn.Linear { 2, 3 }
  local before = l.weight
  local hint = " (nn.Parameter(t) makes a new one; pg.no_grad(function() layer.weight:copy_(t) end) writes into it)"
  local err = t.raises(function() l.weight = pg.ones { 3, 2 } end)
  t.ok(err:find("Linear: weight is a parameter and cannot become tensor float32 {3, 2}" .. hint, 1, true), err.message)
  t.raises(function() l.weight = 3 end, "weight is a parameter and cannot become number 3")
  t.raises(function() l.weight = {} end, "cannot become a table")
  t.ok(l.weight == before)
  t.equal(#l:parameters(), 2)
  l.weight = nn.Parameter(pg.ones { 3, 2 })
  l.bias = nil
  t.equal(l(pg.ones { 1, 2 }), { { 2, 2, 2 } })
  t.equal(#l:parameters(), 1)
  t.raises(function() l.bias = pg.ones { 3 } end, "bias is a parameter and cannot become tensor")
  l.bias = nn.Parameter(pg.ones { 3 })
  t.equal(l(pg.ones { 1, 2 }), { { 3, 3, 3 } })
  t.raises(function() nn.Linear { 2, 3, bias = false }.bias = pg.ones { 3 } end, "bias is a parameter")
  l.weight = nn.Identity {}
  t.equal(#l:parameters(), 1)
  t.equal(#l:children(), 1)
end)

test("layers of a script keep their parameters too", function(t)
  local Net = nn.class("Net")
  function Net:init()
    self.scale = nn.Parameter(pg.ones { 2 })
    self.note = pg.zeros { 1 }
    self:buffer("seen", pg.zeros { 2 })
  end
  function Net:forward(x) return x * self.scale + self.seen end
  local net = Net()
  t.raises(function() net.scale = net.scale * 2 end, "Net: scale is a parameter and cannot become tensor")
  net.note = pg.ones { 3 }
  net.note = 3
  net.seen = pg.ones { 2 }
  t.equal(net(pg.ones { 2 }), { 2, 2 })
  t.equal(net:state().seen, { 1, 1 })
  t.raises(function() net.seen = 3 end,
           "Net: seen is a buffer and cannot become number 3 %(a buffer may become another")
  net.seen = nil
  t.equal(net:state().seen, nil)
  net.seen = pg.zeros { 2 }
  t.equal(net:state().seen, { 0, 0 })
  t.raises(function() net:buffer("scale", pg.ones { 2 }) end, "buffer: scale is a parameter already")
  net:buffer("note", pg.ones { 1 })
  t.equal(net:state().note, { 1 })
  local copy = net:clone()
  t.raises(function() copy.scale = pg.ones { 2 } end, "scale is a parameter")
  t.ok(copy.scale ~= net.scale and copy.seen ~= net.seen)
  local lines = {}
  for name in copy:named_parameters() do lines[#lines + 1] = name end
  for name in copy:named_buffers() do lines[#lines + 1] = name end
  t.equal(table.concat(lines, " "), "scale note seen")
end)

test("names have no dots and are not empty", function(t)
  local layer = nn.Identity {}
  t.raises(function() layer["a.b"] = nn.ReLU {} end, 'Identity: the name "a%.b" must not contain a dot')
  t.raises(function() layer["a.b"] = nn.Parameter(pg.ones { 1 }) end, "must not contain a dot")
  t.raises(function() layer[""] = nn.ReLU {} end, "Identity: a name must not be empty")
  t.raises(function() layer["a.b"] = { nn.ReLU {} } end, "must not contain a dot")
  t.raises(function() layer:buffer("a.b", pg.ones { 1 }) end, 'buffer: the name "a%.b" must not contain a dot')
  t.raises(function() layer:buffer("", pg.ones { 1 }) end, "buffer: a name must not be empty")
  layer["a.b"] = 3 -- no tensor's name
  t.equal(layer["a.b"], 3)
end)
