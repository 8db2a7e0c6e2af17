-- SPDX-License-Identifier: Apache-2.0
-- What byte-pair encoding works on: text is cut at added tokens, then by patterns into words.

local native = require "perigee.native"

local M = {}

-- The patterns of published models, by the name that tiktoken gives them.
M.PATTERNS = {
  gpt2 = [['(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+]],
  cl100k = [['(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|]] ..
           [[\s*[\r\n]|\s+(?!\S)|\s]],
}

-- Spaces as Unicode means them: in PCRE2's \s there is also U+180E, which has not been one for long.
local function with_unicode_spaces(pattern)
  return (pattern:gsub("\\(.)", function(c)
    return c == "s" and "\\p{White_Space}" or c == "S" and "\\P{White_Space}" or "\\" .. c
  end))
end

---@param pattern string
---@param where string who asks, for errors
---@return fun(text: string, from: integer): integer?, integer?
function M.compile(pattern, where)
  local find, problem = native.regex.compile(with_unicode_spaces(pattern))
  if not find then
    native.raise("invalid_argument", where, ("pattern %q: %s"):format(pattern, problem))
  end
  return find
end

---Cuts a text: what a pattern finds are words, and what lies between is one as well, or left out.
---@param find fun(text: string, from: integer): integer?, integer?
---@param text string
---@param drops_gaps boolean
---@param visit fun(piece: string)
function M.cut(find, text, drops_gaps, visit)
  local from, length = 1, #text
  local start = 1 -- of what has not been given yet
  while from <= length do
    local first, last = find(text, from)
    if not first then break end
    if last >= first then
      if first > start and not drops_gaps then visit(text:sub(start, first - 1)) end
      visit(text:sub(first, last))
      start, from = last + 1, last + 1
    else
      from = first + 1 -- it matched nothing: go on behind the character there
      while from <= length and text:byte(from) >= 128 and text:byte(from) < 192 do from = from + 1 end
    end
  end
  if start <= length and not drops_gaps then visit(text:sub(start)) end
end

---A pattern that finds one of some texts, the longest first.
---@param texts string[]
---@return string? pattern nil for none
function M.any_of(texts)
  if #texts == 0 then return nil end
  local sorted = {}
  for i, text in ipairs(texts) do sorted[i] = text end
  table.sort(sorted, function(a, b) return #a > #b or #a == #b and a < b end)
  for i, text in ipairs(sorted) do sorted[i] = text:gsub("[^%w\128-\255]", "\\%0") end
  return table.concat(sorted, "|")
end

return M
