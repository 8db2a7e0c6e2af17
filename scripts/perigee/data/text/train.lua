-- SPDX-License-Identifier: Apache-2.0
-- Learns the merges of byte-pair encoding from text: the pair of neighbours that stands most often becomes a token,
-- again and again; of equals the one with the lesser ids.

local native = require "perigee.native"
local letters = require "perigee.data.text.letters"
local pieces = require "perigee.data.text.pieces"
local tokenizer_json = require "perigee.data.text.tokenizer_json"
local SPAN = require("perigee.data.text.merge").SPAN

local WHERE = "data.text.train_bpe"

-- Words and how often they stand.
local function count_words(texts, find)
  local counts, words = {}, {}
  local function visit(word)
    if not counts[word] then words[#words + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  for i, text in ipairs(texts) do
    if type(text) ~= "string" then
      native.raise("invalid_argument", WHERE, ("text %d must be a string, got %s"):format(i, native.describe(text)))
    end
    pieces.cut(find, text, false, visit)
  end
  return words, counts
end

-- A heap of pairs whose first one stands most often. What it says of a pair may be too much, never too little.
local Heap = {}
Heap.__index = Heap

local function comes_first(count, pair, other_count, other_pair)
  return count > other_count or count == other_count and pair < other_pair
end

function Heap:push(pair, count)
  local pairs_, counts, i = self.pairs, self.counts, #self.pairs + 1
  while i > 1 do
    local parent = math.floor(i / 2)
    if not comes_first(count, pair, counts[parent], pairs_[parent]) then break end
    pairs_[i], counts[i] = pairs_[parent], counts[parent]
    i = parent
  end
  pairs_[i], counts[i] = pair, count
end

function Heap:pop()
  local pairs_, counts = self.pairs, self.counts
  local pair, count, size = pairs_[1], counts[1], #pairs_
  local last_pair, last_count = pairs_[size], counts[size]
  pairs_[size], counts[size] = nil, nil
  size = size - 1
  if size == 0 then return pair, count end
  local i = 1
  while 2 * i <= size do
    local child = 2 * i
    if child < size and comes_first(counts[child + 1], pairs_[child + 1], counts[child], pairs_[child]) then
      child = child + 1
    end
    if not comes_first(counts[child], pairs_[child], last_count, last_pair) then break end
    pairs_[i], counts[i] = pairs_[child], counts[child]
    i = child
  end
  pairs_[i], counts[i] = last_pair, last_count
  return pair, count
end

-- Pairs of all words: how often each stands, and the words that had it when it was met.
local function count_pairs(symbols, weights)
  local count_of, words_of = {}, {}
  for w, ids in ipairs(symbols) do
    for i = 1, #ids - 1 do
      local pair = ids[i] * SPAN + ids[i + 1]
      count_of[pair] = (count_of[pair] or 0) + weights[w]
      words_of[pair] = words_of[pair] or {}
      words_of[pair][w] = true
    end
  end
  return count_of, words_of
end

local function add_pairs(ids, weight, count_of, touched)
  for i = 1, #ids - 1 do
    local pair = ids[i] * SPAN + ids[i + 1]
    count_of[pair] = (count_of[pair] or 0) + weight
    if touched then touched[pair] = true end
  end
end

local function merged(ids, first, second, result)
  local out, i = {}, 1
  while i <= #ids do
    if ids[i] == first and ids[i + 1] == second then
      out[#out + 1] = result
      i = i + 2
    else
      out[#out + 1] = ids[i]
      i = i + 1
    end
  end
  return out
end

---@param o { texts: string[], size: integer, least: integer, pattern: string?, special: string[] }
---@return perigee.Tokenizer
return function(o)
  local pattern = pieces.PATTERNS[o.pattern or "gpt2"] or o.pattern
  local words, counts = count_words(o.texts, pieces.compile(pattern, WHERE))

  -- Special tokens come first, then bytes in the order of the letters that they are written as.
  local tokens, merges, next_id, id_of_byte, order = {}, {}, #o.special, {}, {}
  for byte = 0, 255 do order[byte + 1] = byte end
  -- Letters of two bytes stand behind those of one, and strings of bytes compare as their code points do.
  table.sort(order, function(a, b) return letters.of[a] < letters.of[b] end)
  for _, byte in ipairs(order) do
    id_of_byte[byte], tokens[next_id] = next_id, string.char(byte)
    next_id = next_id + 1
  end

  local symbols, weights = {}, {}
  for w, word in ipairs(words) do
    symbols[w], weights[w] = {}, counts[word]
    for i = 1, #word do symbols[w][i] = id_of_byte[word:byte(i)] end
  end
  local count_of, words_of = count_pairs(symbols, weights)
  local heap = setmetatable({ pairs = {}, counts = {} }, Heap)
  for pair, count in pairs(count_of) do heap:push(pair, count) end

  while next_id < o.size and #heap.pairs > 0 do
    local pair, count = heap:pop()
    local now = count_of[pair] or 0
    if now < count then
      if now > 0 then heap:push(pair, now) end -- it was said too often
    elseif count < o.least then
      break
    else
      local second = pair % SPAN
      local first, result, touched = (pair - second) / SPAN, next_id, {}
      tokens[result] = tokens[first] .. tokens[second]
      merges[#merges + 1] = { first, second }
      next_id = next_id + 1
      for w in pairs(words_of[pair]) do
        add_pairs(symbols[w], -weights[w], count_of)
        symbols[w] = merged(symbols[w], first, second, result)
        local had = {}
        add_pairs(symbols[w], weights[w], count_of, had)
        for other in pairs(had) do
          local other_second = other % SPAN
          if other_second == result or (other - other_second) / SPAN == result then
            touched[other] = true
            words_of[other] = words_of[other] or {}
            words_of[other][w] = true
          end
        end
      end
      count_of[pair], words_of[pair] = nil, nil
      for other in pairs(touched) do heap:push(other, count_of[other]) end
    end
  end
  local is_default = pattern == pieces.PATTERNS.gpt2
  return tokenizer_json.read("the new tokenizer", tokenizer_json.document(tokens, merges, o.special,
                                                                            not is_default and pattern or nil))
end
