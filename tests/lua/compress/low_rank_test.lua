-- SPDX-License-Identifier: Apache-2.0
-- pg.compress.low_rank: two layers whose product is nearest to one, and what cannot be factored.

local pg = require "perigee"
local nn, compress = pg.nn, pg.compress

local function seq(...)
  local n = 1
  for _, size in ipairs { ... } do n = n * size end
  return ((pg.arange(n):to("float64") * 0.7):sin() + (pg.arange(n):to("float64") ^ 1.3):cos()):reshape(...)
end

-- A layer in float64 whose weight has these singular values, on orthogonal vectors.
local function with_values(values, out, inputs)
  local function basis(n)
    local rows = {}
    for i = 1, n do
      rows[i] = {}
      for j = 1, n do -- cosines: orthonormal
        rows[i][j] = math.sqrt((i == 1 and 1 or 2) / n) * math.cos(math.pi * (i - 1) * (j - 0.5) / n)
      end
    end
    return pg.tensor(rows, { dtype = "float64" })
  end
  local u, v = basis(out):narrow(1, 1, #values), basis(inputs):narrow(1, 1, #values)
  local layer = nn.Linear { inputs, out }:to("float64")
  pg.no_grad(function()
    layer.weight:copy_((u * pg.tensor(values, { dtype = "float64" }):unsqueeze(2)):t():matmul(v))
  end)
  return layer
end

local function product(sequential)
  local a, b = sequential[1].weight, sequential[2].weight
  return b:reshape(#b, -1):matmul(a:reshape(#a, -1)):detach()
end

test("the product is the nearest of its rank: what is left out is the lesser singular values, exactly", function(t)
  local values = { 5, 3, 1, 0.5, 1e-3 }
  for _, shape in ipairs { { 12, 20 }, { 20, 12 }, { 16, 16 } } do
    local layer = with_values(values, unpack(shape))
    for rank = 1, 5 do
      local small, report = compress.low_rank(layer, { rank = rank })
      local left, all = 0, 0
      for i, value in ipairs(values) do
        all = all + value ^ 2
        if i > rank then left = left + value ^ 2 end
      end
      local off = (product(small) - layer.weight:detach()):square():sum():item()
      t.ok(math.abs(off - left) < 1e-20 + 1e-10 * left + 1e-24, ("rank %d: %g, expected %g"):format(rank, off, left))
      t.equal({ report[1].name, report[1].rank }, { "", rank })
      t.close(report[1].energy, 1 - left / all, 1e-12)
    end
  end
  t.equal(select(2, compress.low_rank(with_values(values, 12, 20), { energy = 0.97 }))[1].rank, 3)
  t.equal(select(2, compress.low_rank(with_values(values, 12, 20), { energy = 0.71 }))[1].rank, 2)
  t.equal(select(2, compress.low_rank(with_values({ 0 }, 12, 20), { rank = 2 }))[1].energy, 1) -- all zeros
end)

test("layers of all kinds compute the same where the weight is of that rank, and are smaller", function(t)
  for _, row in ipairs {
    { function() return nn.Linear { 16, 12 } end, { 4, 16 } },
    { function() return nn.Linear { 16, 12, bias = false } end, { 2, 3, 16 } },
    { function() return nn.Conv1d { 6, 8, 3, stride = 2, padding = 1 } end, { 2, 6, 9 } },
    { function() return nn.Conv2d { 6, 8, 3, dilation = 2, padding = 1, bias = false } end, { 2, 6, 7, 8 } },
    { function() return nn.Conv3d { 4, 8, 2 } end, { 1, 4, 3, 4, 5 } },
  } do
    for dtype, tolerance in pairs { float64 = 1e-11, float32 = 1e-4, bfloat16 = 0.25 } do
      local layer = row[1]():to(dtype)
      pg.no_grad(function()
        local n = layer.weight:numel() / #layer.weight
        local w = seq(#layer.weight, 2):matmul(seq(2, n)) / 10
        layer.weight:copy_(w:reshape(layer.weight.shape):to(dtype))
      end)
      local x = seq(unpack(row[2])):to(dtype)
      local small = compress.low_rank(layer, { rank = dtype == "bfloat16" and 3 or 2 })
      t.close(small(x):detach():to("float64"), layer(x):detach():to("float64"), tolerance)
      t.ok(small:size() < layer:size())
      t.equal({ small(x).dtype, #small, small[1].weight.requires_grad }, { dtype, 2, true })
    end
  end
end)

test("in a model: what gets no smaller stays, the model itself is as before, and the copy trains", function(t)
  local Net = nn.class "Net"
  function Net:init()
    self.body = nn.Sequential { nn.Linear { 32, 32 }, nn.ReLU {}, nn.Linear { 32, 2 } }
    self.list = { nn.Linear { 32, 32 } }
  end
  function Net:forward(x) return self.body(self.list[1](x)) end
  local net = Net {}
  local before = tostring(net)
  local small, report = compress.low_rank(net, { rank = 4 })
  t.equal({ report[1].name, report[2].name, #report }, { "body.0", "list.0", 2 })
  t.equal(tostring(net), before)
  local names = {}
  for name in small:named_parameters() do names[#names + 1] = name end
  t.equal(names, { "body.0.0.weight", "body.0.1.weight", "body.0.1.bias", "body.2.weight", "body.2.bias",
                   "list.0.0.weight", "list.0.1.weight", "list.0.1.bias" })
  local x = pg.rand { 4, 32 }
  local optimizer = pg.optim.Adam { small:parameters(), lr = 0.01 }
  local first, last
  for _ = 1, 5 do
    optimizer:zero_grad()
    local loss = (small(x) - 1):square():mean()
    loss:backward()
    optimizer:step()
    first, last = first or loss:item(), loss:item()
  end
  t.ok(last < first)
  t.equal(#select(2, compress.low_rank(net, { rank = 4, targets = { "body.0" } })), 1)
  local frozen = compress.low_rank(nn.Linear { 32, 32 }:freeze(), { rank = 2 })
  t.ok(not frozen[1].weight.requires_grad)
end)

test("mistakes", function(t)
  local function raises(text, model, o)
    local err = tostring(t.raises(function() compress.low_rank(model, o) end))
    t.ok(err:find(text, 1, true), ("%q is not in: %s"):format(text, err))
  end
  local layer = nn.Linear { 16, 16 }
  raises("needs rank or energy", layer, {})
  raises("rank and energy are given", layer, { rank = 2, energy = 0.5 })
  raises("rank must be at least 1, got 0", layer, { rank = 0 })
  raises("energy must lie in (0, 1], got 1.5", layer, { energy = 1.5 })
  raises("energy must lie in (0, 1], got 0", layer, { energy = 0 })
  raises("no layer of Linear would get smaller", layer, { rank = 8 })
  raises("no layer of ReLU would get smaller", nn.ReLU {}, { rank = 2 })
  raises("would not get smaller", nn.Sequential { layer }, { rank = 12, targets = { "0" } })
  raises('no layer fits "fc" of targets', layer, { rank = 2, targets = { "fc" } })
  raises("targets must be names of layers or of classes, got", layer, { rank = 2, targets = { 3 } })
  raises("0 (ReLU) cannot be factored: it is no Linear", nn.Sequential { nn.ReLU {} }, { rank = 2, targets = { "0" } })
  raises("it has groups", nn.Sequential { nn.Conv2d { 4, 4, 3, groups = 2 } }, { rank = 1, targets = { "0" } })
  raises("its weight is computed by pruning", nn.Sequential { pg.prune.l1_unstructured(nn.Linear { 16, 16 }, 0.5) },
         { rank = 2, targets = { "Linear" } })
  raises("sizes are not known before the first input", nn.Linear { 3 }, { rank = 1 })
  raises("needs a model, got", 3, { rank = 1 })
  local bad = nn.Linear { 8, 8 }
  pg.no_grad(function() bad.weight[1] = 0 / 0 end)
  raises("weight of Linear holds NaN or infinite values", bad, { rank = 1 })
end)
