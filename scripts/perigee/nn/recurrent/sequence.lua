-- SPDX-License-Identifier: Apache-2.0
-- A layer's loop over the steps, in one direction. Rows may end early: step t of a packed sequence has sizes[t] rows,
-- never more than the step before it.
--
-- Where a gradient is wanted the whole loop is one node of the tape. Its way back goes through the steps once more and
-- leaves the product with the hidden state's weights to one multiplication over all of them; gradients of gradients
-- come from recording the loop's own operators.

local native = require "perigee.native"
local tensor = native.tensor

local sequence = {}
local function pg() return require "perigee" end

-- The steps of x [T, n, ...], or of packed rows, as a list of tensors; and the way back.
local function apart(x, sizes)
  if sizes then return x:split(sizes, 1) end
  return x:unbind(1)
end
local function together(list, sizes)
  if sizes then return pg().cat { list, axis = 1 } end
  return pg().stack { list, axis = 1 }
end

-- A state with as many rows as the next step has: more of them begin as `source` has it, those that end go to `ended`.
local function fit(state, rows, source, ended)
  local now = state:size(1)
  if now == rows then return state end
  if now > rows then
    ended[#ended + 1] = state:narrow(1, rows + 1, now - rows)
    return state:narrow(1, 1, rows)
  end
  return pg().cat { state, source:narrow(1, now + 1, rows - now), axis = 1 }
end

-- All rows again.
local function whole(state, ended)
  if #ended == 0 then return state end
  local list = { state }
  for i = #ended, 1, -1 do list[#list + 1] = ended[i] end
  return pg().cat { list, axis = 1 }
end

local function begin(source, rows)
  if not rows or rows == source:size(1) then return source end
  return source:narrow(1, 1, rows)
end

-- The loop: y, the last h and c. keep(t, h, saved) is shown what each step's way back needs.
local function run(cell, o, x, h0, c0, w, keep)
  local xs, sizes = apart(x, o.sizes), o.sizes
  local count = #xs
  local first, last, by = 1, count, 1
  if o.reverse then first, last, by = count, 1, -1 end
  local h, c = begin(h0, sizes and sizes[first]), c0 and begin(c0, sizes and sizes[first])
  local ys, ended_h, ended_c = {}, {}, {}
  local step = w.tidy and cell.run or cell.step
  for t = first, last, by do
    if sizes then
      h = fit(h, sizes[t], h0, ended_h)
      c = c and fit(c, sizes[t], c0, ended_c)
    end
    local before = h
    h, c = step(xs[t], h, c, w, keep and function(saved) keep(t, before, saved) end)
    ys[t] = h
  end
  return together(ys, sizes), whole(h, ended_h), c and whole(c, ended_c)
end

-- The loop as one node of a graph, whose number of steps only a run tells.
local function scan(cell, o, x, h0, c0, w)
  local last, y = pg().scan { init = { h0, c0 }, xs = x, reverse = o.reverse or false, body = function(carry, gates)
    local h, c = cell.step(gates, carry[1], carry[2], w)
    return { h, c }, h
  end }
  return y, last[1], last[2]
end

-- One step back. Nothing here is recorded.
local function step_back(cell, step, dh, dy, dc, w)
  if dy then dh = dh + dy end
  local dx, direct, new_dc, dhidden = cell.back(step.saved, dh, dc, w)
  dhidden = dhidden or dx
  local new_dh = dhidden:matmul(w.hidden)
  if direct then new_dh = new_dh + direct end
  return dh, dx, dhidden, new_dh, new_dc
end

-- The gradients of a loop's inputs, by name. `steps[t]` = { h = before the step, saved = }; dy, dh, dc may be missing.
local function run_back(cell, o, steps, w, dy, dh_last, dc_last, like)
  local sizes, count, tidy = o.sizes, #steps, native.lifetimes.tidy
  local first, last, by = count, 1, -1
  if o.reverse then first, last, by = 1, count, 1 end
  local function zeros(t) return pg().zeros(t.shape, { dtype = t.dtype, device = t.device }) end
  dh_last = dh_last or zeros(like.h0)
  if cell.has_cell then dc_last = dc_last or zeros(like.c0) end
  local dys = dy and apart(dy, sizes)
  local dh, dc = begin(dh_last, sizes and sizes[first]), dc_last and begin(dc_last, sizes and sizes[first])
  local dxs, dhiddens, dhs, begun_h, begun_c = {}, {}, {}, {}, {}
  for t = first, last, by do
    if sizes then
      dh = fit(dh, sizes[t], dh_last, begun_h)
      dc = dc and fit(dc, sizes[t], dc_last, begun_c)
    end
    dhs[t], dxs[t], dhiddens[t], dh, dc = tidy(step_back, cell, steps[t], dh, dys and dys[t], dc, w)
  end
  return { dxs = dxs, dhiddens = dhiddens, dhs = dhs, h0 = whole(dh, begun_h), c0 = dc and whole(dc, begun_c) }
end

local function rows_of(list) return pg().cat { list, axis = 1 } end

-- Whether one operator takes all steps.
local function at_once(cell, o, w) return cell.all and not o.sizes and not w.projection end

-- The loop as one operator: y, the last h and c, and what its way back needs.
local function run_at_once(cell, o, x, h0, c0, w, keep)
  local y, states, gates = cell.all(x, h0, c0, w, o.reverse or false, keep)
  local last = o.reverse and 1 or x:size(1)
  local h = y:select(1, last):clone() -- memory of its own: who keeps a state does not keep all steps
  if not keep then
    native.handles.close(gates)
    return y, h, states:select(1, 1)
  end
  return y, h, states:select(1, last):clone(), { y = y, states = states, gates = gates }
end

-- Its gradients, in the order of `like.names`.
local function gradients_at_once(cell, o, saved, w, pass, like)
  local reverse, need, list, by_name = o.reverse or false, pass.needed, {}, {}
  local dx
  dx, by_name.h0, by_name.c0 = cell.all_back(pass.cotangents, saved, saved.c0, w, reverse)
  by_name.x = dx
  for i, name in ipairs(like.names) do
    if not need[i] then
      list[i] = false
    elseif name == "hidden" then -- by h before each step
      local steps = dx:size(1)
      local first, rest = saved.h0:unsqueeze(1), saved.y:narrow(1, reverse and 2 or 1, steps - 1)
      local before = pg().cat { reverse and rest or first, reverse and first or rest, axis = 1 }
      list[i] = dx:flatten(1, 2):t():matmul(before:flatten(1, 2))
    else
      list[i] = by_name[name]
    end
  end
  return list
end

-- What each input of the node gets, in their order: x, h0, hidden, then c0, bias, projection as there are.
local function gradients(cell, o, steps, w, pass, like)
  local g = run_back(cell, o, steps, w, pass.cotangents[1], pass.cotangents[2], pass.cotangents[3], like)
  local need, list, by_name = pass.needed, {}, {}
  local dx, dhidden
  by_name.x = function()
    dx = dx or together(g.dxs, o.sizes)
    return dx
  end
  by_name.h0, by_name.c0 = function() return g.h0 end, function() return g.c0 end
  local function rows() -- [rows of all steps, gates * hidden]
    if not dhidden and g.dhiddens[1] == g.dxs[1] then
      dhidden = o.sizes and by_name.x() or by_name.x():flatten(1, 2)
    end
    dhidden = dhidden or rows_of(g.dhiddens)
    return dhidden
  end
  by_name.hidden = function()
    local hs = {}
    for t, step in ipairs(steps) do hs[t] = step.h end
    return rows():t():matmul(rows_of(hs))
  end
  by_name.bias = function() return rows():sum(1) end
  by_name.projection = function()
    local ms = {}
    for t, step in ipairs(steps) do ms[t] = step.saved[3] end
    return rows_of(g.dhs):t():matmul(rows_of(ms))
  end
  for i, name in ipairs(like.names) do list[i] = need[i] and by_name[name]() or false end
  return list
end

local NAMES = { "x", "h0", "hidden", "c0", "bias", "projection" }

-- The loop's inputs in the order of NAMES, with their names.
local function inputs_of(x, h0, c0, w)
  local values = { x, h0, w.hidden, c0 or false, w.bias or false, w.projection or false }
  local inputs, names = {}, {}
  for i, name in ipairs(NAMES) do
    if values[i] then inputs[#inputs + 1], names[#names + 1] = values[i], name end
  end
  return inputs, names
end

local function check_unchanged(inputs, names, pass, where)
  for i, t in ipairs(inputs) do
    if t.ptr ~= nil and not pass.unchanged(t, i) then
      native.raise("failed_precondition", where, ("%s %s was modified in place before backward"):format(
                     names[i] == "hidden" and "weight_hh" or names[i] == "projection" and "weight_hr" or
                     names[i] == "bias" and "bias_hh" or names[i], tostring(t.shape)),
                   "call backward before the optimizer's step, or write into a :clone()")
    end
  end
end

-- Gradients that know their history: of the loop as recorded operators.
local function again(cell, o, inputs, names, pass, where)
  local by_name, sources = {}, {}
  for i, name in ipairs(names) do
    tensor.check_open(inputs[i], where)
    sources[i] = inputs[i].requires_grad and inputs[i] * 1 or inputs[i] -- of its own: it may be there twice
    by_name[name] = sources[i]
  end
  local outputs = { run(cell, o, by_name.x, by_name.h0, by_name.c0, by_name) }
  local roots, seeds = {}, {}
  for k = 1, #outputs do
    if pass.cotangents[k] then roots[#roots + 1], seeds[#seeds + 1] = outputs[k], pass.cotangents[k] end
  end
  local list, wanted, places = {}, {}, {}
  for i = 1, #sources do
    list[i] = false
    if pass.needed[i] then wanted[#wanted + 1], places[#places + 1] = sources[i], i end
  end
  local found = native.gradients(roots, seeds, wanted, true, true)
  for k, place in ipairs(places) do list[place] = found[k] or false end
  return list
end

-- Handles that belong to no scope: what the way back needs outlives the one around the call.
local function unscoped(fn, ...)
  local handles = native.handles
  local log = handles.current_log()
  local function enter()
    handles.set_log(nil)
    return log
  end
  return native.with(enter, handles.set_log, fn, ...)
end

local function record(cell, o, x, h0, c0, w)
  local steps, inputs, names = {}, inputs_of(x, h0, c0, w)
  local own, outputs, saved -- the way back's own handles of the parameters
  local held = {}           -- all tensors that nobody but the way back has
  local function hold(...)
    for i = 1, select("#", ...) do
      local t = select(i, ...)
      if t then held[#held + 1] = t end
    end
  end
  unscoped(pg().no_grad, function()
    own = { hidden = w.hidden:detach(), bias = w.bias and w.bias:detach(), tidy = true,
            projection = w.projection and w.projection:detach() }
    local h, c, shown = h0:detach(), c0 and c0:detach(), x:detach()
    hold(h, c, own.hidden, own.bias, own.projection, shown)
    if at_once(cell, o, own) then
      local y, last_h, last_c, kept = run_at_once(cell, o, shown, h, c, own, true)
      kept.h0, kept.c0 = h, c
      outputs, saved = { y, last_h, last_c }, kept
      hold(y, last_h, last_c, kept.states, kept.gates)
      return
    end
    outputs = { run(cell, o, shown, h, c, own, function(t, before, kept)
      steps[t] = { h = before, saved = kept }
      hold(before, unpack(kept))
    end) }
    hold(unpack(outputs, 1, 3))
  end)
  local function zeros_like(t) return { shape = t.shape, dtype = t.dtype, device = t.device } end
  local like = { names = names, h0 = zeros_like(h0), c0 = c0 and zeros_like(c0) }
  local where = o.where
  return unpack(native.custom.record(inputs, outputs, function(pass)
    check_unchanged(inputs, names, pass, where)
    if saved and not pass.unchanged_output(saved.y, 1) then
      native.raise("failed_precondition", where, ("the output %s was modified in place before backward"):format(
                     tostring(saved.y.shape)), "write into a :clone()")
    end
    if pass.creates_graph then return again(cell, o, inputs, names, pass, where) end
    if saved then return gradients_at_once(cell, o, saved, own, pass, like) end
    return gradients(cell, o, steps, own, pass, like)
  end, false, held), 1, 3)
end

---A layer's loop in one direction.
---@param cell table of cells.lua
---@param o { sizes?: integer[], reverse?: boolean, where: string } rows of each step, if they differ
---@param x perigee.Tensor the input's part of the gates: [T, n, gates * hidden], or packed [rows, gates * hidden]
---@param h0 perigee.Tensor [n, out]
---@param c0? perigee.Tensor [n, hidden]
---@param w table the parameters: hidden, bias, projection
---@return perigee.Tensor y, perigee.Tensor h, perigee.Tensor? c
function sequence.run(cell, o, x, h0, c0, w)
  if native.graphs.recording or native.is_graph_tensor(x) then
    return (type(x:size(1)) == "number" and run or scan)(cell, o, x, h0, c0, w)
  end
  if native.grad_enabled() then
    for _, t in ipairs((inputs_of(x, h0, c0, w))) do
      if t.requires_grad then return record(cell, o, x, h0, c0, w) end
    end
  end
  if at_once(cell, o, w) then
    local y, h, c = run_at_once(cell, o, x, h0, c0, w, false)
    return y, h, c
  end
  return run(cell, o, x, h0, c0, { hidden = w.hidden, bias = w.bias, projection = w.projection, tidy = true })
end

return sequence
