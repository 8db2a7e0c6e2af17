-- SPDX-License-Identifier: Apache-2.0
-- In which order the places of a pipeline compute: which stage's forward ("F") or backward ("B") of which micro-batch.
--
-- 1F1B (Narayanan et al., 2019): a place computes as many forwards as there are places behind it, then by turns a
-- forward and a backward, so that it never holds more activations than that. Interleaved (Narayanan et al., 2021): a
-- place has several stages, each as many places behind the one before, and what it waits for at both ends is shared by
-- them.

local M = {}

local function step(kind, stage, micro) return { kind = kind, stage = stage, micro = micro } end

-- What a place of `places` does first, and then by turns.
local function alternate(warm, total, forward, backward)
  local list = {}
  for k = 0, warm - 1 do list[#list + 1] = forward(k) end
  for k = 0, total - warm - 1 do
    list[#list + 1] = forward(warm + k)
    list[#list + 1] = backward(k)
  end
  for k = total - warm, total - 1 do list[#list + 1] = backward(k) end
  return list
end

local function one_by_one(place, places, micros)
  local stage = place + 1
  return alternate(math.min(places - place - 1, micros), micros,
                   function(k) return step("F", stage, k + 1) end, function(k) return step("B", stage, k + 1) end)
end

local function all_forwards_first(place, _, micros)
  local list, stage = {}, place + 1
  for m = 1, micros do list[#list + 1] = step("F", stage, m) end
  for m = 1, micros do list[#list + 1] = step("B", stage, m) end
  return list
end

-- Micro-batches go through the stages of a place in groups of as many as there are places.
local function interleaved(place, places, micros, each)
  local total, round = micros * each, places * each
  local function of(k, backwards)
    local turn = math.floor(k % round / places)
    local stage = (backwards and each - 1 - turn or turn) * places + place + 1
    return stage, math.floor(k / round) * places + k % places + 1
  end
  local warm = math.min((places - place - 1) * 2 + (each - 1) * places, total)
  if micros == places then warm = total end
  return alternate(warm, total, function(k) return step("F", of(k, false)) end,
                   function(k) return step("B", of(k, true)) end)
end

local kinds = { ["1f1b"] = one_by_one, gpipe = all_forwards_first, interleaved = interleaved }

---Names that there are.
M.names = { "1f1b", "interleaved", "gpipe" }

---What a place, from 0, does in a step of this many micro-batches; `each`: stages of a place.
---@return { kind: string, stage: integer, micro: integer }[]
function M.of(name, place, places, micros, each) return kinds[name](place, places, micros, each) end

-- Whether what it needs of other stages is there.
local function is_ready(s, stages, done)
  if s.kind == "F" then return s.stage == 1 or done["F" .. s.stage - 1 .. " " .. s.micro] end
  if s.stage == stages then return done["F" .. s.stage .. " " .. s.micro] end
  return done["B" .. s.stage + 1 .. " " .. s.micro]
end

---Goes through the lists of all places in an order in which each finds what it needs: visit(step, place).
function M.walk(lists, stages, visit)
  local at, done, left = {}, {}, 0
  for i, list in ipairs(lists) do at[i], left = 1, left + #list end
  while left > 0 do
    local moved = false
    for i, list in ipairs(lists) do
      local s = list[at[i]]
      if s and is_ready(s, stages, done) then
        visit(s, i - 1)
        done[s.kind .. s.stage .. " " .. s.micro] = true
        at[i], left, moved = at[i] + 1, left - 1, true
      end
    end
    if not moved then error "a schedule waits for itself" end
  end
end

---How long a step takes where a forward of a stage takes `forward` and a backward `backward`, and sending nothing; and
---the part of it that places wait: 1 - work / time.
function M.time(lists, stages, forward, backward)
  local free, finished, last = {}, {}, 0
  for i = 1, #lists do free[i] = 0 end
  M.walk(lists, stages, function(s, place)
    local from = s.kind == "F" and finished["F" .. s.stage - 1 .. " " .. s.micro] or
                 finished["B" .. s.stage + 1 .. " " .. s.micro] or finished["F" .. s.stage .. " " .. s.micro] or 0
    local over = math.max(free[place + 1], from) + (s.kind == "F" and forward or backward)
    free[place + 1], finished[s.kind .. s.stage .. " " .. s.micro], last = over, over, math.max(last, over)
  end)
  local work = 0
  for _, s in ipairs(lists[1]) do work = work + (s.kind == "F" and forward or backward) end
  return last, 1 - work / last
end

return M
