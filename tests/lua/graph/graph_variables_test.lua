-- SPDX-License-Identifier: Apache-2.0
-- What layers hold is the graph's: variables by path, held by sessions, written back by commit.

local pg = require "perigee"
local nn = pg.nn

local function model()
  local Net = nn.class("Net")
  function Net:init()
    self.blocks = nn.ModuleList { nn.Linear { 3, 4 }, nn.Linear { 4, 2 } }
    self.scale = nn.Parameter(pg.ones { 1 })
    self:buffer("calls", pg.zeros({ 1 }, { dtype = "int64" }))
  end
  function Net:forward(x)
    self.calls:add_(1)
    return self.blocks[2](self.blocks[1](x):relu()) * self.scale
  end
  return Net {}
end

local function names(state)
  local list = {}
  for name in pairs(state) do list[#list + 1] = name end
  table.sort(list)
  return table.concat(list, " ")
end

test("what layers hold are variables by path, with what the layers hold when the session is made", function(t)
  local net, x = model(), pg.rand { 5, 3 }
  local g = pg.graph(function(g) return { y = net(g:placeholder { "x", shape = { "n", 3 } }) } end)
  t.equal(net.calls, { 0 }, "the eager model stays as it is")
  pg.no_grad(function() net.scale:fill_(2) end)
  local s, want = pg.Session { g }, net(x):detach()
  t.equal(names(s:state()), "blocks.0.bias blocks.0.weight blocks.1.bias blocks.1.weight calls scale")
  t.equal(s:run("y", { x = x }), want)
  pg.no_grad(function() net.scale:fill_(3) end)
  t.equal(s:run("y", { x = x }), want, "the session has its own")
  t.equal(s:run("scale"), { 2 })
  t.equal(s:run("y", { x = x, scale = { 4 } }), want * 2, "fed by name")
  t.equal(pg.Session { g }:run("y", { x = x }), net(x):detach(), "another session begins with what is held now")
  local state = s:state()
  state.scale = pg.full({ 1 }, 6)
  s:load_state(state)
  t.equal(s:run("y", { x = x }), want * 3)
  net.scale = nn.Parameter(pg.ones { 1 }) -- the graph goes on with the one that it knows
  t.equal(s:run("scale"), { 6 })
  net:to "float64"
  t.equal(t.raises(function() pg.Session { g } end).message:match("Session: (.*)"),
          "variable 'blocks.0.weight' is float32 [4, 3] in the graph, and the layer holds float64 [4, 3] now")
end)

test("commit writes back into the model's own tensors", function(t)
  local net = model()
  net.blocks[1]:freeze()
  local weight, other = net.blocks[2].weight, model()
  local g = pg.graph(function(g)
    local y = net(g:placeholder { "x", shape = { "n", 3 } })
    return { y = y, train = net.scale:detach():mul_(2) }
  end)
  local s = pg.Session { g }
  s:run "train"
  s:run "train"
  t.equal(net.scale:detach(), { 1 })
  s:commit(net)
  t.equal(net.scale:detach(), { 4 })
  t.ok(net.scale.requires_grad and net.blocks[2].weight == weight and not net.blocks[1].weight.requires_grad)
  t.equal(s:state(net)["scale"], { 4 })
  t.equal(names(s:state(net.blocks[2])), "bias weight")
  t.raises(function() s:commit(other) end, "commit: the graph does not know this Net: it was never called in it")
  t.raises(function() s:commit { 1 } end, "commit: needs a layer, got a table")
  t.raises(function() s:state(3) end, "state")
  s:run "train"
  net.blocks:to "float64"
  t.raises(function() s:commit(net) end,
           "blocks.0.weight is float64 {4, 3} in the model now; the session holds float32")
  t.equal(net.scale:detach(), { 4 }, "nothing was written")
  net:to "float32"
  s:commit(net)
  t.equal(net.scale:detach(), { 8 })
end)

test("a session writes back when it is closed, if it was asked to", function(t)
  local net = model()
  local g = pg.graph(function(g)
    net(g:placeholder { "x", shape = { "n", 3 } })
    return { train = net.scale:detach():mul_(2) }
  end)
  local s = pg.Session { g, commit = net }
  s:run "train"
  t.equal(net.scale:detach(), { 1 })
  s:close()
  s:close()
  t.equal(net.scale:detach(), { 2 })
  for name, call in pairs { run = function() s:run "train" end, state = function() s:state() end,
                            commit = function() s:commit(net) end, load_state = function() s:load_state {} end,
                            placement = function() s:placement() end } do
    t.raises(call, name .. ": the session is closed")
  end
  t.raises(function() pg.Session { g, commit = model() } end, "Session: the graph does not know this Net")
  t.raises(function() pg.Session { g, commit = 3 } end, "Session")
  pg.Session({ g }):close()
end)

test("models of a graph have names of their own, shared tensors one", function(t)
  local a, b, tied = nn.Linear { 2, 2 }, nn.Linear { 2, 2 }, nn.Sequential { nn.Linear { 2, 2 }, nn.Linear { 2, 2 } }
  tied[2].weight = tied[1].weight
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 2 } }
    local y = pg.name_scope("last", function() return nn.Linear { 2, 2 }(x) end)
    return { y = tied(b(a(a(x)))) + y }
  end)
  local s = pg.Session { g }
  t.equal(names(s:state()),
          "0.bias 0.weight 1.bias Linear_1.bias Linear_1.weight bias last/bias last/weight weight")
  s:load_state((function()
    local state = s:state()
    state["Linear_1.bias"] = pg.full({ 2 }, 7)
    state["0.weight"] = pg.full({ 2, 2 }, 8)
    return state
  end)())
  s:commit(b)
  s:commit(tied)
  t.equal(b.bias:detach(), { 7, 7 })
  t.equal(tied[2].weight:detach(), { { 8, 8 }, { 8, 8 } })
  t.ok(tied[2].weight == tied[1].weight)
  t.equal(names(s:state(tied)), "0.bias 0.weight 1.bias 1.weight")
end)

test("views of one tensor are taken in once each, used by turns", function(t)
  local loose = pg.tensor { { 1, 2 }, { 3, 4 } }
  local g = pg.graph(function(g)
    local y = g:placeholder { "x", shape = { 2 } }
    for _ = 1, 3 do y = y * loose[1] + loose[2] end
    return { y = y, whole = loose + 0 }
  end)
  local seen, count = {}, 0
  for name in g:dot():gmatch "captured[_%d]*" do
    if not seen[name] then seen[name], count = true, count + 1 end
  end
  t.equal(count, 3, g:dot())
  t.equal(pg.Session { g }:run("y", { x = pg.tensor { 1, 1 } }), { 10, 36 })
end)

test("a layer is not called in a graph where a view of its weight stands beside the weight", function(t)
  local layer = nn.Linear { 2, 2, bias = false }
  local weight = layer.weight:detach()
  local e = t.raises(function()
    pg.graph(function(g)
      local x = g:placeholder { "x", shape = { "n", 2 } }
      local early = x * weight[1] + weight
      return { y = layer(x) + early }
    end)
  end, "a view of 'weight' was used in the graph before its layer was called")
  t.equal(e.code, "failed_precondition")
end)

test("functions of parameters are recorded; loose tensors are captured", function(t)
  local layer, loose = nn.Linear { 2, 2, bias = false }, pg.ones { 2 }
  local outside = layer.weight:t()
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 2 } }
    local early = x:matmul(layer.weight) -- before the layer is called
    local y = layer(x) + loose
    local penalty = layer.weight:square():sum() + layer.weight[1][2] + outside[2][1]
    return { y = y, early = early, penalty = penalty, weight = layer.weight, again = layer.weight, twin =
             layer.weight:detach() + 0 }
  end)
  local s = pg.Session { g }
  local w = pg.tensor { { 1, 2 }, { 3, 4 } }
  s:load_state { weight = w }
  pg.no_grad(function() loose:fill_(5) end)
  local x = pg.tensor { { 1, 1 } }
  local got = s:run({ "y", "early", "penalty", "weight", "again", "twin" }, { x = x })
  t.equal(got.y, { { 8, 12 } })
  t.equal(got.early, { { 4, 6 } })
  t.equal(got.penalty, 30 + 2 + 2)
  for _, name in ipairs { "weight", "again", "twin" } do t.equal(got[name], w, name) end
  for _, source in ipairs { "weight", layer.weight } do
    t.equal(s:run(g:gradients("penalty", { source })[1], { x = x }), { { 2, 6 }, { 6, 8 } })
  end
  local err = t.raises(function()
    pg.graph(function(h)
      local q = h:placeholder { "x", shape = { "n", 2 } }
      return layer(q:matmul(layer.weight:t()))
    end)
  end)
  t.ok(err.message:find("a view of 'weight' was used in the graph before its layer was called", 1, true), err.message)
  local detached = layer.weight:detach()
  local view = pg.no_grad(function() return detached:view(4) end)
  local got_view
  g = pg.graph(function(h)
    local y = layer(h:placeholder { "x", shape = { "n", 2 } })
    got_view = view:sum()
    return y
  end)
  s = pg.Session { g }
  s:load_state { weight = w }
  t.equal(s:run(got_view), 10)
end)

test("batch norm in training learns its statistics in the session", function(t)
  for _, make in ipairs { function() return nn.BatchNorm1d { 3 } end,
                          function() return nn.BatchNorm1d { 3, activation = "relu" } end,
                          function() return nn.BatchNorm1d {} end,
                          function() return nn.InstanceNorm1d { 3, track_running_stats = true, affine = true } end } do
    local layer = nn.Sequential { make() }:to "float64"
    local eager = layer:clone()
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { "n", 3, 4 }, dtype = "float64" }
      local learnt = layer(x)
      return { y = learnt, eval = (function()
        layer:eval()
        local y = layer(x)
        layer:train()
        return y
      end)() }
    end)
    local s = pg.Session { g }
    for _ = 1, 3 do
      local x = pg.randn({ 8, 3, 4 }, { dtype = "float64" })
      t.equal(s:run("y", { x = x }), eager(x):detach())
    end
    local want = eager:state()
    s:run("eval", { x = pg.randn({ 8, 3, 4 }, { dtype = "float64" }) })
    t.equal(s:run "0.running_mean", want["0.running_mean"])
    t.equal(s:run "0.running_var", want["0.running_var"])
    t.equal(layer[1].running_mean, pg.zeros({ 3 }, { dtype = "float64" }), "the model waits for commit")
    eager:eval()
    local x = pg.randn({ 8, 3, 4 }, { dtype = "float64" })
    s:commit(layer)
    for name, tensor in pairs(layer:state()) do t.equal(tensor, want[name], name) end
    t.equal(layer:eval()(x):detach(), eager(x):detach())
  end
end)
