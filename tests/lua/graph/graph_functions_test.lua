-- SPDX-License-Identifier: Apache-2.0
-- Functions made of several operators, recorded with sizes that only a run tells: parts, orders, paddings, images.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local agrees = require "graphs"
local nn = pg.nn

local function whole(limit) return function(shape) return pg.randint(0, limit, shape) end end
local function mask(shape) return pg.rand(shape):gt(0.5) end
local function shares(shape) return pg.rand(shape) * 0.8 + 0.1 end
local function log_probs(shape) return pg.randn(shape):log_softmax(-1):detach() end

local line = { { n = 5, m = 3 }, { n = 4, m = 2 }, { n = 3, m = 1 } }
local image = { { b = 2, h = 4, w = 5, c = 4 }, { b = 1, h = 5, w = 4, c = 2 } }
local N, NC, IMAGE = { "n", 2 }, { "n", "m" }, { "b", 2, "h", "w" }

-- Name, shapes, function, sizes, and what makes the inputs that are not randn.
local rows = {
  -- parts
  { "narrow", { N }, function(x) return x:narrow(1, 2, 2) end, line },
  { "narrow from the end", { N }, function(x) return { x:narrow(1, -2, 2), x:narrow(1, 2, x:size(1) - 2) } end, line },
  { "narrow to another's size", { { 9, 2 }, N }, function(x, y) return x:narrow(1, 1, y:size(1)) end, line },
  { "select", { N }, function(x) return { x:select(1, x:size(1)), x[x:size(1)], x[{ x:size(1) - 1, 2 }] } end, line },
  { "slices", { N, { 9 } }, function(x, y)
    return { x[{ { 2, x:size(1) } }], x[{ { 1, x:size(1) - 2 }, 1 }], y[{ { 2, x:size(1) } }], y[x:size(1)] }
  end, line },
  { "writing into parts", { N, { 9 } }, function(x, y)
    x, y = x * 1, y * 1
    x[x:size(1)] = 7
    x[{ { 1, x:size(1) - 2 } }] = 1
    y[{ { 2, x:size(1) } }] = 3
    x:narrow(1, 1, 2):mul_(2)
    return { x, y }
  end, line },
  { "split in sizes", { N }, function(x) return x:split { 1, 3 } end, { { n = 4 } } },
  { "chunk", { N }, function(x) return x:chunk(2) end, { { n = 4 }, { n = 2 } } },
  { "tensor_split", { N }, function(x) return x:tensor_split(3) end, line },
  { "tensor_split behind", { N }, function(x) return x:tensor_split { 1, -1 } end, line },
  { "block_diag", { NC, { 2, "n" } }, function(x, y) return pg.block_diag(x, y) end, line },
  { "embedding_bag", { { 7, 3 }, { "n" }, { 2 } }, function(w, index, offsets)
    local list = {}
    for i, mode in ipairs { "sum", "mean", "max" } do
      list[i] = pg.embedding_bag(w, index, { offsets = offsets, mode = mode })
    end
    return list
  end, line, { [2] = whole(7), [3] = function() return pg.tensor({ 0, 2 }, { dtype = "int64" }) end } },
  { "mean of no embeddings", { { 7, 3 }, N, { 3, "n" } }, function(w, _, index) return pg.embedding_bag(w, index) end,
    { { n = 2 }, { n = 0 } }, { [3] = whole(7) } },
  -- order and counting
  { "median", { NC }, function(x) return x:median() end, line },
  { "quantile", { NC }, function(x)
    local list = { x:quantile(0.3), x:quantile({ 0, 0.5, 1 }, 1), x:quantile(0.7, 2, true) }
    for i, how in ipairs { "lower", "higher", "midpoint", "nearest" } do
      list[i + 3] = x:quantile(0.4, 1, { interpolation = how })
    end
    return list
  end, line },
  { "unique rows", { N }, function(x) return { x:unique { axis = 1, return_inverse = true } } end, line,
    { function(shape) return pg.randint(0, 2, shape):float() end } },
  { "isin", { N, { "m" } }, function(x, y) return { x:isin(y), x:isin(y, true) } end, line, { whole(4), whole(4) } },
  { "isin of none", { N, { "m" } }, function(x, y) return x:isin(y) end, { { n = 2, m = 0 } }, { whole(4), whole(4) } },
  { "histc", { { "n" } }, function(x) return x:histc(4, -1, 1) end, line },
  { "one_hot", { NC, { "n" } }, function(x, y) return x * y:one_hot(x:size(2)) end, line, { [2] = whole(1) } },
  { "diff", { NC }, function(x) return { x:diff { axis = 1 }, x:diff { n = 2, axis = 1 }, x:diff() } end, line },
  { "trapezoid", { NC, { "m" } }, function(x, y)
    return { x:trapezoid(), x:trapezoid { y }, x:trapezoid { axis = 1 } }
  end, line },
  { "linspace", { N }, function(x) return x:sum() * pg.linspace(-1, 2, x:size(1)) end,
    { { n = 5 }, { n = 2 }, { n = 1 } } },
  { "index_put", { N, { "m", 2 }, { "m" } }, function(x, y, at)
    local z = x * 1
    z[at] = y
    return { z, x:index_put(at, y, true), x:put(at, y:select(2, 1)) }
  end, line, { [3] = function(shape) return pg.arange(shape[1]) end } },
  { "masked_scatter", { N, N, N }, function(x, y, m) return x:masked_scatter(m, y) end, line, { [3] = mask } },
  { "repeated as often as a size", { N }, function(x)
    return { x:tile(x:size(1), 1), x:repeat_interleave(x:size(1), 2), pg.full({ 2 }, x:size(1)) + x }
  end, line },
  { "repeat_interleave by eager counts", { { "n", 3 } }, function(x)
    return x:repeat_interleave(pg.tensor({ 2, 0, 1 }, { dtype = "int64" }), 2)
  end, line },
  -- padding, windows, images
  { "pad", { NC }, function(x) return x:pad { { -1, -1 }, { 2, -1 } } end, { { n = 4, m = 2 }, { n = 3, m = 4 } } },
  { "pad by copies", { IMAGE }, function(x)
    local list = {}
    for i, mode in ipairs { "reflect", "replicate", "circular" } do list[i] = x:pad({ 1, 2, 3, 0 }, mode) end
    return list
  end, image },
  { "im2col", { IMAGE }, function(x)
    return x:im2col { 2, dilation = 2, padding = 1, stride = { 1, 2 } }:col2im { { x:size(3), x:size(4) }, 2,
                                                                               dilation = 2, padding = 1,
                                                                               stride = { 1, 2 } }
  end, image },
  { "interpolate", { IMAGE, { 1, 1, "c", "b" } }, function(x, y)
    local list = {}
    for _, mode in ipairs { "nearest", "bilinear", "bicubic" } do
      list[#list + 1] = x:interpolate { scale_factor = 2, mode = mode }
      list[#list + 1] = x:interpolate { scale_factor = { 0.5, 1.5 }, mode = mode, recompute_scale_factor = true }
      list[#list + 1] = x:interpolate { size = { y:size(3), 3 }, mode = mode }
    end
    list[#list + 1] = x:interpolate { size = { y:size(3), y:size(4) }, mode = "bilinear", align_corners = true }
    return list
  end, image },
  { "grid_sample", { IMAGE, { "b", 3, "c", 2 } }, function(x, grid)
    local list = {}
    for _, mode in ipairs { "zeros", "border", "reflection" } do
      for _, align in ipairs { false, true } do
        list[#list + 1] = x:grid_sample(grid, { padding_mode = mode, align_corners = align })
      end
    end
    list[#list + 1] = x:grid_sample(grid, { mode = "bicubic" })
    return list
  end, image },
  { "affine_grid", { { "b", 2, 3 }, IMAGE }, function(x, y)
    return { x:affine_grid(y.shape), x:affine_grid(y.shape, true) }
  end, { image[1], { b = 1, h = 1, w = 3 } } },
  { "dropout of channels", { { "b", 2, "h" } }, function(x) return nn.Dropout1d { p = 1 }(x) end, image },
  -- networks
  { "group_norm", { { "b", "c", "h" } }, function(x) return x:group_norm(2) end, image },
  { "layer_norm over a size", { NC }, function(x) return x:layer_norm { x:size(2) } end, line },
  { "attention of grouped heads", { { "b", "c", "h", 2 }, { "b", 2, "w", 2 } }, function(q, k)
    return pg.scaled_dot_product_attention(q, k, k, { enable_gqa = true })
  end, image },
  { "rotary positions", { { "b", "h", "c" } }, function(x) return nn.RoPE { 4 }(x) end, { { b = 2, h = 3, c = 4 } } },
  { "multi_margin", { NC, { "n" } }, function(x, y) return nn.multi_margin(x, y) end, line, { [2] = whole(1) } },
  { "cross_entropy of probabilities", { NC, NC }, function(x, y)
    return nn.cross_entropy(x, y, { label_smoothing = 0.1 })
  end, line, { [2] = shares } },
  -- sizes of two names that meet
  { "losses", { { "n", "m" }, { "b", "c" } }, function(x, y)
    return { nn.mse(x, y), nn.bce(x:sigmoid(), y), nn.gaussian_nll(x, y, y), nn.cross_entropy(x, y) }
  end, { { n = 2, m = 3, b = 2, c = 3 } }, { [2] = shares } },
  { "ctc", { { "n", "m", 4 }, { "b", 2 }, { "c" }, { "d" } }, nn.ctc, { { n = 5, m = 2, b = 2, c = 2, d = 2 } },
    { log_probs, function(shape) return pg.randint(1, 4, shape) end,
      function(shape) return pg.full(shape, 5, { dtype = "int64" }) end,
      function(shape) return pg.full(shape, 2, { dtype = "int64" }) end } },
  { "products", { { "n", "m" }, { "b", "c" } }, function(x, y) return { x:inner(y), pg.cosine_similarity(x, y) } end,
    { { n = 2, m = 3, b = 2, c = 3 } } },
  { "cross", { { "n", "m" }, { "b", "c" } }, function(x, y) return x:cross(y, 2) end,
    { { n = 2, m = 3, b = 2, c = 3 } } },
}

for _, row in ipairs(rows) do
  test("functions in graphs/" .. row[1], function(t) agrees(t, unpack(row, 1, 5)) end)
end

test("functions in graphs: randperm of a size", function(t)
  local g = pg.graph(function(g) return pg.randperm(g:placeholder { "x", shape = { "n" } }:size(1)) end)
  local y = pg.Session { g }:run("output", { x = pg.ones { 9 } })
  t.equal(y.dtype, "int64")
  t.equal((y:sort(1)), pg.arange(9))
end)

test("functions in graphs: a part to another's size lies where its tensor does", function(t)
  local g = pg.graph(function(g)
    local x, n = pg.arange(9), g:placeholder { "x", shape = { "n" } }:size(1)
    return pg.device("sim:0", function() return x:narrow(1, 1, n) end)
  end)
  local y = pg.Session { g }:run("output", { x = pg.ones { 3 } })
  t.equal(y.device, pg.device())
  t.equal(y, { 0, 1, 2 })
end)

test("functions in graphs: what a run refuses", function(t)
  local function refuses(f, size, pattern)
    local g = pg.graph(function(g) return f(g:placeholder { "x", shape = { "n", 4 } }) end)
    -- What a kernel finds out comes to light where the result is read.
    t.raises(function() pg.Session { g }:run("output", { x = pg.ones { size, 4 } }):totable() end, pattern)
  end
  refuses(function(x) return x:narrow(1, 2, 2) end, 2, "%[1, 4%] .* cannot become %[2, 4%]")
  refuses(function(x) return x:split { 1, 3 }[1] end, 5, "%[5, 4%] .* cannot become %[4, 4%]")
  refuses(function(x) return x:chunk(2)[1] end, 3, "cannot become")
  refuses(function(x) return nn.RoPE { 4 }(x:t():unsqueeze(1)) end, 5, "cannot become")
  refuses(function(x) return pg.arange(3)[{ { 1, x:size(1) } }] end, 4, "index")
end)

test("functions in graphs: what needs contents or sizes says so", function(t)
  local function refuses(f, expected)
    local e = t.raises(function()
      pg.graph(function(g)
        return f(g:placeholder { "x", shape = { "n", 4 } }, g:placeholder { "i", shape = { "n" }, dtype = "int64" })
      end)
    end)
    t.equal(e.code, "failed_precondition")
    t.equal((e.message:gsub("^[^:]+:%d+: ", "")), expected)
  end
  local contents = "the tensor is one of a graph and has no contents before the graph runs"
  local fetch = " (fetch it with session:run, or make it outside of pg.graph)"
  refuses(function(_, i) return i:bincount() end,
          "bincount: " .. contents .. " (x:one_hot(classes):sum(1) counts a known number of classes)")
  refuses(function(_, i) return i:one_hot() end, "one_hot: " .. contents .. " (give classes=)")
  refuses(function(x) return x:histc(4) end, "histc: " .. contents .. " (give min and max)")
  refuses(function(x, i) return x:repeat_interleave(i, 1) end, "repeat_interleave: " .. contents ..
          " (the length of the result depends on the counts; a number repeats every position as often)")
  refuses(function(x) return pg.equal(x, x) end,
          "equal: " .. contents .. " (a:eq(b):all() is a tensor of the graph that says the same)")
  refuses(function(x) return x:allclose(pg.ones { 4 }) end,
          "allclose: " .. contents .. " (a:isclose(b):all() is a tensor of the graph that says the same)")
  refuses(function(_, i) return i:positions() end, "positions: " .. contents .. fetch)
  refuses(function(x) return x:sum():item() end, "item: " .. contents ..
          " (pg.cond and pg.while_loop do what a tensor decides; or fetch it with session:run)")
  refuses(function(x) return x:totable() end, "totable: " .. contents .. fetch)
  local axis = "axis 1 of {n, 4} has no size before the graph runs"
  refuses(function(x) return x:split(1) end,
          "split: " .. axis .. " (a list of sizes, or chunk, tells how many parts there are)")
  refuses(function(x) return x:unbind() end, "unbind: " .. axis)
  refuses(function(x) return x:rows() end, "rows: " .. axis)
  refuses(function(x) return x:repeat_interleave(pg.tensor({ 2 }, { dtype = "int64" }), 1) end,
          "repeat_interleave: " .. axis .. " (a number repeats every position as often)")
end)
