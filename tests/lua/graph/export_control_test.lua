-- SPDX-License-Identifier: Apache-2.0
-- Branches and loops in graph files: the nodes with their bodies come back, and so do their gradients. What each form
-- computes is compared with its file in tests/lua/control, too.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local files = require "graph_files"
local process = require "process"
local nn, optim = pg.nn, pg.optim

-- By way of a size that only the step tells.
local function count(mask) return mask:nonzero():ge(0):to("float64"):sum() end

-- An LSTM by pg.scan with a branch and a loop in its step, in which sizes are found out, and its training.
local function network(model, opt)
  return pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "time", "batch", 3 }, dtype = "float64" }
    local limit = g:placeholder { "limit", shape = {}, dtype = "float64" }
    local zero = pg.zeros { x:size(2), 4, dtype = "float64" }
    local last, found = pg.scan { init = { h = zero, c = zero }, xs = x, body = function(s, v)
      local gates = model[1](v) + model[2](s.h)
      local c = s.c * gates:narrow(2, 1, 4):sigmoid() + gates:narrow(2, 5, 4):tanh()
      local h = pg.cond(c:sum():gt(limit), function()
        return pg.while_loop { state = c, max_iterations = 3, cond = function(z) return z:square():sum():gt(limit) end,
                               body = function(z) return z * 0.5 end }
      end, function() return c:tanh() + count(v:gt(0)) * 0.01 end)
      return { h = h, c = c }, count(v:gt(limit)) + h:sum()
    end }
    local y = model[3](last.h)
    local loss = y:square():mean() + found:mean()
    return { y = y, loss = loss, found = found, train = opt and opt:minimize(loss) }
  end)
end

local function model_of()
  return nn.ModuleList { nn.Linear { 3, 12 }, nn.Linear { 4, 12 }, nn.Linear { 4, 2 } }:to "float64"
end

local function feeds_of(steps, batch, limit)
  return { x = pg.randn({ steps, batch, 3 }, { dtype = "float64" }), limit = pg.tensor(limit, { dtype = "float64" }) }
end

test("a loop with branches in it trains on in another process, bit by bit", function(t)
  local perigee = process.need_perigee(t)
  pg.manual_seed(3)
  local model = model_of()
  local session = pg.Session { network(model, optim.Adam { model:parameters(), lr = 0.05 }) }
  local names = { "y", "loss", "found", "train" }
  local feeds = feeds_of(5, 2, 0.3)
  for _ = 1, 3 do session:run("train", feeds) end
  files.with_path(function(path)
    pg.save(path, session)
    local read = pg.load_graph(path)
    t.equal(read:text(), session.graph:text())
    pg.save_npz(path .. ".npz", feeds)
    local script = process.file(([[
      local pg = require "perigee"
      local session, feeds = pg.Session { pg.load_graph(%q) }, pg.load_npz(%q)
      for _ = 1, 3 do session:run("train", feeds) end
      local results = session:run({ "y", "loss", "found" }, feeds)
      for name, value in pairs(session:state()) do results["of " .. name] = value end
      local by = session.graph:gradients("loss", { "weight", "Linear_2.bias" })
      results.by1, results.by2 = session:run(by[1], feeds), session:run(by[2], feeds)
      pg.save(%q, results)
    ]]):format(path, path .. ".npz", path .. ".safetensors"))
    t.equal(os.execute(("%s %s"):format(perigee, script)), 0)
    local got = pg.load(path .. ".safetensors")
    for _ = 1, 3 do session:run("train", feeds) end
    local want = session:run({ "y", "loss", "found" }, feeds)
    for name, value in pairs(session:state()) do want["of " .. name] = value end
    local by = session.graph:gradients("loss", { "weight", "Linear_2.bias" })
    want.by1, want.by2 = session:run(by[1], feeds), session:run(by[2], feeds)
    files.same_all(got, want)
    for _, extra in ipairs { script, path .. ".npz", path .. ".safetensors" } do os.remove(extra) end
  end)
  local read = pg.Session { files.round_trip(session) }
  for _, other in ipairs { feeds_of(1, 1, 3), feeds_of(0, 2, 0), feeds_of(7, 3, -1) } do
    files.same_all(read:run(names, other), session:run(names, other))
  end
end)

test("gradients of what was read through a branch in a loop", function()
  local session = pg.Session { pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n" }, dtype = "float64" }
    local w = g:variable { "w", shape = { 3 }, init = "normal", dtype = "float64" }
    local total = pg.scan { init = w, length = 3, body = function(c)
      return pg.cond(c:sum():gt(0), function() return c * w:sin() end, function() return (c * c):cos() end)
    end }
    return { y = (total * x):sum() }
  end) }
  local feeds = { x = pg.randn({ 3 }, { dtype = "float64" }) }
  local read = pg.Session { files.round_trip(session) }
  local want = session:run(session.graph:gradients("y", { "w", "x" }), feeds)
  local got = read:run(read.graph:gradients("y", { "w", "x" }), feeds)
  for i = 1, 2 do files.same_bits(got[i], want[i], "gradient " .. i) end
end)

test("what was read and is saved again gives the same document", function(t)
  local model = model_of()
  local session = pg.Session { network(model, optim.SGD { model:parameters(), lr = 0.1, momentum = 0.9 }) }
  files.with_path(function(path)
    pg.save(path, pg.Session { files.round_trip(session) })
    local first = pg.json.encode(files.document(path))
    pg.save(path, pg.Session { pg.load_graph(path) })
    t.equal(pg.json.encode(files.document(path)), first)
    t.equal(files.document(path).version, 2)
  end)
end)

test("frozen, bodies keep what they need of the graph around", function(t)
  local session = pg.Session { network(model_of()) }
  local feeds = feeds_of(4, 2, 0.1)
  local read = pg.Session { files.round_trip(session, { outputs = { "y" }, freeze = true }) }
  files.same_bits(read:run("y", feeds), session:run("y", feeds), "y")
  t.equal(read.graph:text():find("variable", 1, true), nil)
end)

test("detached inputs and results stay so", function(t)
  local session = pg.Session { pg.graph(function(g)
    local a, b = g:placeholder { "a", shape = { 2 } }, g:placeholder { "b", shape = { 2 } }
    local both = pg.cond(a:sum():gt(0), function() return { a * b:detach(), (a * 2):detach() } end,
                         function() return { a, b } end)
    local last = pg.scan { init = a:detach(), length = 2, body = function(c) return c * b end }
    local fixed = pg.no_grad(function()
      return pg.cond(b:sum():gt(0), function() return a end, function() return b end)
    end)
    return { y = both[1]:sum() + both[2]:sum() + last:sum() + (fixed * b):sum() + both[1]:detach():sum() }
  end) }
  local read = pg.Session { files.round_trip(session) }
  t.equal(read.graph:text(), session.graph:text())
  for _, a in ipairs { pg.tensor { 1, 2 }, pg.tensor { -1, -2 } } do
    local feeds = { a = a, b = pg.tensor { 3, 4 } }
    local want = session:run(session.graph:gradients("y", { "a", "b" }), feeds)
    local got = read:run(read.graph:gradients("y", { "a", "b" }), feeds)
    for i = 1, 2 do files.same_bits(got[i], want[i], "gradient " .. i) end
  end
end)

test("a gradient that was a Lua function is refused by name where it is asked for", function(t)
  local double = pg.custom_grad {
    forward = function(_, x) return x:round() end, backward = function(_, dy) return dy * 2 end }
  local session = pg.Session { pg.graph(function(g)
    local x, w = g:placeholder { "x", shape = { 2 } }, g:variable { "w", shape = { 2 }, init = "ones" }
    local v = g:variable { "v", shape = { 2 } }
    local y = double(x * w)
    local loss = (y * w):sum()
    local by = g:gradients(loss, { w })[1] -- is nodes as any others
    pg.no_grad(function() w:sub_(by) end)
    return { y = y, loss = loss, train = w, other = (y:detach() * v):sum() }
  end) }
  local read, feeds = pg.Session { files.round_trip(session) }, { x = pg.tensor { 1.5, 2.5 } }
  for _ = 1, 2 do files.same_all(read:run({ "loss", "train" }, feeds), session:run({ "loss", "train" }, feeds)) end
  local e = t.raises(function() read.graph:gradients("loss", { "w" }) end,
                     "y: its gradient was a Lua function %(pg.custom_grad%), which a graph file does not hold")
  t.equal(e.code, "not_supported")
  files.same_bits(read:run(read.graph:gradients("other", { "v" })[1], feeds), read:run("y", feeds), "other")
  t.raises(function() files.round_trip(read).graph:gradients("loss", { "w" }) end, "")
  local frozen = files.round_trip(session, { outputs = { "y" }, freeze = true })
  files.same_bits(pg.Session { frozen }:run("y", feeds), session:run("y", feeds), "frozen")
end)

-- ---- files that say what cannot be ----

local function graph()
  return pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n", 2 } }
    local last, all = pg.scan { init = pg.zeros { 2 }, xs = x, body = function(c, v) return c + v, c * v end }
    local y = pg.cond(last:sum():gt(0), function() return last * 2 end, function() return last end)
    local z = pg.while_loop { state = { y }, cond = function(s) return s[1]:sum():lt(10) end,
                              body = function(s) return { s[1] + 1 } end }
    return { last = last, all = all, y = y, z = z[1] }
  end)
end

local function node(d, kind)
  for _, n in ipairs(d.graph.nodes) do
    if n.control == kind then return n end
  end
end
local null = pg.json.null

local rows = {
  { "there is no such kind of node", function(d) node(d, "cond").control = "switch" end },
  { "it has another number of bodies", function(d) table.remove(node(d, "cond").bodies) end },
  { "it has too few inputs", function(d) node(d, "scan").carries = 4294967295 end, "not a whole number below" },
  { "it has too few inputs", function(d) node(d, "scan").carries = 4 end },
  { "what decides is no bool", function(d) node(d, "cond").inputs[1] = node(d, "cond").inputs[2] end },
  { "one of its inputs is not there", function(d) node(d, "scan").inputs[1] = null end },
  { "a body does not say of each input", function(d) table.remove(node(d, "scan").bodies[1].arguments) end },
  { "lacks input 1", function(d) node(d, "while_loop").bodies[1].arguments[1] = null end },
  { "no input is the argument", function(d) node(d, "cond").bodies[1].arguments[2] = null end },
  { "is no argument of", function(d)
    local body = node(d, "scan").bodies[1]
    body.arguments[1] = body.nodes[1].name
  end },
  { "but then takes float64", function(d) node(d, "cond").bodies[1].sources[1].dtype = "float64" end,
    "takes float64|its inputs have dtypes|is to be" },
  { "other numbers of results", function(d) table.insert(node(d, "cond").bodies[1].results, null) end },
  { "no body gives output 1", function(d)
    node(d, "cond").bodies[1].results[1], node(d, "cond").bodies[2].results[1] = null, null
  end },
  { "it has 1 outputs; expected 2", function(d) table.remove(node(d, "scan").outputs) end },
  { "its condition gives no bool", function(d)
    local body = node(d, "while_loop").bodies[1]
    body.results[1] = body.arguments[1]
  end },
  { "its condition gives more than one tensor", function(d)
    local body = node(d, "while_loop").bodies[1]
    body.results[2] = body.results[1]
  end },
  { "it hands on more than its body gives", function(d) node(d, "while_loop").bodies[2].results = pg.json.array() end },
  { '"most" is no number of rounds', function(d) node(d, "while_loop").most = -3 end },
  { "it has a length, which its inputs tell", function(d) node(d, "scan").length = 3 end },
  { "is no value of it", function(d) node(d, "scan").bodies[1].results[1] = "x" end },
  { "there is no such kind of source", function(d) node(d, "scan").bodies[1].sources[1].kind = "variable" end,
    "it has a gradient, as arguments have" },
  { "there is no such kind of source", function(d)
    local source = node(d, "scan").bodies[1].sources[1]
    source.kind, source.gradient = "placeholder", nil
  end },
  { 'operator "mul" is not among its operators', function(d) d.operators.mul = nil end },
  { "a body: it has an unknown 'more'", function(d) node(d, "scan").bodies[1].more = 1 end },
  { '"kept"', function(d) node(d, "scan").kept = 9 end },
  { "the name is taken", function(d) node(d, "cond").name = "x" end },
  { "an entry of \"detached\"", function(d) node(d, "scan").bodies[1].detached = pg.json.array { 7 } end },
}

for i, row in ipairs(rows) do
  test(("a body that cannot be is refused, %d: %s"):format(i, row[1]), function(t)
    files.with_path(function(path)
      pg.save(path, pg.Session { graph() })
      local tensors, document = pg.load(path), files.document(path)
      row[2](document)
      files.write(path, tensors, pg.json.encode(document))
      local e = t.raises(function() pg.load_graph(path) end, "")
      local fits = false
      for pattern in (row[3] or row[1]):gmatch "[^|]+" do fits = fits or e.message:find(pattern, 1, true) ~= nil end
      t.ok(fits, e.message)
      t.equal(e.code, "data_loss")
      t.ok(e.message:find(path, 1, true), e.message)
    end)
  end)
end

test("bodies nested without end are refused", function(t)
  files.with_path(function(path)
    pg.save(path, pg.Session { graph() })
    local tensors, document = pg.load(path), files.document(path)
    local body = node(document, "scan").bodies[1]
    for _ = 1, 40 do
      body.nodes = pg.json.array { { name = "c", control = "cond", device = "cpu:0", inputs = pg.json.array(),
                                     outputs = pg.json.array(),
                                     bodies = pg.json.array { { name = "then", symbols = pg.json.array(),
                                                                sources = pg.json.array(), nodes = pg.json.array(),
                                                                arguments = pg.json.array(),
                                                                results = pg.json.array() } } } }
      body = body.nodes[1].bodies[1]
    end
    files.write(path, tensors, pg.json.encode(document))
    t.equal(t.raises(function() pg.load_graph(path) end, "nested more than 32 deep").code, "data_loss")
  end)
end)
