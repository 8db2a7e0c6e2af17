-- SPDX-License-Identifier: Apache-2.0
-- Replicas of one process, which take turns: each runs in a coroutine until it asks for what concerns all, and goes on
-- once all have asked for the same.

local native = require "perigee.native"

local M = {}

local ASK = {} -- what tells a question from a script's own yield

---Waits for all replicas; `what` names the call. Answers what `serve` (run) gives this one.
function M.ask(what, ...) return coroutine.yield(ASK, what, ...) end

local function pack(...) return { n = select("#", ...), ... } end

-- Runs replica k until it asks, or ends.
local function go_on(state, k, answer)
  local got = pack(coroutine.resume(state.threads[k], unpack(answer, 1, answer.n)))
  if not got[1] then error(got[2], 0) end
  if coroutine.status(state.threads[k]) == "dead" then
    state.results[k], state.running = { n = got.n - 1, unpack(got, 2, got.n) }, state.running - 1
    return nil
  end
  if got[2] ~= ASK then
    native.raise("failed_precondition", state.where, "the function yields, and only what runs it could resume it")
  end
  return { what = got[3], unpack(got, 4, got.n) }
end

local function is_same(a, b) return (a and a.what) == (b and b.what) and (a and a[1]) == (b and b[1]) end

local function refuse(state, questions, k, names)
  local function place(q) return q and "is at " .. q.what or "has ended" end
  local other = questions[1] and questions[k] and questions[1].what == questions[k].what and " of another object" or ""
  native.raise("failed_precondition", state.where, ("replicas do not do the same: %s %s, %s %s%s"):format(
                 names[1], place(questions[1]), names[k], place(questions[k]), other))
end

---Runs start(k) for each replica; serve(questions) answers what all have asked for: a list of lists of values.
---@param where string
---@param names string[] what messages call the replicas
---@param start function
---@param serve function
---@return table[] results by replica, with their number in `n`
function M.run(where, names, start, serve)
  local state = { where = where, threads = {}, results = {}, running = #names }
  local answers = {}
  for k = 1, #names do
    state.threads[k] = coroutine.create(start)
    answers[k] = { n = 1, k }
  end
  while true do
    local questions = {}
    for k = 1, #names do questions[k] = go_on(state, k, answers[k]) or false end
    for k = 2, #names do
      if not is_same(questions[1], questions[k]) then refuse(state, questions, k, names) end
    end
    if state.running == 0 then return state.results end
    answers = serve(questions)
  end
end

return M
