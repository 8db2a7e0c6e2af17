-- SPDX-License-Identifier: Apache-2.0
-- Examples that are small programs, by the name users type: training, data, graphs, gradients.

local MODEL = "local model = nn.Linear{2, 1}\n"
local FIT = [[
local x = pg.rand{64, 2}
local y = x:sum{axis=2, keepdim=true}
]]
local SET = "local set = data.from_slices{x=pg.tensor{1, 2, 3, 4, 5}}\n"

local function with_callback(make, after)
  return FIT .. MODEL .. "local callback = " .. make .. [[

model:fit{x=x, y=y, loss="mse", optimizer=optim.SGD{lr=0.1}, epochs=3, verbose=0, callbacks={callback}}
]] .. after
end

local BPE = "local tokenizer = data.text.train_bpe(\"low lower lowest\", 260)\n"
local CHARS = "local chars = data.text.chars(\"banana\")\n"

local function written(what, after)
  return "local writer = pg.SummaryWriter{os.tmpname() .. \".run\"}\n" .. what .. (after or "\nwriter:close()")
end

local CLASSES = "pg.tensor{{3, 1, 2}, {1, 2, 3}, {4, 0, 1}, {2, 3, 1}}, pg.tensor{0, 1, 0, 1}"
local YES_OR_NO = "pg.tensor{0.9, 0.2, 0.6, 0.4}, pg.tensor{1, 0, 0, 1}"
local function judged(make, batch, after)
  return ("local metric = pg.metrics.%s\nmetric:update(%s)\n%s"):format(make:find("{") and make or make .. "{}", batch,
                                                                       after or "print(metric:value())")
end

return {
  -- gradients
  ["pg.no_grad"] = "local w = pg.ones({1}, {requires_grad=true})\n" ..
    "print(pg.no_grad(function() return (w * 2).requires_grad end))",
  ["pg.enable_grad"] = "local w = pg.ones({1}, {requires_grad=true})\n" ..
    "print(pg.no_grad(pg.enable_grad, function() return (w * 2).requires_grad end))",
  ["pg.inference_mode"] = MODEL .. "print(pg.inference_mode(function() return model(pg.rand{3, 2}).requires_grad end))",
  ["pg.grad"] = "local w = pg.tensor({3}, {requires_grad=true})\nprint(pg.grad((w ^ 2):sum(), {w})[1])",
  ["pg.tape"] = "local w = pg.tensor({3}, {requires_grad=true})\n" ..
    "pg.tape(function(tape) print(tape:gradient((w ^ 2):sum(), {w})[1]) end)",
  ["tensor:eval"] = [[
local g = pg.graph(function(g) return { y = g:placeholder{"x", shape={2}} * 2 } end)
pg.Session{g}:as_default(function() print(g:find("y"):eval{ x = {1, 2} }) end)]],
  ["pg.gradcheck"] = "local w = pg.tensor({1, 2}, {dtype=\"float64\", requires_grad=true})\n" ..
    "print(pg.gradcheck(function(x) return x:tanh() end, {w}))",
  ["pg.custom_grad"] = [[
local sign = pg.custom_grad{
  forward = function(ctx, x) ctx.x = x; return x:sign() end,
  backward = function(ctx, dy) return dy * ctx.x:abs():le(1) end,
}
local x = pg.tensor({-3, 0.5}, {requires_grad=true})
sign(x):sum():backward()
print(x.grad)]],
  ["pg.recompute"] = MODEL .. "local y = pg.recompute(model, pg.ones{1, 2})\ny:sum():backward()\n" ..
    "print(model.weight.grad)",
  ["tensor:backward"] = "local w = pg.tensor({3}, {requires_grad=true})\nlocal loss = (w ^ 2):sum()\n" ..
    "loss:backward()\nprint(w.grad)",
  ["tensor:zero_grad"] = "local w = pg.tensor({3}, {requires_grad=true})\nw:sum():backward()\nw:zero_grad()\n" ..
    "print(w.grad)",
  ["tensor:detach"] = "local w = pg.ones({1}, {requires_grad=true})\nprint(w:detach().requires_grad)",
  ["tensor:hook"] = "local w = pg.tensor({3}, {requires_grad=true})\n" ..
    "local handle = w:hook(function(gradient) return gradient:clamp(-1, 1) end)\n" ..
    "local loss = (w * 5):sum()\nloss:backward()\nhandle:remove()\nprint(w.grad)",
  ["tensor:retain_grad"] = "local w = pg.tensor({3}, {requires_grad=true})\nlocal y = (w * 2):retain_grad()\n" ..
    "y:square():sum():backward()\nprint(y.grad)",
  ["tensor:requires_grad_"] = "print(pg.ones{1}:requires_grad_().requires_grad)",
  ["tensor:rows"] = "for i, row in pg.tensor{{1, 2}, {3, 4}}:rows() do print(i, row) end",
  -- scopes and devices
  ["pg.device"] = "print(pg.device(\"cpu\", function() return pg.ones{1}.device end))",
  ["pg.scope"] = "local kept = pg.scope(function() return pg.keep(pg.ones{2} + 1) end)\nprint(kept)",
  ["pg.keep"] = "print(pg.scope(function() return pg.keep(pg.zeros{2}) end))",
  ["pg.manual_seed"] = "pg.manual_seed(42)\nlocal a = pg.rand{3}\npg.manual_seed(42)\nprint(a:equal(pg.rand{3}))",
  ["json.save"] = "local path = os.tmpname()\npg.json.save(path, {lr=0.1, layers={64, 10}}, {indent=2})\n" ..
    "print(pg.json.load(path).layers[1])",
  ["image.save"] = "local path = os.tmpname() .. \".jpg\"\n" ..
    "pg.image.save(path, pg.zeros{4, 6, 3, dtype=\"uint8\"}, {quality=80})\nprint(pg.image.load(path).shape)",
  ["image.load"] = "local path = os.tmpname() .. \".png\"\npg.image.save(path, pg.ones{4, 6, 1, dtype=\"uint8\"})\n" ..
    "print(pg.image.load(path, {channels=3}).shape)",
  ["json.load"] = "local path = os.tmpname()\npg.json.save(path, {steps=100})\nprint(pg.json.load(path).steps)",
  ["pg.bench"] = "local result = pg.bench(function() return pg.ones{8}:sum() end, {iterations=5})\n" ..
    "print(result.iterations)",
  ["tune.batch_size"] = MODEL .. [[
local sizes = pg.tune.batch_size(model, {x=pg.rand{8, 2}, y=pg.rand{8, 1}, loss="mse", limit=16, seconds=0})
print(sizes.largest, #sizes.rows, sizes.full)]],
  ["pg.bench_compare"] = "local x = pg.rand{64, 64}\nlocal result = pg.bench_compare(\n" ..
    "  function() return x:exp() end, function() return x:exp():exp() end, {rounds=5, seconds=0.001})\n" ..
    "print(result.rounds)",
  ["pg.profile"] = "local x = pg.rand{64, 64}\nlocal profile = pg.profile(function()\n" ..
    "  for _ = 1, 10 do x = (x:matmul(x)):tanh() end\nend)\nprint(profile.rows[1].calls)",
  ["pg.range"] = "local x = pg.rand{8}\nprint(#pg.range(\"doubling\", function() return x * 2 end))",
  ["profile:save"] = "local path = os.tmpname()\n" ..
    "pg.profile(function() return pg.rand{8}:sum() end):save(path)\nos.remove(path)",
  -- graphs
  ["pg.graph"] = [[
local g = pg.graph(function(g)
  local x = g:placeholder{"x", shape={"batch", 2}, dtype="float32"}
  return { y = x:sum(2) }
end)
print(pg.Session{g}:run("y", { x = pg.ones{3, 2} }))]],
  ["pg.name_scope"] = [[
local g = pg.graph(function(g)
  local x = g:placeholder{"x", shape={2}}
  return { y = pg.name_scope("twice", function() return x:relu() * 2 end) }
end)
g:print()                                       -- twice/relu = relu(x) ...
print(pg.Session{g}:run("twice/relu", { x = {-1, 3} }))]],
  ["pg.compile"] = [[
local model = pg.nn.Linear{3, 1}
local opt = pg.optim.SGD{model:parameters(), lr=0.1}
local step = pg.compile(function(x)
  opt:zero_grad()
  local loss = model(x):pow(2):mean()
  loss:backward()
  opt:step()
  return loss
end)
for _ = 1, 10 do step(pg.ones{4, 3}) end
print(step:stats().hits)]],
  ["compiled:stats"] = [[
local double = pg.compile(function(x) return x * 2 end)
for _ = 1, 5 do double(pg.ones{2}) end
local s = double:stats()
print(s.calls, s.plans, s.hits, s.kernels)]],
  ["compiled:explain"] = [[
local double = pg.compile(function(x) return x * 2 end)
for _ = 1, 5 do double(pg.ones{2}) end
print(double:explain())]],
  ["pg.cond"] = [[
local x = pg.tensor{4, 9}
print(pg.cond(x:min():ge(0), function() return x:sqrt() end, function() return -x end))]],
  ["pg.scan"] = [[
local total, sums = pg.scan{init=0, xs=pg.tensor{1, 2, 3}, body=function(sum, x) return sum + x, sum + x end}
print(total:item(), sums)]],
  ["pg.while_loop"] = [[
local halves = pg.while_loop{state={x=100, n=0}, cond=function(s) return s.x:gt(1) end,
  body=function(s) return { x = s.x / 2, n = s.n + 1 } end}
print(halves.x:item(), halves.n:item())]],
  ["pg.load_graph"] = [[
local g = pg.graph(function(g)
  return { y = g:placeholder{"x", shape={"batch", 2}} * g:variable{"w", shape={2}, init="ones"} }
end)
pg.save("twice.pgraph", pg.Session{g}, { outputs={"y"}, freeze=true })
local read = pg.load_graph("twice.pgraph")
print(read.inputs.x.shape, pg.Session{read}:run("y", { x = {{1, 2}} }))
os.remove("twice.pgraph")]],
  ["pg.Session"] = [[
local g = pg.graph(function(g) return { y = g:variable{"w", init=pg.tensor{1, 2}} * 10 } end)
local session = pg.Session{g}
print(session:run("y"))]],
  -- data
  ["data.from_slices"] = SET .. "for step, sample in set:batch(2):each() do print(step, sample.x) end",
  ["data.from_index"] = "local set = data.from_index{3, function(i) return { x = i * i } end}\nprint(#set, set[2].x)",
  ["data.from_generator"] = [[
local function squares()
  for i = 1, 5 do coroutine.yield { x = { i, i * i }, y = i % 2 } end
end
local set = data.from_generator { squares, spec = { x = { "float32", shape = { 2 } }, y = "int64" } }
for step, batch in set:shuffle { 3, seed = 1 }:batch(2):each() do print(step, batch.x, batch.y.dtype) end]],
  ["data.files"] = [[
local folder = os.tmpname() .. ".d"
os.execute("mkdir -p " .. folder)
for _, name in ipairs { "a.txt", "b.txt" } do io.open(folder .. "/" .. name, "w"):close() end
for step, file in data.files(folder .. "/*.txt"):each() do print(step, file.path:match "[^/]*$") end
os.execute("rm -r " .. folder)]],
  ["data.source"] = [[
local path = os.tmpname()
local file = io.open(path, "w")
file:write("one\ntwo\nthree\n")
file:close()
for step, sample in data.source("lines", { path = path }):each() do print(step, sample.text) end
print(select(2, pcall(data.source, "line", { path = path })).message)
os.remove(path)]],
  ["data.encode"] = [[
local bytes = data.encode(pg.tensor({ { 0, 80 }, { 160, 240 } }, { dtype = "uint8" }), "png")
print(#bytes > 50, bytes:sub(2, 4))]],
  ["data.decode"] = [[
local bytes = data.encode(pg.tensor({ { 0, 80 }, { 160, 240 } }, { dtype = "uint8" }), "png")
print(data.decode(bytes))]],
  ["data.range"] = "local set = data.range(3)\nprint(#set, set[1].value)",
  ["data.csv"] = [[
local path = os.tmpname()
local file = io.open(path .. ".csv", "w")
file:write("1,2\n3,4\n")
file:close()
print(data.csv(path .. ".csv"))
print(data.csv { path .. ".csv", columns = { { "x", "float32" }, { "y", "int64" } } }[2].y)
os.remove(path)
os.remove(path .. ".csv")]],
  ["data.mnist"] = [[
local folder = os.tmpname() .. ".d"
os.execute("mkdir -p " .. folder)
local function write(name, bytes)
  local file = io.open(folder .. "/" .. name, "wb")
  file:write(bytes)
  file:close()
end
write("t10k-images-idx3-ubyte", "\0\0\8\3\0\0\0\2\0\0\0\28\0\0\0\28" .. ("\9"):rep(2 * 28 * 28))
write("t10k-labels-idx1-ubyte", "\0\0\8\1\0\0\0\2\7\2")
local set = data.mnist{folder, split="test"}
print(#set, set[1].x.shape, set[1].y:item())
os.execute("rm -r " .. folder)]],
  ["data.cifar10"] = [[
local folder = os.tmpname() .. ".d"
os.execute("mkdir -p " .. folder)
local file = io.open(folder .. "/test_batch.bin", "wb")
file:write("\3" .. ("\200"):rep(1024) .. ("\100"):rep(1024) .. ("\50"):rep(1024))
file:close()
local set = data.cifar10{folder, split="test"}
print(#set, set[1].x[1][1], set:class_name(set[1].y:item()))
os.execute("rm -r " .. folder)]],
  ["data.records"] = [[
local path = os.tmpname()
data.write_records(path, { { id=pg.tensor({7}, {dtype="int64"}), name="seven" } })
local set = data.records{path, spec={ id="int64", name="bytes", weight={"float32", default=1} }}
print(#set, set[1].id:item(), set[1].name, set[1].weight:item())
os.remove(path)]],
  ["data.write_records"] = [[
local path = os.tmpname()
local files = data.write_records{path .. "-{0..9}", {"a", "bc", "def"}, per_file=2}
print(#files, data.records(files)[3].data)
for _, file in ipairs(files) do os.remove(file) end
os.remove(path)]],
  ["data.text.bytes"] = "print(data.text.bytes():encode(\"Lua\"))",
  ["data.text.chars"] = "local chars = data.text.chars(\"banana\")\nprint(chars:size(), chars:encode(\"nab\"))",
  ["data.text.vocabulary"] = [[
local words = data.text.vocabulary({"to", "be", "or", "not", "to", "be"}, {unknown="<unk>"})
print(words:encode{"not", "to", "see"})]],
  ["data.text.bpe"] = [[
data.text.train_bpe("low lower lowest", 260):save("tokenizer.json")
local tokenizer = data.text.bpe("tokenizer.json")
print(tokenizer, tokenizer:encode("lower"))
os.remove("tokenizer.json")]],
  ["data.text.train_bpe"] = BPE .. "print(tokenizer:ids(\"low\")[1], tokenizer:token(258))",
  ["data.text.pack"] = [[
local rows = data.text.pack({ {5, 6, 7}, {8, 9} }, 3, {separator=0, pad=-1, segments=true})
print(#rows, rows[2].ids, rows[2].segments)]],
  ["tokenizer:ids"] = BPE .. "print(#tokenizer:ids(\"a low\"))",
  ["tokenizer:encode"] = BPE .. "print(tokenizer:encode(\"lower\"))",
  ["tokenizer:decode"] = BPE .. "print(tokenizer:decode(tokenizer:encode(\"lower\")))",
  ["tokenizer:token"] = BPE .. "print(tokenizer:token(257))",
  ["tokenizer:id"] = BPE .. "print(tokenizer:id(\"low\"), tokenizer:id(\"high\"))",
  ["tokenizer:size"] = BPE .. "print(tokenizer:size())",
  ["tokenizer:save"] = BPE .. "tokenizer:save(\"tokenizer.json\")\nos.remove(\"tokenizer.json\")",
  ["vocabulary:encode"] = CHARS .. "print(chars:encode(\"nab\"))",
  ["vocabulary:decode"] = CHARS .. "print(chars:decode{2, 0, 1, 0})",
  ["vocabulary:token"] = CHARS .. "print(chars:token(0))",
  ["vocabulary:id"] = CHARS .. "print(chars:id(\"b\"), chars:id(\"x\"))",
  ["vocabulary:size"] = CHARS .. "print(chars:size())",
  ["vocabulary:save"] = CHARS .. "chars:save(\"chars.json\")\n" ..
    "print(data.text.vocabulary(\"chars.json\"))\nos.remove(\"chars.json\")",
  ["dataset:batch"] = SET .. [[print(#set:batch(2), #set:batch{2, drop_last=true}, set:batch(2)[1].x)
local words = data.from_index{2, function(i) return { ids = pg.ones{i + 1, dtype="int64"} } end}
print(words:batch{2, pad={ids=0}}[1].ids)]],
  ["dataset:bucket_by_length"] = [[
local words = data.from_index{6, function(i) return { ids = pg.ones{i, dtype="int64"} } end}
local batches = words:bucket_by_length{"ids", boundaries={3}, size={3, 2}, pad={ids=0}, shuffle=false}
for step, batch in batches:each() do print(step, batch.ids.shape) end]],
  ["dataset:transform"] = [[
local set = data.range(4)
print(select(2, pcall(set.transform, set, "jitter", { by = 0.2 })).message) -- a plugin would bring it]],
  ["dataset:map"] = SET .. "local function tenfold(sample) return { x = sample.x * 10 } end\n" ..
    "print(set:map(tenfold)[2].x)\n" ..
    "for step, b in set:map{tenfold, workers=2}:batch(3):each() do print(step, b.x) end",
  ["dataset:prefetch"] = SET .. "for step, batch in set:batch(2):prefetch(2):each() do print(step, batch.x) end",
  ["dataset:zip"] = SET .. "local both = set:zip(data.range(3))\nprint(#both, both[2][1].x, both[2][2].value)",
  ["dataset:shuffle"] = SET .. "local order = {}\n" ..
    "for step, sample in set:shuffle{seed=1}:each() do order[step] = sample.x:item() end\ntable.sort(order)\n" ..
    "print(table.concat(order, \" \"))",
  ["dataset:take"] = SET .. "print(#set:take(2))", ["dataset:skip"] = SET .. "print(set:skip(2)[1].x)",
  ["dataset:repeated"] = SET .. "print(#set:repeated(2))", ["dataset:shard"] = SET .. "print(set:shard{2, 1}[1].x)",
  ["dataset:split"] = SET .. "local train, test = set:split{0.8, 0.2}\nprint(#train, #test)",
  ["dataset:filter"] = SET .. "local function small(sample) return sample.x:item() < 3 end\n" ..
    "local part = set:filter(small)\nprint(part, part.size)\n" ..
    "for step, sample in part:each() do print(step, sample.x) end",
  ["dataset:cache"] = [[
local count, path = 0, os.tmpname()
os.remove(path)
local function slow(sample)
  count = count + 1
  return { x = sample.value ^ 2 }
end
local ds = data.range(3):map(slow):cache(path):shuffle{seed=1}:batch(2)
for epoch = 1, 3 do
  for step, batch in ds:each() do print(epoch, batch.x) end
end
print(count)
os.remove(path)]],
  ["dataset:benchmark"] = [[
local function slow(sample)
  local sum = 0
  for i = 1, 1e5 do sum = sum + i end
  return { x = sample.value + sum }
end
local ds = data.range(50):map{slow, workers=1}:batch(5):prefetch()
local report = ds:benchmark{step=0.0001}
for i, stage in ipairs(report.stages) do print(stage.name, stage.elements) end
print(report.verdict:match "^%w+")]],
  ["dataset:lint"] = SET .. "local advice = set:batch(2):shuffle{seed=1}:lint()\n" ..
    "for _, one in ipairs(advice) do print(one.stage, one.text, one.remedy) end",
  ["dataset:interleave"] = "local function part(s) return data.range(3):map(function(v) return { of = s.value, " ..
    "value = v.value } end) end\n" ..
    "for step, s in data.range(4):interleave{part, cycle=2}:each() do print(step, s.of, s.value) end",
  ["dataset:at"] = SET .. "print(set:at(-1).x)",
  ["dataset:each"] = SET .. "for step, sample in set:take(2):each() do print(step, sample.x) end",
  -- mixed precision
  ["amp.autocast"] = MODEL ..
    "print(amp.autocast({dtype=\"bfloat16\"}, function() return model(pg.rand{3, 2}).dtype end))",
  ["amp.policy"] = MODEL .. "print(amp.policy(\"mixed_bfloat16\", function() return model(pg.rand{3, 2}).dtype end))",
  ["amp.GradScaler"] = MODEL .. [[
local optimizer, scaler = optim.SGD{model, lr=0.1}, amp.GradScaler{init_scale=2^10}
local loss = nn.mse(model(pg.ones{4, 2}), pg.ones{4, 1})
scaler:scale(loss):backward()
scaler:step(optimizer)
scaler:update()
print(scaler:get_scale())]],
  -- training
  ["layer:fit"] = FIT .. MODEL .. [[
local history = model:fit{x=x, y=y, loss="mse", optimizer=optim.Adam{lr=0.1}, epochs=5, verbose=0}
print(#history, history[5].loss < history[1].loss)]],
  ["layer:evaluate"] = FIT .. MODEL .. "print(model:evaluate{x=x, y=y, loss=\"mse\"}.loss > 0)",
  ["layer:predict"] = MODEL .. "print(model:predict(pg.rand{5, 2}).shape)",
  ["layer:summary"] = "nn.Sequential{nn.Linear{4, 8}, nn.ReLU{}, nn.Linear{8, 2}}:summary{input={4}}",
  ["layer:parameters"] = MODEL .. "print(#model:parameters(), model:parameters()[1].shape)",
  ["layer:named_parameters"] = MODEL .. "for name, p in model:named_parameters() do print(name, p.shape) end",
  ["layer:count_parameters"] = MODEL .. "print(model:count_parameters())",
  ["layer:size"] = MODEL .. "print(model:size())",
  ["layer:state"] = MODEL .. "print(model:state().weight.shape)",
  ["layer:load_state"] = MODEL .. "model:load_state(nn.Linear{2, 1}:state())\nprint(model)",
  ["layer:train"] = "local layer = nn.Dropout{0.5}\nprint(layer:train().training, layer:eval().training)",
  ["layer:eval"] = "print(nn.Dropout{0.5}:eval()(pg.ones{3}))",
  ["layer:freeze"] = MODEL .. "print(model:freeze():count_parameters{trainable=true})",
  ["layer:apply"] = MODEL .. "model:apply(function(layer) print(layer) end)",
  ["layer:clone"] = MODEL .. "print(model:clone().weight:equal(model.weight))",
  ["layer:hook"] = MODEL .. "local handle = model:hook(\"forward\", function(_, _, y) print(y.shape) end)\n" ..
    "model:hook(\"backward\", function(_, grad_inputs, grad_outputs)\n" ..
    "  print(grad_inputs.n, grad_outputs[1].shape)\nend)\n" ..
    "model(pg.rand{3, 2}):sum():backward()\nhandle:remove()",
  ["layer:to"] = MODEL .. "print(model:to(\"bfloat16\").weight.dtype)",
  ["layer:buffer"] = MODEL .. "model:buffer(\"calls\", pg.zeros{1})\nprint(model.calls)",
  ["layer:children"] = "print(#nn.Sequential{nn.Linear{2, 2}, nn.ReLU{}}:children())",
  ["layer:modules"] = "print(#nn.Sequential{nn.Linear{2, 2}, nn.ReLU{}}:modules())",
  ["nn.class"] = [[
local Net = nn.class("Net")
function Net:init(o) self.fc = nn.Linear{o.inputs, 2} end
function Net:forward(x) return self.fc(x):relu() end
print(Net{inputs=4}(pg.rand{3, 4}).shape)]],
  ["callbacks.EarlyStopping"] = with_callback("pg.callbacks.EarlyStopping{\"loss\", patience=2, restore_best=true}",
                                              "print(callback.best_epoch)"),
  ["callbacks.LRScheduler"] = with_callback(
    "pg.callbacks.LRScheduler{function(optimizer) return optim.sched.Step{optimizer, 1} end}",
    "print((\"%.4f\"):format(callback.schedule:lr()[1]))"),
  ["callbacks.Monitor"] = with_callback("pg.callbacks.Monitor{1, pattern=\"weight\", print=false}",
                                        "print(#callback.records, callback.records[1].name)\n" ..
                                        "print(callback.usage.memory.unit)"),
  ["callbacks.TensorBoard"] = with_callback("pg.callbacks.TensorBoard{os.tmpname() .. \".run\", every=10}",
    "print(callback.writer.path:match(\"events.out\"))"),
  ["callbacks.ProgressBar"] = "print(pg.callbacks.ProgressBar{verbose=2}.verbose)",
  ["callbacks.CSVLogger"] = with_callback("pg.callbacks.CSVLogger{os.tmpname()}",
    "print(io.open(callback.path):read(\"*l\"))\nos.remove(callback.path)"),
  ["callbacks.ModelCheckpoint"] =
    "local callback = pg.callbacks.ModelCheckpoint{\"runs/a\", keep=2, monitor=\"val_loss\"}\n" ..
    "print(callback.options.keep)",
  -- event files
  ["pg.SummaryWriter"] = written("for step = 0, 9 do writer:add_scalar(\"loss\", 1 / (step + 1), step) end\n" ..
                                 "print(writer.dir:match(\"run$\"))"),
  ["summary_writer:add_scalar"] = written("writer:add_scalar(\"loss\", pg.tensor{0.5}, 100)"),
  ["summary_writer:add_scalars"] = written("writer:add_scalars(\"loss\", {train=0.2, test=0.3}, 100)"),
  ["summary_writer:add_histogram"] = written("writer:add_histogram(\"weight\", pg.randn{1000}, 100, {bins=30})"),
  ["summary_writer:add_image"] = written("writer:add_image(\"noise\", pg.rand{3, 8, 8})\n" ..
    "writer:add_image(\"rows\", pg.rand{4, 16, 3}, {layout=\"HWC\"})"),
  ["summary_writer:add_text"] = written("writer:add_text(\"notes\", \"a **first** try\")"),
  ["summary_writer:add_pr_curve"] = written(
    "writer:add_pr_curve(\"spam\", {1, 0, 1, 1}, {0.9, 0.8, 0.6, 0.2}, {thresholds=11})"),
  ["summary_writer:add_graph"] = written([[
local g = pg.graph(function(g) return { y = g:placeholder{"x", shape={"batch", 2}}:relu() } end)
writer:add_graph(g)]]),
  ["summary_writer:add_hparams"] = written("writer:add_hparams({lr=0.1, model=\"small\"}, {accuracy=0.93})"),
  ["summary_writer:flush"] = written("print(writer:add_scalar(\"loss\", 0.5):flush() == writer)"),
  ["summary_writer:close"] = written("writer:close()\nwriter:close()", ""),
  -- metrics
  ["metrics.Accuracy"] = judged("Accuracy", CLASSES),
  ["metrics.ErrorRate"] = judged("ErrorRate", CLASSES),
  ["metrics.TopKAccuracy"] = judged("TopKAccuracy{k=2}", CLASSES),
  ["metrics.BinaryAccuracy"] = judged("BinaryAccuracy{threshold=0.5}", YES_OR_NO),
  ["metrics.Precision"] = judged("Precision{threshold=0.5}", YES_OR_NO),
  ["metrics.Recall"] = judged("Recall{threshold=0.5}", YES_OR_NO),
  ["metrics.F1"] = judged("F1{threshold=0.5}", YES_OR_NO),
  ["metrics.AUC"] = judged("AUC", YES_OR_NO),
  ["metrics.MSE"] = judged("MSE", "pg.tensor{1, 2}, pg.tensor{1, 4}"),
  ["metrics.MAE"] = judged("MAE", "pg.tensor{1, 2}, pg.tensor{1, 4}"),
  ["metric:update"] = judged("AUC", YES_OR_NO),
  ["metric:value"] = judged("AUC", YES_OR_NO),
  ["metric:reset"] = judged("AUC", YES_OR_NO, "metric:reset()\nprint(metric)"),
  ["metric:fresh"] = judged("AUC", YES_OR_NO, "print(metric:fresh(\"area\"))"),
  ["metric:state"] = judged("MSE", "pg.tensor{1, 2}, pg.tensor{1, 4}", "print(metric:state().count)"),
  ["metric:load_state"] = judged("AUC", YES_OR_NO,
    "local other = metric:fresh()\nother:load_state(metric:state())\nprint(other:value())"),
  -- optimizers
  ["optimizer:step"] = "local w = pg.tensor({1}, {requires_grad=true})\nlocal optimizer = optim.SGD{{w}, lr=0.5}\n" ..
    "w:sum():backward()\noptimizer:step()\nprint(w)",
  ["optimizer:zero_grad"] = "local w = pg.tensor({1}, {requires_grad=true})\n" ..
    "local optimizer = optim.SGD{{w}, lr=0.5}\n" ..
    "w:sum():backward()\noptimizer:zero_grad()\nprint(w.grad)",
  ["optimizer:add_group"] = "local a, b = pg.ones({1}, {requires_grad=true}), pg.ones({1}, {requires_grad=true})\n" ..
    "local optimizer = optim.SGD{{a}, lr=0.5}\noptimizer:add_group{params={b}, lr=0.1}\nprint(optimizer.groups[2].lr)",
}
