-- SPDX-License-Identifier: Apache-2.0
-- An LSTM learns to write Lua, character by character, from Perigee's own scripts. It goes on reading where the last
-- batch ended: states are handed on from step to step, in training as in writing.
--   perigee examples/10_char_lstm.lua [--short] [--device cpu] [--steps 300] [--seed 1] [--temperature 0.6]

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", steps = 300, seed = 1, temperature = 0.6, length = 400 },
                                  { steps = 30, length = 60 })
local STEPS, BATCH, WIDTH, LAYERS = 50, 32, 128, 2

-- ---- the text: layers of Perigee's, as they stand ----

local function read_sources()
  local home = package.searchpath("perigee", package.path):match("^(.*)/init%.lua$")
  local list, parts = assert(io.popen(("ls '%s'/nn/*.lua '%s'/tensor/*.lua"):format(home, home))), {}
  for path in list:lines() do
    local file = assert(io.open(path))
    parts[#parts + 1] = file:read("*a")
    file:close()
  end
  list:close()
  return table.concat(parts, "\n"):gsub("[\128-\255]", "")
end

local text = read_sources()
local known, number = {}, {}
for code = 0, 127 do
  local c = string.char(code)
  if text:find(c, 1, true) then
    number[c] = #known -- contents count from 0
    known[#known + 1] = c
  end
end
local function encode(s)
  local codes = {}
  for c in s:gmatch(".") do codes[#codes + 1] = number[c] end
  return pg.tensor(codes, { dtype = "int64" })
end

-- The text in as many parts as a batch has rows, read side by side: row i of a batch goes on in row i of the next.
local codes = encode(text)
local each = math.floor((#codes - 1) / BATCH)
local rows = codes[{ { 1, BATCH * each } }]:reshape(BATCH, each)
local held_out = math.floor(0.95 * each) -- the columns from here on

-- Characters and the ones that follow them.
local function stretch(first)
  local x = rows[{ {}, { first, first + STEPS } }]:to(options.device)
  return x[{ {}, { 1, STEPS } }], x[{ {}, { 2, STEPS + 1 } }]
end

-- ---- the model ----

local Writer = nn.class "Writer"
function Writer:init(o)
  self.characters = nn.Embedding { o.vocabulary, o.width }
  self.lstm = nn.LSTM { o.width, o.width, num_layers = o.layers, dropout = 0.1 }
  self.head = nn.Linear { o.width, o.vocabulary }
end
function Writer:forward(x, state) -- x [n, t] -> logits [n, t, vocabulary], state
  local y, h, c = self.lstm(self.characters(x), state)
  return self.head(y), { h, c }
end

pg.manual_seed(options.seed)
local model = Writer { vocabulary = #known, width = WIDTH, layers = LAYERS }:to(options.device)
print(("%d characters of text, %d different ones; %d parameters"):format(#codes, #known, model:count_parameters()))

local function loss_of(x, y, state)
  local logits, after = model(x, state)
  return nn.cross_entropy(logits:reshape(-1, #known), y:flatten {}), after
end

local function test_loss()
  model:eval()
  local total, count, state = 0, 0, nil
  pg.no_grad(function()
    for first = held_out, each - STEPS, STEPS do
      local x, y = stretch(first)
      local loss, after = loss_of(x, y, state)
      state = after
      total, count = total + loss:item(), count + 1
    end
  end)
  model:train()
  return total / count
end

-- ---- training ----

local optimizer = optim.AdamW { model:parameters(), lr = 4e-3, weight_decay = 0.01 }
local schedule = optim.sched.Cosine { optimizer, t_max = options.steps, eta_min = 4e-4 }
local started, before, first, state = os.clock(), test_loss(), 1, nil
for step = 1, options.steps do
  if first + STEPS > held_out then first, state = 1, nil end -- from the beginning
  optimizer:zero_grad()
  local x, y = stretch(first)
  local loss, after = loss_of(x, y, state)
  loss:backward()
  optim.clip_grad_norm_(model:parameters(), 1)
  optimizer:step()
  schedule:step()
  state = { after[1]:detach(), after[2]:detach() } -- gradients do not reach back into the batch before
  first = first + STEPS
  if step == 1 or step % 100 == 0 or step == options.steps then
    print(("step %4d  loss %.3f  (%.0f s)"):format(step, loss:item(), os.clock() - started))
  end
end

-- ---- writing ----

-- One character after the other: what was read before is all in the state.
local function write(prompt, length)
  local logits, memory = model(encode(prompt):unsqueeze(1):to(options.device))
  local drawn = {}
  for i = 1, length do
    local last = logits[{ {}, -1 }] / options.temperature
    local character = last:softmax(-1):multinomial(1) -- [1, 1]
    drawn[i] = known[character:item() + 1]
    logits, memory = model(character, memory)
  end
  return prompt .. table.concat(drawn)
end

local after = test_loss()
model:eval()
print("\n" .. pg.no_grad(write, "local function ", options.length))
print(("\nheld-out loss: %.3f before, %.3f after; a guess among all characters would have %.3f"):format(before, after,
      math.log(#known)))
if after > (options.is_short and 0.85 or 0.55) * before then error("the model has learnt too little", 0) end
