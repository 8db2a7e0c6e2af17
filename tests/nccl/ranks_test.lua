-- SPDX-License-Identifier: Apache-2.0
-- A device of each process: collectives on the devices over NCCL, what it lacks through host memory, training, and
-- processes that fail.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"

local ON = [[
local function on(list, dtype) return pg.tensor(list, { dtype = dtype or "float32" }):to "cuda:0" end
]]

local VALUES = ON .. [[
for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8" } do
  local x = on({ { rank + 1, 2 }, { 3, 4 * rank } }, dtype)
  same(tostring(d.all_reduce(x).device), "cuda:0")
  same(d.all_reduce(x), { { 6, 6 }, { 9, 12 } }, dtype)
  same(d.all_reduce(x, { op = "max" }), { { 3, 2 }, { 3, 8 } }, dtype)
  same(d.reduce(x, { root = 1 }), rank == 1 and { { 6, 6 }, { 9, 12 } } or { { 0, 0 }, { 0, 0 } }, dtype)
  same(d.reduce_scatter(on({ rank, rank + 1, rank + 2 }, dtype)), { 3 + 3 * rank }, dtype)
  if dtype:find "float" then same(d.all_reduce(x, { op = "mean" }), { { 2, 2 }, { 3, 4 } }, dtype) end
  same(d.all_gather(on({ { rank, 10 } }, dtype)), { { 0, 10 }, { 1, 10 }, { 2, 10 } }, dtype)
  same(d.broadcast(on({ { rank, 10 } }, dtype), 2), { { 2, 10 } }, dtype)
  same(d.all_to_all(on({ 10 * rank, 10 * rank + 1, 10 * rank + 2 }, dtype)), { rank, 10 + rank, 20 + rank }, dtype)
end
local nan = on { rank == 1 and 0 / 0 or 1, 1 }
for _, op in ipairs { "sum", "mean", "max", "min" } do
  local y = d.all_reduce(nan, { op = op }):totable()
  same(y[1] ~= y[1] and y[2] == y[2], true, op)
end
same(d.all_reduce(pg.zeros { 0, 2 }:to "cuda:0").shape, { 0, 2 })
same(d.all_reduce(on { { 1, 2 }, { 3, 4 } }:t()), { { 3, 9 }, { 6, 12 } })
if rank == 0 then d.send(on { 5 }, { to = 1 }) elseif rank == 1 then same(d.receive(on { 0 }, { from = 0 }), { 5 }) end
local pair = rank < 2 and d.group { 0, 1 }
if pair then same(d.all_reduce(on { rank + 1 }, { group = pair }), { 3 }) end
local x = on { rank + 1, 2 }
x.requires_grad = true
d.all_reduce(x):sum():backward()
same(x.grad, { 3, 3 })
]]

test("values in every dtype on devices of three processes; what NCCL lacks travels through host memory", function(t)
  launched.well(t, 3, VALUES, "PERIGEE_STANDIN_JITTER=50")
end)

test("that NCCL carries them; processes that share a GPU, which it refuses", function(t)
  local sum = ON .. "print(d.all_reduce(on { rank + 1 }):item())"
  local text, status = launched.run(t, 2, sum, "PERIGEE_DIST_DEADLINE=30 PERIGEE_STANDIN_FAIL=ncclAllReduce:1:999")
  t.ok(status ~= 0 and text:find "all_reduce: .-ncclAllReduce: unhandled cuda error", text)
  text = launched.well(t, 2, sum, "PERIGEE_STANDIN_GPUS=shared PERIGEE_STANDIN_FAIL=ncclAllReduce:1:999")
  t.ok(select(2, text:gsub("%] 3\n", "")) == 2, text)
end)

test("training: the parameters of all processes are equal, and those of MPI", function(t)
  local body = [[
    local function train(device)
      pg.manual_seed(5)
      local strategy = d.multi_worker()
      local model, optimizer
      strategy:scope(function()
        model = pg.nn.Sequential { pg.nn.Linear { 4, 8 }, pg.nn.Tanh {}, pg.nn.Linear { 8, 1 } }:to "float64":to(device)
        optimizer = pg.optim.SGD { model:parameters(), lr = 0.1 }
      end)
      pg.manual_seed(9)
      local x = pg.randn { 12, 4 }:to "float64"
      local ds = pg.data.from_slices { x = x, y = x:sum { axis = 2, keepdim = true } }:batch(4)
      for _, batch in strategy:distribute(ds):each() do
        strategy:run(function(b)
          optimizer:zero_grad()
          pg.nn.mse(model(b.x:to(device)), b.y:to(device)):backward()
          optimizer:step()
        end, batch)
      end
      local flat = {}
      for _, p in ipairs(model:parameters()) do flat[#flat + 1] = p:detach():reshape(-1):to "cpu" end
      return pg.cat(flat)
    end
    local got = train "cuda:0"
    same(d.broadcast(got):totable(), got:totable(), "ranks differ")
    near("training", got, train "cpu")
  ]]
  launched.well(t, 2, body)
end)

test("a process that ends, and one that does not come: the others say so before the deadline, no hang", function(t)
  local meet = ON .. "d.all_reduce(on { 1 }):item()\n"
  -- The launcher ends the others when one has died: who would say it may not come to it, so it gets three chances.
  local text, status
  for _ = 1, 3 do
    text, status = launched.run(t, 3, meet .. [[
      if rank == 1 then os.execute "kill -9 $PPID" end
      d.all_reduce(on { 1 }):item()
    ]], "PERIGEE_DIST_DEADLINE=40")
    if text:find "all_reduce: cannot be completed: rank 1 has ended" then break end
  end
  t.ok(status ~= 0 and text:find "all_reduce: cannot be completed: rank 1 has ended", text)
  text, status = launched.run(t, 2, meet .. [[
    d.deadline(1)
    if rank == 1 then os.execute "sleep 4" return end
    d.all_reduce(on { 1 }):item()
  ]])
  t.ok(status ~= 0 and text:find "all_reduce: took more than 1 seconds: others have not come to it", text)
end)

test("the debug mode tells calls on other devices apart", function(t)
  local text, status = launched.run(t, 2, ON .. [[
    local x = on { 1 }
    d.all_reduce(rank == 0 and x or x:to "cpu")
  ]], "PERIGEE_DIST_DEBUG=1 PERIGEE_DIST_DEADLINE=30")
  t.ok(status ~= 0 and text:find("rank 0: all_reduce sum of float32 [1] on cuda at ", 1, true), text)
end)
