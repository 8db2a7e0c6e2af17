-- SPDX-License-Identifier: Apache-2.0
-- A small GPT (Radford et al. 2018) learns to write Lua, character by character, from Perigee's own scripts, and then
-- writes some.
--   perigee examples/07_char_gpt.lua [--short] [--device cpu] [--steps 600] [--seed 1] [--temperature 0.7]

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", steps = 600, seed = 1, temperature = 0.7, length = 400 },
                                  { steps = 40, length = 80 })
local CONTEXT, WIDTH, HEADS, BLOCKS, BATCH = 64, 96, 4, 3, 16

-- ---- the text: what `require "perigee"` is made of ----

local function read_sources()
  local home = package.searchpath("perigee", package.path):match("^(.*)/init%.lua$")
  local list, parts = assert(io.popen(("ls '%s'/*.lua '%s'/*/*.lua"):format(home, home))), {}
  for path in list:lines() do
    local file = assert(io.open(path))
    parts[#parts + 1] = file:read("*a")
    file:close()
  end
  list:close()
  return table.concat(parts, "\n")
end

-- Characters by number, from 0, the commonest ones; others are left out.
local function vocabulary(text)
  local count, known = {}, {}
  for c in text:gmatch(".") do count[c] = (count[c] or 0) + 1 end
  for c, n in pairs(count) do
    if n >= 20 then known[#known + 1] = c end
  end
  table.sort(known)
  local number = {}
  for i, c in ipairs(known) do number[c] = i - 1 end
  return known, number
end

local text = read_sources()
local known, number = vocabulary(text)
local function encode(s)
  local codes = {}
  for c in s:gmatch(".") do codes[#codes + 1] = number[c] end
  return pg.tensor(codes, { dtype = "int64" })
end
local codes = encode(text)
local last = math.floor(0.95 * #codes) -- what follows is held out

-- Stretches from random places, and the same one character on: what is to be foretold.
local function batch(first_place, last_place)
  local place = pg.randint(first_place - 1, last_place - CONTEXT, { BATCH, 1 })
  local at = place + pg.arange(CONTEXT)
  return codes[at]:to(options.device), codes[at + 1]:to(options.device)
end

-- ---- the model ----

-- Each place of x [n, t, width] looks at those before it, in several heads: softmax(q k^T / sqrt(d)) v.
local Attention = nn.class "Attention"
function Attention:init(o)
  self.heads, self.qkv, self.out = o.heads, nn.Linear { o.width, 3 * o.width }, nn.Linear { o.width, o.width }
end
function Attention:forward(x)
  local n, t, width = unpack(x.shape)
  local qkv = self.qkv(x):reshape(n, t, 3, self.heads, width / self.heads):permute(3, 1, 4, 2, 5)
  local y = pg.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], { is_causal = true }) -- [n, heads, t, d]
  return self.out(y:transpose(2, 3):reshape(n, t, width))
end

local Block = nn.class "Block"
function Block:init(o)
  self.norm1, self.attention = nn.LayerNorm { o.width }, Attention(o)
  self.norm2 = nn.LayerNorm { o.width }
  self.mlp = nn.Sequential { nn.Linear { o.width, 4 * o.width }, nn.GELU {}, nn.Linear { 4 * o.width, o.width } }
end
function Block:forward(x)
  x = x + self.attention(self.norm1(x))
  return x + self.mlp(self.norm2(x))
end

local GPT = nn.class "GPT"
function GPT:init(o)
  self.token, self.place = nn.Embedding { o.vocabulary, o.width }, nn.Embedding { o.context, o.width }
  self.blocks = {}
  for i = 1, o.blocks do self.blocks[i] = Block(o) end
  self.norm, self.head = nn.LayerNorm { o.width }, nn.Linear { o.width, o.vocabulary }
end
function GPT:forward(tokens) -- [n, t] -> logits [n, t, vocabulary]
  local t = tokens.shape[2]
  local x = self.token(tokens) + self.place(pg.arange(t, { device = tokens.device }))
  for _, block in ipairs(self.blocks) do x = block(x) end
  return self.head(self.norm(x))
end

-- ---- training ----

pg.manual_seed(options.seed)
local model = GPT { vocabulary = #known, context = CONTEXT, width = WIDTH, heads = HEADS, blocks = BLOCKS }
  :to(options.device)
for _, block in ipairs(model.blocks) do -- the residual stream begins quiet
  nn.init.normal_(block.attention.out.weight, 0, 0.02)
end
print(("%d characters of text, %d different ones; %d parameters"):format(#codes, #known, model:count_parameters()))

local function loss_of(x, y) return nn.cross_entropy(model(x):reshape(-1, #known), y:flatten {}) end
local function held_out()
  return pg.no_grad(function()
    local total = 0
    for _ = 1, 4 do total = total + loss_of(batch(last + 1, #codes)):item() end
    return total / 4
  end)
end

local optimizer = optim.AdamW { model:parameters(), lr = 3e-3, weight_decay = 0.01, betas = { 0.9, 0.95 } }
local schedule = optim.sched.Cosine { optimizer, t_max = options.steps, eta_min = 3e-4 }
local started, before = os.clock(), held_out()
for step = 1, options.steps do
  optimizer:zero_grad()
  local loss = loss_of(batch(1, last))
  loss:backward()
  optim.clip_grad_norm_(model:parameters(), 1)
  optimizer:step()
  schedule:step()
  if step == 1 or step % 100 == 0 or step == options.steps then
    print(("step %4d  loss %.3f  held out %.3f  (%.0f s)"):format(step, loss:item(), held_out(), os.clock() - started))
  end
end

-- ---- sampling ----

local function write(prompt, length)
  local tokens = encode(prompt):unsqueeze(1):to(options.device)
  for _ = 1, length do
    local seen = tokens[{ {}, { math.max(1, tokens.shape[2] - CONTEXT + 1), -1 } }]
    local logits = model(seen)[{ {}, -1 }] -- [1, vocabulary]
    -- Gumbel noise makes the largest one a draw from softmax(logits / temperature); at 0 it is simply the largest.
    local uniform = pg.rand(logits.shape, { device = logits.device }):clamp { min = 1e-9 }
    local drawn = (logits - (-uniform:log()):log() * options.temperature):argmax { axis = 2 }
    tokens = pg.cat({ tokens, drawn:unsqueeze(2) }, { axis = 2 })
  end
  local characters = {}
  for i, code in ipairs(tokens[1]:totable()) do characters[i] = known[code + 1] end
  return table.concat(characters)
end

model:eval()
print("\n" .. pg.no_grad(write, "local function ", options.length))
local after = held_out()
print(("\nheld-out loss: %.3f before, %.3f after; a guess among all characters would have %.3f"):format(before, after,
      math.log(#known)))
if after > (options.is_short and 0.9 or 0.6) * before then error("the model has learnt too little", 0) end
