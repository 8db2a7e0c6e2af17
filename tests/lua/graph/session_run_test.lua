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

local function figures(s)
  local text = s:plan()
  local form = "memory (%d+) bytes for (%d+) values, (%d+) live at once, (%d+) without"
  local bytes, values, live, separate = text:match(form)
  return tonumber(bytes), tonumber(values), tonumber(live), tonumber(separate), text
end

test("a run's values lie in one block, which is as large as what lives at once", function(t)
  local model = pg.nn.Sequential { pg.nn.Linear { 64, 64 }, pg.nn.GELU {}, pg.nn.LayerNorm { 64 },
                                   pg.nn.TransformerEncoderLayer { 64, 4, feedforward = 128, dropout = 0 } }:eval()
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 4, 8, 64 } }
    local h = model(x)
    for _ = 1, 5 do h = (h * 1.5 + 0.25):tanh() - h:mean { axis = -1, keepdim = true } end
    return { y = h:sum(), z = h:transpose(2, 3) }
  end)
  local s = pg.Session { g }
  t.raises(function() s:plan() end, "nothing has run yet")
  local first = {}
  for i = 1, 6 do
    local x = pg.full({ 4, 8, 64 }, i / 4)
    local r = s:run({ "y", "z" }, { x = x })
    local fresh = pg.Session { g }:run({ "y", "z" }, { x = x }) -- nothing is laid out in a first run
    t.equal({ r.y:item(), r.z:totable() }, { fresh.y:item(), fresh.z:totable() })
    first[i] = { r.y, r.z, r.y:item(), r.z:totable() }
  end
  for i = 1, 6 do t.equal({ first[i][1]:item(), first[i][2]:totable() }, { first[i][3], first[i][4] }) end
  local bytes, values, live, separate = figures(s)
  if pg.device() ~= "cpu" then return t.equal({ bytes, values }, { 0, 0 }) end -- others' queues outlive a run
  t.ok(values > 15 and bytes <= live * 1.05 and bytes < separate / 3, s:plan())
end)

test("an operand that dies is overwritten, but not one that is read again or seen in another way", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 32, 32 } }
    local a = x * 3
    local chain = ((a + 1):exp():neg() * 2):tanh()
    local kept = a - chain -- a is read after chain's first node
    local turned = kept + kept:t()
    return { y = turned * kept, s = (kept * turned):sum() }
  end)
  local s = pg.Session { g }
  local x = pg.randn { 32, 32 }
  local a = x * 3
  local kept = a - ((a + 1):exp():neg() * 2):tanh()
  local turned = kept + kept:t()
  for _ = 1, 4 do
    local r = s:run({ "y", "s" }, { x = x })
    t.equal(r.y:totable(), (turned * kept):totable())
    t.equal(r.s:item(), (kept * turned):sum():item())
  end
  local bytes, _, live = figures(s)
  t.equal(bytes, live)
  t.ok(bytes <= 4 * 32 * 32 * 4, s:plan())
end)

test("other sizes, and a run that fails, leave no trace in the block", function(t)
  local g = pg.graph(function(g)
    local x, i = g:placeholder { "x", shape = { "n", 4 } }, g:placeholder { "i", shape = { 1 }, dtype = "int64" }
    local h = ((x + 1) * 2):relu()
    return { y = h:index_select(1, i):exp(), h = (h - 1):sum() }
  end)
  local s = pg.Session { g }
  local function check(n, i)
    local x = pg.randn { n, 4 }
    local y = s:run("y", { x = x, i = pg.tensor({ i }, { dtype = "int64" }) })
    t.equal(y:totable(), ((x + 1) * 2):relu():index_select(1, pg.tensor({ i }, { dtype = "int64" })):exp():totable())
  end
  for _, n in ipairs { 3, 3, 3, 7, 7, 7, 3, 7, 3, 3 } do check(n, n - 1) end
  local before = pg.memory.stats().live
  t.raises(function() check(3, 9) end)
  collectgarbage()
  check(3, 2)
  collectgarbage()
  t.ok(pg.memory.stats().live <= before + 65536)
end)

test("what variables keep lies outside of the block", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 16 } }
    local w = g:variable { "w", shape = { 16 } }
    local y = (x * 2 + 1):exp():neg()
    return { y = y, u = w:add_(y * 0.5) }
  end)
  local s = pg.Session { g }
  local w = pg.zeros { 16 }
  for i = 1, 5 do
    local x = pg.full({ 16 }, i / 10)
    local r = s:run({ "y", "u" }, { x = x })
    w = w + r.y * 0.5
    t.equal(r.y:totable(), (x * 2 + 1):exp():neg():totable())
    t.equal({ r.u:totable(), s:state().w:totable() }, { w:totable(), w:totable() })
  end
end)
