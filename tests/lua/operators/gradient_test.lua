-- SPDX-License-Identifier: Apache-2.0
-- First and second derivatives in float64: on the CPU against central differences, on another device against the CPU.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check, array = require "cases.check", require "cases.array"

-- Fixed weights for the elements of a tensor, so that one number stands for all of them.
local function weights(t, salt)
  local a = array.fill(check.array(t).shape, function(i) return math.sin(i * 0.739 + salt) + 1.5 end)
  return check.tensor(a, t.dtype):to(t.device)
end

local function project(list, salt)
  local total
  for k, y in ipairs(list) do
    if y and native.dtypes.by_name[y.dtype].floating and y.requires_grad then
      local term = (y * weights(y, k + salt)):sum()
      total = total and total + term or term
    end
  end
  return total
end

-- Statistics that are inputs of their own are those of x: they move with it.
local function follow(op, case, args)
  local before = check.map_tensors(op, args, check.array)
  for i in ipairs(op.inputs) do
    if type(case[i]) == "table" and case[i].kind == "statistics" then args[i] = check.tensor(case[i].compute(before),
      "float64") end
  end
end

-- The arguments of a case with fresh leaves; `moved`: arrays in place of the leaves' values.
local function prepare(op, row, case, moved)
  local args = check.tensors(op, case, "float64")
  local wanted, leaves = {}, {}
  for i, t in ipairs(check.leaves(op, row, case, args)) do wanted[t] = i end
  args = check.map_tensors(op, args, function(t)
    local i = wanted[t]
    if not i then return t end
    leaves[i] = moved and check.tensor(moved[i], "float64") or t
    leaves[i].requires_grad = true
    return leaves[i]
  end)
  if moved then follow(op, case, args) end
  return args, leaves
end

local function outputs(op, case, args)
  return { native.call(op.name, args, case.attrs) }
end

-- The number whose derivative is checked: of order 1 the outputs' projection, of order 2 that of the gradients.
local function value(op, row, case, order, moved)
  local args, leaves = prepare(op, row, case, moved)
  pg.manual_seed(5)
  local loss = project(outputs(op, case, args), 0)
  if order == 1 or not loss then return loss, leaves end
  local first = pg.grad(loss, leaves, { create_graph = true, allow_unused = true })
  if native.is_tensor(first) then first = { first } end
  first = first or {} -- the one leaf's gradient may be absent
  local list = {}
  for i = 1, #leaves do list[i] = first[i] or false end
  return project(list, 20), leaves
end

-- The leaves and their gradients, as arrays; a gradient is nil where nothing depends on the leaf.
local function gradients(op, row, case, order)
  local loss, leaves = value(op, row, case, order)
  local values, list = {}, {}
  for i, leaf in ipairs(leaves) do values[i] = check.array(leaf) end
  if not loss then return values, list end
  local found = { pg.grad({ loss }, leaves, { allow_unused = true }) }
  if type(found[1]) == "table" then found = found[1] end
  for i = 1, #leaves do list[i] = found[i] and check.array(found[i]) end
  return values, list
end

local EPS = { 1e-6, 1e-5 }
local MOST = 8 -- elements of an input that are moved one by one, evenly spread

-- Moves every element along a direction with no two numbers alike, then some of them by themselves.
local function check_order(op, row, case, order)
  local values, got = gradients(op, row, case, order)
  local eps = EPS[order]
  for i, leaf in ipairs(values) do
    local data, found = leaf.data, got[i] and got[i].data or {}
    local function compare(direction, what)
      local before, g = data, 0
      local function at(d)
        local moved = {}
        for k = 1, #before do moved[k] = before[k] + d * direction(k) end
        leaf.data = moved
        local v = value(op, row, case, order, values)
        return v and v:item() or 0
      end
      local slope = (at(eps) - at(-eps)) / (2 * eps)
      leaf.data = before
      for k = 1, #before do g = g + (found[k] or 0) * direction(k) end
      local off = math.abs(g - slope)
      if off ~= off or off > 1e-5 + 1e-5 * math.abs(slope) then
        error(("order %d, input %d, %s of [%s]: the gradient is %.9g, differences give %.9g"):format(
                order, i, what, table.concat(leaf.shape, ", "), g, slope), 0)
      end
    end
    if #data > 0 then compare(function(k) return math.sin(k * 1.913 + i) end, "all elements") end
    for k = 1, #data, math.floor(#data / MOST) + 1 do
      compare(function(n) return n == k and 1 or 0 end, "element " .. k)
    end
  end
end

-- Another device has the CPU's gradients, which the differences have confirmed.
local function check_device(op, row, case, order)
  local _, got = gradients(op, row, case, order)
  local values, want = pg.device("cpu", function() return gradients(op, row, case, order) end)
  for i = 1, #values do
    local most = 0
    for _, x in ipairs(want[i] and want[i].data or {}) do most = math.max(most, math.abs(x)) end
    for k, x in ipairs(want[i] and want[i].data or {}) do
      local g = got[i] and got[i].data[k] or 0
      local off = math.abs(g - x)
      if off ~= off or off > 1e-10 * (1 + most) then
        error(("order %d, input %d, element %d: the gradient is %.15g, on the CPU %.15g"):format(order, i, k, g, x), 0)
      end
    end
    if got[i] and not want[i] then error(("order %d, input %d has a gradient only here"):format(order, i), 0) end
  end
end

local check_gradients = pg.device() == "cpu" and check_order or check_device

check.for_each(require "cases", function(op, row, case, name)
  if not check.differentiable(op, row, case) or case.special then return end
  test("gradient/" .. name, function() check_gradients(op, row, case, 1) end)
  if row.second ~= false and case.second ~= false then
    test("second/" .. name, function() check_gradients(op, row, case, 2) end)
  end
end)
