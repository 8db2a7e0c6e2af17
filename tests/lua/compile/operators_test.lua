-- SPDX-License-Identifier: Apache-2.0
-- Every elementwise operator within compiled functions, several at a time, so that a device with a compiler joins them:
-- the bits of eager code, in all dtypes, from operands that begin anywhere and lie in any order.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. here .. "?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"
local specs = require "cases.specs"
local cases = require "cases"

local DTYPES = { "float32", "bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool" }
local MANY, TOGETHER = 37, 12 -- elements; operators of a function
local SPECIAL = { math.huge, -math.huge, 0 / 0, -0.0, 0.5, 1, -1, 2, 65504, 1e-7 }

-- Bits, but for which NaN it is.
local function text(v)
  local parts = { v.dtype }
  for _, x in ipairs(v:reshape { -1 }:totable()) do
    parts[#parts + 1] = x ~= x and "nan" or type(x) == "number" and ("%.17g"):format(x) or tostring(x)
  end
  return table.concat(parts, " ")
end

local function operand(dtype, seed)
  pg.manual_seed(seed)
  local n = native.dtypes.by_name[dtype]
  if dtype == "bool" then return pg.randn { MANY }:gt(0) end
  if not n.floating then return pg.randint(dtype == "uint8" and 0 or -9, 9, { MANY }):to(dtype) end
  local x = pg.randn { MANY } * 3
  x[{ { 1, #SPECIAL } }]:copy_(pg.tensor(SPECIAL))
  return x:to(dtype)
end

-- The operands of an operator's case, all of MANY elements; nil where its inputs are others.
local function operands(op, case, dtype)
  local list = {}
  for i in ipairs(op.inputs) do
    local spec = case[i]
    if spec ~= nil and (not specs.is_spec(spec) or spec.kind == "index") then return nil end
    if spec ~= nil then list[i] = operand(check.dtype_of(spec, dtype), i * 31 + #op.name) end
  end
  return list
end

-- Calls of elementwise operators that eager code takes.
local function calls_of(dtype)
  local list, known = {}, {}
  check.for_each(cases, function(op, row, case)
    if row.random or #op.inputs == 0 or #op.inputs > 3 or op.visible_outputs ~= 1 then return end
    local attrs, key = case.attrs or {}, op.name
    for k, v in pairs(attrs) do
      if type(v) == "table" then return end
      key = key .. " " .. k .. tostring(v)
    end
    if known[key] or not check.takes(op, row, case, dtype) then return end
    known[key] = true
    local args = operands(op, case, dtype)
    if not args or check.is_mutated(op.inputs[1]) then return end
    local shape = {}
    local ok, expected = pcall(function() -- what the operands' contents make it fail at is told when they are read
      local result = check.call(op, args, attrs)[1]
      shape = result.shape
      return text(result)
    end)
    if ok and #shape == 1 and shape[1] == MANY then
      list[#list + 1] = { op = op, args = args, attrs = attrs, key = key, expected = expected }
    end
  end)
  return list
end

for _, dtype in ipairs(DTYPES) do
  test("operators together/" .. dtype, function(t)
    local calls = calls_of(dtype)
    t.ok(#calls > 10, #calls)
    for first = 1, #calls, TOGETHER do
      local last = math.min(first + TOGETHER - 1, #calls)
      local step = pg.compile(function()
        local results = {}
        for i = first, last do results[#results + 1] = check.call(calls[i].op, calls[i].args, calls[i].attrs)[1] end
        return unpack(results)
      end)
      for turn = 1, 3 do
        local results = { step() }
        for i = first, last do
          local got = text(results[i - first + 1])
          t.ok(got == calls[i].expected, ("%s, call %d:\n%s\ninstead of\n%s"):format(calls[i].key, turn, got,
                                                                                  calls[i].expected))
        end
      end
    end
  end)
end

-- x, y: views of one shape. Compares y * 2 + x and what truth values make of them.
local function compare(t, name, x, y)
  local function fn() return x * 2 + y, pg.where(x:gt(y), x, y):neg(), x:ge(y) end
  local step, expected = pg.compile(fn), { fn() }
  for _ = 1, 3 do
    for i, got in ipairs { step() } do
      local a, b = text(got), text(expected[i])
      t.ok(a == b, ("%s, result %d:\n%s\ninstead of\n%s"):format(name, i, a, b))
    end
  end
end

for _, dtype in ipairs { "float32", "bfloat16", "float64", "int32", "int8" } do
  test("operands that begin anywhere/" .. dtype, function(t)
    pg.manual_seed(3)
    local whole, other = (pg.randn { 80 } * 5):to(dtype), (pg.randn { 80 } * 5):to(dtype)
    for begin = 1, 9 do
      for _, n in ipairs { 1, 7, 16, 33 } do
        local name = ("%d elements from %d on"):format(n, begin)
        compare(t, name, whole[{ { begin, begin + n - 1 } }], other[{ { 2, n + 1 } }])
      end
    end
  end)

  test("operands that lie in any order/" .. dtype, function(t)
    pg.manual_seed(4)
    local function make(shape) return (pg.randn(shape) * 5):to(dtype) end
    local x = make { 6, 8, 16 }
    compare(t, "rows of a wider tensor", make { 6, 8, 24 }[{ {}, {}, { 3, 18 } }], x)
    compare(t, "every other", make { 6, 8, 32 }[{ {}, {}, { 1, 32, 2 } }], x)
    compare(t, "turned", x:permute(3, 1, 2), make { 16, 6, 8 })
    compare(t, "both turned", x:permute(3, 1, 2), make { 8, 16, 6 }:permute(2, 3, 1))
    compare(t, "rows", x, make { 16 }:expand { 6, 8, 16 })
    compare(t, "columns", x, make { 6, 1, 1 }:expand { 6, 8, 16 })
    compare(t, "in the middle", x, make { 8, 1 }:expand { 6, 8, 16 })
    compare(t, "odd rows", make { 5, 7, 3 }, make { 7, 1 }:expand { 5, 7, 3 })
    compare(t, "one element", x, make { 1 }:expand { 6, 8, 16 })
  end)
end
