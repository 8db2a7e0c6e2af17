-- SPDX-License-Identifier: Apache-2.0
-- Byte-pair encoding of one word (Sennrich, Haddow, Birch 2016): of all neighbours the pair with the least rank becomes
-- one token, the leftmost first, until no pair has a rank.

local M = {}

-- A pair is one number: ids stay below 2^26.
M.SPAN = 2 ^ 26
local SPAN = M.SPAN

-- Of the word at work; kept, so that words leave no garbage. Candidates lie in a heap as rank * SPAN + place, which
-- orders them by rank and then by place.
local before, after, heap = {}, {}, {}
local size

local function push(value)
  size = size + 1
  local i = size
  while i > 1 do
    local parent = (i - i % 2) / 2
    if heap[parent] <= value then break end
    heap[i] = heap[parent]
    i = parent
  end
  heap[i] = value
end

local function pop()
  local least, last = heap[1], heap[size]
  size = size - 1
  local i = 1
  while 2 * i <= size do
    local child = 2 * i
    if child < size and heap[child + 1] < heap[child] then child = child + 1 end
    if last <= heap[child] then break end
    heap[i] = heap[child]
    i = child
  end
  heap[i] = last
  return least
end

---Merges ids in place; those that went into another one are taken out.
---@param ids integer[]
---@param ranks table<number, number|false> of pairs, first * SPAN + second
---@param results table<number, integer> what a pair becomes
---@return integer[] ids the same list
function M.merge(ids, ranks, results)
  local n = #ids
  size = 0
  for i = 1, n do
    before[i], after[i] = i - 1, i < n and i + 1 or 0
    local rank = i < n and ranks[ids[i] * SPAN + ids[i + 1]]
    if rank then push(rank * SPAN + i) end
  end
  while size > 0 do
    local entry = pop()
    local place = entry % SPAN
    local first, next_place = ids[place], after[place]
    -- What it was found for may have been merged since.
    if first >= 0 and next_place ~= 0 then
      local pair = first * SPAN + ids[next_place]
      if ranks[pair] == (entry - place) / SPAN then
        local merged = results[pair]
        ids[place], ids[next_place] = merged, -1
        local behind, ahead = after[next_place], before[place]
        after[place] = behind
        if behind ~= 0 then
          before[behind] = place
          local rank = ranks[merged * SPAN + ids[behind]]
          if rank then push(rank * SPAN + place) end
        end
        if ahead ~= 0 then
          local rank = ranks[ids[ahead] * SPAN + merged]
          if rank then push(rank * SPAN + ahead) end
        end
      end
    end
  end
  local kept = 0
  for i = 1, n do
    local id = ids[i]
    if id >= 0 then
      kept = kept + 1
      ids[kept] = id
    end
  end
  for i = kept + 1, n do ids[i] = nil end
  return ids
end

return M
