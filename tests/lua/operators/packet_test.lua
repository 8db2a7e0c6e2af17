-- SPDX-License-Identifier: Apache-2.0
-- Elementwise kernels read and write several elements at a time: every length around those widths, at every offset
-- from an aligned address, in rows, broadcast, turned and in place, gives what the CPU gives, and nothing beside the
-- result is written.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local check = require "cases.check"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"
local dtypes = { "float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool" }
-- The simulated device has no packets: there a few will do.
local lengths = DEVICE:find "^sim" and { 1, 7, 16, 33 }
  or { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 23, 24, 31, 32, 33, 40, 65, 259 }
local row_lengths = DEVICE:find "^sim" and { 4, 33 } or { 1, 4, 7, 8, 16, 24, 33, 64 }

---The same numbers on the CPU and on the device: small, and none zero but in booleans.
local function pair(dtype, shape, seed)
  local values, count = {}, 1
  for _, size in ipairs(shape) do count = count * size end
  for i = 1, count do
    local v = (i * 7 + seed * 3) % 11 - 5
    if dtype == "bool" then
      values[i] = (i * 5 + seed) % 3 == 0
    else
      if v == 0 then v = 6 end
      values[i] = dtype == "uint8" and math.abs(v) or v
    end
  end
  local made = {}
  for _, device in ipairs { "cpu", DEVICE } do
    made[device] = pg.device(device, function() return pg.tensor(values, { dtype = dtype }):reshape(shape) end)
  end
  return made
end

---fn(tensors...) on either device; the results, and then all that could have been written, are compared.
local function agree(what, tensors, fn)
  local want, got = {}, {}
  for device, results in pairs { cpu = want, [DEVICE] = got } do
    pg.device(device, function()
      local own = {}
      for i, t in ipairs(tensors) do own[i] = t[device]:clone() end
      pg.manual_seed(11)
      results[1] = fn(unpack(own))
      for _, t in ipairs(own) do results[#results + 1] = t end
    end)
  end
  for i, t in ipairs(got) do check.same(t, want[i], ("%s, tensor %d"):format(what, i)) end
end

local function part(x, offset, length) return x[{ { offset + 1, offset + length } }] end
local function columns(x, offset, length) return x[{ {}, { offset + 1, offset + length } }] end

---What is tried on operands of one dtype: fn(x, y, condition), of one shape, or broadcast.
local function operators(dtype)
  local list = {
    add = function(x, y) return x + y end,
    add_number = function(x) return pg.add(x, dtype == "bool" and true or 3) end,
    maximum = function(x, y) return pg.maximum(x, y) end,
    less = function(x, y) return pg.lt(x, y) end,
    equal_number = function(x) return pg.eq(x, dtype == "bool" and true or 2) end,
    logical_not = function(x) return pg.logical_not(x) end,
    where = function(x, y, c) return pg.where(c, x, y) end,
    masked_fill = function(x, _, c) return pg.masked_fill(x, c, 1) end,
    clone = function(x) return x:clone() end,
  }
  for _, to in ipairs(dtypes) do
    if to ~= "uint8" or dtype == "bool" then list["cast to " .. to] = function(x) return pg.cast(x, to) end end
  end
  if dtype ~= "bool" then
    list.subtract_from_number = function(x) return 3 - x end
    list.remainder = function(x, y) return pg.remainder(x, y) end
    list.relu = function(x) return pg.relu(x) end
  end
  if dtype:find("float") then
    list.sqrt = function(x) return pg.abs(x):sqrt() end
    list.dropout = function(x) return (pg.dropout(x, 0.5, { training = true })) end
  end
  return list
end

for _, dtype in ipairs(dtypes) do
  local all = operators(dtype)
  local x, y, c = pair(dtype, { 300 }, 1), pair(dtype, { 300 }, 2), pair("bool", { 300 }, 3)

  test("packet/offsets/" .. dtype, function()
    for _, n in ipairs(lengths) do
      for offset = 0, n < 40 and 8 or 3 do
        for name, fn in pairs(all) do
          agree(("%s of %d at %d"):format(name, n, offset), { x, y, c }, function(a, b, d)
            return fn(part(a, offset, n), part(b, (offset * 3) % 8, n), part(d, (offset * 5) % 8, n))
          end)
        end
      end
    end
  end)

  test("packet/in place/" .. dtype, function()
    for _, n in ipairs(lengths) do
      for offset = 0, 8 do
        local what = ("of %d at %d"):format(n, offset)
        agree("add_ " .. what, { x, y }, function(a, b) return part(a, offset, n):add_(part(b, 3, n)) end)
        agree("add_ to itself " .. what, { x }, function(a)
          local own = part(a, offset, n)
          return own:add_(own)
        end)
        agree("copy_ " .. what, { x, y }, function(a, b) return part(a, offset, n):copy_(part(b, 2, n)) end)
        agree("copy_ converted " .. what, { x, c }, function(a, d) return part(a, offset, n):copy_(part(d, 2, n)) end)
        agree("fill_ " .. what, { x }, function(a) return part(a, offset, n):fill_(dtype == "bool" and 0 or 7) end)
      end
    end
  end)

  test("packet/rows/" .. dtype, function()
    local wide, tall = pair(dtype, { 5, 80 }, 4), pair(dtype, { 5, 1 }, 5)
    local choice = pair("bool", { 5, 80 }, 6)
    for _, n in ipairs(row_lengths) do
      for _, offset in ipairs { 0, 1, 2, 4, 8, 13 } do
        for name, fn in pairs(all) do
          agree(("%s of rows of %d at %d"):format(name, n, offset), { wide, y, choice, tall }, function(a, b, d, e)
            local rows, mask = columns(a, offset, n), columns(d, offset, n)
            local first = fn(rows, part(b, offset, n), mask)
            return name == "dropout" and first or pg.eq(first, fn(rows, e, mask))
          end)
        end
        agree(("add_ to rows of %d at %d"):format(n, offset), { wide, y }, function(a, b)
          return columns(a, offset, n):add_(part(b, 1, n))
        end)
        agree(("fill_ of rows of %d at %d"):format(n, offset), { wide }, function(a)
          return columns(a, offset, n):fill_(1)
        end)
      end
    end
  end)

  test("packet/turned/" .. dtype, function()
    for _, shape in ipairs { { 3, 5 }, { 8, 8 }, { 9, 40 }, { 33, 31 }, { 64, 70 }, { 2, 9, 33 }, { 2, 3, 10, 11 } } do
      local z, axes = pair(dtype, shape, 7), {}
      for i = 1, #shape do axes[i] = i end
      axes[#axes], axes[#axes - 1] = axes[#axes - 1], axes[#axes]
      local what = table.concat(shape, "x")
      agree("clone " .. what, { z }, function(a) return a:permute(axes):contiguous() end)
      agree("cast " .. what, { z }, function(a) return pg.cast(a:permute(axes), "float32"):contiguous() end)
      agree("sum " .. what, { z }, function(a)
        local turned = a:permute(axes)
        return turned:contiguous() + turned
      end)
      agree("copy_ " .. what, { z }, function(a)
        local target = a:permute(axes):contiguous()
        target:permute(axes):copy_(a)
        return target
      end)
      local reversed = {}
      for i = 1, #shape do reversed[i] = #shape + 1 - i end
      agree("reversed " .. what, { z }, function(a) return a:permute(reversed):contiguous() end)
    end
  end)
end

test("packet/random", function()
  for _, n in ipairs(lengths) do
    for _, dtype in ipairs { "float32", "float64", "bfloat16", "float16" } do
      agree("uniform of " .. n, {}, function() return pg.rand(n, { dtype = dtype }) end)
      agree("normal of " .. n, {}, function() return pg.randn(n, { dtype = dtype }) end)
    end
    agree("permutation of " .. n, {}, function() return pg.randperm(n) end)
  end
  agree("permutation of 5000", {}, function() return pg.randperm(5000) end)
  agree("permutation of none", {}, function() return pg.randperm(0) end)
end)
