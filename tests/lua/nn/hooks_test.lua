-- SPDX-License-Identifier: Apache-2.0
-- layer:hook(event, fn): forward_pre, backward_pre and backward. What "forward" does stands in nn_test.lua.

local pg = require "perigee"
local nn = pg.nn

local function f64(list) return pg.tensor(list, { dtype = "float64", requires_grad = true }) end

-- fn raises, and the message holds every text.
local function raises(t, fn, ...)
  local err = t.raises(fn)
  for _, text in ipairs { ... } do
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, tostring(err)))
  end
end

local function linear(weight)
  local layer = nn.Linear { #weight[1], #weight, bias = false }:to("float64")
  pg.no_grad(function() layer.weight:copy_(pg.tensor(weight, { dtype = "float64" })) end)
  return layer
end

-- What a list of gradients shows: its values, false where there is none.
local function shown(list)
  local values = {}
  for i = 1, list.n do values[i] = list[i] and list[i]:totable() or false end
  return values
end

local Pair = nn.class("Pair")
function Pair:forward(a, factor, b) return a * factor, a * b, "done" end -- luacheck: ignore self

test("forward_pre: sees the inputs, and replaces them", function(t)
  local layer, seen = linear { { 2 } }, {}
  local handle = layer:hook("forward_pre", function(l, inputs)
    seen[#seen + 1] = { l == layer, inputs.n, inputs[1]:item() }
    return inputs[1] * 10
  end)
  layer:hook("forward_pre", function(_, inputs) seen[#seen + 1] = inputs[1]:item() end)
  t.equal(layer(f64 { 3 }):item(), 60)
  t.equal(seen, { { true, 1, 3 }, 30 })
  handle:remove()
  t.equal(layer(f64 { 3 }):item(), 6)
  local pair = Pair()
  pair:hook("forward_pre", function(_, inputs) return nil, inputs[2] + 1 end)
  t.equal((pair(f64 { 3 }, 4, f64 { 1 })):item(), 15)
end)

test("backward: gradients of inputs and outputs, once a pass, and what it returns flows on", function(t)
  local layer, calls = linear { { 2, 3 } }, {}
  local handle = layer:hook("backward", function(l, grad_inputs, grad_outputs)
    calls[#calls + 1] = { l == layer, shown(grad_inputs), shown(grad_outputs) }
    return grad_inputs[1] * 10
  end)
  local x = f64 { { 1, 1 } }
  local y = layer(x * 1)
  t.equal(y:item(), 5);
  (y * 4):sum():backward { retain_graph = true }
  t.equal(calls, { { true, { { { 8, 12 } } }, { { { 4 } } } } })
  t.equal(x.grad:totable(), { { 80, 120 } })
  t.equal(layer.weight.grad:totable(), { { 4, 4 } }); -- its own parameters are not behind the hook
  (y * 4):sum():backward { retain_graph = true }
  t.equal(#calls, 2)
  handle:remove(); -- between forward and backward
  (y * 4):sum():backward()
  t.equal({ #calls, x.grad:totable() }, { 2, { { 168, 252 } } })
end)

test("backward_pre: comes first and changes what enters the layer; several hooks hand on what they made", function(t)
  local layer, order = linear { { 2 } }, {}
  layer:hook("backward", function(_, grad_inputs, grad_outputs)
    order[#order + 1] = { "backward", shown(grad_inputs), shown(grad_outputs) }
    return { grad_inputs[1] + 1 } -- a list, too
  end)
  layer:hook("backward", function(_, grad_inputs) order[#order + 1] = { "second", shown(grad_inputs) } end)
  layer:hook("backward_pre", function(_, grad_outputs)
    order[#order + 1] = { "pre", shown(grad_outputs) }
    return grad_outputs[1] * 10
  end)
  local x = f64 { 3 }
  layer(x):backward()
  t.equal(order, { { "pre", { { 1 } } }, { "backward", { { 20 } }, { { 10 } } }, { "second", { { 21 } } } })
  t.equal({ x.grad:item(), layer.weight.grad:item() }, { 21, 30 })
end)

test("backward: several inputs and outputs, nil where there is no gradient", function(t)
  local pair, calls = Pair(), {}
  pair:hook("backward", function(_, grad_inputs, grad_outputs)
    calls[#calls + 1] = { shown(grad_inputs), shown(grad_outputs) }
    return nil, nil, grad_inputs[3] and grad_inputs[3] * 100
  end)
  local a, b = f64 { 2 }, f64 { 5 }
  local first, second, third = pair(a, 10, b)
  t.equal(third, "done");
  (first + second):sum():backward()
  t.equal(calls, { { { { 15 }, false, { 2 } }, { { 1 }, { 1 }, false } } })
  t.equal({ a.grad:item(), b.grad:item() }, { 15, 200 })
  calls = {}
  local only = pair(a, 10, b)
  only:backward()
  t.equal(calls, { { { { 10 }, false, false }, { { 1 }, false, false } } })
  calls = {}
  local _, product = pair(a:detach(), 10, b)
  product:backward()
  t.equal(calls, { { { false, false, { 2 } }, { false, { 1 }, false } } })
end)

test("backward: where no input needs a gradient it is called at the outputs", function(t)
  local layer, seen = linear { { 2 } }, nil
  local handle = layer:hook("backward", function(_, grad_inputs, grad_outputs)
    seen = { shown(grad_inputs), shown(grad_outputs) }
  end)
  layer(f64 { 3 }:detach()):backward()
  t.equal(seen, { { false }, { { 1 } } })
  t.equal(layer.weight.grad:item(), 3)
  handle:remove()
  layer:hook("backward", function(_, _, grad_outputs) return grad_outputs[1] end)
  raises(t, function() layer(f64 { 3 }:detach()):backward() end, "Linear: the backward hook set at ",
           "a gradient at place 1, where there is none")
end)

test("backward: each call of a shared layer for itself, in nested layers innermost first", function(t)
  local inner, order = linear { { 2 } }, {}
  local outer = nn.Sequential { inner, inner }
  inner:hook("backward", function(_, gi) order[#order + 1] = { "inner", gi[1]:item() } end)
  outer:hook("backward", function(_, gi) order[#order + 1] = { "outer", gi[1]:item() } end)
  local x = f64 { 1 }
  outer(x):backward()
  t.equal(order, { { "inner", 2 }, { "inner", 4 }, { "outer", 4 } })
end)

test("backward: pg.grad, create_graph, recompute, no_grad", function(t)
  local layer, calls = linear { { 3 } }, 0
  layer:hook("backward", function(_, gi)
    calls = calls + 1
    return gi[1] * 2
  end)
  local x = f64 { 2 }
  local g = pg.grad(layer(x):pow(3):sum(), x, { create_graph = true }) -- 2 * 3 (3 x)^2 * 3
  t.equal({ g:item(), calls }, { 648, 1 })
  t.equal(pg.grad(g:sum(), x):item(), 1296) -- of 162 x^2, through the hook's place once more
  calls = 0
  pg.grad(layer(x):sum(), layer.weight) -- no gradient leaves the layer at its input
  t.equal(calls, 0)
  local y = pg.recompute(function(a) return layer(a) end, x)
  y:sum():backward()
  t.equal({ x.grad:item(), calls }, { 6, 1 })
  t.equal(pg.no_grad(function() return layer(x) end).requires_grad, false)
end)

test("backward hooks in a graph record into its gradients", function(t)
  local layer = linear { { 2 } }
  layer:hook("backward", function(_, gi) return gi[1] * 10 end)
  layer:hook("backward_pre", function(_, go) return go[1] + 1 end)
  local g = pg.graph(function(g)
    local w = g:variable { "w", shape = { 1 }, dtype = "float64", init = "ones" }
    return { loss = layer(w):sum() }
  end)
  local dw = g:gradients("loss", { "w" })[1]
  t.equal(pg.Session { g }:run(dw):item(), 40)
end)

test("backward: errors, and what is dropped is gone", function(t)
  local layer, x = linear { { 2, 1 } }, f64 { { 1, 2 } }
  local function with(event, fn)
    return function()
      local handle = layer:hook(event, fn)
      local ok, err = pcall(function() layer(x):sum():backward() end)
      handle:remove()
      if not ok then error(err, 0) end
    end
  end
  raises(t, with("backward", function() return pg.zeros { 3 } end), "hooks_test.lua:",
           "Linear: the backward hook set at ",
           ("returned float32 {3} on %s at place 1; expected float64 {1, 2} on %s"):format(
             pg.device(), pg.device()))
  raises(t, with("backward", function(_, gi) return gi[1], gi[1] end), "at place 2, where there is none")
  raises(t, with("backward_pre", function() return 1 end), "the backward_pre hook",
           "returned number 1 at place 1; expected a tensor or nil")
  raises(t, with("backward", function() error("mine") end), "hooks_test.lua:", "mine")
  t.equal(x.grad, nil)
  raises(t, function() layer:hook("backwards", print) end, 'unknown event "backwards" (did you mean "backward"?')
  raises(t, function() layer:hook("forward") end, "fn")
  local Writer = nn.class("Writer")
  function Writer:forward(a) return a:mul_(2) end -- luacheck: ignore self
  local writer = Writer()
  writer:hook("backward", function() end)
  raises(t, function() writer(x * 1) end, "Writer: its forward wrote into input 1")
  local native = require "perigee.native"
  native.handles.reclaim()
  local before = native.custom.alive()
  layer:hook("backward", function() end)
  for i = 1, 50 do
    local y = layer(x * 1)
    if i % 2 == 0 then y:sum():backward() end
  end
  native.handles.reclaim()
  t.equal(native.custom.alive() - before, 0)
end)

test("hooks: one that takes itself away leaves the others their turn; clones have none", function(t)
  local layer, seen = linear { { 2 } }, {}
  local own
  own = layer:hook("forward", function()
    seen[#seen + 1] = "once"
    own:remove()
  end)
  layer:hook("forward", function() seen[#seen + 1] = "always" end)
  layer(f64 { 1 })
  layer(f64 { 1 })
  t.equal(seen, { "once", "always", "always" })
  layer:clone()(f64 { 1 })
  t.equal(#seen, 3)
end)
