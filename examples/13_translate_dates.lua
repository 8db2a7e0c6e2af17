-- SPDX-License-Identifier: Apache-2.0
-- Sequence to sequence with attention: dates as people write them ("the 3rd of March, 1987") become dates as machines
-- want them ("1987-03-03"). An encoder reads the letters both ways, a decoder writes one letter after the other and
-- looks back at what it needs (Bahdanau, Cho, Bengio 2014); the last lines show where it looked.
--   perigee examples/13_translate_dates.lua [--short] [--device cpu] [--steps 300] [--seed 1]

local pg = require "perigee"
local nn, optim = pg.nn, pg.optim

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", steps = 300, seed = 1 }, { steps = 40 })
local BATCH, WIDTH = 64, 96

-- ---- pairs of dates ----

local months = { "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                 "November", "December" }
local function ordinal(day)
  local ending = (day % 100 >= 11 and day % 100 <= 13) and "th" or ({ "st", "nd", "rd" })[day % 10] or "th"
  return day .. ending
end
local forms = {
  function(y, m, d) return ("%s %d, %d"):format(months[m], d, y) end,
  function(y, m, d) return ("%d %s %d"):format(d, months[m]:lower(), y) end,
  function(y, m, d) return ("the %s of %s, %d"):format(ordinal(d), months[m], y) end,
  function(y, m, d) return ("%d.%d.%d"):format(d, m, y) end,
  function(y, m, d) return ("%s %s '%02d"):format(months[m]:sub(1, 3), ordinal(d), y % 100) end,
}
local function draw_pair()
  local y, m, d = math.random(1950, 2049), math.random(12), math.random(28)
  return forms[math.random(#forms)](y, m, d), ("%04d-%02d-%02d"):format(y, m, d)
end

-- Letters by number, 0 for what fills a row up; digits, dash and the mark of the beginning on the other side.
local letters = { number = {}, count = 1 }
local function number_of(letter)
  if not letters.number[letter] then
    letters.number[letter], letters.count = letters.count, letters.count + 1
  end
  return letters.number[letter]
end
for byte = 32, 122 do number_of(string.char(byte)) end
local WRITTEN = 10 -- letters of "1987-03-03"
local digits = { ["-"] = 10 }
for digit = 0, 9 do digits[tostring(digit)] = digit end
local START, SYMBOLS = 11, 12

-- Sources are as long as the longest of the batch; `lengths` says how long each really is.
local function batch_of(pairs_)
  local sources, lengths, targets, longest = {}, {}, {}, 0
  for i, pair in ipairs(pairs_) do
    sources[i], targets[i] = {}, { START }
    for letter in pair[1]:gmatch(".") do table.insert(sources[i], number_of(letter)) end
    for letter in pair[2]:gmatch(".") do table.insert(targets[i], digits[letter]) end
    lengths[i], longest = #sources[i], math.max(longest, #sources[i])
  end
  for _, source in ipairs(sources) do
    for k = #source + 1, longest do source[k] = 0 end
  end
  local function tensor(rows) return pg.tensor(rows, { dtype = "int64" }):to(options.device) end
  return tensor(sources), tensor(lengths), tensor(targets)
end
local function draw_batch(count)
  local pairs_ = {}
  for i = 1, count do pairs_[i] = { draw_pair() } end
  return pairs_, batch_of(pairs_)
end

-- ---- the model ----

local Translator = nn.class "Translator"
function Translator:init(o)
  self.letters = nn.Embedding { o.letters, o.width, padding_idx = 0 }
  self.encoder = nn.GRU { o.width, o.width, bidirectional = true }
  self.keys = nn.Linear { 2 * o.width, o.width }
  self.bridge = nn.Linear { 2 * o.width, o.width }
  self.symbols = nn.Embedding { SYMBOLS, o.width }
  self.decoder = nn.GRUCell { 3 * o.width, o.width }
  self.query = nn.Linear { o.width, o.width, bias = false }
  self.score = nn.Linear { o.width, 1, bias = false }
  self.head = nn.Linear { 3 * o.width, SYMBOLS - 1 } -- the mark of the beginning is never written
end

-- What the decoder looks at: [n, t, 2 width], its keys, and where rows only are filled up.
function Translator:read(source)
  local seen = self.encoder(self.letters(source))
  local memory = { seen = seen, keys = self.keys(seen), empty = source:eq(0) }
  local count = (source:ne(0)):to(seen.dtype):sum { 2, keepdim = true }
  local filled = memory.empty:unsqueeze(-1)
  return memory, self.bridge(seen:masked_fill(filled, 0):sum { 2 } / count):tanh()
end

-- One symbol in [n], the state [n, width] -> logits [n, symbols], the state, where it looked [n, t]
function Translator:write(symbol, state, memory)
  local energy = self.score((memory.keys + self.query(state):unsqueeze(2)):tanh()):squeeze(-1)
  local looks = energy:masked_fill(memory.empty, -math.huge):softmax(-1)
  local found = looks:unsqueeze(2):matmul(memory.seen):squeeze(2)
  state = self.decoder(pg.cat({ self.symbols(symbol), found }, -1), state)
  return self.head(pg.cat({ state, found }, -1)), state, looks
end

-- With the right symbols as inputs, all at once known: [n, WRITTEN, symbols]
function Translator:forward(source, target)
  local memory, state = self:read(source)
  local logits = {}
  for k = 1, WRITTEN do
    logits[k], state = self:write(target[{ {}, k }], state, memory)
  end
  return pg.stack(logits, 2)
end

-- With its own symbols as inputs.
function Translator:translate(source)
  local memory, state = self:read(source)
  local symbol = pg.full({ source.shape[1] }, START, { dtype = "int64", device = source.device })
  local written, looked = {}, {}
  for k = 1, WRITTEN do
    local logits
    logits, state, looked[k] = self:write(symbol, state, memory)
    symbol = logits:argmax(-1)
    written[k] = symbol
  end
  return pg.stack(written, 2), pg.stack(looked, 2)
end

pg.manual_seed(options.seed)
math.randomseed(options.seed)
local model = Translator { letters = letters.count, width = WIDTH }:to(options.device)
print(("%d parameters"):format(model:count_parameters()))

-- ---- training ----

local optimizer = optim.Adam { model:parameters(), lr = 3e-3 }
local schedule = optim.sched.Cosine { optimizer, t_max = options.steps, eta_min = 1e-4 }
local started = os.clock()
for step = 1, options.steps do
  local _, source, _, target = draw_batch(BATCH)
  optimizer:zero_grad()
  local logits = model(source, target)
  local loss = nn.cross_entropy(logits:flatten { 1, 2 }, target[{ {}, { 2, -1 } }]:flatten {})
  loss:backward()
  optim.clip_grad_norm_(model:parameters(), 1)
  optimizer:step()
  schedule:step()
  if step % 50 == 0 or step == 1 then
    print(("step %4d  loss %.4f  (%.0f s)"):format(step, loss:item(), os.clock() - started))
  end
end

-- ---- judged ----

model:eval()
local asked, source, _, target = draw_batch(500)
local written, looked = pg.no_grad(function() return model:translate(source) end)
local right = written:eq(target[{ {}, { 2, -1 } }])
local symbols, whole = right:to("float32"):mean():item(), right:all { 2 }:to("float32"):mean():item()

local names = { [10] = "-" }
for i = 1, 5 do
  local line = {}
  for k, symbol in ipairs(written[i]:totable()) do line[k] = names[symbol] or tostring(symbol) end
  print(("%-28s %s"):format(asked[i][1], table.concat(line)))
  -- Below each symbol the letter that it looked at most.
  local where = {}
  for k, place in ipairs(looked[i]:argmax(-1):totable()) do where[k] = asked[i][1]:sub(place + 1, place + 1) end
  print(("%-28s %s"):format("", table.concat(where)))
end
print(("%.1f %% of the symbols, %.1f %% of the dates are right"):format(100 * symbols, 100 * whole))
if symbols < (options.is_short and 0.3 or 0.97) then error("the model has learnt too little", 0) end
