-- SPDX-License-Identifier: Apache-2.0
-- Random programs on permuted operands: the bits are those of the same program on row-major ones, and the strides those
-- of the rule, written down here a second time. PERIGEE_PROGRAMS says how many; PERIGEE_PROGRAM runs the one of that
-- number.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/orders/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local generator = require("draws").generator -- not of numbers that are compared

local FLOATS = { "float32", "float64", "bfloat16", "float16" }
local WHOLE = { "int64", "int32", "int16", "int8", "uint8" }

local OPS = {
  float = { unary = { "relu", "tanh", "sigmoid", "exp", "neg", "abs", "square", "gelu", "floor", "sqrt", "clone" },
            binary = { "add", "sub", "mul", "div", "maximum", "atan2", "pow" }, compare = { "lt", "ge", "eq" },
            three = { "lerp", "addcmul", "where" }, test = { "isnan", "isfinite" } },
  whole = { unary = { "neg", "abs", "square", "relu", "clone" }, binary = { "add", "sub", "mul", "maximum" },
            compare = { "lt", "ne" }, three = { "where" }, test = { "logical_not" } },
  bool = { unary = { "logical_not", "clone" }, binary = { "logical_and", "logical_or" }, compare = { "eq" },
           three = { "where" }, test = { "logical_not" } },
}

local function bits(x) return native.host.bytes(x:contiguous()) end

-- The axes from the outermost to the innermost, by the operands in their order.
local function rule(shape, operands)
  local rank, order = #shape, {}
  for i = 1, rank do order[i] = i end
  local function outside(a, b) -- 1: a lies outside of b; -1: within; 0: nobody says
    for _, x in ipairs(operands) do
      local own, strides = x.shape, x:stride()
      local lead = rank - #own
      local function step(axis)
        local size = axis > lead and own[axis - lead] or nil
        return size ~= nil and shape[axis] > 1 and size == shape[axis] and strides[axis - lead] or 0
      end
      local p, q = step(a), step(b)
      if p ~= 0 and q ~= 0 and p ~= q then return p > q and 1 or -1 end
    end
    return 0
  end
  for i = rank - 1, 1, -1 do
    local at = i
    for k = i + 1, rank do
      local who = outside(order[at], order[k])
      if who == 1 then break end
      if who == -1 then order[at], order[k], at = order[k], order[at], k end
    end
  end
  local strides, step = {}, 1
  for k = rank, 1, -1 do
    strides[order[k]] = step
    step = step * math.max(shape[order[k]], 1)
  end
  return strides
end

-- Strides along single elements say nothing.
local function same_strides(x, expected)
  if x:numel() == 0 then return true end
  for i, s in ipairs(x:stride()) do
    if x.shape[i] ~= 1 and s ~= expected[i] then return false end
  end
  return true
end

local function permutation(draw, rank)
  local axes = {}
  for i = 1, rank do axes[i] = i end
  for i = rank, 2, -1 do
    local k = draw(i)
    axes[i], axes[k] = axes[k], axes[i]
  end
  return axes
end

local function numbers(draw, shape, dtype, kind)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  local flat = {}
  for i = 1, n do flat[i] = draw(9) - 5 end
  local x = pg.tensor(flat, { dtype = "float32" })
  if n == 0 then x = pg.zeros { 0 } end
  if kind == "float" then x = x * 0.37 end
  if kind == "bool" then return x:gt(0):reshape(shape) end
  return x:to(dtype):reshape(shape)
end

-- x moved to another place: the same elements in another order of axes, with gaps or without.
local function moved(draw, x)
  local rank = x:dim()
  if rank < 2 then return x end
  local axes, back = permutation(draw, rank), {}
  for i, a in ipairs(axes) do back[a] = i end
  local y = x:permute(axes):contiguous()
  if draw(4) == 1 then
    local wide = pg.stack({ y, y }, -1)
    y = wide:select(-1, 1)
  end
  return y:permute(back)
end

local function check(number, what, given, want, expected)
  local name = ("program %d, %s"):format(number, what)
  if given.dtype ~= want.dtype or tostring(given.shape) ~= tostring(want.shape) then
    error(name .. ": another shape or dtype", 0)
  end
  if bits(given) ~= bits(want) then error(name .. ": other bits", 0) end
  if expected and not same_strides(given, expected) then
    error(("%s: strides %s, expected %s"):format(name, table.concat(given:stride(), " "),
                                                 table.concat(expected, " ")), 0)
  end
end

local function run(number, device)
  local draw = generator(number)
  local kinds = { "float", "float", "float", "whole", "bool" }
  local kind = kinds[draw(#kinds)]
  local dtypes = kind == "float" and FLOATS or kind == "whole" and WHOLE or { "bool" }
  local dtype, ops = dtypes[draw(#dtypes)], OPS[kind]
  local rank = draw(4)
  local shape = {}
  for i = 1, rank do shape[i] = draw(8) == 1 and 1 or draw(20) == 1 and 0 or draw(number % 9 == 0 and 24 or 6) end
  if draw(16) == 1 then shape[rank] = 300 end
  local apart, plain = {}, {} -- permuted, and row-major
  local function push(what, x, y, expected)
    check(number, what, x, y, expected)
    if #apart < 8 then
      apart[#apart + 1], plain[#plain + 1] = x, y
    else
      local k = draw(8)
      apart[k], plain[k] = x, y
    end
  end
  for _ = 1, 3 do
    local x = numbers(draw, shape, dtype, kind):to(device)
    push("input", moved(draw, x), x:contiguous())
  end
  -- One that broadcasts.
  local small = {}
  for i = draw(rank), rank do small[#small + 1] = draw(2) == 1 and 1 or shape[i] end
  local s = numbers(draw, small, dtype, kind):to(device)
  local t = moved(draw, s)
  for step = 1, 8 do
    local i, k = draw(#apart), draw(#apart)
    local x, y, p, q = apart[i], apart[k], plain[i], plain[k]
    local what = draw(10)
    if what <= 3 then
      local name = ops.unary[draw(#ops.unary)]
      push(step .. " " .. name, x[name](x), p[name](p), rule(shape, { x }))
    elseif what <= 5 then
      local name = ops.binary[draw(#ops.binary)]
      push(step .. " " .. name, x[name](x, y), p[name](p, q), rule(shape, { x, y }))
    elseif what == 6 then
      local name = ops.binary[draw(#ops.binary)]
      if draw(2) == 1 then
        push(step .. " " .. name .. " behind", t[name](t, x), s[name](s, p), rule(shape, { t, x }))
      else
        push(step .. " " .. name .. " before", x[name](x, t), p[name](p, s), rule(shape, { x, t }))
      end
    elseif what == 7 then
      local name = ops.three[draw(#ops.three)]
      if name == "where" then
        local test = ops.compare[draw(#ops.compare)]
        local a, b = x[test](x, y), p[test](p, q)
        check(number, step .. " " .. test, a, b, rule(shape, { x, y }))
        push(step .. " where", pg.where(a, x, y), pg.where(b, p, q), rule(shape, { a, x, y }))
      elseif name == "lerp" then
        push(step .. " lerp", x:lerp(y, 0.25), p:lerp(q, 0.25), rule(shape, { x, y }))
      else
        push(step .. " addcmul", x:addcmul(y, t), p:addcmul(q, s), rule(shape, { x, y, t }))
      end
    elseif what == 8 then
      local name = ops.test[draw(#ops.test)]
      check(number, step .. " " .. name, x[name](x), p[name](p), rule(shape, { x }))
    elseif what == 9 and kind ~= "bool" then
      local before, whole = x:clone(), p:clone()
      local strides = before:stride()
      local name = ops.binary[draw(2)] .. "_"
      before[name](before, y)
      whole[name](whole, q)
      push(step .. " " .. name, before, whole, strides)
    else
      local axis = draw(rank)
      local other = dtype == "float32" and "float64" or "float32"
      check(number, step .. " cast", x:to(other), p:to(other), rule(shape, { x }))
      if kind == "float" and x:size(axis) > 0 then
        check(number, step .. " amax", x:amax(axis), p:amax(axis))
        check(number, step .. " argmax", x:argmax(axis), p:argmax(axis))
      elseif kind == "whole" then
        check(number, step .. " sum", x:sum(axis), p:sum(axis))
      end
      check(number, step .. " reshape", x:reshape(-1), p:reshape(-1))
    end
  end
end

test("programs on permuted operands", function(t)
  local device = t.device or "cpu"
  local only = tonumber(os.getenv "PERIGEE_PROGRAM")
  local count = tonumber(os.getenv "PERIGEE_PROGRAMS") or 400
  for number = only or 1, only or count do
    pg.scope(function() run(number, device) end)
  end
end)

test("large operands, by threads and in blocks", function()
  local function compare(make, n, m, dtype)
    local a, b = pg.rand { m, n }:to(dtype), pg.rand { m, n }:to(dtype)
    local c = pg.rand { n, m }:to(dtype)
    local got, want = make(a:t(), b:t(), c), make(a:t():contiguous(), b:t():contiguous(), c)
    if bits(got) ~= bits(want) then error(("%d x %d %s"):format(n, m, dtype), 0) end
  end
  for _, dtype in ipairs { "float32", "bfloat16", "int32" } do
    for _, size in ipairs { { 1000, 700 }, { 3, 70000 }, { 513, 4097 } } do
      compare(function(x, y) return x + y end, size[1], size[2], dtype)
      compare(function(x, y, z) return x * y + z end, size[1], size[2], dtype)
      compare(function(x, y, z) return z + x * y end, size[1], size[2], dtype)
      compare(function(x, _, z) return pg.where(x:gt(z), x, z) end, size[1], size[2], dtype)
      compare(function(x, _, z) return x:clone():mul_(z) end, size[1], size[2], dtype)
      compare(function(x) return x:abs():square() + 2 end, size[1], size[2], dtype)
    end
  end
end)
