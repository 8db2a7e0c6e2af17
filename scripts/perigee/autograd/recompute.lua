-- SPDX-License-Identifier: Apache-2.0
-- pg.recompute: what a function computes on the way is computed again in backward, not kept (Chen et al. 2016,
-- "Training deep nets with sublinear memory cost").

local native = require "perigee.native"
local tensor = native.tensor
local pg = require "perigee"

local function pack(...) return { n = select("#", ...), ... } end

-- The arguments again, tensors that need gradients by what `replace` makes of them. Answers those, too.
local function replaced(args, replace)
  local list, inner = { n = args.n }, {}
  for i = 1, args.n do
    local a = args[i]
    if native.is_tensor(a) and a.requires_grad then
      a = replace(a)
      inner[#inner + 1] = a
    end
    list[i] = a
  end
  return list, inner
end

-- How often each tensor among the arguments has been written to.
local function versions_of(args)
  local versions = {}
  for i = 1, args.n do
    if native.is_tensor(args[i]) then
      tensor.check_open(args[i], "recompute")
      versions[i] = native.version_of(args[i])
    end
  end
  return versions
end

local function check_unchanged(args, versions)
  local now = versions_of(args)
  for i, version in pairs(versions) do
    if now[i] ~= version then
      native.raise("failed_precondition", "recompute", ("argument %d %s was modified in place before backward"):format(
                     i, tostring(args[i].shape)), "write into a :clone() instead")
    end
  end
end

local function cut(a) return a:detach():requires_grad_() end
local function continue(a) return a * 1 end -- a tensor of its own that knows where it came from

-- The dtype that autocast has in force for these arguments, or nil.
local function autocast_of(args)
  for i = 1, args.n do
    if native.is_tensor(args[i]) then return native.autocast_dtype(args[i]) end
  end
end

-- fn(args) once more, with the random numbers and the mixed precision of the first time.
local function run_again(fn, args, rng, dtype)
  local function enter()
    local now = { native.rng_state() }
    native.set_rng_state(rng[1], rng[2])
    return now
  end
  local function leave(now) native.set_rng_state(now[1], now[2]) end
  local function run() return pack(pg.enable_grad(fn, unpack(args, 1, args.n))) end
  if not dtype then return native.with(enter, leave, run) end
  return native.with(enter, leave, pg.amp.autocast, { dtype = dtype }, run)
end

-- Random numbers of a graph are drawn when it runs, so that a second node would draw others.
local function is_recorded(...)
  if native.graphs.recording then return true end
  for i = 1, select("#", ...) do
    local a = select(i, ...)
    if native.is_tensor(a) and native.is_graph_tensor(a) then return true end
  end
  return false
end

---fn(...), whose intermediate results are not kept for backward but computed once more there: memory for time. fn's
---random numbers are the same both times. It must not depend on anything that changes in between (a tensor among its
---arguments that was written to is noticed), nor have effects that must happen once; running statistics of a batch norm
---inside are updated twice. In a graph fn is recorded once, and its intermediate results are kept.
---@param fn fun(...): perigee.Tensor
---@param ... any arguments of fn
---@return perigee.Tensor ... what fn returned
local function recompute(fn, ...)
  if type(fn) ~= "function" and not (type(fn) == "table" and getmetatable(fn) and getmetatable(fn).__call) then
    native.raise("invalid_argument", "recompute", "needs a function, got " .. native.describe(fn))
  end
  if not native.grad_enabled() or is_recorded(...) then return fn(...) end
  local function run(...) return fn(...) end -- a layer is a table that can be called
  local args, rng = pack(...), { native.rng_state() }
  local dtype, versions = autocast_of(args), versions_of(args)
  local first, inner = replaced(args, cut)
  local results = pack(run(unpack(first, 1, first.n)))
  local outputs, places = {}, {}
  for i = 1, results.n do
    local y = results[i]
    if native.is_tensor(y) and y.requires_grad then outputs[#outputs + 1], places[#places + 1] = y, i end
  end
  if #outputs == 0 then return unpack(results, 1, results.n) end

  -- What fn reads besides its arguments: parameters, most often.
  local leaves, inputs = native.custom.leaves(outputs, inner), {}
  for i = 1, args.n do
    if native.is_tensor(args[i]) and args[i].requires_grad then inputs[#inputs + 1] = args[i] end
  end
  for _, leaf in ipairs(leaves) do inputs[#inputs + 1] = leaf end

  local made = native.custom.record(inputs, outputs, function(pass)
    check_unchanged(args, versions)
    local second, sources = replaced(args, pass.creates_graph and continue or cut)
    for _, leaf in ipairs(leaves) do sources[#sources + 1] = leaf end
    local again = run_again(run, second, rng, dtype)
    local roots, seeds = {}, {}
    for k, place in ipairs(places) do
      if pass.cotangents[k] then roots[#roots + 1], seeds[#seeds + 1] = again[place], pass.cotangents[k] end
    end
    local gradients = native.gradients(roots, seeds, sources, true, pass.creates_graph)
    for i = 1, #sources do gradients[i] = gradients[i] or false end
    return gradients
  end, true) -- what the first run recorded is dropped here and now
  for k, place in ipairs(places) do results[place] = made[k] end
  return unpack(results, 1, results.n)
end

return { recompute = recompute }
