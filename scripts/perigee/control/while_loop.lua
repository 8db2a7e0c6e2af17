-- SPDX-License-Identifier: Apache-2.0
-- pg.while_loop: a loop for as long as a tensor says.

local native = require "perigee.native"
local structure = require "perigee.control.structure"
local check_condition = require("perigee.control.cond").check_condition

local WHERE = "while_loop"

local function check_answer(answer) return check_condition(WHERE, "what cond returned", answer) end

-- The leaves of what the body makes of a state.
local function step(o, state, now)
  local leaves, spec, names = structure.call(WHERE, "the body", state.leaves, o.body, now)
  structure.check_same(WHERE, "what the body returned", spec, state.spec)
  structure.check_kinds(WHERE, names, leaves, state.leaves, "the state keeps its dtype and sizes")
  return leaves
end

local function run_eagerly(o, state)
  local leaves, done = state.leaves, 0
  while not o.max_iterations or done < o.max_iterations do
    local go_on = check_answer((o.cond(structure.build(state.spec, leaves))))
    if type(go_on) ~= "boolean" then go_on = go_on:item() end
    if not go_on then break end
    leaves, done = step(o, state, structure.build(state.spec, leaves)), done + 1
  end
  return structure.build(state.spec, leaves)
end

local read = native.signature(WHERE, {
  { "state", "any", required = true, named = true, type = "perigee.Tensor|number|table",
    doc = "what the first iteration gets: a tensor, or a table of them" },
  { "cond", "function", required = true, named = true, type = "fun(state): boolean|perigee.Tensor" },
  { "body", "function", required = true, named = true, type = "fun(state): any" },
  { "max_iterations", "integer", named = true, doc = "where the loop ends, whatever cond says" } })

---A loop: `pg.while_loop{state={x=x, n=0}, cond=function(s) return s.n:lt(10) end, body=function(s)
---return { x = s.x / 2, n = s.n + 1 } end}`. As long as cond(state), a bool tensor of one element, is true, body(state)
---gives the next state: a tensor, or a table of them by position or name, of the same dtypes and sizes. Answers the
---last one. Gradients flow through it. In a graph both functions are recorded once, as parts of one node; they may use
---tensors from outside, but not write into them.
---@return perigee.Tensor|table state
local function while_loop(...)
  local o = read(...)
  if o.max_iterations and o.max_iterations < 0 then
    native.raise("invalid_argument", WHERE, ("max_iterations must be 0 or more, got %d"):format(o.max_iterations))
  end
  local state = {}
  state.leaves, state.spec, state.names = structure.flatten(WHERE, "state", o.state)
  if #state.leaves == 0 then native.raise("invalid_argument", WHERE, "state has no tensors") end
  if not structure.is_recorded(state.leaves) then return run_eagerly(o, state) end
  return require("perigee.control.recorded").while_loop(WHERE, o, state, {
    condition = check_answer, body = function(like, now) return step(o, like, now) end })
end

return { while_loop = while_loop }
