-- SPDX-License-Identifier: Apache-2.0
-- What is found by sorting, and what is drawn, on the device in force (or else the simulated one): the same as on the
-- CPU, ties, NaN and the order of the kinds included.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/kernels/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local draws = require "draws"

local DEVICE = pg.device() ~= "cpu" and pg.device() or "sim:0"

-- Few different values, so that there are ties; NaN where `share` of numbers says so.
local function drawn(seed, count, kinds, share)
  local draw, list = draws.generator(seed), {}
  for i = 1, count do
    local v = draw(0, kinds - 1) - math.floor(kinds / 2)
    list[i] = draw(100) <= (share or 0) and 0 / 0 or (v == 0 and draw(2) == 1 and -0.0 or v)
  end
  return list
end

-- fn(tensor) gives tensors, which are the same to the bit on both.
local function same(t, label, x, fn)
  local function run(device)
    return pg.device(device, function()
      local results = { fn(x:to(device)) }
      for i, y in ipairs(results) do
        y = y:cpu()
        local nan = y.dtype:find "float" and y:isnan()
        results[i] = { y.dtype, y.shape, nan and nan:totable(), (nan and y:masked_fill(nan, 0) or y):totable() }
      end
      return results
    end)
  end
  t.equal({ label, run(DEVICE) }, { label, run "cpu" })
end

local function tensor(list, shape, dtype)
  return pg.device("cpu", function() return pg.tensor(list):to(dtype):reshape(shape) end)
end

local FLOATS, WHOLE = { "float32", "float64", "float16", "bfloat16" }, { "int64", "int32", "int16", "int8", "uint8" }

for _, dtype in ipairs(FLOATS) do
  test("medians and modes of floats in " .. dtype, function(t)
    for seed, shape in ipairs { { 7, 40 }, { 40, 7 }, { 3, 5, 6 }, { 1, 700 }, { 301, 2 }, { 4, 1 } } do
      local count = 1
      for _, n in ipairs(shape) do count = count * n end
      for _, share in ipairs { 0, 5, 100 } do
        local x = tensor(drawn(seed + share, count, 9, share), shape, dtype)
        for axis = 1, #shape do
          for _, name in ipairs { "median", "nanmedian", "mode" } do
            same(t, name, x, function(v) return pg[name](v, axis) end)
            same(t, name .. " of a view", x, function(v)
              return pg[name](v:transpose(1, -1), axis, { keepdim = true })
            end)
          end
        end
      end
    end
  end)

  test("different rows of floats in " .. dtype, function(t)
    local shapes = { { 60 }, { 3000 }, { 1 }, { 0 }, { 40, 1 }, { 50, 2 }, { 50, 3 }, { 400, 4 }, { 5, 0 } }
    for seed, shape in ipairs(shapes) do
      for _, share in ipairs { 0, 10 } do
        local x = tensor(drawn(seed, shape[1] * (shape[2] or 1), shape[2] and 2 or 20, share), shape, dtype)
        for _, name in ipairs { "unique", "unique_consecutive" } do
          local all = { return_inverse = true, return_counts = true }
          same(t, name, x, function(v) return pg[name](v, 1, all) end)
          if shape[2] then
            same(t, name .. " of a view", x, function(v)
              return pg[name](v:flip { 2 }:t():contiguous():t(), 1, all)
            end)
          end
        end
      end
    end
  end)

  for _, replacement in ipairs { false, true } do
    local how = replacement and "with" or "without"
    test(("what multinomial draws in %s, %s replacement"):format(dtype, how), function(t)
      local draw = draws.generator(5)
      for _, shape in ipairs { { 5 }, { 1, 900 }, { 3, 2500 }, { 30, 7 }, { 0, 4 } } do
        local list, count = {}, shape[1] * (shape[2] or 1)
        for i = 1, count do list[i] = draw(3) == 1 and i % 5 ~= 0 and 0 or draw(100) / 7 end
        local x = tensor(list, shape, dtype)
        for _, samples in ipairs { 1, replacement and 40 or 1 } do
          same(t, "categories", x, function(v)
            pg.manual_seed(11)
            return pg.multinomial(v, samples, { replacement = replacement }),
                   pg.multinomial(v:reshape { -1, v.shape[#v.shape] }:t():contiguous():t(), samples,
                                  { replacement = replacement })
          end)
        end
      end
      same(t, "all", tensor(drawn(3, 40 * 50, 2), { 40, 50 }, dtype):abs() + 1, function(v)
        pg.manual_seed(12)
        return pg.multinomial(v, 50, { replacement = replacement })
      end)
    end)
  end
end

for _, dtype in ipairs(WHOLE) do
  test("medians, modes and different rows in " .. dtype, function(t)
    for seed, shape in ipairs { { 9, 30 }, { 1, 500 }, { 77, 3 } } do
      local x = tensor(drawn(seed, shape[1] * shape[2], 12), shape, "float32"):abs():to(dtype)
      for axis = 1, 2 do
        for _, name in ipairs { "median", "nanmedian", "mode" } do
          same(t, name, x, function(v) return pg[name](v, axis) end)
        end
      end
      local all = { return_inverse = true, return_counts = true }
      same(t, "rows", x, function(v) return pg.unique(v, 1, all) end)
      same(t, "elements", x, function(v) return pg.unique(v, all) end)
    end
  end)
end

test("wrong probabilities are found anywhere, the first one first", function(t)
  local function message(fill, options)
    return pg.device(DEVICE, function()
      local x = pg.ones { 5, 3000 }
      fill(x)
      local err = t.raises(function() return pg.multinomial(x, options):cpu() end)
      return tostring(err)
    end)
  end
  for _, replacement in ipairs { false, true } do
    local o = { num_samples = 2, replacement = replacement }
    local text = message(function(x) x[5][1], x[3][2999] = -2, 0 / 0 end, o)
    t.ok(text:find("nan at row 2, category 2998; expected finite numbers from 0", 1, true), text)
    text = message(function(x) x[2]:zero_() x[3][1] = 1 / 0 end, o)
    local least = replacement and 1 or 2
    local want = ("row 1 has 0 categories of probability above 0; expected at least %d"):format(least)
    t.ok(text:find(want, 1, true), text)
  end
  local text = message(function(x) x[4]:zero_() x[4][7] = 1 end, { num_samples = 2 })
  t.ok(text:find("row 3 has 1 categories", 1, true), text)
end)
