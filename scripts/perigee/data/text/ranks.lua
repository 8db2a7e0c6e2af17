-- SPDX-License-Identifier: Apache-2.0
-- tiktoken's files: a token in base64 and its rank a line. A rank is an id, and two neighbours become one token where
-- what they are together has a rank.

local native = require "perigee.native"
local BPE = require "perigee.data.text.bpe"
local pieces = require "perigee.data.text.pieces"
local SPAN = require("perigee.data.text.merge").SPAN

local WHERE = "data.text.bpe"
local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local value_of = {}
for i = 1, #DIGITS do value_of[DIGITS:byte(i)] = i - 1 end

-- Raw bytes of base64, or nil.
local function decode(text)
  if #text % 4 ~= 0 then return nil end
  local digits, padding = text:match "^([%w+/]*)(=?=?)$"
  if not digits then return nil end
  local out = {}
  for i = 1, #digits, 4 do
    local word = 0
    for k = 0, 3 do word = word * 64 + (value_of[digits:byte(i + k)] or 0) end
    out[#out + 1] = string.char(math.floor(word / 65536), math.floor(word / 256) % 256, word % 256)
  end
  return table.concat(out):sub(1, -1 - #padding)
end

local M = {}

---@param path string
---@param text string the file's
---@param o { pattern: string?, special: table<string, integer>? }
---@return perigee.Tokenizer
function M.read(path, text, o)
  if not o.pattern then
    native.raise("invalid_argument", WHERE, path .. " holds ranks: needs the pattern that cuts text into words",
                 'pattern="cl100k", pattern="gpt2" or one of your own')
  end
  local tokens, number = {}, 0
  for line in text:gmatch "[^\n]+" do
    number = number + 1
    local written, rank = line:match "^(%S+) (%d+)%s*$"
    local token = written and decode(written)
    rank = tonumber(rank)
    if not token or rank >= SPAN or tokens[rank] then
      native.raise("data_loss", WHERE, ("%s: line %d is no token in base64 and a rank of its own"):format(path, number))
    end
    tokens[rank] = token
  end
  local added = {}
  for content, id in pairs(o.special or {}) do
    if type(content) ~= "string" or content == "" or type(id) ~= "number" or id % 1 ~= 0 or id < 0 or tokens[id] then
      native.raise("invalid_argument", WHERE, ("special: %s must be a text with an id that no token has"):format(
                     tostring(content)))
    end
    added[content] = { id = id, special = true }
  end
  local pattern = pieces.PATTERNS[o.pattern] or o.pattern
  local bpe
  -- Whether a pair has a rank is found when it is first met.
  local results = {}
  local ranks = setmetatable({}, { __index = function(ranks, pair)
    local second = pair % SPAN
    local id = bpe.id_of[tokens[(pair - second) / SPAN] .. tokens[second]] or false
    ranks[pair], results[pair] = id, id or nil
    return id
  end })
  bpe = BPE.new { tokens = tokens, ranks = ranks, results = results, added = added, prefix = {}, suffix = {},
                  steps = { { find = pieces.compile(pattern, WHERE), drops_gaps = true } }, whole_words = true }
  return bpe
end

return M
