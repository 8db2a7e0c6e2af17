-- SPDX-License-Identifier: Apache-2.0
-- data.text: text as numbers. Ids count from 0.

local native = require "perigee.native"
local Vocabulary = require "perigee.data.text.vocabulary"

---@class perigee.data.text
local text = {}

---The 256 bytes, each under its own number.
---@return perigee.Vocabulary
function text.bytes(...)
  if select("#", ...) > 0 then
    native.raise("invalid_argument", "data.text.bytes", "takes no arguments", "data.text.bytes():encode(text)")
  end
  local tokens = {}
  for byte = 0, 255 do tokens[byte + 1] = string.char(byte) end
  return Vocabulary.new("bytes", tokens)
end

-- Tokens by how often they stand, equals in the order of their bytes; `first` before all others.
local function ordered(counts, first, least, size)
  local tokens = {}
  for token, count in pairs(counts) do
    if count >= least and token ~= first then tokens[#tokens + 1] = token end
  end
  table.sort(tokens, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b end)
  if first then table.insert(tokens, 1, first) end
  for i = #tokens, (size or #tokens) + 1, -1 do tokens[i] = nil end
  return tokens
end

local function check_limits(where, o)
  if o.least < 1 then
    native.raise("invalid_argument", where, "least must be at least 1, got " .. o.least)
  elseif o.size and o.size < 1 then
    native.raise("invalid_argument", where, "size must be at least 1, got " .. o.size)
  end
end

local LIMITS = {
  { "size", "integer", named = true, doc = "how many tokens at most, `unknown` with them" },
  { "least", "integer", default = 1, named = true, doc = "how often a token must stand" },
  { "unknown", "string", named = true, doc = "the token for all others; its id is 0" } }

-- One table by name of a call whose first argument may be a list itself: f(list, ..., options).
local function by_name(where, names, ...)
  local given, n, o = { ... }, select("#", ...), {}
  if n > #names and native.is_plain(given[#names + 1]) then
    for name, value in pairs(given[#names + 1]) do o[name] = value end
    n = n - 1
  end
  if n > #names then native.raise("invalid_argument", where, "too many arguments", "options are named, in a table") end
  for i = 1, n do o[names[i]] = given[i] end
  return o
end

local read_chars = native.signature("data.text.chars", {
  { "text", "string", required = true, doc = "whose characters, in UTF-8" }, unpack(LIMITS) })
---The characters of a text, the most frequent first.
---@return perigee.Vocabulary
function text.chars(...)
  local o = read_chars(...)
  check_limits("data.text.chars", o)
  local counts = {}
  for _, token in ipairs(Vocabulary.cut("chars", o.text)) do counts[token] = (counts[token] or 0) + 1 end
  return Vocabulary.new("chars", ordered(counts, o.unknown, o.least, o.size), o.unknown)
end

local read_vocabulary = native.signature("data.text.vocabulary", {
  { "words", "any", required = true, type = "string[]|string",
    doc = "all words as they stand in the text, or the path of a vocabulary that was saved" }, unpack(LIMITS) })
---Words, the most frequent first; or what vocabulary:save wrote.
---@return perigee.Vocabulary
function text.vocabulary(...)
  local first = ...
  local holds_all = select("#", ...) == 1 and native.is_plain(first) and (first.words or type(first[1]) == "table")
  local o = read_vocabulary(holds_all and first or by_name("data.text.vocabulary", { "words" }, ...))
  local words = o.words
  check_limits("data.text.vocabulary", o)
  if type(words) == "string" then
    if o.size or o.unknown or o.least > 1 then
      native.raise("invalid_argument", "data.text.vocabulary", "a saved one takes no options")
    end
    return Vocabulary.load(words)
  elseif not native.is_plain(words) then
    native.raise("invalid_argument", "data.text.vocabulary", "words must be a list or a path, got " ..
                 native.describe(words))
  end
  local counts, count = {}, 0
  for _ in pairs(words) do count = count + 1 end
  if count > #words then
    native.raise("invalid_argument", "data.text.vocabulary", "words must be a list; this one has names or holes",
                 "options stand behind it: data.text.vocabulary(words, {size=1000})")
  end
  for i, word in ipairs(words) do
    if type(word) ~= "string" then
      native.raise("invalid_argument", "data.text.vocabulary", ("word %d must be a string, got %s"):format(i,
                   native.describe(word)))
    end
    counts[word] = (counts[word] or 0) + 1
  end
  return Vocabulary.new("words", ordered(counts, o.unknown, o.least, o.size), o.unknown)
end

local read_bpe = native.signature("data.text.bpe", {
  { "path", "string", required = true, doc = "a tokenizer.json, or a file of ranks as tiktoken has them" },
  { "pattern", "string", named = true,
    doc = "of a file of ranks: the expression that cuts text into words, or \"gpt2\" or \"cl100k\" for theirs" },
  { "special", "table", named = true, doc = "of a file of ranks: special tokens and their ids" } })
---A tokenizer by byte-pair encoding, from a file: Hugging Face's tokenizer.json (GPT-2's and Llama 3's kind, over
---bytes)
---or tiktoken's ranks. The ids are those of the packages `tokenizers` and `tiktoken`; what a file asks for and is not
---here is refused by name. Needs PCRE2's library.
---@return perigee.Tokenizer
function text.bpe(...)
  local o = read_bpe(...)
  local file, reason = io.open(o.path, "rb")
  local contents = file and file:read "*a"
  if file then file:close() end
  if not contents then
    native.raise("not_found", "data.text.bpe", file and o.path .. " cannot be read" or tostring(reason))
  end
  if contents:match "^%s*{" then
    if o.pattern or o.special then
      native.raise("invalid_argument", "data.text.bpe", "pattern and special are for files of ranks")
    end
    local ok, document = pcall(require("perigee").json.decode, contents)
    if not ok then native.raise("data_loss", "data.text.bpe", ("%s: %s"):format(o.path, tostring(document))) end
    return require("perigee.data.text.tokenizer_json").read(o.path, document)
  end
  return require("perigee.data.text.ranks").read(o.path, contents, o)
end

local read_pack = native.signature("data.text.pack", {
  { "sequences", "any", required = true, type = "perigee.Dataset|(perigee.Tensor|integer[])[]",
    doc = "of ids: a list of tensors or tables, or a pipeline" },
  { "length", "integer", required = true, doc = "ids in a row" },
  { "separator", "integer", named = true, doc = "the id behind each sequence, as the end of a text" },
  { "pad", "integer", named = true, doc = "fills the last row up, which is left out if this is not given" },
  { "segments", "boolean", named = true, default = false,
    doc = "whether samples say, as `segments`, which of a row's sequences an id is of: 1, 2, ...; 0 where padded" },
  { "field", "string", named = true, default = "ids", doc = "of a pipeline: where its samples have the ids" } })
---Sequences laid end to end and cut into rows of `length`, so that nothing is padded but the last:
---`data.text.pack(sequences, 512, {separator=0})` has samples `ids`, int64 [length]. All are read at once.
---@return perigee.Dataset
function text.pack(...)
  local first = ...
  local holds_all = select("#", ...) == 1 and native.is_plain(first) and first.sequences ~= nil
  return require "perigee.data.text.pack"(read_pack(holds_all and first or
                                                    by_name("data.text.pack", { "sequences", "length" }, ...)))
end

local read_train = native.signature("data.text.train_bpe", {
  { "texts", "any", required = true, type = "string|string[]", doc = "to learn from" },
  { "size", "integer", required = true, doc = "how many tokens: special ones, 256 bytes, and what is merged" },
  { "least", "integer", default = 1, named = true, doc = "how often a pair must stand to be merged" },
  { "pattern", "string", named = true, doc = "what cuts text into words; GPT-2's if not given" },
  { "special", "table", named = true, type = "string[]", doc = "special tokens; their ids are 0, 1, ..." } })
---Learns a tokenizer by byte-pair encoding: data.text.train_bpe(text, 4096). The same merges as `tokenizers` learns.
---@return perigee.Tokenizer
function text.train_bpe(...)
  local first = ...
  local holds_all = select("#", ...) == 1 and native.is_plain(first)
  local o = read_train(holds_all and first or by_name("data.text.train_bpe", { "texts", "size" }, ...))
  local texts, size = o.texts, o.size
  texts = type(texts) == "string" and { texts } or texts
  local special = o.special or {}
  if not native.is_plain(texts) then
    native.raise("invalid_argument", "data.text.train_bpe", "texts must be a string or a list, got " ..
                 native.describe(texts))
  elseif size < 256 + #special then
    native.raise("invalid_argument", "data.text.train_bpe", ("size must be at least %d, got %d"):format(256 + #special,
                 size))
  elseif o.least < 1 then
    native.raise("invalid_argument", "data.text.train_bpe", "least must be at least 1, got " .. o.least)
  end
  for i, content in ipairs(special) do
    if type(content) ~= "string" or content == "" then
      native.raise("invalid_argument", "data.text.train_bpe", ("special token %d must be a text"):format(i))
    end
  end
  return require "perigee.data.text.train" { texts = texts, size = size, least = o.least, pattern = o.pattern,
                                             special = special }
end

return require("perigee.names.package").close(text, "data.text", "data")
