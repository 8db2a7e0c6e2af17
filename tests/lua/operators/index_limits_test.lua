-- SPDX-License-Identifier: Apache-2.0
-- Contents that no tensor has: every operator that reads at the contents of an index tensor, and every function made of
-- one, refuses the numbers at the ends of int64 (NaN becomes -2^63 by conversion), -1 and the first number behind the
-- last, for elements of every width; and the process stays usable.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"
local array = require "cases.array"

local WIDTHS = { "float64", "float32", "bfloat16", "uint8", "bool" } -- 8, 4, 2 and 1 byte
local ENDS = { int64 = { -2 ^ 63, pg.tensor({ 2 ^ 62 }, { dtype = "int64" }) * 2 - 1, -1 },
               int32 = { -2 ^ 31, 2 ^ 31 - 1, -1 } }

-- Index inputs that are no positions: any number will do.
local ANY_NUMBER = { dropout_mask = true, scaled_dot_product_attention = true }

-- What names itself in the message where a device computes an operator by others.
local PARTS = { index_grad = "index_select", index_put = "index_select", max_pool1d_gather = "max_pool2d_gather",
                max_pool1d_grad = "max_pool2d_grad", embedding_bag = "embedding", embedding_bag_grad = "embedding",
                embedding_bag_grad_weights = "embedding", embedding_bag_max = "embedding",
                embedding_bag_max_grad = "gather_grad" }

-- Pooling's -1 is a window of nothing but padding, that of bags a bag of none.
local function is_allowed(name, number)
  return number == -1 and (name:find "^max_pool" ~= nil or name == "embedding_bag_max_grad")
end

-- An int64 tensor holds 2^63 - 1, which no Lua number does.
local function with_number(index, number)
  local flat = index:reshape(-1):clone()
  flat[1] = number
  return flat:reshape(index.shape)
end

-- fn(index) raises by name for all of them; `name` is what messages name.
local function refuses(t, name, index, fn)
  local function refused(number, dtype)
    local err = t.raises(function()
      for _, y in ipairs { fn(with_number(index:to(dtype), number)) } do y:totable() end
    end)
    t.ok(native.is_error(err), tostring(err))
    local text = tostring(err)
    t.ok(text:find(name, 1, true) or text:find(PARTS[name] or name, 1, true), text .. " does not name " .. name)
    t.equal(err.code, "invalid_argument", tostring(err))
    return tostring(err)
  end
  for dtype, numbers in pairs(ENDS) do
    -- Not all take int32, and what nothing comes of is not looked at.
    local ok, y = pcall(fn, index:to(dtype))
    if not ok and dtype == "int64" then error(y, 0) end
    for _, number in ipairs(ok and y:numel() > 0 and numbers or {}) do
      local last = not is_allowed(name, number) and refused(number, dtype):match "expected 0 to (%d+)"
      if last then refused(tonumber(last) + 1, dtype) end
    end
  end
  t.equal((pg.ones { 2 } + 1):totable(), { 2, 2 })
end

local function with_input(op, args, i, k, index)
  local out = check.map_tensors(op, args, function(t) return t end)
  if k then out[i][k] = index else out[i] = index end
  return out
end

-- Every index of a case, one after the other.
local function try(t, op, case, args)
  check.each(op, args, function(tensor, _, i, k)
    local spec = k and case[i][k] or case[i]
    if spec.kind == "index" and tensor:numel() > 0 then
      refuses(t, op.name, tensor, function(index)
        return unpack(check.call(op, with_input(op, args, i, k, index), case.attrs))
      end)
    end
    return tensor
  end)
end

check.for_each(require "cases", function(op, row, case, name)
  local has = false
  check.each(op, case, function(spec)
    has = has or spec.kind == "index" and array.count(spec.shape) > 0
    return spec
  end)
  if not has or ANY_NUMBER[op.name] then return end
  local function add(dtype)
    test(("index_limits/%s/%s"):format(name, dtype), function(t) try(t, op, case, check.tensors(op, case, dtype)) end)
  end
  local taken = 0
  for _, dtype in ipairs(WIDTHS) do
    if check.takes(op, row, case, dtype) then
      taken = taken + 1
      add(dtype)
    end
  end
  if taken == 0 then add("float32") end -- one_hot: all it takes are indices
end)

-- ---- functions that are made of them ----

local function whole(...) return pg.tensor({ ... }, { dtype = "int64" }) end

local FUNCTIONS = {
  one_hot = { whole(1, 0, 1), function(_, i) return pg.one_hot(i, 3) end },
  take = { whole(1, 0, 1), function(x, i) return pg.take(x, i) end },
  take_along = { whole { 1, 0, 1 }, function(x, i) return pg.take_along(x, i, { axis = 2 }) end },
  put = { whole(1, 0, 3), function(x, i) return pg.put(x, i, x[1]:reshape(-1)[{ { 1, 3 } }]) end },
  index_add = { whole(1, 0), function(x, i) return x:index_add(i, x[{ { 1, 2 } }], 1) end },
  index_copy = { whole(1, 0), function(x, i) return x:index_copy(i, x[{ { 1, 2 } }], 1) end },
  index_fill = { whole(1, 0), function(x, i) return x:index_fill(i, 1, 1) end },
  embedding = { whole(1, 0), function(x, i) return pg.embedding(x, i) end, floats = true },
  embedding_bag = { whole { 1, 0 }, function(x, i) return pg.embedding_bag(x, i, { mode = "sum" }) end, floats = true },
  ["embedding_bag, max"] = { whole { 1, 0 }, function(x, i) return pg.embedding_bag(x, i, { mode = "max" }) end,
                             floats = true },
  ["x[index]"] = { whole(1, 0), function(x, i) return x[i] end },
  ["x[{{}, index}]"] = { whole(1, 0), function(x, i) return x[{ {}, i }] end },
  ["x[index] = 1"] = { whole(1, 0), function(x, i)
    local y = x:clone()
    y[i] = 1
    return y
  end },
  cross_entropy = { whole(1, 0, 2), function(x, i) return pg.nn.cross_entropy(x:t(), i) end, floats = true },
  nll = { whole(1, 0, 2), function(x, i) return pg.nn.nll(x:t(), i) end, floats = true },
}
local NAMED = { take = "", put = "", ["x[index]"] = "", ["x[{{}, index}]"] = "", ["x[index] = 1"] = "",
                take_along = "", index_add = "", index_copy = "", index_fill = "", nll = "",
                ["embedding_bag, max"] = "embedding" }

test("index_limits/bincount", function(t) -- counts up to any number that there is room for
  if not pcall(pg.bincount, whole(1, 0)) then t.skip("no kernel on this device") end
  for _, number in ipairs { -1, -2 ^ 63 } do
    t.raises(function() return pg.bincount(whole(1, number, 0)):totable() end, "out of range")
  end
  t.raises(function() return pg.bincount(with_number(whole(1, 0), ENDS.int64[2])) end)
  t.equal(pg.bincount(whole(1, 0, 1)):totable(), { 1, 2 })
end)

for name, row in pairs(FUNCTIONS) do
  for width = 1, row.floats and 3 or #WIDTHS do
    local dtype = WIDTHS[width]
    test(("index_limits/%s/%s"):format(name, dtype), function(t)
      local x = pg.tensor({ { 1, 0, 1 }, { 0, 1, 1 }, { 1, 1, 0 } }):to(dtype)
      refuses(t, NAMED[name] or name, row[1], function(i) return row[2](x, i) end)
    end)
  end
end
