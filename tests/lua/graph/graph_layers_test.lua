-- SPDX-License-Identifier: Apache-2.0
-- Layers in graphs: what they hold is made once, whether they are made inside of the graph's function or outside.

local pg = require "perigee"
local nn = pg.nn

-- Runs the graph of fn(x) twice with an input; answers both results.
local function twice(fn, x)
  local shape = { "n" }
  for axis = 2, x:dim() do shape[axis] = x:size(axis) end
  local s = pg.Session { pg.graph(function(g) return fn(g:placeholder { "x", shape = shape }) end) }
  return s:run("output", { x = x }), s:run("output", { x = x })
end

test("layers that are made inside of a graph draw their weights once", function(t)
  local layers = {
    linear = function() return nn.Linear { 3, 4 } end, lazy = function() return nn.Linear { 4 } end,
    bound = function() return nn.Sequential { nn.Linear { 3, 4 }, nn.ReLU {}, nn.Linear { 2 } } end,
    norm = function() return nn.LayerNorm { 3 } end,
  }
  local Own = nn.class("Own")
  function Own:init() self.w, self.offset = nn.Parameter(pg.randn { 3 }), self:buffer("offset", pg.rand { 3 }) end
  function Own:forward(x) return x * self.w + self.offset end
  layers.own = function() return Own {} end
  local x = pg.rand { 5, 3 }
  for name, make in pairs(layers) do
    local layer
    local first, second = twice(function(input)
      layer = make()
      return layer(input)
    end, x)
    t.equal(first, second, name)
    t.equal(first, layer(x):detach(), name .. ": the layer outside of the graph is the same one")
    for _, p in ipairs(layer:parameters()) do t.ok(p:totable(), name .. " holds tensors with contents") end
  end
end)

test("lazy layers get their sizes from a graph's input", function(t)
  local layer, x = nn.Linear { 4 }, pg.rand { 2, 3 }
  local first, second = twice(function(input) return layer(input) end, x)
  t.equal(first, second)
  t.equal(first, layer(x):detach())
  t.equal(layer.weight.shape, { 4, 3 })
end)

test("an error inside of a layer's init leaves the recording as it was", function(t)
  local Bad = nn.class("Bad")
  function Bad:init() error("of the script") end
  pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 } }
    t.raises(function() Bad {} end, "of the script")
    local y = x + pg.ones { 2 }
    t.ok(g:text():find("fill(shape={2}", 1, true), "recording goes on")
    return y
  end)
end)
