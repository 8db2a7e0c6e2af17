-- SPDX-License-Identifier: Apache-2.0
-- Operators recorded into a graph and run by a session, with concrete and with symbolic sizes, give what they give
-- eagerly; so do their gradients.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check, array = require "cases.check", require "cases.array"

local function weights(t, k)
  local a = array.fill(check.array(t).shape, function(i) return math.sin(i * 0.739 + k) + 1.5 end)
  return check.tensor(a, t.dtype):to(t.device)
end

-- Sum of the outputs times fixed weights; nil when nothing has a gradient.
local function project(list, constants, make)
  local total
  for k, y in ipairs(list) do
    if constants[k] and y.requires_grad then
      local term = (y * make(constants[k], k)):sum()
      total = total and total + term or term
    end
  end
  return total
end

local function eager(op, row, case, args)
  pg.manual_seed(9)
  args = check.map_tensors(op, args, function(t) return t:clone() end)
  local leaves = check.differentiable(op, row, case) and check.leaves(op, row, case, args) or {}
  for _, leaf in ipairs(leaves) do leaf.requires_grad = true end
  local mutated = {}
  check.map_tensors(op, args, function(t, input)
    if check.is_mutated(input) then mutated[#mutated + 1] = t end
    return t
  end)
  local out = { native.call(op.name, args, case.attrs) }
  local constants = {}
  for k, y in ipairs(out) do constants[k] = check.is_floating(y) and weights(y, k) or false end
  local loss, gradients = project(out, constants, function(w) return w end), nil
  if loss then
    gradients = { pg.grad({ loss }, leaves, { allow_unused = true }) }
    if type(gradients[1]) == "table" then gradients = gradients[1] end
  end
  return { out = out, mutated = mutated, constants = constants, gradients = gradients, leaves = leaves }
end

local function build(op, row, case, args, want, size)
  local feeds, variables, sources, results = {}, {}, {}, {}
  local is_leaf = {}
  for i, leaf in ipairs(check.differentiable(op, row, case)
    and check.leaves(op, row, case, args) or {}) do is_leaf[leaf] = i end
  local g = pg.graph(function(g)
    local count = 0
    local nodes = check.map_tensors(op, args, function(t, input)
      count = count + 1
      if check.is_mutated(input) then
        variables[#variables + 1] = g:variable { "v" .. count, init = t:clone() }
        variables[#variables].requires_grad = false
        return variables[#variables]
      end
      local shape = {}
      for i, d in ipairs(t.shape) do shape[i] = d == size and "batch" or d end
      local node = g:placeholder { "p" .. count, shape = shape, dtype = t.dtype }
      feeds[#feeds + 1] = { "p" .. count, t }
      if is_leaf[t] then
        node.requires_grad = true
        sources[is_leaf[t]] = node
      end
      return node
    end)
    results = { native.call(op.name, nodes, case.attrs) }
    local named = {}
    for k, y in ipairs(results) do named["y" .. k] = y end
    local loss = project(results, want.constants, function(w, k) return g:constant(w, { name = "w" .. k }) end)
    named.loss = loss
    return named
  end)
  return g, feeds, variables, sources, results
end

-- Every axis of the symbol's size twice as long.
local function doubled(op, args, size)
  return check.map_tensors(op, args, function(t)
    for i = 1, t:dim() do
      if t.shape[i] == size then t = pg.cat({ t, t }, { axis = i }) end
    end
    return t
  end)
end

-- The same plan serves another size, where the operator allows one.
local function run_doubled(op, row, case, args, size, session, g, feeds)
  local more = doubled(op, args, size)
  local ok, want = pcall(eager, op, row, case, more)
  if not ok or #want.mutated > 0 then return end
  local values, at = {}, 0
  check.map_tensors(op, more, function(t)
    at = at + 1
    values[feeds[at][1]] = t
    return t
  end)
  pg.manual_seed(9)
  for k, y in ipairs(want.out) do
    if k == 1 then check.compare(session:run(g:find("y1"), values), check.array(y), row.class or "exact", "float64",
                                 "result of twice the size") end
  end
end

local function run(op, row, case, symbolic)
  local args = check.tensors(op, case, "float64")
  local size = symbolic and check.batch_of(op, args) or nil
  local want = eager(op, row, case, args)
  local g, feeds, variables, sources, results = build(op, row, case, args, want, size)
  local fetches = {}
  for k in ipairs(results) do fetches[k] = g:find("y" .. k) end
  local gradients = {}
  if want.gradients then
    gradients = g:gradients("loss", sources, { allow_unused = true })
    for i = 1, #sources do if gradients[i] then fetches[#fetches + 1] = gradients[i] end end
  end
  for _, v in ipairs(variables) do fetches[#fetches + 1] = v end
  local values, session = {}, pg.Session { g }
  for _, feed in ipairs(feeds) do values[feed[1]] = feed[2] end
  pg.manual_seed(9)
  local got = session:run(fetches, values)
  for k, y in ipairs(want.out) do
    check.compare(got[k], check.array(y), row.class or "exact", "float64", "result " .. k)
  end
  local at = #results
  for i = 1, #sources do
    local expected = want.gradients[i]
    if gradients[i] then at = at + 1 end
    if (expected == nil) ~= (gradients[i] == nil) then error("only one builder has gradient " .. i, 0) end
    if expected then check.compare(got[at], check.array(expected), "composed", "float64", "gradient " .. i) end
  end
  for i in ipairs(variables) do
    check.compare(got[at + i], check.array(want.mutated[i]), "composed", "float64", "variable " .. i)
  end
  if symbolic and not row.one_size then run_doubled(op, row, case, args, size, session, g, feeds) end
end

check.for_each(require "cases", function(op, row, case, name)
  if row.graph == false then return end
  test("recorded/" .. name, function() run(op, row, case, false) end)
  if row.symbolic ~= false and case.symbolic ~= false and not row.creates and
    check.batch_of(op, check.tensors(op, case, "float64")) then
    test("symbolic/" .. name, function() run(op, row, case, true) end)
  end
end)
