-- SPDX-License-Identifier: Apache-2.0
-- Sizes that are known when a graph runs: arithmetic with them, and the functions that compute with sizes.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local agrees = require "graphs"
local process = require "process"

local even = { { b = 2, n = 4, c = 3 }, { b = 1, n = 2, c = 4 } }
local rows = {
  { "einsum, products", { { "b", "n", 4 }, { "b", 4, "c" } }, function(x, y)
    return pg.einsum("bij,bjk->bik", x, y)
  end },
  { "einsum, a diagonal", { { "b", "n", "n" } }, function(x) return pg.einsum("bii->b", x) end },
  { "einsum, dots", { { "b", "n", "c" }, { "b", "c", "n" } }, function(x, y)
    return pg.einsum("...ij,...jk", x, y)
  end },
  { "kron", { { "b", "n" }, { "c", 2 } }, function(x, y) return pg.kron(x, y) end },
  { "tensordot", { { "b", "n", "c" }, { "n", "c", 2 } }, function(x, y) return x:tensordot(y, 2) end },
  { "pixel_shuffle", { { "b", 4, "n", "c" } }, function(x) return x:pixel_shuffle(2) end },
  { "pixel_unshuffle", { { "b", "c", "n", "n" } }, function(x) return x:pixel_unshuffle(2) end, even },
  { "channel_shuffle", { { "b", "n", "c" } }, function(x) return x:channel_shuffle(2) end, even },
  { "index_add", { { "b", "n" }, { "b", 1 } }, function(x, y)
    return x:index_add(2, pg.tensor({ 0 }, { dtype = "int64" }), y)
  end },
  { "diag_embed", { { "b", "n" } }, function(x) return x:diag_embed(1) end },
  { "tile", { { "b", "n" } }, function(x) return x:tile(3, 2) end },
  { "unflatten", { { "b", "n" } }, function(x) return x:unflatten(2, { 2, -1 }) end, even },
  { "flatten", { { "b", "n", "c" } }, function(x) return x:flatten(1, 2):flatten() end },
  { "flip", { { "b", "n" } }, function(x) return x:flip { 1, 2 } end },
  { "mean by hand", { { "b", "n" } }, function(x) return x:sum(1) / x:size(1) + x:size(2) * 2 - x end },
  { "size over tensor", { { "b", "n" } }, function(x) return x:size(1) / x:exp() - x:size(2) % 3 end },
  { "numel", { { "b", "n" } }, function(x) return x / x:numel() + #x end },
  { "arange", { { "b", "n" } }, function(x) return x * pg.arange(x:size(2)) end },
  { "arange from a size", { { "b", "n" } }, function(x)
    return x * pg.arange(x:size(2), x:size(2) * 2) + pg.arange(x:size(2), 0, -1)
  end },
  { "arange by two", { { "b", "n" } }, function(x) return x:sum() * pg.arange(1, x:size(2) + 2, 2) end },
  { "eye", { { "b", "n" } }, function(x) return x:unsqueeze(2) * pg.eye(x:size(2)) end },
  { "reshape", { { "b", "n", "c" } }, function(x) return x:reshape(x:size(1) * x:size(2), -1) end },
  { "reshape by a quotient", { { "b", "n", "c" } }, function(x)
    return x:reshape { x:size(1), x:numel() / x:size(1) }
  end },
  { "zeros", { { "b", "n" } }, function(x)
    return pg.zeros { x:size(1), x:size(2) * 2 } + x:repeat_interleave(2, 2)
  end },
}

for _, row in ipairs(rows) do
  local name, shapes, f, sizes = unpack(row, 1, 4)
  test("sizes of graphs/" .. name, function(t) agrees(t, name, shapes, f, sizes) end)
end

test("arithmetic with sizes of graphs", function(t)
  pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "b", "n" } }
    local b, n = x:size(1), x:size(2)
    local function is(size, text) t.equal(tostring(size), text) end
    is(b * n * 2, "2*b*n")
    is(b + 1 - b, "1")
    is((b + n) * 2 - 1, "2*b + 2*n - 1")
    is(b * n * 6 / (n * 3), "2*b")
    is(n * n + n + b * b * n + b, "b*b*n + n*n + b + n")
    is(b / 2, "(b)//(2)")
    is(-b, "-1*b")
    is(b * 4 % 2, "0")
    is("size " .. b .. "!", "size b!")
    is(x[{ { 1, 2 } }]:size(1), "min(b, 2)")
    is(x[{ { 1, 2 } }]:size(1) * 2, "2*min(b, 2)")
    t.ok(b == "b" and b ~= "n" and b ~= n and b ~= 3 and b ~= nil and b == x:size(1) and b * 2 == b + b)
    t.ok(b < b + 1 and b <= b and b + 2 > b and b >= b and not rawequal(b < b, true))
    t.equal(({ [b] = 7 })[x:size(1)], 7, "a key of tables")
    t.equal(x.shape, x.shape)
    t.equal(g:placeholder { "y", shape = { b, 3 } }:size(1), b)
    return x
  end)
end)

test("sizes of graphs: mistakes", function(t)
  local function refuses(message, f)
    local e = t.raises(function()
      pg.graph(function(g) return f(g:placeholder { "x", shape = { "b", "n" } }, g) end)
    end)
    t.equal(e.message:gsub("^[^:]+:%d+: ", ""), message)
  end
  refuses("b and 3 cannot be compared before the graph runs", function(x) return x:size(1) < 3 end)
  refuses("sizes are computed from whole numbers, got number 0.5 (x:size(1) / 2 rounds down)",
          function(x) return x:size(1) * 0.5 end)
  refuses("2 / b is no size (a tensor can be divided by a size)", function(x) return 2 / x:size(1) end)
  refuses("size: a size cannot be divided by 0", function(x) return x:size(1) / 0 end)
  refuses("placeholder: shape[1] must be a size or the name of a symbol, got size 2*b (what is computed of other " ..
          "sizes cannot be fed)", function(x, g) return g:placeholder { "y", shape = { x:size(1) * 2 } } end)
  refuses("arange: start and step must be whole numbers where stop is a size of a graph",
          function(x) return pg.arange(0, x:size(1), 0.5) end)
  local kept
  pg.graph(function(g)
    kept = g:placeholder { "x", shape = { "b" } }:size(1)
    return pg.ones { 1 }
  end)
  t.raises(function() return pg.zeros { kept, 2 } end,
           "'b' is a size of a graph: it is a number only in the graph's runs")
  t.raises(function() return pg.ones { 4 }:reshape(kept, -1) end, "a number only in the graph's runs")
  t.raises(function() return pg.zeros { "b", 2 } end, 'got string "b"')
end)

test("names of sizes are those of the graph that is being recorded", function(t)
  local other
  pg.graph(function(g)
    other = g:placeholder { "x", shape = { "n", 3 } }
    return other
  end)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 3 } }
    t.ok(other.shape[1] ~= x.shape[1], "looking at another graph's size")
    return x * pg.ones { "n", 3 }
  end)
  t.equal(pg.Session { g }:run("output", { x = pg.ones { 2, 3 } }).shape, pg.ones({ 2, 3 }).shape)
end)

test("squeeze without axes cannot tell an axis of a symbol that is 1", function(t)
  local g = pg.graph(function(g) return g:placeholder { "x", shape = { "b", "n", 1 } }:squeeze() end)
  local session = pg.Session { g }
  t.equal(session:run("output", { x = pg.ones { 2, 3, 1 } }), pg.ones { 2, 3 })
  t.raises(function() session:run("output", { x = pg.ones { 1, 3, 1 } }) end,
           "output %(squeeze%): gave %[3%], but was recorded as %[b, n%]: the number of axes cannot depend on the run")
end)

test("graphs that are built again and again leave nothing behind", function(t)
  local function resident()
    for line in io.lines("/proc/self/status") do
      local n = line:match("VmRSS:%s+(%d+)")
      if n then return tonumber(n) * 1024 end
    end
  end
  if not io.open("/proc/self/status") then t.skip("no /proc") end
  if process.is_sanitized() then t.skip("a sanitizer keeps what was freed for a while") end
  local function build(count)
    for _ = 1, count do
      pg.graph(function(g)
        local x = g:placeholder { "x", shape = { "batch", "time", 3 }, dtype = "float32" }
        local y = x:reshape(x.shape[1] * x.shape[2], 3):relu()
        return { pg.cat { y, y, axis = 1 }:sum(), y:gt(0):nonzero() }
      end)
    end
    pg.memory.collect()
  end
  build(1500)
  build(1500)
  local before = resident()
  for _ = 1, 3 do build(1500) end
  local left = (resident() - before) / 4500
  t.ok(left < 500, ("%.0f bytes a graph"):format(left))
end)

test("what counts runs for who needs nothing but the count", function(t)
  local g = pg.graph(function(g)
    local x, p = g:placeholder { "x", shape = { "n" } }, g:placeholder { "p", shape = {}, dtype = "bool" }
    local found = x:nonzero()
    local cut = pg.cond(p, function() return x[{ { 1, 2 } }] end, function() return x end)
    return { z = pg.zeros { found:size(1), 2 }, twice = pg.ones { found:size(1) * 2 + 1 }, c = pg.ones { cut:size(1) } }
  end)
  local path = os.tmpname() .. ".pgraph"
  pg.save(path, pg.Session(g), { inputs = { "x", "p" }, outputs = { "z", "twice", "c" } })
  local feeds = { x = pg.tensor { 1, 0, 2 }, p = true }
  for _, session in ipairs { pg.Session(g), pg.Session(pg.load_graph(path)) } do
    t.equal(session:run("z", { x = feeds.x }).shape, { 2, 2 })
    t.equal(session:run("twice", { x = feeds.x }).shape, { 5 })
    t.equal(session:run("c", feeds).shape, { 2 })
    t.raises(function() session:run("z") end, "placeholder 'x' was not fed")
  end
  os.remove(path)
end)
