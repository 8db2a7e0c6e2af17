-- SPDX-License-Identifier: Apache-2.0
-- pg.custom_grad: a function with a gradient of one's own.

local native = require "perigee.native"
local tensor = native.tensor
local pg = require "perigee"

local WHERE = "custom_grad"
local read = native.signature(WHERE, {
  { "forward", "function", required = true, named = true }, { "backward", "function", required = true, named = true } })

local function check_outputs(outputs, n)
  if n == 0 then native.raise("invalid_argument", WHERE, "forward returned nothing") end
  for i = 1, n do
    if not native.is_tensor(outputs[i]) then
      native.raise("invalid_argument", WHERE, ("forward returned %s; expected tensors"):format(
                     native.describe(outputs[i])))
    end
  end
end

-- What ctx holds after forward, so that backward can tell when it has been overwritten, and which of it are outputs.
local function note_saved(ctx, outputs)
  local saved = {}
  for key, value in pairs(ctx) do
    if native.is_tensor(value) then
      tensor.check_open(value, WHERE)
      local note = { key = key, version = native.version_of(value) }
      for k, output in ipairs(outputs) do
        if output == value then note.output = k end
      end
      saved[#saved + 1] = note
    end
  end
  return saved
end

-- ctx as backward sees it: checked, and where gradients of gradients are wanted with outputs that know their history.
local function restore_saved(ctx, saved, pass)
  local seen = setmetatable({}, { __index = ctx })
  for _, note in ipairs(saved) do
    local t = ctx[note.key]
    tensor.check_open(t, WHERE)
    if native.version_of(t) ~= note.version then
      native.raise("failed_precondition", WHERE, ("ctx.%s %s was modified in place since forward"):format(
                     tostring(note.key), tostring(t.shape)), "write into a :clone() instead")
    end
    if note.output and pass.creates_graph then seen[note.key] = pass.linked(t, note.output) end
  end
  return seen
end

-- What backward returned, by input in place of by argument.
local function take_gradients(places, argument_count, ...)
  local n, list = select("#", ...), {}
  if n > argument_count then
    native.raise("invalid_argument", WHERE, ("backward returned %d gradients for %d arguments"):format(n,
                 argument_count))
  end
  local is_input = {}
  for i, place in ipairs(places) do
    local gradient = select(place, ...)
    is_input[place] = true
    if place <= n and gradient ~= nil and not native.is_tensor(gradient) then
      native.raise("invalid_argument", WHERE, ("backward returned %s for argument %d; expected a tensor or nil"):format(
                     native.describe(gradient), place))
    end
    list[i] = place <= n and gradient or false
  end
  for place = 1, n do
    if not is_input[place] and (select(place, ...)) ~= nil then
      native.raise("invalid_argument", WHERE,
                   ("backward returned a gradient for argument %d, which is no tensor"):format(place))
    end
  end
  return list
end

local function record(o, ctx, args, n, outputs)
  local inputs, places, kinds = {}, {}, {}
  for i = 1, n do
    if native.is_tensor(args[i]) then inputs[#inputs + 1], places[#places + 1] = args[i], i end
  end
  for k, y in ipairs(outputs) do kinds[k] = { shape = y.shape, dtype = y.dtype, device = y.device } end
  local saved = note_saved(ctx, outputs)
  return native.custom.record(inputs, outputs, function(pass)
    local cotangents = {}
    for k, kind in ipairs(kinds) do
      cotangents[k] = pass.cotangents[k] or pg.zeros(kind.shape, { dtype = kind.dtype, device = kind.device })
    end
    local seen = restore_saved(ctx, saved, pass)
    seen.needed = {}
    for i, place in ipairs(places) do seen.needed[place] = pass.needed[i] end
    return take_gradients(places, n, o.backward(seen, unpack(cotangents, 1, #kinds)))
  end)
end

---A function with a gradient of one's own:
---  local sign = pg.custom_grad{
---    forward = function(ctx, x) ctx.x = x; return x:sign() end,
---    backward = function(ctx, dy) return dy * ctx.x:abs():le(1) end,     -- straight through where |x| <= 1
---  }
---  sign(x):sum():backward()
---forward(ctx, ...) computes tensors of the arguments, which may be of any kind, without being recorded. What backward
---will need it keeps in ctx. backward(ctx, dy1, dy2, ...) gets the gradient of each output and returns one for each
---argument: a tensor like it, or nil. ctx.needed[i] tells whether that of argument i is asked for. Gradients of
---gradients work where backward is made of tensor operations.
---@param options { forward: fun(ctx: table, ...): perigee.Tensor, backward: fun(ctx: table, ...): perigee.Tensor? }
---@return fun(...): perigee.Tensor
local function custom_grad(...) -- luacheck: ignore
  local o = read(...)
  return function(...)
    local ctx, args, n = {}, { ... }, select("#", ...)
    local outputs = { pg.no_grad(o.forward, ctx, ...) }
    check_outputs(outputs, math.max(#outputs, 0))
    local needed = false
    for i = 1, n do needed = needed or (native.is_tensor(args[i]) and args[i].requires_grad) end
    if needed and native.grad_enabled() then outputs = record(o, ctx, args, n, outputs) end
    return unpack(outputs)
  end
end

return { custom_grad = custom_grad }
