-- SPDX-License-Identifier: Apache-2.0
-- The bench models without convolutions, and attention: items for model_step.lua. models_torch.py has the same for
-- PyTorch.

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

-- LSTM of two layers, 64 to 256, and a linear layer on the last of 100 steps.
local LSTM = nn.class("LSTM")
function LSTM:init()
  self.steps, self.head = nn.LSTM { 64, 256, num_layers = 2, batch_first = true }, nn.Linear { 256, 10 }
end
function LSTM:forward(x)
  return self.head((self.steps(x))[{ {}, -1 }])
end

local function tiny() return nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } } end

local function attention_inputs()
  local shape = { 8, 6, 256, 64 }
  return pg.randn(shape), pg.randn(shape), pg.randn(shape)
end

return function(train, infer)
  local function mlp_step(batch)
    local model = mlp()
    return train(model, pg.rand { batch, 784 }, pg.randint(0, 10, { batch }),
                 optim.Adam { model:parameters(), lr = 1e-3 })
  end

  return {
    mlp_step = function() return mlp_step(64) end,
    mlp_step_512 = function() return mlp_step(512) end,
    mlp_infer = function() return infer(mlp(), pg.rand { 1, 784 }) end,
    gpt_step = function()
      local model, ids = GPT {}, pg.randint(0, 256, { 8, 256 })
      return train(model, ids, pg.randint(0, 256, { 8 * 256 }), optim.AdamW { model:parameters(), lr = 3e-4 })
    end,
    gpt_infer = function() return infer(GPT {}, pg.randint(0, 256, { 1, 256 })) end,
    lstm_step = function()
      local model = LSTM {}
      return train(model, pg.randn { 32, 100, 64 }, pg.randint(0, 10, { 32 }),
                   optim.Adam { model:parameters(), lr = 1e-3 })
    end,
    lstm_infer = function() return infer(LSTM {}, pg.randn { 1, 100, 64 }) end,
    mlp_tiny_step = function()
      local model = tiny()
      return train(model, pg.randn { 2, 4 }, pg.randint(0, 2, { 2 }), optim.Adam { model:parameters(), lr = 1e-3 })
    end,
    mlp_tiny_infer = function() return infer(tiny(), pg.randn { 2, 4 }) end,
    attention = function()
      local q, k, v = attention_inputs()
      return function() local _ = pg.scaled_dot_product_attention(q, k, v, { is_causal = true }) end
    end,
    attention_backward = function()
      local q, k, v = attention_inputs()
      for _, t in ipairs { q, k, v } do t.requires_grad = true end
      return function()
        pg.grad(pg.scaled_dot_product_attention(q, k, v, { is_causal = true }):sum(), { q, k, v })
      end
    end,
  }
end
