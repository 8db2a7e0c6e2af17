-- SPDX-License-Identifier: Apache-2.0
-- Bags of embeddings: against rows that are looked up and put together one bag at a time.

local pg = require "perigee"
local nn = pg.nn

local function whole(list) return pg.tensor(list, { dtype = "int64" }) end
local function close(t, got, want, slack, what)
  t.ok((got:to "float64" - want:to "float64"):abs():amax():item() <= (slack or 1e-6), what or "differs")
end

local index, starts = whole { 4, 0, 4, 2, 1, 2, 0, 3 }, { 0, 3, 3, 4, 8 } -- the last is the number of indices
local reduce = {
  sum = function(rows) return rows:sum(1) end,
  mean = function(rows) return rows:mean(1) end,
  max = function(rows) return rows:amax(1) end,
}

-- What embedding_bag should give; weights may be nil.
local function bag_by_bag(table_, mode, weights, padding)
  local list = {}
  for b = 1, 4 do
    local rows = {}
    for p = starts[b] + 1, starts[b + 1] do
      local row = index[p]:item()
      if row ~= padding then
        rows[#rows + 1] = weights and table_[row + 1] * weights[p] or table_[row + 1]
      end
    end
    list[b] = #rows > 0 and reduce[mode](pg.stack(rows)) or table_[1] * 0
  end
  return pg.stack(list)
end

test("bags: values and gradients", function(t)
  for _, width in ipairs { 1, 3, 8, 45, 130 } do
    local weights = pg.randn({ 8 }, { dtype = "float64" }):requires_grad_()
    local table_ = pg.randn({ 5, width }, { dtype = "float64" }):requires_grad_()
    local dy = pg.randn({ 4, width }, { dtype = "float64" })
    for mode in pairs(reduce) do
      for _, padding in ipairs { -1, 4 } do
        local weigh = mode == "sum" and weights or nil
        local leaves = { table_, weigh }
        local function both(dtype, slack)
          local want = bag_by_bag(table_, mode, weigh, padding)
          local got = pg.embedding_bag(table_:to(dtype), index, {
            offsets = whole { 0, 3, 3, 4 }, mode = mode, padding_idx = padding,
            per_sample_weights = weigh and weigh:to(dtype) })
          t.equal(got.dtype, dtype)
          close(t, got, want, slack)
          local slopes = { pg.grad((want * dy):sum(), leaves) }
          for i, slope in ipairs { pg.grad((got:to "float64" * dy):sum(), leaves) } do
            close(t, slope, slopes[i], slack * 4, ("%s of %s in %s"):format(mode, width, dtype))
          end
        end
        both("float64", 1e-12)
        both("float32", 1e-5 * width)
        both("bfloat16", 0.15 * width)
        both("float16", 0.02 * width)
      end
    end
  end
end)

test("bags: forms of the call give the same", function(t)
  local table_ = pg.randn { 5, 9 }
  for mode in pairs(reduce) do
    local want = bag_by_bag(table_, mode)
    local function same(x, offsets, o, what)
      o.offsets, o.mode = offsets, mode
      close(t, pg.embedding_bag(table_, x, o), want, 1e-6, what)
    end
    same(index, whole { 0, 3, 3, 4 }, {}, "offsets")
    same(index, whole(starts), { include_last_offset = true }, "with the last")
    same(index:to "int32", whole { 0, 3, 3, 4 }, {}, "int32")
    same(index, whole { 0, 3, 3, 4 }:to "int32", {}, "offsets of int32")
    local pairs_of = whole { 0, 9, 3, 9, 3, 9, 4, 9 }:reshape(4, 2)
    same(pg.stack({ index, index }, 2):select(2, 1), pairs_of:select(2, 1), {}, "views")
    local square = index:reshape(2, 4)
    local rows = pg.embedding_bag(table_, square, { mode = mode })
    close(t, rows, pg.embedding_bag(table_, index, { offsets = whole { 0, 4 }, mode = mode }), 0, "rows of indices")
    local turned = table_:t():contiguous():t()
    close(t, pg.embedding_bag(turned, square, { mode = mode }), rows, 0, "a table that lies turned")
    t.equal(pg.embedding_bag(table_, whole {}, { offsets = whole {}, mode = mode }).shape, { 0, 9 })
    t.equal(pg.embedding_bag(table_, whole {}, { offsets = whole { 0, 0 }, mode = mode }):totable(),
            pg.zeros { 2, 9 }:totable())
  end
  local layer = nn.EmbeddingBag { 5, 9, mode = "sum" }
  close(t, layer(index, whole { 0, 3, 3, 4 }), bag_by_bag(layer.weight, "sum"))
end)

test("bags: the first of equal ones has the gradient, NaN is the largest", function(t)
  local table_ = pg.tensor { { 1, 2 }, { 1, 3 }, { 0, 3 } }:requires_grad_()
  pg.embedding_bag(table_, whole { { 2, 1, 0 } }, { mode = "max" }):sum():backward()
  t.equal(table_.grad:totable(), { { 0, 0 }, { 1, 0 }, { 0, 1 } })
  local y = pg.embedding_bag(pg.tensor { { 1, 0 / 0 }, { 0 / 0, 5 } }, whole { { 0, 1 } }, { mode = "max" })
  t.ok(y:ne(y):all():item())
  y = pg.embedding_bag(pg.tensor { { 1, 1 / 0 }, { 2, 5 } }, whole { { 0, 1 } }, { mode = "sum", padding_idx = 0 })
  t.equal(y:totable(), { { 2, 5 } })
end)

test("bags: gradients of gradients", function(t)
  local table_ = pg.randn({ 5, 3 }, { dtype = "float64" }):requires_grad_()
  local weights = pg.randn({ 8 }, { dtype = "float64" }):requires_grad_()
  local offsets = whole { 0, 3, 3, 4 }
  t.ok(pg.gradcheck(function(w, s)
    local y = pg.embedding_bag(w, index, { offsets = offsets, mode = "sum", per_sample_weights = s })
    local dw, ds = pg.grad((y * y):sum(), { w, s }, { create_graph = true })
    return (dw * dw):sum() + (ds * ds):sum()
  end, { table_, weights }))
  for _, mode in ipairs { "mean", "max" } do
    t.ok(pg.gradcheck(function(w)
      local y = pg.embedding_bag(w, index, { offsets = offsets, mode = mode })
      local dw = pg.grad((y * y * y):sum(), { w }, { create_graph = true })
      return (dw * dw):sum()
    end, { table_ }), mode)
  end
end)

test("bags: what cannot be is refused", function(t)
  if t.device and t.device ~= "cpu" then t.skip("offsets are checked by the processor's kernels") end
  local table_ = pg.ones { 5, 2 }
  local function refused(what, offsets, o)
    for _, mode in ipairs { "sum", "mean", "max" } do
      o = o or {}
      o.offsets, o.mode = whole(offsets), mode
      t.raises(function() return pg.embedding_bag(table_, index, o):totable() end, what)
    end
  end
  refused("offset 2 at position %[3%] is less than the one before, 4", { 0, 4, 2 })
  refused("offset 9 at position %[2%] is out of range; expected 0 to 8", { 0, 9 })
  refused("offsets begin at 1; expected 0", { 1, 4 })
  refused("offsets begin at %-1; expected 0", { -1, 4 })
  refused("the last offset is 7; expected 8, the number of indices", { 0, 7 }, { include_last_offset = true })
  refused("no last offset", {}, { include_last_offset = true })
  t.raises(function() return pg.embedding_bag(table_, whole { { 0, 5 } }):totable() end,
           "embedding_bag: token 5 at position %[1, 2%] is out of range; expected 0 to 4")
  t.raises(function()
    pg.embedding_bag(table_, index, { offsets = whole { 0 }, per_sample_weights = pg.ones { 8 } })
  end, "need mode=\"sum\"")
end)
