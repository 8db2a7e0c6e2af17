-- SPDX-License-Identifier: Apache-2.0
-- Values as Lua writes them: numbers, shapes and tensors, mostly such as calls take, now and then such as none does.
-- The tensors of one call are mostly of shapes that belong together.

local R = require "fuzz.random"

local V = {}

local DTYPES = { "float32", "float32", "float32", "float64", "float16", "bfloat16", "int64", "int64", "int32", "int16",
                 "int8", "uint8", "bool", "bool", "complex64", "complex128" }
local FLOATS = { "float32", "float32", "float64", "float16", "bfloat16" }
local SIZES = { 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 9, 15, 16, 17, 31, 33, 64, 65 }
local RANKS = { { 3, 0 }, { 8, 1 }, { 16, 2 }, { 12, 3 }, { 10, 4 }, { 4, 5 }, { 2, 6 }, { 1, 7 }, { 2, 8 } }
local MOST_ELEMENTS = 3000
local HUGE = { "2^31", "2^31-1", "-2^31", "2^32", "2^32-1", "2^32+1", "2^33", "2^40", "2^53", "2^61", "2^62", "-2^62",
               "2^63", "-2^63", "-2^63+1024", "2^64", "1e18", "9e18", "4e9" }
local ODD = { "0/0", "math.huge", "-math.huge", "1e308", "-1e308", "1e-320", "0.5", "-0.5", "1.5", "-0", "nil", "true",
              "\"x\"", "{}", "{0}", "pg", "pg.ones{2}", "function() end", "\"\"", "{{}}", "{1, nil, 3}" }
local CONTENTS = { "0", "1", "-1", "0/0", "1/0", "-1/0", "2^63", "-2^63", "2^31", "-2^31", "1e38", "-1e38", "1e-40",
                   "255", "256", "65504", "65520" }

-- What the tensors of the call in making share.
local theme

function V.start()
  theme = {}
  for i = 1, R.weighted(RANKS) do
    theme[i] = R.pick(SIZES)
  end
  V.fit(theme)
end

---Makes a shape's sizes small enough, in place; 0 stays.
function V.fit(shape)
  local count = 1
  for i, n in ipairs(shape) do
    if count * n > MOST_ELEMENTS then shape[i] = R.int(1, 2) end
    count = count * math.max(shape[i], 1)
  end
  return shape
end

function V.rank() return #theme end
function V.huge() return R.pick(HUGE) end
function V.odd() return R.pick(ODD) end

---A whole number: small ones, now and then huge or none.
function V.integer(low, high)
  local kind = R.int(1, 100)
  if kind <= 84 then return tostring(R.int(low or -1, high or 5)) end
  if kind <= 88 then return tostring(R.int(-20, 70)) end
  if kind <= 96 then return V.huge() end
  return V.odd()
end

function V.number()
  local kind = R.int(1, 100)
  if kind <= 60 then return R.pick { "0", "1", "-1", "2", "0.5", "0.1", "1e-5", "3", "0.9", "1.5", "-0.5", "10" } end
  if kind <= 70 then return ("%.3g"):format((R.real() - 0.5) * 10) end
  if kind <= 80 then return R.pick(CONTENTS) end
  if kind <= 90 then return V.huge() end
  return V.odd()
end

---An axis: one of the theme's, from either end, now and then one that is none.
function V.axis()
  if R.percent(85) and #theme > 0 then
    local axis = R.int(1, #theme)
    return tostring(R.percent(40) and axis - #theme - 1 or axis)
  end
  return V.integer(-9, 9)
end

function V.dtype()
  if R.percent(94) then return ("%q"):format(R.pick(DTYPES)) end
  return R.pick { "\"f32\"", "\"bf16\"", "\"float33\"", "\"\"", "7", "{}" }
end

function V.device()
  return R.weighted { { 60, "\"cpu\"" }, { 20, "\"sim:0\"" }, { 4, "\"sim:1\"" }, { 3, "\"/gpu:0\"" },
                      { 3, "\"cuda:0\"" }, { 2, "\"cpu:7\"" }, { 2, "\"\"" }, { 2, "\"x\"" }, { 2, "3" } }
end

local function list_text(list) return "{" .. table.concat(list, ", ") .. "}" end
V.list_text = list_text

---A list of whole numbers.
function V.integers(low, high)
  local list = {}
  for i = 1, R.weighted { { 1, 0 }, { 6, 1 }, { 10, 2 }, { 6, 3 }, { 3, 4 }, { 1, 8 }, { 1, 9 }, { 1, 12 } } do
    list[i] = V.integer(low, high)
  end
  return list_text(list)
end

-- A shape that has something to do with the theme.
local function draw_shape()
  local shape = { unpack(theme) }
  local kind = R.int(1, 100)
  if kind <= 45 then return shape end
  if kind <= 60 then -- broadcasts
    for i = 1, #shape do if R.percent(40) then shape[i] = 1 end end
    for _ = 1, R.int(0, #shape) do if R.percent(40) then table.remove(shape, 1) end end
  elseif kind <= 68 then -- of one axis
    shape = { theme[R.int(1, math.max(1, #theme))] or 1 }
  elseif kind <= 75 then -- a matrix beside it
    if #shape >= 2 and R.percent(60) then
      shape[#shape], shape[#shape - 1] = shape[#shape - 1], shape[#shape]
    else
      shape = { R.int(1, 5), theme[#theme] or 1 }
    end
  elseif kind <= 85 then -- one size is another
    if #shape > 0 then shape[R.int(1, #shape)] = R.pick(SIZES) end
  elseif kind <= 88 then -- an axis more or less
    if R.percent(50) and #shape < 8 then
      table.insert(shape, R.int(1, #shape + 1), R.pick(SIZES))
    else
      table.remove(shape)
    end
  elseif kind <= 92 then
    shape = {}
  else
    shape = {}
    for i = 1, R.int(0, 8) do shape[i] = R.pick(SIZES) end
  end
  return V.fit(shape)
end
V.draw_shape = draw_shape

---A shape as an argument; now and then of more elements than there is memory for, or of nothing that has huge sizes.
function V.shape()
  local shape, kind = draw_shape(), R.int(1, 100)
  for i, n in ipairs(shape) do shape[i] = tostring(n) end
  if kind <= 80 then return list_text(shape) end
  if #shape == 0 then shape[1] = "1" end
  if kind <= 90 then
    shape[R.int(1, #shape)] = V.huge()
  elseif kind <= 95 then
    shape[R.int(1, #shape)], shape[#shape + 1] = "0", V.huge()
  else
    shape[R.int(1, #shape)] = R.pick { "-1", "-2", "1.5", "nil", "true", "0/0", "\"2\"", "{2}" }
  end
  return list_text(shape)
end

local function filled(shape, dtype, range)
  local text = list_text(shape)
  if dtype == "bool" then return ("pg.randint(0, 2, %s):to(\"bool\")"):format(text) end
  local kind = R.int(1, 100)
  if range and kind <= 85 then return ("pg.randint(0, %d, %s):to(%q)"):format(math.max(range, 1), text, dtype) end
  if kind <= 60 then
    local floats = dtype:find "float" or dtype:find "complex"
    return ("%s:to(%q)"):format(floats and ("pg.randn%s"):format(text) or ("pg.randint(-4, 5, %s)"):format(text), dtype)
  end
  if kind <= 68 then return ("pg.zeros(%s, {dtype=%q})"):format(text, dtype) end
  if kind <= 76 then return ("pg.ones(%s, {dtype=%q})"):format(text, dtype) end
  if kind <= 84 then return ("pg.rand%s:to(%q)"):format(text, dtype) end
  if kind <= 92 then return ("pg.full(%s, %s):to(%q)"):format(text, R.pick(CONTENTS), dtype) end
  local some = {}
  for i = 1, 4 do some[i] = R.pick(CONTENTS) end
  return ("pg.tensor%s:to(%q)[pg.randint(0, 4, %s)]"):format(list_text(some), dtype, text)
end

-- The same elements in other places.
local function viewed(text, shape)
  local rank = #shape
  local kind = R.int(1, 100)
  if kind <= 62 or rank == 0 then return text end
  if kind <= 74 and rank >= 2 then
    local a, b = R.int(1, rank), R.int(1, rank)
    return ("%s:transpose(%d, %d)"):format(text, a, b)
  end
  if kind <= 82 then
    local parts = {}
    for i = 1, rank do parts[i] = "{}" end
    parts[R.int(1, rank)] = R.pick { "{1, -1, 2}", "{2, -1}", "{1, -2}", "{-1, -1}", "{2, 1}" }
    return ("%s[{%s}]"):format(text, table.concat(parts, ", "))
  end
  if kind <= 86 and rank < 8 then return text .. ":unsqueeze(1)" end
  if kind <= 90 then return text .. "[1]" end
  if kind <= 95 and rank < 8 then
    return ("%s:unsqueeze(1):expand(%s)"):format(text, "3" .. (", -1"):rep(rank))
  end
  if kind <= 97 and rank >= 2 and shape[1] == shape[2] then return text .. ":diagonal()" end
  return text .. ":reshape(-1)"
end

---A tensor; `o`: shape, dtype, range (contents from 0 below it).
function V.tensor(o)
  o = o or {}
  local shape = o.shape or draw_shape()
  local dtype = o.dtype or (R.percent(60) and "float32" or R.pick(DTYPES))
  local text = filled(shape, dtype, o.range)
  if not o.plain then text = viewed(text, shape) end
  if R.percent(3) and #shape < 7 then -- nothing, of a huge size
    text = ("pg.zeros({0, %s}, {dtype=%q})"):format(R.pick { "2^31", "2^40", "2^62" }, dtype)
  end
  if dtype:find "float" and R.percent(30) and not o.plain then
    text = text .. ":detach():requires_grad_()"
  end
  return text
end

---An index tensor for the theme's sizes.
function V.index()
  local sizes = { 1, 2, 3, 5 }
  for _, n in ipairs(theme) do sizes[#sizes + 1] = n end
  local shape = R.percent(50) and { R.int(0, 6) } or nil
  local dtype = R.weighted { { 80, "int64" }, { 15, "int32" }, { 3, "int8" }, { 2, "float32" } }
  return V.tensor { range = R.pick(sizes), dtype = dtype, shape = shape }
end

function V.floats() return V.tensor { dtype = R.pick(FLOATS) } end

---Anything at all.
function V.any()
  local kind = R.int(1, 100)
  if kind <= 35 then return V.tensor() end
  if kind <= 55 then return V.integer() end
  if kind <= 65 then return V.number() end
  if kind <= 75 then return V.integers() end
  if kind <= 80 then return V.shape() end
  if kind <= 85 then return R.pick { "true", "false" } end
  return V.odd()
end

return V
