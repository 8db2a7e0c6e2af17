-- SPDX-License-Identifier: Apache-2.0
-- Collectives between two and three processes: values in every dtype, shapes, gradients, graphs, devices, messages.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local pg = require "perigee"

test("values in every dtype, on three processes", function(t)
  launched.well(t, 3, [[
    local dtypes = { "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8" }
    same(rank < 3 and size, 3)
    same(d.local_size(), 3)
    same(d.local_rank(), rank)
    for _, dtype in ipairs(dtypes) do
      local x = pg.tensor({ { rank + 1, 2 }, { 3, 4 * rank } }, { dtype = dtype })
      same(d.all_reduce(x).dtype, dtype)
      same(d.all_reduce(x), { { 6, 6 }, { 9, 12 } }, dtype)
      same(d.all_reduce(x, { op = "max" }), { { 3, 2 }, { 3, 8 } }, dtype)
      same(d.all_reduce(x, { op = "min" }), { { 1, 2 }, { 3, 0 } }, dtype)
      same(d.reduce(x, { root = 1 }), rank == 1 and { { 6, 6 }, { 9, 12 } } or { { 0, 0 }, { 0, 0 } }, dtype)
      local y = pg.tensor({ rank, rank + 1, rank + 2 }, { dtype = dtype })
      same(d.reduce_scatter(y), { 3 + 3 * rank }, dtype)
      if dtype:find "float" then
        same(d.all_reduce(x, { op = "mean" }), { { 2, 2 }, { 3, 4 } }, dtype)
        same(d.reduce_scatter(y, { op = "mean" }), { 1 + rank }, dtype)
        same(d.reduce(x, { op = "mean" }), rank == 0 and { { 2, 2 }, { 3, 4 } } or { { 0, 0 }, { 0, 0 } }, dtype)
      end
    end
    for _, dtype in ipairs(dtypes) do
      local x = pg.tensor({ { rank, 10 } }, { dtype = dtype })
      same(d.all_gather(x), { { 0, 10 }, { 1, 10 }, { 2, 10 } }, dtype)
      same(d.broadcast(x, 2), { { 2, 10 } }, dtype)
      local z = pg.tensor({ 10 * rank, 10 * rank + 1, 10 * rank + 2 }, { dtype = dtype })
      same(d.all_to_all(z), { rank, 10 + rank, 20 + rank }, dtype)
    end
    same(d.all_gather(pg.tensor { rank == 1, true }), { false, true, true, true, false, true })
    same(d.broadcast(pg.tensor { rank == 1, true }, { root = 1 }), { true, true })
    -- NaN of one is everybody's
    local nan = pg.tensor { rank == 1 and 0 / 0 or 1, 1 }
    for _, op in ipairs { "sum", "mean", "max", "min" } do
      local y = d.all_reduce(nan, { op = op }):totable()
      same(y[1] ~= y[1] and y[2] == y[2], true, op)
    end
    raises(function() d.all_reduce(pg.ones({ 2 }):to "int64", { op = "mean" }) end, "expected a floating dtype")
    raises(function() d.all_reduce(pg.ones { 2 }, { op = "product" }) end, "product")
    raises(function() d.reduce_scatter(pg.ones { 4 }) end, "3 ranks share in equal parts")
    raises(function() d.reduce_scatter(pg.tensor(1)) end, "reduce_scatter")
    raises(function() d.broadcast(pg.ones { 4 }, 3) end, "root must be a rank of the group, 0 to 2, got number 3")
    raises(function() pg.all_gather(pg.ones { 4 }, { group = 1, ranks = 2 }) end, "ranks is 2; its group has 3")
    raises(function() pg.all_gather(pg.ones { 4 }, { group = 9, ranks = 2 }) end, "there is no group number 9")
    pg.config.set { deterministic = true }
    raises(function() d.all_reduce(pg.ones { 4 }) end, "deterministic=true")
    d.all_reduce(pg.ones { 4 }, { op = "max" })
  ]])
end)

test("shapes: none, no elements, strided, many elements", function(t)
  launched.well(t, 2, [[
    local s = pg.tensor(rank + 1.5)
    same(d.all_reduce(s), 4)
    same(#d.all_reduce(s).shape, 0)
    same(d.all_gather(s), { 1.5, 2.5 })
    same(d.broadcast(s, 1), 2.5)
    local none = pg.zeros { 0, 3 }
    same(d.all_reduce(none).shape[1], 0)
    same(d.all_gather(none).shape[2], 3)
    same(d.reduce_scatter(none).shape[1], 0)
    same(d.all_to_all(none).shape[1], 0)
    same(d.broadcast(none).shape[2], 3)
    same(d.reduce(none).shape[2], 3)
    local x = pg.arange(6):to("float32"):reshape(2, 3) + rank
    same(d.all_reduce(x:t()), { { 1, 7 }, { 3, 9 }, { 5, 11 } })
    same(d.all_gather(x:t()[{ {1, 1} }]), { { 0, 3 }, { 1, 4 } })
    same(d.broadcast(x[{ {}, {2, 3} }], 1), { { 2, 3 }, { 5, 6 } })
    local many = pg.full({ 3000000 }, rank + 1)
    same(d.all_reduce(many):sum():item(), 9000000)
    same(d.all_gather(many):sum():item(), 9000000)
    local back = d.all_to_all(d.all_to_all(pg.arange(8)))
    same(back, { 0, 1, 2, 3, 4, 5, 6, 7 })
  ]])
end)

test("gradients of both orders are those of the sum over all processes", function(t)
  launched.well(t, 2, [[
    local function grads(f, x)
      x = x:detach():requires_grad_()
      local y = f(x)
      local g = pg.grad((y * y * y):sum(), x, { create_graph = true })
      local gg = pg.grad(g:sum(), x)
      return g, gg
    end
    local x = pg.tensor({ 1 + rank, 2 }, { dtype = "float64" })
    -- y = a + b on both; L = sum over ranks of sum(y^3): dL/dx = 2 * 3 y^2, and of the sum of both ranks' gradients
    -- 2 * 2 * 6 * y
    local g, gg = grads(d.all_reduce, x)
    same(g, { 54, 96 })
    same(gg, { 72, 96 })
    g, gg = grads(function(v) return d.all_reduce(v, { op = "mean" }) end, x)
    same(g, { 6.75, 12 })
    same(gg, { 9, 12 })
    g = grads(d.all_gather, x)
    same(g, { 6 * (1 + rank) ^ 2, 24 })
    g = grads(d.reduce_scatter, x) -- y of rank 0: 3, of rank 1: 4
    same(g, { 27, 48 })
    g = grads(function(v) return d.reduce_scatter(v, { op = "mean" }) end, x)
    same(g, { 27 / 8, 6 })
    g = grads(d.all_to_all, x)
    same(g, { 3 * (1 + rank) ^ 2, 12 })
    g = grads(function(v) return d.broadcast(v, 1) end, x)
    same(g, rank == 1 and { 24, 24 } or { 0, 0 })
    g = grads(function(v) return d.reduce(v, 1) end, x)
    same(g, { 27, 48 })
    g = grads(d.all_gather, pg.tensor(2 + rank, { dtype = "float64" }))
    same(g, 6 * (2 + rank) ^ 2)
    raises(function()
      local v = x:detach():requires_grad_()
      d.all_reduce(v, { op = "max" }):sum():backward()
    end, "not differentiable")
  ]])
end)

test("in graphs they run in every run, in their order", function(t)
  launched.well(t, 2, [[
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { "n", 2 } }
      local sum = d.all_reduce(x)
      d.all_reduce(x * 2) -- nobody fetches it, the other process waits for it
      return { y = d.all_gather(sum * (rank + 1)), z = d.broadcast(x, 1) }
    end)
    local s = pg.Session { g }
    for i = 1, 2 do
      local out = s:run({ "y", "z" }, { x = pg.tensor { { rank + i, 1 } } })
      local y, z = out.y or out[1], out.z or out[2]
      same(y, { { 1 + 2 * i, 2 }, { 2 + 4 * i, 4 } })
      same(z, { { 1 + i, 1 } })
    end
    local step = pg.compile(function(x) return d.all_reduce(x * 2) + 1 end)
    for i = 1, 4 do same(step(pg.tensor { i + rank }), { 4 * i + 3 }) end
  ]])
end)

test("tensors of a device travel through host memory", function(t)
  launched.well(t, 2, [[
    local x = pg.tensor({ { rank + 1, 2 }, { 3, 4 } }, { device = "sim:0" })
    local y = d.all_reduce(x * 2)
    same(y.device, "sim:0")
    same(y, { { 6, 8 }, { 12, 16 } })
    same(d.all_gather(x:t()).shape[1], 4)
    same(d.reduce(x, 1):cpu(), rank == 1 and { { 3, 4 }, { 6, 8 } } or { { 0, 0 }, { 0, 0 } })
    same(d.broadcast(x), { { 1, 2 }, { 3, 4 } })
    if rank == 0 then d.send(x, { to = 1 }) else same(d.receive(x, { from = 0 }), { { 1, 2 }, { 3, 4 } }) end
    local w = x:detach():requires_grad_()
    d.all_reduce(w * w):sum():backward()
    same(w.grad, { { 4 * (rank + 1), 8 }, { 12, 16 } })
  ]], "PERIGEE_SIM_DEVICES=1")
end)

test("groups, messages and barriers of three processes", function(t)
  launched.well(t, 3, [[
    if rank ~= 1 then
      local pair = d.group { 0, 2 }
      same(pair.size, 2)
      same(pair.rank, rank == 0 and 0 or 1)
      same(d.all_reduce(pg.tensor { rank }, { group = pair }), { 2 })
      same(d.all_gather(pg.tensor { rank }, { group = pair }), { 0, 2 })
      same(d.broadcast(pg.tensor { rank }, { root = 1, group = pair }), { 2 })
      d.barrier(pair)
      if rank == 0 then d.send(pg.tensor { 7 }, { to = 1, group = pair }) end
      if rank == 2 then same(d.receive(pg.zeros { 1 }, { from = 0, group = pair }), { 7 }) end
    else
      raises(function() d.group { 0, 2 } end, "this is rank 1, which is not in the group")
    end
    raises(function() d.group { 2, 0 } end, "ranks rise")
    raises(function() d.group { 0, 3 } end, "ranks[2] must be a rank of the group, 0 to 2, got number 3")
    raises(function() d.barrier { ranks = {} } end, "group must be one that pg.dist.group made")
    d.barrier()
    -- in a ring, and by tags in another order
    local following, last = (rank + 1) % 3, (rank + 2) % 3
    if rank == 0 then
      d.send(pg.tensor { 1, 2 }, { to = following })
      same(d.receive(pg.zeros { 2 }, { from = last }), { 3, 4 })
    else
      local got = d.receive(pg.zeros { 2 }, { from = last })
      d.send(got + 1, { to = following })
    end
    if rank == 0 then
      d.send(pg.tensor { 1 }, { to = 1, tag = 1 })
      d.send(pg.tensor { 2 }, { to = 1, tag = 2 })
    elseif rank == 1 then
      same(d.receive(pg.zeros { 1 }, { from = 0, tag = 2 }), { 2 })
      same(d.receive(pg.zeros { 1 }, { from = 0, tag = 1 }), { 1 })
    end
    raises(function() d.send(pg.ones { 1 }, { to = rank }) end, "is this process itself")
    raises(function() d.send(pg.ones { 1 }, { to = 3 }) end, "to must be a rank of the group, 0 to 2, got number 3")
    raises(function() d.send(pg.ones { 1 }, { to = following, tag = -1 }) end, "tag must be a whole number")
    d.barrier()
  ]])
end)

test("a process alone is rank 0 of 1, and collectives are copies", function(t)
  local d = pg.dist
  t.equal(d.rank(), 0)
  t.equal(d.size(), 1)
  t.equal(d.local_rank(), 0)
  t.equal(d.local_size(), 1)
  local x = pg.tensor { { 1, 2 }, { 3, 4 } }
  for _, name in ipairs { "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all" } do
    local v = x:detach():requires_grad_()
    local y = d[name](v)
    t.equal(y:totable(), x:totable())
    y:sum():backward()
    t.equal(v.grad:totable(), { { 1, 1 }, { 1, 1 } })
  end
  t.equal(d.all_gather(pg.tensor(3)):totable(), { 3 })
  d.barrier()
  t.equal(d.group({ 0 }).size, 1)
  t.raises(function() d.send(x, { to = 0 }) end, "dist.send: this process was not launched together with others")
  t.raises(function() d.broadcast(x, 1) end, "root must be a rank of the group, 0 to 0, got number 1")
  t.raises(function() d.deadline(-1) end, "dist.deadline: needs a number of seconds, got number %-1")
  t.raises(function() pg.all_gather(x, { ranks = 2 }) end, "expected 1 where group is 0")
end)

test("perigee launch: lines of any length come whole, behind their rank", function(t)
  local text = launched.well(t, 2, [[
    for i = 1, 300 do print(("%d:%s."):format(i, ("x"):rep(i * 7 % 901))) end
    io.stderr:write "a warning\n"
  ]])
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[line] = true end
  for rank = 0, 1 do
    t.ok(lines[("[%d] a warning"):format(rank)], text)
    for i = 1, 300 do
      local line = ("[%d] %d:%s."):format(rank, i, ("x"):rep(i * 7 % 901))
      if not lines[line] then t.ok(false, ("rank %d, line %d is not whole"):format(rank, i)) end
    end
  end
end)

test("perigee launch: what ends without an end of line is shown, and its status counts", function(t)
  local text, status = launched.run(t, 1, "io.write 'no end'")
  t.equal(status, 0, text)
  t.equal(text:match "^[^\n]+", "[0] no end")
end)
