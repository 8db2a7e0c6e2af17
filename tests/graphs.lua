-- SPDX-License-Identifier: Apache-2.0
-- Checks of what is recorded against what is computed at once.

local pg = require "perigee"

local SIZES = { { b = 2, c = 3, n = 4 }, { b = 1, c = 1, n = 2 }, { b = 3, c = 2, n = 1 } }

local function concrete(shape, sizes)
  local list = {}
  for i, d in ipairs(shape) do list[i] = sizes[d] or d end
  return list
end

local function is_floating(x) return x.dtype:find "^float" ~= nil end
local function listed(y) return pg.is_tensor(y) and { y } or y end

-- One number of all results that have gradients.
local function squares(list)
  local sum
  for _, y in ipairs(list) do
    if y.requires_grad then sum = (sum or 0) + (y * y):sum() end
  end
  return sum
end

---The graph of f over placeholders of these shapes gives what f gives at once, for several sizes; gradients by the
---first input too, where it has any. f may give several tensors, as a list. `make[i]` makes input i of a shape.
return function(t, name, shapes, f, picked, make)
  make = make or {}
  local g = pg.graph(function(g)
    local inputs = {}
    for i, shape in ipairs(shapes) do
      local like = (make[i] or pg.randn)(concrete(shape, (picked or SIZES)[1]))
      inputs[i] = g:placeholder { "x" .. i, shape = shape, dtype = like.dtype }
      inputs[i].requires_grad = is_floating(like)
    end
    local results = listed(f(unpack(inputs)))
    if results[1].requires_grad then results.dx = g:gradients(squares(results), inputs[1])[1] end
    return results
  end)
  local session = pg.Session { g }
  for k, sizes in ipairs(picked or SIZES) do
    local feeds, values = {}, {}
    for i, shape in ipairs(shapes) do
      values[i] = (make[i] or pg.randn)(concrete(shape, sizes))
      feeds["x" .. i] = values[i]
    end
    values[1].requires_grad = is_floating(values[1])
    local expected, keys = listed(f(unpack(values))), {}
    for key in pairs(session.graph.results) do keys[#keys + 1] = key end
    local got = session:run(keys, feeds)
    local where = ("%s, sizes %d"):format(name, k)
    t.equal(got.dx ~= nil, expected[1].requires_grad, where .. ": a history")
    for i, key in ipairs(keys) do
      local y = expected[key]
      if key == "dx" then
        squares(expected):backward()
        t.close(got[key], values[1].grad, 1e-4, where .. ": gradient")
      else
        t.equal(got[i].shape, y.shape, where)
        t.equal(got[i].dtype, y.dtype, where)
        t.close(got[i]:to "float64", y:detach():to "float64", 1e-5, where)
      end
    end
  end
end
