-- SPDX-License-Identifier: Apache-2.0
-- tostring of tensors, against what numpy prints.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local pg = require "perigee"
local rows = assert(loadfile(here .. "/reference.lua"))()

-- Elements that are too many to list.
local function pattern(shape)
  local count, list = 1, {}
  for _, n in ipairs(shape) do count = count * n end
  for i = 0, count - 1 do list[i + 1] = ((i * 7919) % 1009) / 64 - 5 end
  return list
end

local function make(row)
  local dtype, shape = row[2], row[3]
  local t = pg.tensor(row[4] or pattern(shape), { dtype = dtype })
  if #shape == 0 then return t:reshape {} end
  return t:reshape(shape)
end

-- Without what numpy does not say: the dtype where it is not the default, and the device.
local function bare(text) return (text:gsub(",%s+d%a+=[%w=, :\n]+%)$", ")")) end

for _, row in ipairs(rows) do
  test("printing/" .. row[1], function(t)
    local before = pg.set_printoptions(row[5])
    local ok, text = pcall(tostring, make(row))
    pg.set_printoptions(before)
    t.ok(ok, text)
    t.equal(bare(text), row[6])
  end)
end

local function needs_cpu(t)
  if t.device and t.device ~= "cpu" then t.skip("prints its device elsewhere") end
end

test("printing: empties, notes and scalars", function(t)
  needs_cpu(t)
  t.equal(tostring(pg.zeros { 0, 3 }), "tensor([], shape={0, 3}, dtype=float32)")
  t.equal(tostring(pg.tensor({ 1 }, { dtype = "float64" })), "tensor([1.], dtype=float64)")
  t.equal(tostring(pg.tensor({ 1 }, { requires_grad = true })), "tensor([1.], requires_grad=true)")
  t.equal(tostring(pg.tensor(true)), "tensor(true)")
  t.equal(tostring(pg.tensor({ 0.1, 0.2 }, { dtype = "bfloat16" })), "tensor([0.1, 0.2], dtype=bfloat16)")
  t.equal(tostring(pg.ones { 2, 3 }:t()), "tensor([[1., 1.],\n        [1., 1.],\n        [1., 1.]])")
  t.equal(tostring(pg.tensor({ 1 })[1]), "tensor(1.)")
end)

test("printing: notes that do not fit stand on a line of their own", function(t)
  needs_cpu(t)
  local before = pg.set_printoptions { linewidth = 30 }
  local text = tostring(pg.tensor({ 1.25, 2.5, 3.75 }, { dtype = "float64" }))
  pg.set_printoptions(before)
  t.equal(text, "tensor([1.25, 2.50, 3.75],\n       dtype=float64)")
end)

test("printing: options", function(t)
  needs_cpu(t)
  local x = pg.tensor { 1 / 3, 2000 }
  local function with(options, value)
    local before = pg.set_printoptions(options)
    local text = tostring(value or x)
    pg.set_printoptions(before)
    return text
  end
  t.equal(with { sci_mode = false }, "tensor([   0.3333, 2000.0000])")
  t.equal(with { sci_mode = true, precision = 2 }, "tensor([3.33e-01, 2.00e+03])")
  t.equal(with({ profile = "short" }, pg.arange(2000)), "tensor([   0,    1, ..., 1998, 1999])")
  t.ok(#with({ profile = "full" }, pg.arange(2000)) > 8000)
  t.raises(function() pg.set_printoptions { precison = 3 } end, "did you mean \"precision\"")
  t.raises(function() pg.set_printoptions { profile = "long" } end, "default, short, full")
  t.raises(function() pg.set_printoptions { sci_mode = 1 } end, "true, false or \"auto\"")
  t.raises(function() pg.set_printoptions { linewidth = 1 } end, "too small")
end)
