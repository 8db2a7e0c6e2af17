-- SPDX-License-Identifier: Apache-2.0
-- The bench models that are no tiny ones: items for hot_path.lua. models_torch.py has the same for PyTorch.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

-- 784-2048-1024-512-10 with batch norm, ReLU and dropout.
local function mlp()
  local layers, inputs = {}, 784
  for _, width in ipairs { 2048, 1024, 512 } do
    layers[#layers + 1] = nn.Linear { inputs, width }
    layers[#layers + 1] = nn.BatchNorm1d { width }
    layers[#layers + 1] = nn.ReLU {}
    layers[#layers + 1] = nn.Dropout { 0.2 }
    inputs = width
  end
  layers[#layers + 1] = nn.Linear { inputs, 10 }
  return nn.Sequential(layers)
end

-- Learned positions, 6 pre-norm blocks of width 384 with 6 heads, final norm, untied head; 256 tokens and positions.
local GPT = nn.class("GPT")
function GPT:init()
  self.tokens, self.positions = nn.Embedding { 256, 384 }, nn.Embedding { 256, 384 }
  self.blocks = nn.TransformerEncoder {
    nn.TransformerEncoderLayer { 384, 6, 1536, dropout = 0, activation = "gelu", norm_first = true },
    6, norm = nn.LayerNorm { { 384 } },
  }
  self.head = nn.Linear { 384, 256, bias = false }
end
function GPT:forward(ids)
  local x = self.tokens(ids) + self.positions(pg.arange(ids:size(2)))
  return self.head(self.blocks(x, { is_causal = true }))
end

local function attention_inputs()
  local shape = { 8, 6, 256, 64 }
  return pg.randn(shape), pg.randn(shape), pg.randn(shape)
end

return function(items, report)
  local function train(model, x, y, optimizer, count)
    report(count, function(steps)
      for _ = 1, steps do
        optimizer:zero_grad()
        local logits = model(x)
        if logits:dim() == 3 then logits = logits:reshape(-1, logits:size(3)) end
        nn.cross_entropy(logits, y):backward()
        optimizer:step()
      end
    end)
  end

  local function infer(model, x, count)
    model:eval()
    report(count, function(steps)
      for _ = 1, steps do pg.no_grad(function() local _ = model(x) end) end
    end)
  end

  local function mlp_step(batch, count)
    local model = mlp()
    train(model, pg.rand { batch, 784 }, pg.randint(0, 10, { batch }), optim.Adam { model:parameters(), lr = 1e-3 },
          count)
  end

  function items.mlp_step() mlp_step(64, 20) end
  function items.mlp_step_512() mlp_step(512, 5) end
  function items.mlp_infer() infer(mlp(), pg.rand { 1, 784 }, 200) end
  function items.gpt_step()
    local model, ids = GPT {}, pg.randint(0, 256, { 8, 256 })
    train(model, ids, pg.randint(0, 256, { 8 * 256 }), optim.AdamW { model:parameters(), lr = 3e-4 }, 2)
  end
  function items.gpt_infer() infer(GPT {}, pg.randint(0, 256, { 1, 256 }), 10) end

  function items.attention()
    local q, k, v = attention_inputs()
    report(10, function(count)
      for _ = 1, count do local _ = pg.scaled_dot_product_attention(q, k, v, { is_causal = true }) end
    end)
  end
  function items.attention_backward()
    local q, k, v = attention_inputs()
    for _, t in ipairs { q, k, v } do t.requires_grad = true end
    report(5, function(count)
      for _ = 1, count do
        pg.grad(pg.scaled_dot_product_attention(q, k, v, { is_causal = true }):sum(), { q, k, v })
      end
    end)
  end
end
