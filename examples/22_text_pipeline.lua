-- SPDX-License-Identifier: Apache-2.0
-- From files of text to batches of tokens: files found by a pattern, a tokenizer learnt from them (byte-pair encoding,
-- in Hugging Face's format), documents packed into rows without padding, and an LSTM that learns what comes next. What
-- it says is measured in bits a byte, so that tokenizers can be compared.
--   perigee examples/22_text_pipeline.lua [--short] [--device cpu] [--epochs 3] [--tokens 768] [--length 64] [--seed 1]
--     [--files PATTERN]   text to learn from; Perigee's own scripts if not given

local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", epochs = 3, tokens = 768, length = 64, seed = 1, files = "" },
                                  { epochs = 1, tokens = 320 })
pg.manual_seed(options.seed)

-- ---- the text ----

local home = package.searchpath("perigee", package.path):match("^(.*)/init%.lua$")
local pattern = options.files ~= "" and options.files or
                home .. (options.is_short and "/nn/*.lua" or "/{nn,optim,data,fit}/*.lua")

-- data.files knows *, ? and **; a list in braces is several patterns.
local function texts_of(wanted)
  local list, before, names, behind = {}, wanted:match "^(.-){(.-)}(.*)$"
  for name in (names or "-"):gmatch "[^,]+" do
    for _, sample in data.files(names and before .. name .. behind or wanted):each() do
      local file = assert(io.open(sample.path, "rb"))
      list[#list + 1] = file:read "*a"
      file:close()
    end
  end
  return list
end
local texts = texts_of(pattern)
local held = table.remove(texts, math.ceil(#texts / 2)) -- a file that nothing is learnt from
local bytes = 0
for _, text in ipairs(texts) do bytes = bytes + #text end

-- ---- the tokenizer ----

local END = "<|end|>"
local tokenizer = data.text.train_bpe { texts = texts, size = options.tokens, special = { END } }
local path = os.tmpname() .. ".json"
tokenizer:save(path)
local again = data.text.bpe(path) -- as it would be used elsewhere
os.remove(path)
os.remove((path:gsub("%.json$", "")))
if not again:encode(held):equal(tokenizer:encode(held)) then error("the tokenizer's file is wrong", 0) end

-- ---- rows of one length, and batches of them ----

local function rows_of(list)
  local sequences = {}
  for i, text in ipairs(list) do sequences[i] = tokenizer:encode(text) end
  return data.text.pack(sequences, options.length + 1, { separator = tokenizer:id(END) })
end
local function shifted(batch) -- what is to be foretold is one token on
  return { x = batch.ids[{ {}, { 1, -2 } }], y = batch.ids[{ {}, { 2, -1 } }] }
end
local rows = rows_of(texts)
local train = rows:shuffle { seed = options.seed }:batch { 16, drop_last = true }
  :map { shifted, workers = 1 }:prefetch()
local test = rows_of { held }:batch(16):map(shifted)
local ids = tokenizer:encode(held)
print(("%d files, %d bytes; %d tokens, %d rows of %d; %.2f bytes a token"):format(#texts, bytes, tokenizer:size(),
      #rows, options.length + 1, #held / #ids))
print(train:lint())

-- ---- the model ----

local Model = nn.class "Model"
function Model:init(o)
  self.embedding, self.lstm = nn.Embedding { o.tokens, o.width }, nn.LSTM { o.width, o.width }
  self.head = nn.Linear { o.width, o.tokens }
end
function Model:forward(tokens) return self.head((self.lstm(self.embedding(tokens)))) end -- [n, t] -> [n, t, tokens]

local model = Model { tokens = tokenizer:size(), width = 128 }:to(options.device)
local function loss_of(logits, y) return nn.cross_entropy(logits:reshape(-1, tokenizer:size()), y:flatten {}) end

-- A loss is in nats a token.
local function bits_a_byte(loss) return loss / math.log(2) * #ids / #held end

local optimizer = optim.Adam { model:parameters(), lr = 3e-3 }
local history = model:fit { data = train, validation = test, loss = loss_of, optimizer = optimizer,
                            epochs = options.epochs, clip_norm = 1, verbose = options.is_short and 0 or 2 }
local bits = bits_a_byte(history[#history].val_loss)
print(("a file that it has not seen: %.2f bits a byte"):format(bits))

-- ---- what it writes ----

local written = tokenizer:encode "local function "
for _ = 1, options.is_short and 8 or 60 do
  local logits = pg.no_grad(function() return model(written:reshape(1, -1):to(options.device))[{ 1, -1 }] end)
  written = pg.cat({ written, (logits / 0.7):softmax(1):multinomial(1):cpu() }, 1)
end
print(tokenizer:decode(written))
if bits > (options.is_short and 7 or 4) then error("too little was learnt", 0) end
