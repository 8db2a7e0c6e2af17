-- SPDX-License-Identifier: Apache-2.0
-- data.text: the ids are those of `tokenizers` and `tiktoken` (tokenizers/make.py), and every text comes back.

local pg = require "perigee"
local text = pg.data.text

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local folder = here .. "/tokenizers/"
local expected = pg.json.load(folder .. "expected.json")

local function list(ids)
  local out = {}
  for i, id in ipairs(ids) do out[i] = id end
  return out
end

local function fails(t, pattern, code, fn, ...)
  local ok, problem = pcall(fn, ...)
  t.ok(not ok and tostring(problem):find(pattern, 1, true), ("%s: %s"):format(pattern, tostring(problem)))
  if not ok then t.equal(problem.code, code) end
end

local function temporary(contents)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(contents)
  file:close()
  return path
end

test("bytes: ids are the bytes, and come back", function(t)
  local bytes = text.bytes()
  t.equal(bytes:size(), 256)
  local ids = bytes:encode("a\0ü")
  t.equal(ids.dtype, "int64")
  t.equal(ids:totable(), { 97, 0, 195, 188 })
  t.equal(bytes:decode(ids), "a\0ü")
  t.equal(bytes:encode("").shape, { 0 })
  t.equal(bytes:decode({}), "")
  t.equal({ bytes:token(65), bytes:id("A") }, { "A", 65 })
  fails(t, "there is no token 256", "invalid_argument", bytes.token, bytes, 256)
  fails(t, "there is no token -1", "invalid_argument", bytes.decode, bytes, { -1 })
  fails(t, "ids must have one axis, got 2", "invalid_argument", bytes.decode, bytes, pg.zeros({ 1, 1 }))
end)

test("chars: whole characters, the most frequent first", function(t)
  local chars = text.chars("abbüüü日")
  t.equal({ chars:token(0), chars:token(1), chars:token(2), chars:token(3) }, { "ü", "b", "a", "日" })
  t.equal(chars:decode(chars:encode("日bü")), "日bü")
  fails(t, 'has no token "x", at 2', "invalid_argument", chars.encode, chars, "ax")
  local most = text.chars("abbüüü日", { size = 3, unknown = "?" })
  t.equal(most:encode("üx日"):totable(), { 1, 0, 0 })
  t.equal(text.chars("aab", { least = 2 }):size(), 1)
  t.equal(text.chars(""):size(), 0)
  fails(t, "least must be at least 1", "invalid_argument", text.chars, "a", { least = 0 })
end)

test("vocabulary: words by how often they stand; saved and read", function(t)
  local words = text.vocabulary({ "b", "a", "b", "c" }, { unknown = "<unk>" })
  t.equal({ words:token(0), words:token(1), words:token(2), words:size() }, { "<unk>", "b", "a", 4 })
  t.equal(words:encode({ "c", "x", "b" }):totable(), { 3, 0, 1 })
  t.equal(words:decode({ 1, 2 }), { "b", "a" })
  t.equal(text.vocabulary({ "a", "b" }):id("z"), nil)
  local path = temporary("")
  words:save(path)
  local read = text.vocabulary(path)
  t.equal(read:encode({ "c", "x", "b" }):totable(), { 3, 0, 1 })
  local bytes = text.chars("äö")
  bytes:save(path)
  t.equal(text.vocabulary(path):decode({ 0, 1 }), "äö")
  os.remove(path)
  fails(t, "word 2 must be a string", "invalid_argument", text.vocabulary, { "a", 1 })
  path = temporary('{"kind": "words", "tokens": ["a", "a"]}')
  fails(t, "does not hold a vocabulary", "data_loss", text.vocabulary, path)
  os.remove(path)
  t.equal(text.vocabulary({}):size(), 0)
end)

test("vocabulary: as many words as there are", function(t)
  local words = {}
  for i = 1, 20000 do words[i] = ("w%05d"):format(i) end
  local path = temporary("")
  text.vocabulary(words):save(path)
  t.equal(text.vocabulary(path):token(19999), "w20000")
  os.remove(path)
end)

local function compare(t, bpe, ids, options)
  for i, sentence in ipairs(expected.read) do
    t.equal(bpe:ids(sentence, options), list(ids[i]))
  end
end

test("bpe: a tokenizer.json of bytes gives the ids of tokenizers", function(t)
  local bpe = text.bpe(folder .. "byte_level.json")
  compare(t, bpe, expected.byte_level)
  t.equal(bpe:size(), 360)
  t.equal({ bpe:id("<pad>"), bpe:token(1), bpe:id(" the") ~= nil, bpe:id("zzz") }, { 1, "<pad>", true })
  t.equal(bpe:encode("dog").dtype, "int64")
  t.equal(bpe:encode("").shape, { 0 })
  -- A space is put before a text that has none.
  t.equal(bpe:decode(bpe:encode("<|end|>ab")), " ab")
  t.equal(bpe:decode(bpe:ids("<|end|>ab"), { skip_special = false }), "<|end|> ab")
  t.equal(bpe:decode(bpe:ids("<|end|>", { special = false })), " <|end|>")
end)

test("bpe: patterns, digits, whole words and templates as the file says", function(t)
  local bpe = text.bpe(folder .. "split.json")
  compare(t, bpe, expected.split)
  compare(t, bpe, expected.split_plain, { template = false })
  for _, sentence in ipairs(expected.read) do t.equal(bpe:decode(bpe:encode(sentence)), sentence) end
end)

test("bpe: tiktoken's ranks give the ids of tiktoken", function(t)
  local path = folder .. "small.tiktoken"
  local bpe = text.bpe { path, pattern = "cl100k", special = { ["<|end|>"] = 330 } }
  compare(t, bpe, expected.tiktoken)
  compare(t, bpe, expected.tiktoken_text, { special = false })
  t.equal(bpe:size(), 331)
  for _, sentence in ipairs(expected.read) do
    t.equal(bpe:decode(bpe:ids(sentence), { skip_special = false }), sentence)
  end
  fails(t, "needs the pattern", "invalid_argument", text.bpe, path)
  fails(t, "with an id that no token has", "invalid_argument", text.bpe, { path, pattern = "gpt2",
        special = { ["<|end|>"] = 5 } })
  fails(t, 'pattern "("', "invalid_argument", text.bpe, { path, pattern = "(" })
  fails(t, "has no merges", "failed_precondition", bpe.save, bpe, os.tmpname())
end)

test("bpe: bytes that are no UTF-8 come back", function(t)
  local bpe = text.bpe { folder .. "split.json" }
  local broken = "ok \255\254 \195 end\0\240\159"
  t.equal(bpe:decode(bpe:encode(broken)), broken)
end)

test("bpe: a word of 20,000 letters takes no time to speak of", function(t)
  local bpe = text.bpe(folder .. "split.json")
  local long = ("quickbrownfox"):rep(1600)
  t.equal(bpe:decode(bpe:encode(long)), long)
end)

test("train_bpe: the vocabulary that tokenizers learns, saved and read", function(t)
  local texts = list(expected.learnt)
  local bpe = text.train_bpe(texts, 330)
  local letters = require "perigee.data.text.letters"
  local count = 0
  for written, id in pairs(expected.trained) do
    count = count + 1
    t.equal(bpe:token(id), letters.read(written))
  end
  t.equal(count, bpe:size())
  local with_special = text.train_bpe(texts, 340, { special = { "<|end|>" } })
  local path = temporary("")
  with_special:save(path)
  local read = text.bpe(path)
  for _, sentence in ipairs(expected.read) do t.equal(read:ids(sentence), with_special:ids(sentence)) end
  t.equal(read:ids("<|end|>"), { 0 })
  local by_lines = text.train_bpe(texts, 300, { pattern = "[^\\n]+\\n?" })
  by_lines:save(path)
  t.equal(text.bpe(path):ids(texts[2]), by_lines:ids(texts[2]))
  os.remove(path)
  t.equal(text.train_bpe("", 256):size(), 256)
  t.equal(text.train_bpe("aaaa", 1000):size(), 258) -- nothing is left to merge
  fails(t, "size must be at least 257, got 256", "invalid_argument", text.train_bpe, "a", 256,
        { special = { "<s>" } })
  fails(t, "text 1 must be a string", "invalid_argument", text.train_bpe, { 1 }, 300)
end)

test("bpe: what would give other ids is refused by name", function(t)
  local document = pg.json.load(folder .. "byte_level.json")
  local function refused(pattern, code, change)
    local copy = pg.json.decode(pg.json.encode(document))
    change(copy)
    local path = temporary(pg.json.encode(copy))
    fails(t, pattern, code, text.bpe, path)
    os.remove(path)
  end
  refused("normalizer NFC", "unimplemented", function(d) d.normalizer = { type = "NFC" } end)
  refused("model Unigram", "unimplemented", function(d) d.model.type = "Unigram" end)
  refused("model with byte_fallback", "unimplemented", function(d) d.model.byte_fallback = true end)
  refused("pre_tokenizer Metaspace", "unimplemented", function(d) d.pre_tokenizer = { type = "Metaspace" } end)
  refused("without ByteLevel", "unimplemented", function(d) d.pre_tokenizer = pg.json.null end)
  refused("behavior MergedWithPrevious", "unimplemented", function(d)
    d.pre_tokenizer = { type = "Split", pattern = { String = " " }, behavior = "MergedWithPrevious", invert = false }
  end)
  refused('added token "<pad>" with lstrip', "unimplemented", function(d) d.added_tokens[2].lstrip = true end)
  refused("post_processor Other", "unimplemented", function(d) d.post_processor = { type = "Other" } end)
  refused("merge 1 is not of tokens", "data_loss", function(d) d.model.merges[1] = { "x", "nowhere" } end)
  refused("no model in it", "data_loss", function(d) d.model = nil end)
  refused("has the id -1", "data_loss", function(d) d.model.vocab["!"] = -1 end)
  local path = temporary("{")
  fails(t, path, "data_loss", text.bpe, path)
  os.remove(path)
  path = temporary("YQ== 0\n!! 1\n")
  fails(t, "line 2 is no token", "data_loss", text.bpe, { path, pattern = "gpt2" })
  os.remove(path)
  fails(t, "No such file", "not_found", text.bpe, "/nowhere/tokenizer.json")
end)
