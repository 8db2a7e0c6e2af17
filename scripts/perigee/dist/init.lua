-- SPDX-License-Identifier: Apache-2.0
-- pg.dist: many processes that run one script, and tensors between them.

local native = require "perigee.native"
local world = require "perigee.dist.world"

---With `PERIGEE_DIST_DEBUG=1` in the environment processes compare, before each collective, what they are about to
---call: operator, shape and dtype. Where they differ, all of them raise, and name both sides with the script's lines.
---
---Without other processes every function works on the one there is: its rank is 0 of 1, and collectives answer copies.
---@class perigee.dist
local dist = {}

---This process's number among those that were launched together, from 0.
---@return integer
function dist.rank() return world.get("dist.rank").rank end

---How many processes were launched together; 1 for one alone.
---@return integer
function dist.size() return world.get("dist.size").size end

---This process's number among those of the same machine, from 0: which of its devices to take.
---@return integer
function dist.local_rank() return world.get("dist.local_rank").local_rank end

---How many of the processes are on this machine.
---@return integer
function dist.local_size() return world.get("dist.local_size").local_size end

---Some of the processes, for collectives among them: `.ranks`, those of the world, `.rank`, this process's in the
---group, and `.size`.
---@class perigee.Group
---@field ranks integer[]
---@field rank integer
---@field size integer

---`pg.dist.group{0, 2}`: a group of these ranks, which all of them make together, and nobody else.
---@param ranks integer[] rising
---@return perigee.Group
function dist.group(ranks) return world.group(ranks) end

local GROUP = { "group", "table", named = true }
local T = { "t", "tensor", required = true }
local OP = { "op", "string", named = true, default = "sum" }
local ROOT = { "root", "single", default = 0 }

-- The attributes of a collective operator.
local function attributes(where, o, with)
  local g = world.group_of(where, o.group)
  local attrs = { group = g.number, ranks = g.size }
  for _, name in ipairs(with) do attrs[name] = o[name] end
  if attrs.root ~= nil then attrs.root = world.check_rank(where, "root", o.root, g) end
  return attrs
end

local function collective(name, params, with)
  local where = "dist." .. name
  local read = native.signature(where, params)
  return function(...)
    local o = read(...)
    return native.call(name, { o.t }, attributes(where, o, with))
  end
end

local all_gather = collective("all_gather", { T, GROUP }, {})
local reduce_scatter = collective("reduce_scatter", { T, OP, GROUP }, { "op" })
local broadcast = collective("broadcast", { T, ROOT, GROUP }, { "root" })
local reduce = collective("reduce", { T, ROOT, OP, GROUP }, { "root", "op" })
local all_to_all = collective("all_to_all", { T, GROUP }, {})
local read_all_reduce = native.signature("dist.all_reduce", { T, OP, GROUP })

---The sum (`{op="mean"}`, "max", "min") of the tensors of all processes, element by element, on every one of them. All
---of them call it, in the same order as all other collectives. A gradient of a sum is the sum of all processes'.
---@param t perigee.Tensor
---@param op? string
---@param group? perigee.Group
---@return perigee.Tensor
function dist.all_reduce(...)
  local o = read_all_reduce(...)
  local g = world.group_of("dist.all_reduce", o.group)
  return (native.call("all_reduce", { { o.t } }, { op = o.op, group = g.number }))
end

---The tensors of all processes behind each other along the first axis, in the order of ranks.
---@param t perigee.Tensor of one shape everywhere
---@param group? perigee.Group
---@return perigee.Tensor
function dist.all_gather(...) return all_gather(...) end

---The sum (`{op="mean"}`, "max", "min") over all processes, of which each gets its block of the first axis.
---@param t perigee.Tensor [size * n, ...]
---@param op? string
---@param group? perigee.Group
---@return perigee.Tensor # [n, ...]
function dist.reduce_scatter(...) return reduce_scatter(...) end

---The tensor of one process, on all of them.
---@param t perigee.Tensor of one shape everywhere
---@param root? integer whose it is; 0 if not given
---@param group? perigee.Group
---@return perigee.Tensor
function dist.broadcast(...) return broadcast(...) end

---The sum (`{op="mean"}`, "max", "min") of all processes' tensors on one of them, zeros on the others.
---@param t perigee.Tensor
---@param root? integer who gets it; 0 if not given
---@param op? string
---@param group? perigee.Group
---@return perigee.Tensor
function dist.reduce(...) return reduce(...) end

---Block k of the first axis goes to rank k, and block k of the result came from there.
---@param t perigee.Tensor [size * n, ...]
---@param group? perigee.Group
---@return perigee.Tensor
function dist.all_to_all(...) return all_to_all(...) end

---Returns when all processes have called it.
---@param group? perigee.Group
function dist.barrier(group)
  local g = world.group_of("dist.barrier", group)
  if g.number ~= 0 then native.dist.barrier(g.number) end
end

local read_send = native.signature("dist.send", { T, { "to", "single", required = true },
                                                  { "tag", "single", default = 0 }, GROUP })
---`pg.dist.send(t, {to=1})`: sends a tensor to one process, which receives it. Messages of one tag arrive in their
---order.
---@param t perigee.Tensor
---@param to integer
---@param tag? integer 0 to 32767
---@param group? perigee.Group
function dist.send(...)
  local o = read_send(...)
  local g = world.group_of("dist.send", o.group)
  native.dist.send(world.need("dist.send", g).number, o.t, world.check_rank("dist.send", "to", o.to, g),
                   world.check_tag("dist.send", o.tag))
end

local read_receive = native.signature("dist.receive", {
  { "like", "tensor", required = true }, { "from", "single", required = true }, { "tag", "single", default = 0 },
  GROUP })
---`pg.dist.receive(pg.empty{2, 3}, {from=0})`: what one process sends, as a new tensor of the shape, dtype and device
---of another.
---@param like perigee.Tensor
---@param from integer
---@param tag? integer 0 to 32767
---@param group? perigee.Group
---@return perigee.Tensor
function dist.receive(...)
  local o = read_receive(...)
  local g = world.group_of("dist.receive", o.group)
  return native.dist.receive(world.need("dist.receive", g).number, o.like,
                             world.check_rank("dist.receive", "from", o.from, g),
                             world.check_tag("dist.receive", o.tag))
end

---Seconds that anything between processes may take, 1800 at first, 0 for any time: what has not happened by then is an
---error that names who did not come. PERIGEE_DIST_DEADLINE in the environment sets it from the start.
---@param seconds number
---@return number before
function dist.deadline(seconds) return world.set_deadline(seconds) end

-- TF_CONFIG names processes; bringing them together is a launcher's.
local function check_tf_config(size)
  local text = os.getenv "TF_CONFIG"
  if not text or text == "" then return end
  local ok, config = pcall(native.json, text)
  local cluster = ok and type(config) == "table" and config.cluster
  if type(cluster) ~= "table" then
    native.raise("invalid_argument", "dist.multi_worker", "TF_CONFIG is no JSON text with a cluster")
  end
  local count = #(cluster.chief or {}) + #(cluster.worker or {})
  if count == size then return end
  native.raise("failed_precondition", "dist.multi_worker", ("TF_CONFIG names %d processes, and %d were launched")
    :format(count, size), "perigee launch -n N --hosts A,B script.lua starts them")
end

---Makes nn.SyncBatchNorm of every BatchNorm1d, 2d and 3d in a model, with the same parameters and running statistics:
---inside of strategy:run and fit{strategy=} they are normalised over the whole batch. Before the optimizer is made or
---behind it. Answers the model: another layer where it is a batch norm itself.
---@param model perigee.Layer
---@return perigee.Layer
function dist.sync_batchnorm(model) return require "perigee.dist.sync_batchnorm"(model) end

local read_workers = native.signature("dist.multi_worker", {
  { "overlap", "boolean", named = true, default = true, doc = "whether gradients are sent while backward computes" } })

---Data parallelism over all processes: each holds the model and computes its part of every batch. For `fit{strategy=}`
---and own loops (strategy:scope, :distribute, :run, :reduce). In one process alone it changes nothing, so that the same
---script runs with and without a launcher. Where TF_CONFIG is set, as many processes must have been launched as it
---names.
---
---Gradients are sent as backward computes them, from the second step on; `overlap=false` sends them before the step.
---The bits are the same. What a script does to `.grad` before the step comes behind strategy:reduce_gradients.
---@param ... {overlap: boolean?}
---@return perigee.Strategy
function dist.multi_worker(...)
  local overlap = read_workers(...).overlap and os.getenv "PERIGEE_DIST_DEBUG" ~= "1" -- which asks all before a call
  local w = world.get "dist.multi_worker"
  check_tf_config(w.size)
  return require "perigee.dist.processes"(w.rank, w.size, overlap)
end

local read_mirrored = native.signature("dist.mirrored", { { "devices", "any", named = true, type = "string[]",
  doc = "one or more, the first of which holds what is saved; all accelerators, or the processor, if not given" } })

---Data parallelism over devices of this process: `pg.dist.mirrored{devices={"gpu:0", "gpu:1"}}`. Each has parameters
---and buffers of its own, with the same contents. For `fit{strategy=}` and own loops, as pg.dist.multi_worker().
---@param ... {devices: string[]?}
---@return perigee.Strategy
function dist.mirrored(...) return require "perigee.dist.devices"(read_mirrored(...).devices) end

return dist
