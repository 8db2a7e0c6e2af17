-- SPDX-License-Identifier: Apache-2.0
-- Whole models, a training step each: ResNet-50, GPT-2 of 124M parameters, small ones. models.py is PyTorch's half.

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

return function(b)
  -- He and others, "Deep residual learning for image recognition", 2016; the stride is on the 3x3, as everywhere today.
  local Bottleneck = nn.class "Bottleneck"
  function Bottleneck:init(o)
    local function conv(from, to, kernel, stride)
      return nn.Conv2d { from, to, kernel, stride = stride, padding = (kernel - 1) / 2, bias = false }
    end
    self.main = nn.Sequential {
      conv(o.from, o.width, 1, 1), nn.BatchNorm2d { o.width }, nn.ReLU {},
      conv(o.width, o.width, 3, o.stride), nn.BatchNorm2d { o.width }, nn.ReLU {},
      conv(o.width, 4 * o.width, 1, 1), nn.BatchNorm2d { 4 * o.width },
    }
    if o.stride ~= 1 or o.from ~= 4 * o.width then
      self.short = nn.Sequential { conv(o.from, 4 * o.width, 1, o.stride), nn.BatchNorm2d { 4 * o.width } }
    end
  end
  function Bottleneck:forward(x) return self.main(x):add_(rawget(self, "short") and self.short(x) or x):relu_() end

  local function resnet50()
    local layers = { nn.Conv2d { 3, 64, 7, stride = 2, padding = 3, bias = false }, nn.BatchNorm2d { 64 }, nn.ReLU {},
                     nn.MaxPool2d { 3, stride = 2, padding = 1 } }
    local from = 64
    for stage, blocks in ipairs(b.small and { 1, 1, 1, 1 } or { 3, 4, 6, 3 }) do
      local width = 64 * 2 ^ (stage - 1)
      for i = 1, blocks do
        layers[#layers + 1] = Bottleneck { from = from, width = width, stride = (stage > 1 and i == 1) and 2 or 1 }
        from = 4 * width
      end
    end
    layers[#layers + 1] = nn.AdaptiveAvgPool2d { 1 }
    layers[#layers + 1] = nn.Flatten {}
    layers[#layers + 1] = nn.Linear { 2048, 1000 }
    return nn.Sequential(layers)
  end

  -- Radford and others, "Language models are unsupervised multitask learners", 2019; the head has the tokens' weight.
  local words, width, heads, positions = 50257, 768, 12, 1024
  if b.small then words, width, heads, positions = 211, 48, 3, 16 end
  local Block = nn.class "Block"
  function Block:init()
    self.norm1, self.norm2 = nn.LayerNorm { { width } }, nn.LayerNorm { { width } }
    self.qkv, self.out = nn.Linear { width, 3 * width }, nn.Linear { width, width }
    self.up, self.down = nn.Linear { width, 4 * width }, nn.Linear { 4 * width, width }
  end
  function Block:forward(x)
    local n, length = x:size(1), x:size(2)
    local parts = {}
    for i, part in ipairs(self.qkv(self.norm1(x)):split(width, 3)) do
      parts[i] = part:reshape(n, length, heads, width / heads):transpose(2, 3)
    end
    local y = pg.scaled_dot_product_attention(parts[1], parts[2], parts[3], { is_causal = true })
    x = x + self.out(y:transpose(2, 3):reshape(n, length, width))
    return x + self.down(self.up(self.norm2(x)):gelu { approximate = "tanh" })
  end
  local GPT2 = nn.class "GPT2"
  function GPT2:init()
    self.tokens, self.positions = nn.Embedding { words, width }, nn.Embedding { positions, width }
    local blocks = {}
    for i = 1, b.small and 2 or 12 do blocks[i] = Block {} end
    self.blocks, self.norm = nn.Sequential(blocks), nn.LayerNorm { { width } }
  end
  function GPT2:forward(ids)
    local x = self.tokens(ids) + self.positions(pg.arange(ids:size(2), { device = ids.device }))
    return pg.linear(self.norm(self.blocks(x)), self.tokens.weight)
  end

  -- Rows in steps; of images or tokens a second where `amount` says how many a step has.
  local function train(name, unit, model, x, y, make, dtype, amount)
    model = model:to(b.device)
    local optimizer = make(model:parameters())
    local function loss()
      local logits = model(x)
      return nn.cross_entropy(logits:reshape(-1, logits:size(-1)), y)
    end
    local function step()
      optimizer:zero_grad()
      local l = dtype and pg.amp.autocast({ dtype = dtype }, loss) or loss()
      l:backward()
      optimizer:step()
      return l
    end
    local run = b.compiled and pg.compile(step) or step
    b.row(name, unit, function() run() end, amount, true)
  end
  local function adam(parameters) return optim.Adam { parameters, lr = 1e-3 } end

  local function resnet(name, batch, dtype)
    batch = b.size(batch)
    local side = b.small and 32 or 224
    local model, x = resnet50(), b.rand { batch, 3, side, side }
    if not pcall(function()
      model = model:to { memory_format = "channels_last" }
      x = x:to { memory_format = "channels_last" }
    end) then
      b.note "Perigee has no channels-last tensors yet: its ResNet-50 is in NCHW, PyTorch's in channels-last"
    end
    train(name, "1/s", model, x, b.classes(1000, batch),
          function(p) return optim.SGD { p, lr = 0.1, momentum = 0.9 } end, dtype, batch)
  end

  local function gpt2(name, batch, dtype)
    batch = b.small and 2 or batch
    train(name, "1/s", GPT2 {}, b.classes(words, batch, positions), b.classes(words, batch * positions),
          function(p) return optim.AdamW { p, lr = 3e-4 } end, dtype, batch * positions)
  end

  local function small_models()
    train("tiny_step", "us", nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } }, b.rand { 2, 4 },
          b.classes(2, 2), adam)
    train("digits_step", "ms", nn.Sequential { -- examples/01_digits.lua's
      nn.Conv2d { 1, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {},
      nn.Conv2d { 32, 32, 3, padding = 1 }, nn.BatchNorm2d { 32 }, nn.ReLU {}, nn.MaxPool2d { 2 },
      nn.Conv2d { 32, 64, 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU {}, nn.MaxPool2d { 2 },
      nn.Flatten {}, nn.Dropout { 0.3 }, nn.Linear { 256, 10 },
    }, b.rand { 32, 1, 8, 8 }, b.classes(10, 32), adam)
    local wide, widths = nn.Sequential {}, { b.size(784), b.size(2048), b.size(1024), b.size(512) }
    for i = 2, 4 do
      wide:append(nn.Linear { widths[i - 1], widths[i] })
      wide:append(nn.BatchNorm1d { widths[i] })
      wide:append(nn.ReLU {})
      wide:append(nn.Dropout { 0.2 })
    end
    wide:append(nn.Linear { widths[4], 10 })
    train("mlp_step", "ms", wide, b.rand { 512, widths[1] }, b.classes(10, 512), adam)
  end

  return {
    small_models = small_models,
    resnet50 = function() resnet("resnet50_bf16_images", 256, "bfloat16") end,
    resnet50_f32 = function() resnet("resnet50_f32_images", 64) end,
    resnet50_tf32 = function()
      b.with_tf32()
      resnet("resnet50_tf32_images", 64)
    end,
    gpt2 = function() gpt2("gpt2_bf16_tokens", 16, "bfloat16") end,
    gpt2_f32 = function() gpt2("gpt2_f32_tokens", 4) end,
    gpt2_tf32 = function()
      b.with_tf32()
      gpt2("gpt2_tf32_tokens", 4)
    end,
  }
end
