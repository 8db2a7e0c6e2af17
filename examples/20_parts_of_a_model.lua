-- SPDX-License-Identifier: Apache-2.0
-- A transformer sorts numbers: its halves are stages of a pipeline, and its blocks are cut into parts of layers. With
-- one process it is the plain model, and the losses are the same but for rounding.
--   perigee examples/20_parts_of_a_model.lua [--short] [--steps 200] [--batch 64] [--seed 1]
--   perigee launch -n 2 examples/20_parts_of_a_model.lua     two parts of every layer
--   perigee launch -n 4 examples/20_parts_of_a_model.lua     two stages of two parts
--   perigee launch -n 8 examples/20_parts_of_a_model.lua     and two replicas

local pg = require "perigee"
local nn, optim, dist = pg.nn, pg.optim, pg.dist

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ steps = 200, batch = 64, seed = 1 }, { steps = 20 })

local LENGTH, NUMBERS, WIDTH = 8, 16, 64

local parts = dist.size() % 2 == 0 and 2 or 1
local stages = dist.size() % 4 == 0 and 2 or 1
local mesh = dist.mesh { data = dist.size() / parts / stages, pipeline = stages, model = parts }

local Places = nn.class "Places"
function Places:init() self.weight = nn.Parameter(pg.randn { LENGTH, WIDTH } * 0.1) end
function Places:forward(x) return x + self.weight end

-- All processes that hold parts of a half draw the whole of it, and keep theirs.
local function half(number)
  return function()
    pg.manual_seed(options.seed + number)
    local block = nn.TransformerEncoderLayer { WIDTH, 4, 4 * WIDTH, dropout = 0, norm_first = true }
    local ends = number == 1 and nn.Sequential { nn.Embedding { NUMBERS, WIDTH }, Places() } or
                 nn.Sequential { nn.LayerNorm { WIDTH }, nn.Linear { WIDTH, NUMBERS } }
    dist.tensor_parallel(block, { group = mesh.model })
    return number == 1 and nn.Sequential { ends, block } or nn.Sequential { block, ends }
  end
end

local function loss_of(logits, sorted)
  return nn.cross_entropy(logits:reshape(-1, NUMBERS), sorted:reshape(-1))
end

local pipeline = dist.pipeline { stages = { half(1), half(2) }, group = mesh.pipeline, micro_batches = 4,
                                 loss = loss_of }
local optimizer = optim.AdamW { pipeline:parameters(), lr = 3e-3 }
local strategy = dist.multi_worker { mesh = mesh }

pg.manual_seed(options.seed)
local x = pg.randint(0, NUMBERS, { options.steps * options.batch, LENGTH })
local ds = pg.data.from_slices { x = x, y = (x:sort { axis = 2 }) }:batch(options.batch)
local first, last
for step, batch in strategy:distribute(ds):each() do
  local loss = strategy:run(function(b)
    optimizer:zero_grad()
    local loss = pipeline:step(b.x, b.y)
    optimizer:step()
    return loss
  end, batch)
  last = strategy:reduce("mean", loss):item()
  first = first or last
  if dist.rank() == 0 and step % 20 == 0 then print(("step %d: loss %.4f"):format(step, last)) end
end

local unsorted = pg.randint(0, NUMBERS, { 256, LENGTH })
local found = pg.no_grad(function() return pipeline(unsorted):argmax { axis = -1 } end)
local right = found:eq((unsorted:sort { axis = 2 })):to("float32"):mean():item()
if dist.rank() == 0 then
  print(("%s; %.1f %% of the numbers stand where they should"):format(tostring(mesh), 100 * right))
end
if last >= first or last ~= last then error("it has learnt nothing", 0) end
