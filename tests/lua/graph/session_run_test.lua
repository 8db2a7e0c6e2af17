-- SPDX-License-Identifier: Apache-2.0
-- Runs of sessions: what is learnt in one and used in the next, feeds of any node, the default session, partial runs.

local pg = require "perigee"

local function session(fn) return pg.Session { pg.graph(fn) } end

-- The message of what f raises, without the script line.
local function message(t, f)
  return (t.raises(f).message:gsub("^[^:]+:%d+: ", ""))
end

test("runs of changing sizes give what eager code gives", function(t)
  local w = pg.randn { 3, 3 }
  local function compute(x)
    local y = (x:matmul(w) + 1):relu()
    return (y:t() * 2):sum(1) + x:sum(2), y:reshape(-1)[{ { 1, 3 } }], pg.zeros(x.shape) + y
  end
  local s = session(function(g)
    local a, b, c = compute(g:placeholder { "x", shape = { "n", 3 } })
    return { a = a, b = b, c = c }
  end)
  for _, n in ipairs { 2, 2, 5, 1, 1, 5, 2 } do
    local x = pg.randn { n, 3 }
    local a, b, c = compute(x)
    local r = s:run({ "a", "b", "c" }, { x = x })
    t.ok(pg.equal(r.a, a) and pg.equal(r.b, b) and pg.equal(r.c, c), n)
  end
  t.raises(function() s:run("a", { x = pg.ones { 2, 4 } }) end, "expected %[n, 3%]")
  t.equal(s:run("b", { x = pg.zeros { 2, 3 } }), { 1, 1, 1 }, "after a run that failed")
end)

test("memory that a run uses again does not reach what it has given out", function(t)
  local s = session(function(g)
    local y = g:placeholder { "x", shape = { 4 } }
    local all = {}
    for i = 1, 12 do
      y = y + 1
      all[i] = y
    end
    return all
  end)
  local first = s:run({ 3, 7, 12 }, { x = pg.zeros { 4 } })
  local second = s:run({ 3, 7, 12 }, { x = pg.ones { 4 } })
  for i, at in ipairs { 3, 7, 12 } do
    t.equal(first[i], { at, at, at, at })
    t.equal(second[i], { at + 1, at + 1, at + 1, at + 1 })
  end
  first[3]:fill_(0)
  t.equal(s:run(12, { x = pg.zeros { 4 } }), { 12, 12, 12, 12 })
  t.equal(second[3], { 13, 13, 13, 13 })
end)

test("writes into what a weight was packed from are seen", function(t)
  local s = session(function(g)
    local x, w = g:placeholder { "x", shape = { "n", 64 } }, g:variable { "w", shape = { 64, 64 }, init = "ones" }
    local y = x:matmul(w)
    pg.no_grad(function() w:mul_(2) end)
    return { y = y, train = w }
  end)
  local x = pg.ones { 2, 64 }
  for step = 0, 4 do t.equal(s:run({ "y", "train" }, { x = x }).y, pg.full({ 2, 64 }, 64 * 2 ^ step)) end
end)

test("any node can be fed, and tells the sizes in its shape", function(t)
  local s = session(function(g)
    local x = g:placeholder { "x", shape = { "n", 2 } }
    local h = x * 2
    local both = pg.cat { h, h }
    return { h = h, both = both, y = h:reshape(-1) + pg.ones { h:size(1) * 2 },
             z = both:sum(2) + pg.zeros { x:size(1) * 2 } }
  end)
  t.equal(s:run("y", { h = pg.ones { 3, 2 } }), { 2, 2, 2, 2, 2, 2 })
  t.equal(s:run("z", { both = pg.ones { 6, 2 } }), { 2, 2, 2, 2, 2, 2 }, "2*n tells n")
  t.equal(message(t, function() s:run("y", { h = pg.ones { 3, 2 }, x = pg.ones { 4, 2 } }) end),
          "Session:run: 'h' was fed shape [3, 2]; expected [n, 2] with n = 4")
  t.equal(message(t, function() s:run("z", { both = pg.ones { 6, 2 }, x = pg.ones { 4, 2 } }) end),
          "Session:run: 'both' was fed shape [6, 2]; expected [2*n, 2] with 2*n = 8")
  t.raises(function() s:run("z", { both = pg.ones { 5, 2 } }) end, "n")
  t.equal(message(t, function() s:run("y", { h = pg.ones { 3, 2 } }, 3) end),
          "run: too many arguments: number 3 is one more than it takes")
end)

test("names are looked up anew when the graph has grown, and outlive a scope", function(t)
  local s = session(function(g)
    local x, w = g:placeholder { "x", shape = { 2 } }, g:variable { "w", init = pg.tensor { 1, 1 } }
    return { y = (x * w):sum() }
  end)
  local x = pg.tensor { 3, 4 }
  t.equal(pg.scope(function() return s:run("y", { x = x }):item() end), 7)
  t.equal(s:run("y", { x = x }), 7)
  local d = s.graph:gradients("y", { "w" })[1]
  t.equal(s:run(d, { x = x }), { 3, 4 })
  t.equal(s:run("y", { x = x }), 7)
end)

test("a session as the default one", function(t)
  local s = session(function(g) return { y = g:placeholder { "x", shape = { 2 } } * 2 } end)
  local other = session(function(g) return { y = g:placeholder { "x", shape = { 2 } } * 3 } end)
  local y = s.graph:find "y"
  local a, b, c = s:as_default(function(x, ...)
    local inner = other:as_default(function() return other.graph:find("y"):eval { x = x } end)
    return y:eval { x = x }, inner, ...
  end, pg.ones { 2 }, "more")
  t.equal(a, { 2, 2 })
  t.equal(b, { 3, 3 })
  t.equal(c, "more")
  local hint = " (call it in session:as_default(fn), or session:run(t, feeds))"
  t.equal(message(t, function() return y:eval { x = pg.ones { 2 } } end),
          "eval: there is no default session" .. hint)
  t.raises(function() s:as_default(function() error "of the script" end) end, "of the script")
  t.raises(function() return y:eval { x = pg.ones { 2 } } end, "there is no default session")
  t.equal(message(t, function() return pg.ones({ 1 }):eval() end),
          "eval: needs a tensor of a graph, got one that has its contents already")
  t.equal(message(t, function() s:as_default(3) end), "as_default: needs a function, got number 3")
  t.raises(function() other:as_default(function() return y:eval { x = pg.ones { 2 } } end) end, "not a tensor")
end)

test("a run in parts computes every node once", function(t)
  local s = session(function(g)
    local x, z = g:placeholder { "x", shape = { 2 } }, g:placeholder { "z", shape = { 2 } }
    local w = g:variable { "w", shape = { 2 } }
    local drawn = x + pg.rand { 2 }
    local kept = drawn * w
    pg.no_grad(function() w:add_(1) end)
    return { drawn = drawn, updated = w, more = drawn * z + kept, last = drawn + z }
  end)
  local one, two = pg.ones { 2 }, pg.ones { 2 } * 2
  local part = s:partial_run_setup({ "drawn", "updated", "more", "last" }, { "x", "z" })
  local first = s:partial_run(part, { "drawn", "updated" }, { x = one })
  t.equal(first.updated, { 1, 1 })
  t.equal(s:run "w", { 1, 1 })
  local drawn = first.drawn:clone()
  first.drawn:fill_(0)
  t.equal(s:partial_run(part, "more", { z = two }), drawn * 2, "what was read of w before it was written")
  t.equal(s:partial_run(part, "last"), drawn + 2)
  t.equal(s:run "w", { 1, 1 }, "written once")
  local function refuses(expected, f) t.equal(message(t, f), expected) end
  refuses("Session:partial_run: 'x' has been fed already", function() s:partial_run(part, "last", { x = one }) end)
  part = s:partial_run_setup({ "drawn" }, { "x" })
  refuses("Session:partial_run: 'last' is not among the fetches that the partial run began with",
          function() s:partial_run(part, "last") end)
  refuses("Session:partial_run: 'z' is not among the feeds that the partial run began with",
          function() s:partial_run(part, "drawn", { z = one }) end)
  refuses("Session:partial_run: placeholder 'x' was not fed", function() s:partial_run(part, "drawn") end)
  refuses("partial_run: needs what partial_run_setup of this session answered, got a table",
          function() s:partial_run({}, "drawn") end)
  s:close()
  s:close()
  refuses("partial_run: the session is closed", function() s:partial_run(part, "drawn", { x = one }) end)
  refuses("as_default: the session is closed", function() s:as_default(print) end)
end)
