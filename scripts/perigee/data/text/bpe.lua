-- SPDX-License-Identifier: Apache-2.0
-- Tokenizers by byte-pair encoding over bytes, as GPT-2 and its successors have them.

local native = require "perigee.native"
local merging = require "perigee.data.text.merge"
local pieces = require "perigee.data.text.pieces"

local MOST_WORDS = 65536 -- whose ids are kept

---@class perigee.Tokenizer
local Tokenizer = {}
local M = {}

---What a file or a training has found, as a tokenizer.
---@param o table tokens (id -> bytes), ranks and results of pairs (merge.lua), added (content -> { id, special }),
---  steps ({ find, drops_gaps, prefix }), prefix, suffix (ids), whole_words, document (what is saved)
---@return perigee.Tokenizer
function M.new(o)
  o.id_of = {}
  for id, token in pairs(o.tokens) do o.id_of[token] = id end
  o.bytes = {}
  for byte = 0, 255 do o.bytes[byte] = o.id_of[string.char(byte)] end
  o.known, o.known_count = {}, 0
  local texts, count = {}, 0
  o.added_tokens = {}
  for content, added in pairs(o.added) do
    texts[#texts + 1] = content
    o.added_tokens[added.id] = { content = content, special = added.special }
    if o.tokens[added.id] == nil then count = count + 1 end
  end
  for _ in pairs(o.tokens) do count = count + 1 end
  o.count = count
  local pattern = pieces.any_of(texts)
  o.find_added = pattern and pieces.compile(pattern, "data.text.bpe")
  return setmetatable(o, Tokenizer)
end

---How many tokens it has.
---@return integer
function Tokenizer:size() return self.count end

function Tokenizer:__tostring() return ("BPE of %d tokens"):format(self.count) end

local function ids_of_word(self, word)
  local known = self.known[word]
  if known then return known end
  local ids
  if self.whole_words and self.id_of[word] then
    ids = { self.id_of[word] }
  else
    ids = {}
    for i = 1, #word do
      local id = self.bytes[word:byte(i)]
      if not id then
        native.raise("invalid_argument", "tokenizer:encode", ("no token stands for byte 0x%02X"):format(word:byte(i)))
      end
      ids[i] = id
    end
    merging.merge(ids, self.ranks, self.results)
  end
  if self.known_count >= MOST_WORDS then self.known, self.known_count = {}, 0 end
  self.known[word], self.known_count = ids, self.known_count + 1
  return ids
end

-- Adds the ids of a text without added tokens.
local function add_text(self, text, out)
  local steps, count = self.steps, #out
  local function visit(level, piece)
    local step = steps[level]
    if step then
      if step.prefix and piece:byte(1) ~= 32 then piece = " " .. piece end
      if not step.find then return visit(level + 1, piece) end
      return pieces.cut(step.find, piece, step.drops_gaps, function(part) visit(level + 1, part) end)
    end
    local ids = ids_of_word(self, piece)
    for i = 1, #ids do out[count + i] = ids[i] end
    count = count + #ids
  end
  visit(1, text)
end

---@param text string
---@param o? { special?: boolean, template?: boolean }
local function list_of(self, where, text, o)
  if type(text) ~= "string" then
    native.raise("invalid_argument", where, "text must be a string, got " .. native.describe(text))
  end
  local out = {}
  if o.template then
    for i, id in ipairs(self.prefix) do out[i] = id end
  end
  local from = 1
  while self.find_added and o.special and from <= #text do
    local first, last = self.find_added(text, from)
    if not first then break end
    if first > from then add_text(self, text:sub(from, first - 1), out) end
    out[#out + 1] = self.added[text:sub(first, last)].id
    from = last + 1
  end
  if from <= #text then add_text(self, text:sub(from), out) end
  if o.template then
    for _, id in ipairs(self.suffix) do out[#out + 1] = id end
  end
  return out
end

local OPTIONS = {
  { "text", "string", required = true, doc = "UTF-8; other bytes are kept as they are" },
  { "special", "boolean", default = true, named = true,
    doc = "added tokens that stand in the text are found; false: they are text like any other" },
  { "template", "boolean", default = true, named = true, doc = "what the file wants before and behind each text" } }
local read_ids = native.signature("tokenizer:ids", OPTIONS)
local read_encode = native.signature("tokenizer:encode", OPTIONS)

---The ids of a text, from 0, as a list.
---@return integer[]
function Tokenizer:ids(...)
  local o = read_ids(...)
  return list_of(self, "tokenizer:ids", o.text, o)
end

---The ids of a text, from 0, as a tensor [tokens] of int64.
---@return perigee.Tensor
function Tokenizer:encode(...)
  local o = read_encode(...)
  return require("perigee").tensor(list_of(self, "tokenizer:encode", o.text, o), { dtype = "int64" })
end

local function check_id(self, where, id)
  local added = type(id) == "number" and self.added_tokens[id]
  if not added and not (type(id) == "number" and self.tokens[id]) then
    native.raise("invalid_argument", where, ("there is no token %s"):format(tostring(id)),
                 ("ids count from 0; it has %d"):format(self.count))
  end
  return added
end

local read_decode = native.signature("tokenizer:decode", {
  { "ids", "any", required = true, type = "perigee.Tensor|integer[]", doc = "a tensor [tokens] or a list" },
  { "skip_special", "boolean", default = true, named = true, doc = "leaves special tokens out" } })

---The text of ids. Ids of a part of a text may end in the middle of a character.
---@return string
function Tokenizer:decode(...)
  local first, options = ...
  local is_call = select("#", ...) ~= 1 and options == nil or native.is_plain(first) and first.ids ~= nil
  local o
  if is_call or select("#", ...) > 2 or options ~= nil and not native.is_plain(options) then
    o = read_decode(...)
  else
    o = {}
    for name, value in pairs(options or {}) do o[name] = value end
    o.ids = first
    o = read_decode(o)
  end
  local ids = o.ids
  if native.is_tensor(ids) then
    if ids:dim() ~= 1 then
      native.raise("invalid_argument", "tokenizer:decode", ("ids must have one axis, got %d"):format(ids:dim()))
    end
    ids = ids:totable()
  elseif not native.is_plain(ids) then
    native.raise("invalid_argument", "tokenizer:decode", "ids must be a tensor or a list, got " .. native.describe(ids))
  end
  local parts = {}
  for _, id in ipairs(ids) do
    local added = check_id(self, "tokenizer:decode", id)
    if not added then
      parts[#parts + 1] = self.tokens[id]
    elseif not (added.special and o.skip_special) then
      parts[#parts + 1] = added.content
    end
  end
  return table.concat(parts)
end

---The bytes of a token.
---@param id integer from 0
---@return string
function Tokenizer:token(id)
  local added = check_id(self, "tokenizer:token", id)
  return added and added.content or self.tokens[id]
end

---The id of a token, or nil.
---@param token string its bytes
---@return integer? id
function Tokenizer:id(token)
  if type(token) ~= "string" then
    native.raise("invalid_argument", "tokenizer:id", "token must be a string, got " .. native.describe(token))
  end
  local added = self.added[token]
  return added and added.id or self.id_of[token]
end

---Writes a tokenizer.json, which data.text.bpe and the `tokenizers` package read.
---@param path string
function Tokenizer:save(path) require("perigee.data.text.tokenizer_json").save(self, path) end

native.checked.class(Tokenizer, { noun = "a tokenizer", call = "tokenizer",
                                  fields = "document find_added whole_words" })

return M
