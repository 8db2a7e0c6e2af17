-- SPDX-License-Identifier: Apache-2.0
-- Processes that were launched together: who they are, groups of them, single messages.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local handles = require "perigee.native.handles"
local operators = require "perigee.native.operators"
local origins = require "perigee.native.origins"
local tensor = require "perigee.native.tensor"

local M = {}
local C
local out, number = ffi.new("pgc_tensor *[1]"), ffi.new("int64_t[1]")
local STATES = { [0] = "alive", "stopped", "lost" }
local RETRY = 10

local function check(rc, where)
  if rc ~= 0 then errors.raise_native(C, where) end
end

---This process among the others: rank, size, local_rank, local_size, engine (nil where it is alone).
function M.world(where)
  local about, engine = ffi.new("pgc_dist_about[1]"), ffi.new("const char *[1]")
  check(C.pgc_dist_world(about, engine), where)
  local a, name = about[0], ffi.string(engine[0])
  return { rank = a.rank, size = a.size, local_rank = a.local_rank, local_size = a.local_size,
           engine = name ~= "" and name or nil }
end

---The number of a new group of these ranks.
function M.group(ranks)
  check(C.pgc_dist_group(ffi.new("int32_t[?]", math.max(#ranks, 1), ranks), #ranks, number), "dist.group")
  return tonumber(number[0])
end

---Whether ranks compare their calls before they make them, and tell the lines of the script.
function M.set_agreement(on)
  C.pgc_dist_set_agreement(on and 1 or 0)
  origins.set(on or origins.asked())
end

function M.barrier(group) check(C.pgc_dist_barrier(group), "dist.barrier") end

function M.send(group, t, peer, tag)
  tensor.check_open(t, "dist.send")
  check(C.pgc_dist_send(group, t.ptr, peer, tag), "dist.send")
end

function M.receive(group, like, peer, tag)
  tensor.check_open(like, "dist.receive")
  local rc = C.pgc_dist_receive(group, like.ptr, peer, tag, out)
  if rc == RETRY then
    operators.make_room()
    rc = C.pgc_dist_receive(group, like.ptr, peer, tag, out)
  end
  check(rc, "dist.receive")
  return handles.wrap(out[0])
end

local sum, over = ffi.new("uint64_t[1]"), ffi.new("int32_t[1]")

---Begins to sum t over a group, in place: the number of what has begun, or nil where it cannot (not host memory). t
---must not be touched until `look` or `finish` says that it is over.
function M.begin_sum(group, t)
  tensor.check_open(t, "all_reduce")
  check(C.pgc_dist_begin_sum(group, t.ptr, sum), "all_reduce")
  return sum[0] ~= 0 and tonumber(sum[0]) or nil
end

---Writes the tensors of all ranks of a group into `target`, dense and as many times as large. `begins`: answers the
---number of what has begun, or nil where it is done. `quiet`: the target gets no new version.
function M.gather(group, t, target, begins, quiet)
  tensor.check_open(t, "all_gather")
  tensor.check_open(target, "all_gather")
  check(C.pgc_dist_gather(group, t.ptr, target.ptr, (begins and 1 or 0) + (quiet and 2 or 0), sum), "all_gather")
  return sum[0] ~= 0 and tonumber(sum[0]) or nil
end

---Begins to send a dense tensor, which must not be written to until that is over: a number as of begin_sum.
function M.begin_send(group, t, peer, tag)
  tensor.check_open(t, "dist.send")
  check(C.pgc_dist_begin_send(group, t.ptr, peer, tag, sum), "dist.send")
  return sum[0] ~= 0 and tonumber(sum[0]) or nil
end

---Gives a tensor's memory back, and takes memory for it again, whose contents the caller brings.
function M.drop_memory(t) check(C.pgc_drop_memory(t.ptr), "drop_memory") end
function M.renew_memory(t)
  local rc = C.pgc_renew_memory(t.ptr)
  if rc == RETRY then
    operators.make_room()
    rc = C.pgc_renew_memory(t.ptr)
  end
  check(rc, "renew_memory")
end

-- PG_COLLECTIVE_* and PG_REDUCE_*.
local KINDS = { all_reduce = 2, reduce = 3, broadcast = 4, all_gather = 5 }
local REDUCTIONS = { sum = 0, mean = 1, max = 2, min = 3 }

---The number of the group of these devices of this process; nil where no engine serves them.
---@param devices integer[]
function M.device_group(devices)
  check(C.pgc_dist_device_group(ffi.new("int32_t[?]", #devices, devices), #devices, number), "dist.mirrored")
  return number[0] ~= 0 and tonumber(number[0]) or nil
end

---Queues a collective over a group of devices: rows of dense tensors, one of each device in each, as inputs and
---outputs, which may be the same. root: a member, from 0, of reduce and broadcast.
function M.on_devices(group, kind, reduction, root, inputs, outputs)
  local rows, count = #inputs, inputs[1] and #inputs[1] or 0
  if rows * count == 0 then return end
  local ins, outs = ffi.new("pgc_tensor *[?]", rows * count), ffi.new("pgc_tensor *[?]", rows * count)
  for r = 1, rows do
    for k = 1, count do
      local x, y = inputs[r][k], outputs[r][k]
      tensor.check_open(x, kind)
      tensor.check_open(y, kind)
      ins[(r - 1) * count + k - 1], outs[(r - 1) * count + k - 1] = x.ptr, y.ptr
    end
  end
  check(C.pgc_dist_on_devices(group, KINDS[kind], REDUCTIONS[reduction], root, rows, count, ins, outs), kind)
end

---Lets what has begun go on, without waiting. Answers whether it is over.
function M.look(begun)
  check(C.pgc_dist_look(begun, over), "all_reduce")
  return over[0] ~= 0
end

---Waits for what has begun.
function M.finish(begun) check(C.pgc_dist_finish(begun), "all_reduce") end

local any_p, started, early = ffi.new("const uint8_t *[1]"), ffi.new("uint32_t[1]"), ffi.new("uint32_t[1]")

---Sums gradients over members: `options` as of pgc_reducer_options, of which `scale` and `members` are filled in. Lives
---as long as somebody has it.
---@param options table
---@param lists perigee.Tensor[][] the parameters of each member of this process
function M.reducer(options, lists)
  local count, list = #lists[1], ffi.new("pgc_tensor *[?]", math.max(#lists * #lists[1], 1))
  for k, params in ipairs(lists) do
    for i, p in ipairs(params) do list[(k - 1) * count + i - 1] = handles.pointer(p, "all_reduce") end
  end
  local asked = ffi.new("pgc_reducer_options", { among = options.among, gradients = options.gradients,
                                                 first = options.first, others = options.others,
                                                 direct = options.direct, overlaps = options.overlaps and 1 or 0,
                                                 members = #lists })
  local scale = ffi.new("uint32_t[1]")
  check(C.pgc_find_op("mul", scale), "all_reduce")
  asked.scale = scale[0]
  local made = ffi.new("pgc_reducer *[1]")
  check(C.pgc_reducer_create(asked, list, count, made), "all_reduce")
  return ffi.gc(made[0], C.pgc_reducer_release)
end

---Gradients that come from now on count so much, by member of this process, and may be sent; nil: none are.
---@param weights number[]?
function M.reducer_send(reducer, weights)
  C.pgc_reducer_send(reducer, weights and ffi.new("double[?]", #weights, weights) or nil)
end

---Sums; answers which parameters some member has a gradient of, as bytes from 0, which stay the reducer's.
---@param weights number[]
---@param to_all boolean or the first member gets the sums alone
function M.reducer_sum(reducer, weights, to_all)
  local each = ffi.new("double[?]", #weights, weights)
  local rc = C.pgc_reducer_sum(reducer, each, to_all and 1 or 0, any_p)
  if rc == RETRY then
    operators.make_room()
    rc = C.pgc_reducer_sum(reducer, each, to_all and 1 or 0, any_p)
  end
  check(rc, "all_reduce")
  return any_p[0]
end

---How many buckets have started since the last sum, and had before it.
function M.reducer_counts(reducer)
  C.pgc_reducer_count(reducer, started, early)
  return started[0], early[0]
end

---Sets the seconds that a call may take; answers what they were.
function M.set_deadline(seconds)
  local old = ffi.new("double[1]")
  check(C.pgc_dist_set_deadline(seconds, old), "dist.deadline")
  return old[0]
end

---"alive", "stopped" or "lost" of each rank of a group of that size, in a list by rank, from 1.
function M.peers(group, size)
  local states = ffi.new("uint32_t[?]", size)
  check(C.pgc_dist_peers(group, states, size), "dist.peers")
  local list = {}
  for i = 1, size do list[i] = STATES[states[i - 1]] end
  return list
end

---Tells those who wait for this process why it ends.
function M.abandon(reason) C.pgc_dist_abandon(reason) end

function M.start(library) C = library end

return M
