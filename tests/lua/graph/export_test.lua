-- SPDX-License-Identifier: Apache-2.0
-- pg.save of sessions and pg.load_graph: what is in the file, what comes back, and how mistakes are told.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local files = require "graph_files"

local function regression(dtype)
  return pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "batch", 3 }, dtype = dtype }
    local target = g:placeholder { "target", shape = { "batch", 2 }, dtype = dtype }
    local w = g:variable { "w", shape = { 3, 2 }, init = "glorot_uniform", dtype = dtype }
    local b = g:variable { "b", shape = { 2 }, dtype = dtype }
    local y = x:matmul(w) + b
    local loss = (y - target):pow(2):mean()
    local by = g:gradients(loss, { w, b })
    pg.no_grad(function()
      w:sub_(by[1] * 0.1)
      b[{ { 1, 2 } }]:sub_(by[2] * 0.1) -- through a view
    end)
    return { y = y, loss = loss, train_w = w, train_b = b }
  end)
end

local function batch(dtype)
  return { x = pg.randn { 4, 3, dtype = dtype }, target = pg.randn { 4, 2, dtype = dtype } }
end

test("a loaded graph computes and trains on with the same bits", function()
  pg.manual_seed(5)
  local session, feeds = pg.Session { regression("float64") }, batch("float64")
  local names = { "y", "loss", "train_w", "train_b" }
  for _ = 1, 3 do session:run(names, feeds) end
  local read = pg.Session { files.round_trip(session) }
  files.same_all(read:state(), session:state())
  for _ = 1, 3 do files.same_all(read:run(names, feeds), session:run(names, feeds)) end
  files.same_all(read:state(), session:state())
end)

test("sessions of one loaded graph begin with what was saved", function()
  local session, feeds = pg.Session { regression() }, batch()
  local g = files.round_trip(session)
  pg.Session { g }:run("train_w", feeds)
  files.same_all(pg.Session { g }:state(), session:state())
end)

test("what was loaded and is saved again gives the same document", function(t)
  local g = files.round_trip(pg.Session { regression() })
  files.with_path(function(path)
    pg.save(path, pg.Session { g })
    local first = pg.json.encode(files.document(path))
    pg.save(path, pg.Session { pg.load_graph(path) })
    t.equal(pg.json.encode(files.document(path)), first)
  end)
end)

test("gradients of a loaded graph are those of the one that was saved", function()
  local session, feeds = pg.Session { pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "n" } }
    local w = g:variable { "w", shape = { 3 }, init = "normal" }
    local v = g:variable { "v", init = "normal", shape = { 3 } }
    local fixed = pg.no_grad(function() return w:exp() end)
    local y = (w * v:detach()):sum() * x + (fixed * w):sum() -- of three ways to w one is cut, and that to v
    pg.no_grad(function() w:mul_(2) end)
    return { y = y:sum(), z = (y * w:sum() + v:sum()):sum() }
  end) }, { x = pg.randn { 4 } }
  local read = pg.Session { files.round_trip(session) }
  for _, name in ipairs { "y", "z" } do
    local want = session.graph:gradients(name, { "w", "v" }, { allow_unused = true })
    local got = read.graph:gradients(name, { "w", "v" }, { allow_unused = true })
    files.same_all(read:run(got, feeds), session:run(want, feeds))
  end
end)

test("dtypes, empty and 0-dim tensors, and sizes that only a run tells", function()
  local held = { half = "float16", brain = "bfloat16", flags = "bool", long = "int64", int = "int32", short = "int16",
                 byte = "int8", octet = "uint8", double = "float64" }
  local session = pg.Session { pg.graph(function(g)
    local results = {}
    for name, dtype in pairs(held) do
      results["of " .. name] = g:constant(pg.tensor({ 1, 0, 1 }):to(dtype), { name = name }):clone()
    end
    local x = g:placeholder { "x", shape = { "batch", 3 } }
    local n = g:placeholder { "n", shape = { "a b", "batch" } }
    local none = g:variable { "none", shape = { 0, 3 } }
    local one = g:variable { "one", init = 2 }
    local nonzero = x:gt(0):nonzero()
    results.cat, results.twice, results.found = pg.cat({ x, none }, 1), one * 2, nonzero
    results.flat, results.half_of = x:reshape { x:size(1) * 3 }, x:narrow(1, 1, x:size(1) / 2)
    results.joined = pg.ones { n:size(1) * x:size(1) + 1 }
    results.counted = pg.zeros { nonzero:size(1), 2 } + 1
    results.least = n:diagonal()
    return results
  end) }
  local read = pg.Session { files.round_trip(session) }
  for _, rows in ipairs { 1, 4 } do
    local feeds = { x = pg.randn { rows, 3 }, n = pg.randn { 2, rows } }
    local want = {}
    for name, y in pairs(session.graph.results) do want[name] = y end
    files.same_all(read:run(read.graph.results, feeds), session:run(want, feeds))
  end
end)

test("random operators draw anew at every run, as the seed says", function(t)
  local session = pg.Session { pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 64 } }
    return { y = pg.dropout(x, 0.5) + pg.rand { 64 } }
  end) }
  local read, feeds = pg.Session { files.round_trip(session) }, { x = pg.ones { 64 } }
  pg.manual_seed(4)
  local first, second = session:run("y", feeds), session:run("y", feeds)
  pg.manual_seed(4)
  files.same_bits(read:run("y", feeds), first, "first")
  files.same_bits(read:run("y", feeds), second, "second")
  t.equal(first:eq(second):all():item(), false)
end)

test("what is fed and fetched can be named", function(t)
  local session = pg.Session { regression() }
  local g = files.round_trip(session, { inputs = { features = "x" }, outputs = { prediction = "y", "w" } })
  t.equal(g.inputs.features == g:find("features"), true)
  t.equal(g.outputs.prediction == g:find("y"), true)
  local x = pg.randn { 2, 3 }
  files.same_bits(pg.Session { g }:run("prediction", { features = x }), session:run("y", { x = x }), "y")
  local again = files.round_trip(pg.Session { g })
  t.equal(again:find("prediction") == again:find("y"), true)
  t.equal(again.inputs.features.shape, again:find("x").shape)
  files.with_path(function(path)
    local function refused(options, pattern)
      t.raises(function() pg.save(path, session, options) end, pattern)
    end
    refused({ inputs = { "x" }, outputs = { "loss" } }, 'the outputs need "target", which is not among the inputs')
    refused({ inputs = { "y" } }, 'inputs: "y" is no placeholder')
    refused({ outputs = { y = "loss" } }, 'outputs: "y" is the name of another result')
    refused({ outputs = { "nope" } }, "no tensor named 'nope'")
    refused({ outputs = { pg.ones { 1 } } }, "outputs has an eager tensor")
    refused({ output = "y" }, 'unknown .*"output"')
  end)
end)

test("frozen, a graph is what its outputs need, and its variables are constants", function(t)
  local session, feeds = pg.Session { regression() }, batch()
  for _ = 1, 2 do session:run({ "train_w", "train_b" }, feeds) end
  local g = files.round_trip(session, { outputs = { "y" }, freeze = true })
  local text = [[
x = placeholder  float32 [batch, 3]  cpu:0
w = constant  float32 [3, 2]  cpu:0
b = constant  float32 [2]  cpu:0
matmul = matmul(x, w)  float32 [batch, 2]  cpu:0
y = add(matmul, b)  float32 [batch, 2]  cpu:0
]]
  if pg.device() ~= "cpu" then text = text:gsub("cpu:0", pg.device()) end
  t.equal(g:text():gsub("  %S+%.lua:%d+\n", "\n"), text)
  files.same_bits(pg.Session { g }:run("y", { x = feeds.x }), session:run("y", { x = feeds.x }), "y")
  -- an update becomes what it computes, from what was held
  local updated = files.round_trip(session, { outputs = { "train_b" }, freeze = true })
  local run = pg.Session { updated }
  files.same_bits(run:run("train_b", feeds), run:run("train_b", feeds), "again")
  files.same_bits(run:run("train_b", feeds), session:run("train_b", feeds), "b")
end)

test("frozen, what is computed of constants alone is a constant", function(t)
  local session = pg.Session { pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "batch", 64 } }
    local w, b = g:variable { "w", shape = { 64, 64 }, init = "normal" }, g:variable { "b", shape = { 64 } }
    local scaled = (w * 2):t() -- one after the other, and a view
    local y = x:matmul(scaled) + b:exp()
    local n = x:size(1)
    local found = b:eq(0):nonzero() -- of a size that only a run tells
    local outer = b:reshape { 64, 1 } * b:reshape { 1, 64 } * pg.ones { 9, 64, 64 } -- larger than what it is made of
    local drawn = pg.dropout(b + 1, 0.5)
    pg.no_grad(function() b:add_(1) end)
    return { y = y, scaled = scaled, found = found, outer = outer:sum(), drawn = drawn, rows = pg.ones { n, 2 },
             first = x[1] + pg.ones { 64 }, train = b, held = b:sum() }
  end) }
  session:run "train"
  local feeds = { x = pg.randn { 3, 64 } }
  local function nodes_of(outputs)
    local g, list = files.round_trip(session, { outputs = outputs, freeze = true }), {}
    pg.manual_seed(1)
    local got = pg.Session { g }:run(outputs, next(g.inputs) and feeds)
    pg.manual_seed(1)
    local copy = pg.Session { session.graph }
    copy:load_state(session:state())
    files.same_all(got, copy:run(outputs, feeds))
    for line in g:text():gmatch "[^\n]+" do
      if not line:find "= %w+  " then list[#list + 1] = line:match "= (%w+)%(" end
    end
    return table.concat(list, " ")
  end
  t.equal(nodes_of { "y" }, "matmul add")
  t.equal(nodes_of { "scaled" }, "")
  t.equal(nodes_of { "found" }, "nonzero")
  t.equal(nodes_of { "outer" }, "fill mul sum")
  t.equal(nodes_of { "drawn" }, "dropout")
  t.equal(nodes_of { "rows" }, "fill")
  t.equal(nodes_of { "first" }, "slice add")
  t.equal(session:run "b", pg.ones { 64 }, "saving trains nothing")
end)

test("a graph goes where it is told to, or where there is something", function(t)
  if #pg.devices("sim") == 0 then t.skip("no simulated devices") end
  local session = pg.Session { pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 2 } }
    return pg.device("sim:0", function() return { y = (x + g:variable { "w", shape = { 2 } }) * 2 } end)
  end) }
  local x = pg.tensor { 1, 2 }
  local want = session:run("y", { x = x }):cpu()
  local same = files.round_trip(session)
  t.equal(same:text(), session.graph:text())
  local g = files.round_trip(session, nil, { device = "cpu" })
  t.equal(g:text():find("sim"), nil)
  files.same_bits(pg.Session { g }:run("y", { x = x }), want, "y")
  files.with_path(function(path)
    pg.save(path, session)
    local tensors, document = pg.load(path), pg.json.encode(files.document(path))
    files.write(path, tensors, (document:gsub("sim:0", "tpu:7")))
    files.same_bits(pg.Session { pg.load_graph(path) }:run("y", { x = x }), want, "y")
  end)
  t.raises(function() files.round_trip(session, nil, { device = "tpu:7" }) end, "tpu:7")
end)

test("operators that are not here are refused, all at once, with their plugins", function(t)
  files.with_path(function(path)
    pg.save(path, pg.Session { regression() })
    local tensors, document = pg.load(path), pg.json.encode(files.document(path))
    document = document:gsub('"matmul":{"plugin":"ops"', '"matmul_x":{"plugin":"mine"')
      :gsub('"operator":"matmul"', '"operator":"matmul_x"')
      :gsub('"mean":{"plugin":"ops"', '"mean_x":{"plugin":"yours"'):gsub('"operator":"mean"', '"operator":"mean_x"')
    files.write(path, tensors, document)
    local e = t.raises(function() pg.load_graph(path) end,
                       "operators that are not here: matmul_x %(plugin mine%), mean_x %(plugin yours%)")
    t.equal(e.code, "not_supported")
  end)
end)

test("a session goes into a .pgraph file, and nothing else does", function(t)
  local session = pg.Session { regression() }
  t.raises(function() pg.save("a.safetensors", session) end, "a session goes into a .pgraph file")
  t.raises(function() pg.save("a.pgraph", { x = pg.ones { 1 } }) end, "a .pgraph file holds a session")
  t.raises(function() pg.load_graph("there is none.pgraph") end, "there is no file")
  t.raises(function() pg.load_graph(3) end, "path must be a string")
  files.with_path(function(path)
    pg.save(path, { x = pg.ones { 1 } })
    t.raises(function() pg.load_graph(path) end, "it holds no graph %(pg.load%(path%) reads tensors%)")
  end, ".safetensors")
end)

test("the tensors of a graph file are read as any others", function(t)
  local session = pg.Session { regression() }
  files.with_path(function(path)
    pg.save(path, session, { notes = { author = "me" } })
    local tensors, note = pg.load(path)
    files.same_all(tensors, session:state())
    t.equal(note("author"), "me")
  end)
end)

test("what layers hold is saved as sessions hold it, and trains on", function(t)
  pg.manual_seed(1)
  local model = pg.nn.Sequential { pg.nn.Linear { 4, 8 }, pg.nn.BatchNorm1d { 8 }, pg.nn.Dropout { 0.3 },
                                   pg.nn.Linear { 8, 2 } }
  local session, feeds = pg.Session { pg.graph(function(g)
    local y = model(g:placeholder { "x", shape = { "batch", 4 } })
    local loss, weights = y:pow(2):mean(), model:parameters()
    local by = g:gradients(loss, weights)
    pg.no_grad(function()
      for i, w in ipairs(weights) do w:sub_(by[i] * 0.1) end
    end)
    return { y = y, loss = loss, train = weights[1] }
  end) }, { x = pg.randn { 6, 4 } }
  session:run("train", feeds)
  local read = pg.Session { files.round_trip(session) }
  t.equal(read.graph:text(), session.graph:text())
  local names = { "y", "loss", "train", "0.weight", "1.running_mean" }
  for i = 1, 3 do
    pg.manual_seed(i)
    local want = session:run(names, feeds)
    pg.manual_seed(i)
    files.same_all(read:run(names, feeds), want)
  end
  files.same_all(read:state(), session:state())
  local held = read:state()
  for name in pairs(model:state()) do t.equal(held[name] ~= nil, true) end
end)
