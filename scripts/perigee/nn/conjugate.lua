-- SPDX-License-Identifier: Apache-2.0
-- What layers whose parts several processes hold do between them, with gradients for a loss that all of these
-- processes compute alike (Shoeybi et al., 2019): a sum's gradient is then not summed once more, as that of
-- pg.dist.all_reduce is.
--
-- Each function and the one that gives its gradient: share and total, split and join, spread_rows and sum_rows.

local native = require "perigee.native"

local M = {}

local function pg() return require "perigee" end

local function all_reduce(x, group)
  return (native.call("all_reduce", { { x } }, { op = "sum", group = group.number }))
end

local function all_gather(x, group)
  return native.call("all_gather", { x }, { group = group.number, ranks = group.size })
end

local function reduce_scatter(x, group)
  return native.call("reduce_scatter", { x }, { group = group.number, ranks = group.size })
end

-- [.., n * parts, ..] as [before, parts, n, behind], or with parts 1 as it is.
local function around(x, axis, parts)
  local before, behind = 1, 1
  for i = 1, axis - 1 do before = before * x:size(i) end
  for i = axis + 1, x:dim() do behind = behind * x:size(i) end
  return x:reshape(before, parts, x:size(axis) / parts, behind)
end

local function shape_with(x, axis, size)
  local shape = {}
  for i = 1, x:dim() do shape[i] = i == axis and size or x:size(i) end
  return shape
end

local function gather_along(x, axis, group)
  local parts = around(x, axis, 1)
  local all = all_gather(parts:reshape(1, -1), group)
  return all:reshape(group.size, parts:size(1), parts:size(3), parts:size(4)):permute(2, 1, 3, 4):reshape(
    shape_with(x, axis, x:size(axis) * group.size))
end

local function cut_along(x, axis, group)
  local n = x:size(axis) / group.size
  return x:narrow(axis, group.rank * n + 1, n):clone()
end

local function scatter_along(x, axis, group)
  local parts = around(x, axis, group.size):permute(2, 1, 3, 4)
  return reduce_scatter(parts:reshape(group.size, -1), group):reshape(shape_with(x, axis, x:size(axis) / group.size))
end

local function pair(forward, backward)
  local fn
  return function(x, group, axis)
    if group.number == 0 or group.size == 1 then return x end
    fn = fn or pg().custom_grad {
      forward = function(ctx, y, g, a)
        ctx.group, ctx.axis = g, a
        return forward(y, a, g)
      end,
      backward = function(ctx, dy) return M[backward](dy, ctx.group, ctx.axis) end,
    }
    return fn(x, group, axis)
  end
end

local function same(x) return x end
local function sum(x, _, group) return all_reduce(x, group) end

---x; the gradients of all are summed. Before what each process has another part of.
M.share = pair(same, "total")
---The sum over the group. Its gradient is every process's.
M.total = pair(sum, "share")
---The own part of x along an axis; its gradients are joined.
M.split = pair(cut_along, "join")
---The parts of all, one behind the other along an axis; of the gradient each gets its own part.
M.join = pair(gather_along, "split")
---As join, for what each process goes on with by itself: the gradients of all are summed, and each gets its own part.
M.spread_rows = pair(gather_along, "sum_rows")
---The sum over the group, of which each process gets its own part along an axis.
M.sum_rows = pair(scatter_along, "spread_rows")

local PART = 2 ^ 48 -- random numbers between ranks: replicas of a strategy are 2^40 from each other

---fn(...), which draws other random numbers on each rank of a group; behind it all stand at the same place again.
function M.draw_apart(group, fn, ...)
  if group.size == 1 then return fn(...) end
  local shift = PART * group.rank
  local function enter()
    local seed, offset = native.rng_state()
    native.set_rng_state(seed, offset + shift)
  end
  local function leave()
    local seed, offset = native.rng_state()
    native.set_rng_state(seed, offset - shift)
  end
  return native.with(enter, leave, fn, ...)
end

return M
