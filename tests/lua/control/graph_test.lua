-- SPDX-License-Identifier: Apache-2.0
-- pg.cond, pg.scan and pg.while_loop in graphs: what they give and their gradients are those of eager code, to the
-- second order.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/control/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local files = require "graph_files"

local F64 = { dtype = "float64" }
local function number(...) return pg.randn({ ... }, F64) end

-- Compares fn(inputs...), a scalar, and its gradients of first and second order in a graph with eager code.
-- `shapes`: of the placeholders; without them those of the inputs.
local function check(t, name, fn, inputs, shapes)
  local names, feeds, leaves = {}, {}, {}
  local g = pg.graph(function(g)
    local list = {}
    for i, x in ipairs(inputs) do
      names[i] = "x" .. i
      feeds[names[i]] = x
      list[i] = g:placeholder { names[i], shape = shapes and shapes[i] or x.shape, dtype = x.dtype }
    end
    return { y = fn(unpack(list)) }
  end)
  for i, x in ipairs(inputs) do leaves[i] = x:clone():requires_grad_() end
  local y = fn(unpack(leaves))
  local session = pg.Session { g }
  local function close(got, want, what)
    t.ok(pg.allclose(got, want, { rtol = 1e-10, atol = 1e-12 }), ("%s, %s: %s, expected %s"):format(
           name, what, tostring(got), tostring(want)))
  end
  close(session:run("y", feeds), y, "value")
  local queries = g:gradients("y", names, { allow_unused = true })
  local first = { pg.grad(y, leaves, { create_graph = true, allow_unused = true }) }
  for i, x in ipairs(leaves) do first[i] = first[i] or pg.zeros_like(x) end
  local function total(gradients)
    local sum = 0
    for i, d in ipairs(gradients) do sum = sum + (d * d:detach():sin() * i):sum() + d:square():sum() end
    return sum
  end
  for i in ipairs(names) do
    close(queries[i] and session:run(queries[i], feeds) or pg.zeros_like(leaves[i]), first[i], "gradient " .. i)
  end
  local read = files.round_trip(session) -- gradients of what was read are made there anew
  local again, anew = pg.Session { read }, read:gradients("y", names, { allow_unused = true })
  files.same_bits(again:run("y", feeds), session:run("y", feeds), name .. ", read")
  for i in ipairs(names) do
    t.equal(anew[i] ~= nil, queries[i] ~= nil)
    if anew[i] then
      files.same_bits(again:run(anew[i], feeds), session:run(queries[i], feeds), ("%s, read, %d"):format(name, i))
    end
  end
  local second
  local built = pg.graph(function(inner)
    local list = {}
    for i, x in ipairs(inputs) do
      list[i] = inner:placeholder { names[i], shape = shapes and shapes[i] or x.shape, dtype = x.dtype }
    end
    local gradients = { pg.grad(fn(unpack(list)), list, { create_graph = true, allow_unused = true }) }
    for i, x in ipairs(list) do gradients[i] = gradients[i] or pg.zeros_like(x) end
    second = total(gradients)
    local result = {}
    local found = { pg.grad(second, list, { allow_unused = true }) }
    for i, x in ipairs(list) do result["d" .. i] = found[i] or pg.zeros_like(x) end
    return result
  end)
  local twice = pg.Session { built }
  local twice_read = pg.Session { files.round_trip(twice) }
  for i in ipairs(inputs) do
    local d = "d" .. i
    files.same_bits(twice_read:run(d, feeds), twice:run(d, feeds), ("%s, read, second %s"):format(name, d))
  end
  local wanted = { pg.grad(total(first), leaves, { allow_unused = true }) }
  for i, x in ipairs(leaves) do
    close(twice:run("d" .. i, feeds), wanted[i] or pg.zeros_like(x), "second gradient " .. i)
  end
end

local function branches(x, w)
  local y = pg.cond((x * w):sum():gt(0), function() return (x * w):tanh() end, function() return (x - w):exp() end)
  return (y * y):sum()
end

test("cond: values and gradients, either way", function(t)
  pg.manual_seed(1)
  local x, w = number(3), number(3)
  check(t, "one way", branches, { x, w })
  check(t, "the other way", branches, { -x, w })
  check(t, "symbols", branches, { -x, w }, { { "n" }, { "n" } })
  check(t, "unused on one side", function(a, b)
    local y = pg.cond(a:sum():gt(0), function() return { a * 2, n = b:sum() } end,
                      function() return { a.cos(a), n = a:prod() } end)
    return (y[1]:square() * y.n):sum()
  end, { x:abs(), w })
  check(t, "identity", function(a, b)
    local y = pg.cond(a:sum():gt(0), function() return b end, function() return a end)
    return (y * y * a):sum()
  end, { x, w })
end)

test("scan: values and gradients", function(t)
  pg.manual_seed(2)
  local w, xs, h = number(4, 4), number(5, 3, 4), number(3, 4)
  local function rnn(options)
    return function(h0, x, m)
      local last, hs = pg.scan { init = h0, xs = x, reverse = options.reverse, body = function(c, v)
        c = (c:matmul(m) + v):tanh()
        return c, options.outputs and c * v
      end }
      return last:square():sum() + (hs and (hs:sin() * x):sum() or 0)
    end
  end
  check(t, "last", rnn {}, { h, xs, w })
  check(t, "all", rnn { outputs = true }, { h, xs, w })
  check(t, "reverse", rnn { outputs = true, reverse = true }, { h, xs, w })
  check(t, "symbols", rnn { outputs = true }, { h, xs, w }, { { "batch", 4 }, { "time", "batch", 4 }, { 4, 4 } })
  check(t, "no steps", rnn { outputs = true }, { h, number(0, 3, 4), w },
        { { "batch", 4 }, { "time", "batch", 4 }, { 4, 4 } })
  check(t, "length", function(x, m)
    return pg.scan { init = x, length = 4, body = function(c) return c:matmul(m):sin() end }:sum()
  end, { h, w })
end)

test("while_loop: values and gradients", function(t)
  pg.manual_seed(3)
  local x, w = number(3), number(3)
  local function loop(a, b)
    local s = pg.while_loop { state = { x = a, n = 0 }, cond = function(s) return s.n:lt(4) end,
      body = function(s) return { x = (s.x * b):sin() + s.x, n = s.n + 1 } end }
    return s.x:square():sum()
  end
  check(t, "counted", loop, { x, w })
  check(t, "symbols", loop, { x, w }, { { "n" }, { "n" } })
  check(t, "by value", function(a, b)
    local s = pg.while_loop { state = { a }, cond = function(s) return s[1]:square():sum():gt(0.01) end,
      body = function(s) return { s[1] * b:sigmoid() * 0.5 } end }
    return s[1]:exp():sum()
  end, { x, w })
  check(t, "never", function(a, b)
    local s = pg.while_loop { state = a, cond = function() return false end, body = function(s) return s * b end }
    return s:square():sum() + b:square():sum()
  end, { x, w })
  check(t, "at most", function(a, b)
    return pg.while_loop { state = a, cond = function() return true end, max_iterations = 3,
      body = function(s) return s * b end }:sum()
  end, { x, w })
end)

test("bodies inside of bodies", function(t)
  pg.manual_seed(4)
  local xs, w = number(6, 3), number(3)
  check(t, "cond in scan", function(x, m)
    local last, ys = pg.scan { init = m, xs = x, body = function(c, v)
      local y = pg.cond(v:sum():gt(0), function() return (c * v):tanh() end, function() return c:sin() * v:exp() end)
      return y + c, y * m
    end }
    return last:square():sum() + ys:sin():sum()
  end, { xs, w })
  check(t, "scan in scan", function(x, m)
    return pg.scan { init = m, xs = x, body = function(c, v)
      return (pg.scan { init = c, length = 2, body = function(d) return (d * v + m):sin() end })
    end }:square():sum()
  end, { xs, w })
  check(t, "scan in cond", function(x, m)
    return pg.cond(m:sum():lt(100), function()
      return (pg.scan { init = m, xs = x, body = function(c, v) return (c * v):cos() end })
    end, function() return m end):square():sum()
  end, { xs, w })
  check(t, "while in scan", function(x, m)
    return pg.scan { init = m, xs = x, body = function(c, v)
      return pg.while_loop { state = { c, n = 0 }, cond = function(s) return s.n:lt(3) end,
        body = function(s) return { (s[1] * v):tanh() + m, n = s.n + 1 } end }[1]
    end }:square():sum()
  end, { xs, w })
end)
