-- SPDX-License-Identifier: Apache-2.0
-- Examples of what has no row in the case table and cannot be tried with guessed inputs, by the name users type.

local list = {
  ["pg.bernoulli"] = "print(pg.bernoulli(pg.tensor{0, 0.5, 1}).shape)",
  ["pg.exponential"] = "print(pg.exponential{2, 2}.shape)",
  ["pg.multinomial"] = "print(pg.multinomial(pg.tensor{0, 3, 0}, 2, {replacement=true}))",
  ["pg.randperm"] = "print(pg.randperm(5):sort())",
  ["pg.dropout"] = "print(pg.dropout(pg.ones{4}, {p=0.5, training=false}))",
  ["nn.cosine_embedding"] = "print(nn.cosine_embedding(pg.tensor{{1, 0}}, pg.tensor{{1, 1}}, pg.tensor{1}))",
  ["nn.ctc"] = "local log_probs = pg.zeros{5, 1, 3}:log_softmax(3)\n" ..
    [[print(nn.ctc(log_probs, pg.tensor({{1, 2}}, {dtype="int64"}), {5}, {2}))]],
  ["nn.gaussian_nll"] = "print(nn.gaussian_nll(pg.tensor{1, 2}, pg.tensor{1, 3}, pg.ones{2}))",
  ["nn.margin_ranking"] = "print(nn.margin_ranking(pg.tensor{1, 2}, pg.tensor{0, 3}, pg.tensor{1, 1}, {margin=0.5}))",
  ["nn.triplet_margin"] = "print(nn.triplet_margin(pg.tensor{{0, 0}}, pg.tensor{{0, 1}}, pg.tensor{{1, 1}}))",
}

for _, name in ipairs { "Adafactor", "LAMB", "LARS", "Muon" } do
  list["optim." .. name] = ([[
local w = pg.tensor({{1, -2}, {3, 4}}, {requires_grad=true})
local optimizer = optim.%s{{w}, lr=0.1}
local loss = (w * w):sum()
loss:backward()
optimizer:step()
print((w * w):sum():lt(loss))]]):format(name)
end
list["optim.LBFGS"] = [[
local w = pg.tensor({1, -2}, {requires_grad=true})
local optimizer = optim.LBFGS{{w}}
for _ = 1, 3 do
  optimizer:step(function()
    optimizer:zero_grad()
    local loss = (w - 3):square():sum()
    loss:backward()
    return loss
  end)
end
print(w)]]
for _, name in ipairs { "EMA", "SWA" } do
  list["optim." .. name] = ([[
local model = nn.Linear{2, 1}
local average = optim.%s{model}
average:update()
average:use(function() print(model(pg.rand{2, 2}).shape) end)]]):format(name)
end
list["optim.clip_grad_norm_"] = [[
local w = pg.tensor({3, 4}, {requires_grad=true})
w:square():sum():backward()
print(optim.clip_grad_norm_({w}, 1.0), w.grad)]]
list["optim.clip_grad_value_"] = [[
local w = pg.tensor({3, -4}, {requires_grad=true})
w:square():sum():backward()
optim.clip_grad_value_({w}, 7)
print(w.grad)]]
list["optim.scale_grad_"] = [[
local w = pg.tensor({3, -4}, {requires_grad=true})
w:square():sum():backward()
optim.scale_grad_({w}, 0.5)
print(w.grad)]]
list["optim.is_optimizer"] = "print(optim.is_optimizer(optim.SGD{lr=0.1}))"

local SCHEDULES = {
  Chain = "optim.sched.Chain{optim.sched.Warmup{optimizer, 2}, optim.sched.Step{optimizer, 2}, milestones={2}}",
  Constant = "optim.sched.Constant{optimizer, 0.5, total_iters=2}",
  Lambda = "optim.sched.Lambda{optimizer, function(done) return 1 / (1 + done) end}",
  Linear = "optim.sched.Linear{optimizer, 0.1, total_iters=3}",
  Multiplicative = "optim.sched.Multiplicative{optimizer, function(step) return step % 2 == 0 and 0.5 or 1 end}",
  Sequential = "optim.sched.Sequential{optim.sched.Linear{optimizer, 0.5, total_iters=2},\n" ..
    "                                          optim.sched.Step{optimizer, 1}, milestones={2}}",
  Cosine = "optim.sched.Cosine{optimizer, 4}", CosineRestarts = "optim.sched.CosineRestarts{optimizer, 2}",
  Exponential = "optim.sched.Exponential{optimizer, 0.9}",
  MultiStep = "optim.sched.MultiStep{optimizer, {1, 3}, gamma=0.5}",
  OneCycle = "optim.sched.OneCycle{optimizer, max_lr=1, total_steps=5}",
  Polynomial = "optim.sched.Polynomial{optimizer, 4}", Step = "optim.sched.Step{optimizer, 2, gamma=0.5}",
  Warmup = "optim.sched.Warmup{optimizer, 4}",
}
for name, make in pairs(SCHEDULES) do
  list["optim.sched." .. name] = ([[
local optimizer = optim.SGD{{pg.tensor({1}, {requires_grad=true})}, lr=0.1}
local schedule = %s
local rates = {}
for step = 1, 4 do
  rates[step] = ("%%.3f"):format(schedule:lr()[1])
  optimizer:step()
  schedule:step()
end
print(table.concat(rates, " "))]]):format(make)
end
local UTILS = {
  weight_norm = "nn.utils.weight_norm(layer)\nfor name, p in layer:named_parameters() do print(name, p.shape) end",
  remove_weight_norm = "nn.utils.weight_norm(layer)\nnn.utils.remove_weight_norm(layer)\n" ..
    "for name in layer:named_parameters() do print(name) end",
  spectral_norm = "nn.init.constant_(layer.weight, 5)\nnn.utils.spectral_norm(layer)\n" ..
    "print((\"%.3f\"):format(layer.weight:norm():item()))",
  remove_spectral_norm = "nn.utils.spectral_norm(layer)\nnn.utils.remove_spectral_norm(layer)\n" ..
    "for name in layer:named_parameters() do print(name) end",
}
for name, text in pairs(UTILS) do list["nn.utils." .. name] = "local layer = nn.Linear{2, 3, bias=false}\n" .. text end

-- Of a process alone; in several each prints what it got.
local DIST = {
  rank = "print(pg.dist.rank())", size = "print(pg.dist.size())",
  local_rank = "print(pg.dist.local_rank())", local_size = "print(pg.dist.local_size())",
  group = "local pair = pg.dist.group{0}\nprint(pair, pair.rank, pair.size)",
  all_reduce = "print(pg.dist.all_reduce(t, {op=\"mean\"}))", all_gather = "print(pg.dist.all_gather(t))",
  reduce_scatter = "print(pg.dist.reduce_scatter(t))", broadcast = "print(pg.dist.broadcast(t, 0))",
  reduce = "print(pg.dist.reduce(t, {root=0}))", all_to_all = "print(pg.dist.all_to_all(t))",
  barrier = "pg.dist.barrier()\nprint \"all are here\"",
  send = "if pg.dist.size() > 1 and pg.dist.rank() == 0 then pg.dist.send(t, {to=1}) end\nprint \"sent\"",
  receive = "if pg.dist.rank() == 1 then t = pg.dist.receive(t, {from=0}) end\nprint(t)",
  multi_worker = "print(pg.dist.multi_worker())",
  mesh = "local mesh = pg.dist.mesh{data=1, model=1}\nprint(mesh, mesh.model.size)",
  share = "print(pg.dist.share(t, {group=pg.dist.group{0}}))",
  total = "print(pg.dist.total(t, {group=pg.dist.group{0}}))",
  split = "print(pg.dist.split(t, {axis=1, group=pg.dist.group{0}}))",
  join = "print(pg.dist.join(t, {axis=1, group=pg.dist.group{0}}))",
  tensor_parallel = "local model = nn.TransformerEncoderLayer{8, 2, 16}\n" ..
    "pg.dist.tensor_parallel(model, {group=pg.dist.group{0}})\nprint(model(pg.rand{2, 5, 8}).shape)",
  pipeline = "local pipeline = pg.dist.pipeline{stages={nn.Linear{4, 8}, nn.Linear{8, 1}}, devices={\"cpu\"}, " ..
    "micro_batches=2, loss=nn.mse}\nprint(pipeline, pipeline:step(pg.ones{4, 4}, pg.ones{4, 1}).shape)",
  Checkpoints = "local model = nn.Linear{4, 8}\n" ..
    "local checkpoints = pg.dist.Checkpoints{os.tmpname() .. \".run\", model=model}\n" ..
    "checkpoints:save{step=10}\nprint(checkpoints:restore().step)",
  shard = "local model = pg.dist.shard(nn.Linear{4, 8}, {level=3})\nprint(model(pg.rand{2, 4}).shape)",
  whole_state = "local layer = nn.ColumnLinear{4, 8, group=pg.dist.group{0}}\n" ..
    "print(pg.dist.whole_state(layer).weight.shape)",
  load_whole = "local layer = nn.ColumnLinear{4, 8, group=pg.dist.group{0}}\n" ..
    "pg.dist.load_whole(layer, nn.Linear{4, 8}:state())\nprint(layer.weight.shape)",
  deadline = "pg.dist.deadline(60)\nprint(pg.dist.deadline(600))",
}
for name, text in pairs(DIST) do
  list["dist." .. name] = (text:find "%f[%w]t%f[%W]" and "local t = pg.tensor{1, 2}\n" or "") .. text
end

-- Of a layer with weights 1 to 8.
local PRUNE = {
  l1_unstructured = "pg.prune.l1_unstructured(layer, 0.5)\nprint(layer.weight)",
  random_unstructured = "pg.prune.random_unstructured(layer, {count=3})\nprint(layer.weight:eq(0):sum())",
  global_unstructured = "local model = nn.Sequential{layer, nn.Linear{2, 3}}\n" ..
    "pg.prune.global_unstructured(model, {amount=0.5})\nprint(pg.prune.report(model).zeros)",
  ln_structured = "pg.prune.ln_structured(layer, {amount=0.5, axis=1})\nprint(layer.weight)",
  random_structured = "pg.prune.random_structured(layer, {count=1, axis=2})\nprint(layer.weight:eq(0):sum())",
  n_of_m = "pg.prune.n_of_m(layer, {n=2, m=4})\nprint(layer.weight)",
  custom_from_mask = "pg.prune.custom_from_mask(layer, layer.weight:gt(3))\nprint(layer.weight)",
  is_pruned = "pg.prune.l1_unstructured(layer, 0.5)\nprint(pg.prune.is_pruned(layer))",
  remove = "pg.prune.l1_unstructured(layer, 0.5)\npg.prune.remove(layer)\n" ..
    "for name in layer:named_parameters() do print(name) end",
  report = "pg.prune.l1_unstructured(layer, 0.5)\nprint(pg.prune.report(layer))",
  channels = "local model = nn.Sequential{layer, nn.ReLU{}, nn.Linear{2, 3}}\n" ..
    "pg.prune.channels(model, {amount=0.5})\nprint(model[1].weight)\nprint(pg.prune.shrink(model))",
  shrink = "local model = nn.Sequential{layer, nn.ReLU{}, nn.Linear{2, 3}}\n" ..
    "pg.prune.channels(model, {count=1})\nlocal small = pg.prune.shrink(model)\nprint(small, small:size())",
  heads = "local attention = nn.MultiheadAttention{8, 4}\npg.prune.heads(attention, {amount=0.5})\n" ..
    "print(pg.prune.shrink(attention).in_proj_weight.shape)",
  restore = "pg.prune.l1_unstructured(layer, 0.5)\n" ..
    "local other = pg.prune.restore(nn.Linear{4, 2, bias=false}, layer:state())\nprint(other.weight)",
  Gradual = "local gradual = pg.prune.Gradual{layer, amount=0.75, steps=3}\n" ..
    "for _ = 1, 3 do print((\"%.3f\"):format(gradual:step())) end",
}
for name, text in pairs(PRUNE) do
  list["prune." .. name] = "local layer = nn.Linear{4, 2, bias=false}\n" ..
    "pg.no_grad(function() layer.weight:copy_(pg.arange(1, 9):reshape(2, 4)) end)\n" .. text
end

list["compress.low_rank"] = "local model = nn.Sequential{nn.Linear{64, 64}, nn.ReLU{}, nn.Linear{64, 3}}\n" ..
  "local small, factored = pg.compress.low_rank(model, {rank=8})\n" ..
  "print(small, model:size(), small:size())\nprint(factored[1].name, factored[1].rank)"
list["quant.qat"] = "local model = pg.quant.qat(nn.Sequential{nn.Linear{8, 8}, nn.Linear{8, 2}}, {dtype=\"int4\"})\n" ..
  "model(pg.rand{4, 8}):sum():backward()  -- and a step of an optimizer, many times\n" ..
  "print(pg.quant.convert(model))"
list["quant.convert"] = list["quant.qat"]
list["quant.ptq"] = "local model = nn.Sequential{nn.Linear{64, 64}, nn.ReLU{}, nn.Linear{64, 3}}\n" ..
  "local small, report = pg.quant.ptq(model, {dtype=\"int4\", group_size=32})\n" ..
  "print(small, model:size(), small:size())\nprint(#report.rows, report.rows[1].name, report.rows[1].bytes)"
local ADAPTED = "local model = nn.Sequential{nn.Linear{8, 8}, nn.ReLU{}, nn.Linear{8, 3}}\n"
list["nn.lora"] = ADAPTED .. [[
local adapters = nn.lora(model, {rank=2, targets={"0"}, train={"2"}})
for name, p in model:named_parameters() do print(name, p.requires_grad) end
adapters:merge()
print(model[1])]]
list["nn.adapters"] = ADAPTED .. "nn.lora(model, {rank=2})\nprint(nn.adapters(model:clone()))"

local PACKED = {
  ["nn.utils.pack_padded_sequence"] = "print(packed, packed.batch_sizes)",
  ["nn.utils.pad_packed_sequence"] = "local y = nn.GRU{3, 2}(packed)\n" ..
    "local padded, lengths = nn.utils.pad_packed_sequence(y)\nprint(padded.shape, lengths)",
  ["packed_sequence:to"] = "print(packed:to(\"float64\"))",
}
for name, text in pairs(PACKED) do
  list[name] = "local packed = nn.utils.pack_padded_sequence(pg.rand{2, 4, 3}, {4, 2})\n" .. text
end
list["nn.utils.pad_sequence"] = "print(nn.utils.pad_sequence{{pg.ones{2}, pg.ones{4}}, padding_value=-1})"
list["nn.utils.pack_sequence"] = "print(nn.utils.pack_sequence{{pg.ones{4, 3}, pg.ones{2, 3}}})"

list["optim.sched.Plateau"] = [[
local optimizer = optim.SGD{{pg.tensor({1}, {requires_grad=true})}, lr=0.1}
local schedule = optim.sched.Plateau{optimizer, patience=1}
for _, loss in ipairs{3, 2, 2, 2} do schedule:step(loss) end
print(("%.3f"):format(schedule:lr()[1]))]]

return list
