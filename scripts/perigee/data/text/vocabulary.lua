-- SPDX-License-Identifier: Apache-2.0
-- Tokens by number, from 0: bytes, characters, or words that the caller has cut.

local native = require "perigee.native"

---@class perigee.Vocabulary
---@field unknown string? the token that stands for those that it does not have
local Vocabulary = {}
local M = {}

local KINDS = { bytes = true, chars = true, words = true }
local CHARACTER = "[%z\1-\127\194-\244][\128-\191]*"

---@param kind "bytes"|"chars"|"words"
---@param tokens string[] token i has the id i - 1
---@param unknown? string
function M.new(kind, tokens, unknown)
  local ids = {}
  for i, token in ipairs(tokens) do ids[token] = i - 1 end
  return setmetatable({ kind = kind, tokens = tokens, ids = ids, unknown = unknown }, Vocabulary)
end

---How many tokens it has.
---@return integer
function Vocabulary:size() return #self.tokens end

function Vocabulary:__tostring() return ("vocabulary of %d %s"):format(#self.tokens, self.kind) end

---The token with an id.
---@param id integer from 0
---@return string
function Vocabulary:token(id)
  local token = type(id) == "number" and self.tokens[id + 1]
  if not token then
    native.raise("invalid_argument", "vocabulary:token", ("there is no token %s"):format(tostring(id)),
                 #self.tokens > 0 and ("ids are 0 to %d"):format(#self.tokens - 1) or "it is empty")
  end
  return token
end

---The id of a token; of one that it does not have, that of `unknown`, or nil where there is none.
---@param token string
---@return integer? id
function Vocabulary:id(token)
  if type(token) ~= "string" then
    native.raise("invalid_argument", "vocabulary:id", "token must be a string, got " .. native.describe(token))
  end
  return self.ids[token] or self.unknown and self.ids[self.unknown] or nil
end

---The tokens of a text: its bytes or its characters.
---@param kind "bytes"|"chars"
---@param text string
---@return string[]
function M.cut(kind, text)
  local tokens = {}
  for token in text:gmatch(kind == "bytes" and "." or CHARACTER) do tokens[#tokens + 1] = token end
  return tokens
end

local function tokens_of(self, text)
  if self.kind == "words" then
    if native.is_plain(text) then return text end
    native.raise("invalid_argument", "vocabulary:encode", "needs a list of words, got " .. native.describe(text))
  end
  if type(text) ~= "string" then
    native.raise("invalid_argument", "vocabulary:encode", "needs a string, got " .. native.describe(text))
  end
  return M.cut(self.kind, text)
end

---The ids of a text, or of a list of words, as a tensor [tokens] of int64.
---@param text string|string[] a list where the vocabulary is one of words
---@return perigee.Tensor
function Vocabulary:encode(text)
  local ids = {}
  for i, token in ipairs(tokens_of(self, text)) do
    local id = self:id(token)
    if not id then
      native.raise("invalid_argument", "vocabulary:encode", ("has no token %q, at %d"):format(token, i),
                   "unknown= when it is made gives such tokens an id")
    end
    ids[i] = id
  end
  return require("perigee").tensor(ids, { dtype = "int64" })
end

---The text of ids; of words the list.
---@param ids perigee.Tensor|integer[]
---@return string|string[]
function Vocabulary:decode(ids)
  if native.is_tensor(ids) then
    if ids:dim() ~= 1 then
      native.raise("invalid_argument", "vocabulary:decode", ("ids must have one axis, got %d"):format(ids:dim()))
    end
    ids = ids:totable()
  elseif type(ids) ~= "table" then
    native.raise("invalid_argument", "vocabulary:decode", "ids must be a tensor or a list, got " ..
                 native.describe(ids))
  end
  local tokens = {}
  for i, id in ipairs(ids) do tokens[i] = self:token(id) end
  return self.kind == "words" and tokens or table.concat(tokens)
end

local function copied(list)
  local out = {}
  for i, v in ipairs(list) do out[i] = v end
  return out
end

---Writes it as a JSON file, which data.text.vocabulary reads.
---@param path string
function Vocabulary:save(path)
  local json = require("perigee").json
  json.save(path, { kind = self.kind, tokens = json.array(copied(self.tokens)),
                    unknown = self.unknown or json.null })
end

---What :save wrote.
---@param path string
---@return perigee.Vocabulary
function M.load(path)
  local json = require("perigee").json
  local document = json.load(path)
  local tokens = type(document) == "table" and document.tokens
  local is_whole = type(tokens) == "table" and KINDS[document.kind] or false
  local seen = {}
  for _, token in ipairs(is_whole and tokens or {}) do
    is_whole = is_whole and type(token) == "string" and not seen[token]
    seen[token] = true
  end
  if not is_whole then
    native.raise("data_loss", "data.text.vocabulary", path .. " does not hold a vocabulary")
  end
  local unknown = document.unknown ~= json.null and document.unknown or nil
  return M.new(document.kind, copied(tokens), unknown)
end

native.checked.class(Vocabulary, { noun = "a vocabulary", call = "vocabulary", fields = "unknown" })

return M
