-- SPDX-License-Identifier: Apache-2.0
-- A graph network (Kipf, Welling 2016): people know each other mostly within their own group, four in a hundred have
-- said which group that is, and each has told a few uncertain things. Who belongs where? Edges are two lists of
-- numbers; messages along them are gathered and added up, nothing is as large as people times people.
--   perigee examples/16_graph_network.lua [--short] [--device cpu] [--steps 150] [--seed 1]

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", steps = 150, seed = 1 }, { steps = 25 })
local PEOPLE, GROUPS, TOLD, FRIENDS = 2000, 5, 16, 8

pg.manual_seed(options.seed)

-- ---- who knows whom ----

local group = pg.randint(0, GROUPS, { PEOPLE })

-- Pairs are drawn, and kept more often where both are of one group.
local function draw_edges()
  local a = pg.randint(0, PEOPLE, { PEOPLE * FRIENDS * 2 })
  local b = pg.randint(0, PEOPLE, { PEOPLE * FRIENDS * 2 })
  local same = group[a]:eq(group[b])
  local kept = pg.rand(#a):lt(pg.where(same, 0.9, 0.05)):logical_and(a:ne(b))
  return a[kept], b[kept]
end
local from, to = draw_edges()
-- Knowing goes both ways, and everyone knows himself.
local everyone = pg.arange(PEOPLE)
local edges = {
  from = pg.cat({ from, to, everyone }):to(options.device), to = pg.cat({ to, from, everyone }):to(options.device),
}

-- What each has told: his group's leaning under a lot of noise.
local leaning = pg.randn(GROUPS, TOLD)
local told = (0.35 * leaning[group] + pg.randn(PEOPLE, TOLD)):to(options.device)
local order = pg.randperm(PEOPLE)
local known = order[{ { 1, PEOPLE / 25 } }]:to(options.device)
local asked = order[{ { PEOPLE / 25 + 1, -1 } }]:to(options.device)
local label = group:to(options.device)

-- ---- the layers ----

-- y[v] = sum over edges u -> v of W x[u] / sqrt(degree u * degree v)
local GraphConv = nn.class "GraphConv"
function GraphConv:init(o) self.linear = nn.Linear { o.inputs, o.outputs } end
function GraphConv:forward(x, graph)
  local messages = self.linear(x)[graph.from] * graph.weight
  return pg.zeros_like(messages[{ { 1, #x } }]):index_add(graph.to, messages, 1)
end

local ones = pg.ones { #edges.from, device = options.device }
local degree = pg.zeros { PEOPLE, device = options.device }:index_add(edges.to, ones, 1)
edges.weight = (degree[edges.from] * degree[edges.to]):rsqrt():unsqueeze(2)

local GraphNet = nn.class "GraphNet"
function GraphNet:init(o)
  self.first = GraphConv { inputs = TOLD, outputs = o.width }
  self.second = GraphConv { inputs = o.width, outputs = GROUPS }
  self.dropout = nn.Dropout { 0.5 }
end
function GraphNet:forward(x, graph)
  return self.second(self.dropout(self.first(x, graph):relu()), graph)
end

-- ---- learnt from those who said it ----

-- `call` is the model with all that it looks at.
local function learn(model, call)
  local optimizer = optim.Adam { model:parameters(), lr = 0.02, weight_decay = 5e-3 }
  for _ = 1, options.steps do
    optimizer:zero_grad()
    nn.cross_entropy(call()[known], label[known]):backward()
    optimizer:step()
  end
  model:eval()
  local guess = pg.no_grad(call):argmax(-1)
  return guess[asked]:eq(label[asked]):to("float32"):mean():item()
end

print(("%d people in %d groups, %d edges, %d have said where they belong"):format(PEOPLE, GROUPS, #edges.from, #known))
local started = os.clock()
local net = GraphNet { width = 32 }:to(options.device)
local with_edges = learn(net, function() return net(told, edges) end)
local alone = nn.Sequential { nn.Linear { TOLD, 32 }, nn.ReLU {}, nn.Dropout { 0.5 }, nn.Linear { 32, GROUPS } }
alone:to(options.device)
local without = learn(alone, function() return alone(told) end)
print(("right about the others: %.1f %% by what they told alone, %.1f %% by whom they know as well (%.0f s)"):format(
      100 * without, 100 * with_edges, os.clock() - started))
if with_edges < (options.is_short and 0.5 or 0.85) or with_edges < without + 0.1 then
  error("the network has learnt too little from the edges", 0)
end
