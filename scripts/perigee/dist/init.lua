-- SPDX-License-Identifier: Apache-2.0
-- pg.dist: many processes that run one script, and tensors between them.

local native = require "perigee.native"
local world = require "perigee.dist.world"

---With `PERIGEE_DIST_DEBUG=1` in the environment processes compare, before each collective, what they are about to
---call: operator, shape and dtype. Where they differ, all of them raise, and name both sides with the script's lines.
---So do they where one of them has NaN in a gradient that is to be summed, unless a GradScaler looks for it.
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

---`pg.dist.mesh{data=2, model=2}`: all processes in lines along axes with names, which all of them ask for together;
---sizes multiply to their number. `mesh.data` and `mesh.model` are the groups that this process is in: replicas, and
---those that hold parts of one. Ranks are counted along the last axis first: data, pipeline, others by name, model, or
---as `order={"model", "data"}` says.
---@param options table<string, integer>
---@return perigee.Mesh
function dist.mesh(options) return require "perigee.dist.mesh".new(options) end

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

local REDUCTIONS = { sum = true, mean = true, max = true, min = true }
local sums = {} -- by group's number, by op: calls whose attributes are written once

local function all_reduce(t, op, group)
  local by_op = sums[group.number]
  if not by_op then
    by_op = {}
    sums[group.number] = by_op
  end
  local run = by_op[op]
  if not run then
    if not REDUCTIONS[op] then return (native.call("all_reduce", { { t } }, { op = op, group = group.number })) end
    run = native.prepare_with("all_reduce", 1, { op = op, group = group.number })
    by_op[op] = run
  end
  return run(t)
end

---The sum (`{op="mean"}`, "max", "min") of the tensors of all processes, element by element, on every one of them. All
---of them call it, in the same order as all other collectives. A gradient of a sum is the sum of all processes'.
---@param t perigee.Tensor
---@param op? string
---@param group? perigee.Group
---@return perigee.Tensor
function dist.all_reduce(...)
  local t = ...
  if native.is_tensor(t) and select("#", ...) == 1 then return all_reduce(t, "sum", world.get("dist").everybody) end
  local o = read_all_reduce(...)
  return all_reduce(o.t, o.op, world.group_of("dist.all_reduce", o.group))
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

local conjugate = require "perigee.nn.conjugate"
local AXIS = { "axis", "axis", default = -1, doc = "the last if not given" }
local AMONG = { "group", "table", named = true, required = true, type = "perigee.Group" }
local read_share = native.signature("dist.share", { T, AMONG })
local read_total = native.signature("dist.total", { T, AMONG })
local read_split = native.signature("dist.split", { T, AXIS, AMONG })
local read_join = native.signature("dist.join", { T, AXIS, AMONG })

local function between(where, name, o)
  local axis = o.axis
  if axis then
    if axis < 0 then axis = o.t:dim() + 1 + axis end
    if axis < 1 or axis > o.t:dim() then
      native.raise("invalid_argument", where, ("axis %d is out of range for t %s"):format(o.axis, tostring(o.t.shape)))
    end
  end
  return conjugate[name](o.t, world.group_of(where, o.group), axis)
end

---Tensor parallelism: t as it is, the same on all processes of a group, for what each goes on with by itself; gradients
---are summed over them. The counterpart of pg.dist.total; nn.ColumnLinear begins so.
---@param t perigee.Tensor
---@param options {group: perigee.Group}
---@return perigee.Tensor
function dist.share(...) return between("dist.share", "share", read_share(...)) end

---Tensor parallelism: the sum over a group, for what all of its processes go on with alike, up to one loss that all
---compute. Its gradient is the one that each has: pg.dist.all_reduce instead sums it once more, which is right where
---each process has a loss of its own.
---@param t perigee.Tensor
---@param options {group: perigee.Group}
---@return perigee.Tensor
function dist.total(...) return between("dist.total", "total", read_total(...)) end

---Tensor and sequence parallelism: of what all processes of a group have, the own part along an axis. Gradients are
---joined again.
---@param t perigee.Tensor
---@param axis? integer
---@param options {axis?: integer, group: perigee.Group}
---@return perigee.Tensor
function dist.split(...)
  local o = read_split(...)
  local g = world.group_of("dist.split", o.group)
  if o.t:dim() > 0 and o.t:size(o.axis) % g.size ~= 0 then
    native.raise("invalid_argument", "dist.split", ("axis %d of t %s is not to be cut into %d equal parts"):format(
                   o.axis, tostring(o.t.shape), g.size))
  end
  return between("dist.split", "split", o)
end

---Tensor and sequence parallelism: the parts of all processes of a group behind each other along an axis. Of the
---gradient each gets its own part.
---@param t perigee.Tensor
---@param axis? integer
---@param options {axis?: integer, group: perigee.Group}
---@return perigee.Tensor
function dist.join(...) return between("dist.join", "join", read_join(...)) end

local read_parallel = native.signature("dist.tensor_parallel", {
  { "model", "any", required = true, type = "perigee.Layer" }, AMONG,
  { "sequence", "boolean", named = true, default = false,
    doc = "whether blocks get and give parts of the sequence, which norms and dropouts then compute" } })

---Tensor parallelism of transformers: attention becomes nn.ShardedAttention, and the two linear layers of each block of
---nn.TransformerEncoderLayer and its kin nn.ColumnLinear and nn.RowLinear, each process with its part of the weights
---that the model has. All processes of the group have the same model, make this call before its optimizer, and call the
---model with the same inputs; with sequence=true those of the blocks are `pg.dist.split(x, {axis=2, group=group})`, and
---pg.dist.join brings the results together. Answers the model.
---@param model perigee.Layer
---@param options {group: perigee.Group, sequence?: boolean}
---@return perigee.Layer
function dist.tensor_parallel(...)
  local o = read_parallel(...)
  local group = world.group_of("dist.tensor_parallel", o.group)
  return require "perigee.dist.tensor_parallel"(o.model, { group = group, sequence = o.sequence })
end

local read_shard = native.signature("dist.shard", {
  { "model", "any", required = true, type = "perigee.Layer" },
  { "level", "integer", named = true, required = true,
    doc = "1: states of optimizers are spread, 2: gradients too, 3: parameters too" },
  { "group", "table", named = true, type = "perigee.Group", doc = "over whom: mesh.data; all if not given" },
  { "prefetch", "boolean", named = true, default = true,
    doc = "whether at level 3 the parameters of the next layer are fetched while one computes" } })

---Spreads what all processes would have over them (Rajbhandari et al., 2020), so that each has its 1 / N of every
---parameter's elements: of states of optimizers at level 1, of gradients too at level 2, of the parameters themselves
---too at level 3, where a layer's are whole only while it computes. Called by all, with the same model
---(strategy:scope makes it so), before the optimizer is made. Answers the model.
---
---At levels 2 and 3 parameters outside of their layers' calls are vectors, this process's stretch, and `.grad` is that
---of the stretch, summed over all: the mean where no strategy is at work, weighted by samples where one is. A layer's
---parameters are read by its own call alone. Optimizers that go element by element work on them (SGD, Adam, AdamW and
---others); pg.dist.whole_state brings them together. Level 1 needs a strategy (pg.dist.multi_worker), which sums
---gradients.
---@param model perigee.Layer
---@param options {level: integer, group?: perigee.Group, prefetch?: boolean}
---@return perigee.Layer
function dist.shard(...)
  local o = read_shard(...)
  local group = world.group_of("dist.shard", o.group)
  return require "perigee.dist.shard"(o.model, { level = o.level, group = group, prefetch = o.prefetch })
end

local read_pipeline = native.signature("dist.pipeline", {
  { "stages", "table", named = true, required = true, type = "(perigee.Layer|function)[]",
    doc = "layers that follow one another, or functions that make one where it is needed" },
  { "devices", "any", named = true, type = "string[]", doc = "of this process; processes if not given" },
  { "group", "table", named = true, type = "perigee.Group", doc = "of processes: mesh.pipeline; all if not given" },
  { "micro_batches", "integer", named = true, default = 4, doc = "parts of a batch, which stages compute by turns" },
  { "schedule", "string", named = true, default = "1f1b", choices = { "1f1b", "interleaved", "gpipe" },
    doc = "interleaved: several stages a place" },
  { "loss", "function", named = true, doc = "(result, y) to a mean over samples; what step needs" } })

---Pipeline parallelism: stages of a model on several devices of this process (stage 1 on the first, 2 on the second,
---and where there are more stages than devices from the first again), or in as many processes, which compute parts of a
---batch at the same time. `pipeline:step(x, y)` adds gradients to those of the parameters, `pipeline(x)` evaluates,
---optimizers take `pipeline:parameters()`. A stage takes one tensor, and gives one. Gradients are those of
---loss(model(x), y), which must be a mean over samples. A place holds activations of as many micro-batches as there are
---places behind it (1f1b), or of all (gpipe), and waits for others
---(places - 1) / (micro_batches * stages of a place + places - 1) of the time. Devices of one process share the memory
---that a model takes, but overlap little: a copy between two waits for both.
---@param options {stages: table, devices?: string[], group?: perigee.Group, micro_batches?: integer, schedule?: string,
---  loss?: function}
---@return perigee.Pipeline
function dist.pipeline(...)
  local o = read_pipeline(...)
  if o.micro_batches < 1 then
    native.raise("invalid_argument", "dist.pipeline", "micro_batches must be positive, got " .. o.micro_batches)
  end
  local devices, given = o.devices, o.group
  if not devices or given then o.group = world.group_of("dist.pipeline", given) end
  return require "perigee.dist.pipeline"(o)
end

---`pg.dist.Checkpoints{folder, keep=3, model=model, optimizer=optimizer, ...}`: checkpoints that all processes write
---together, each its share, where they hold parts (pg.dist.shard, pg.dist.tensor_parallel) or not; read by any number
---of processes, whose models may be spread otherwise, or by one. What they hold are whole tensors in safetensors files:
---`pg.load(folder .. "/step-00000010/model.safetensors.index.json", model)` reads a plain model's. Objects are layers,
---optimizers, averages, and what has state() and load_state() of plain values. `group`: who writes; all if not given.
---The folder must be one that all see.
---@param given table
---@return perigee.Checkpoints
function dist.Checkpoints(given) return require "perigee.dist.checkpoints"(given) end

---Parameters and buffers of a model by name, as model:state() gives them, where processes hold parts: these are brought
---together, one after the other, on every process. All that hold parts call it.
---@param model perigee.Layer
---@return table<string, perigee.Tensor>
function dist.whole_state(model) return require "perigee.dist.whole".state("dist.whole_state", model) end

---Copies whole tensors in by name, as model:load_state(state, options) does, where processes hold parts: each takes its
---own. It asks no other process.
---@param model perigee.Layer
---@param state table<string, perigee.Tensor> by name, as pg.dist.whole_state or pg.load give them
---@param options? {strict?: boolean, strip_prefix?: string, add_prefix?: string}
---@return string[] missing, string[] unexpected
function dist.load_whole(model, state, options)
  local own = require "perigee.dist.whole".parts("dist.load_whole", model, state)
  return model:load_state(own, options)
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
  { "mesh", "any", named = true, type = "perigee.Mesh", doc = "whose axis `data` they are; else all processes" },
  { "overlap", "boolean", named = true, default = true, doc = "whether gradients are sent while backward computes" } })

---Data parallelism over all processes: each holds the model and computes its part of every batch. For `fit{strategy=}`
---and own loops (strategy:scope, :distribute, :run, :reduce). In one process alone it changes nothing, so that the same
---script runs with and without a launcher. Where TF_CONFIG is set, as many processes must have been launched as it
---names.
---
---Gradients are sent as backward computes them, from the second step on; `overlap=false` sends them before the step.
---The bits are the same. What a script does to `.grad` before the step comes behind strategy:reduce_gradients.
---
---With a mesh a replica is all processes that have the same place along its axis `data`: they hold its parts, get the
---same rows, and draw the same random numbers.
---@param ... {mesh: perigee.Mesh?, overlap: boolean?}
---@return perigee.Strategy
function dist.multi_worker(...)
  local o = read_workers(...)
  local overlap = o.overlap and not world.debugs() -- which asks all before a call
  local w = world.get "dist.multi_worker"
  check_tf_config(w.size)
  local group = w.everybody
  if o.mesh ~= nil then group = require "perigee.dist.mesh".need("dist.multi_worker", o.mesh):group "data" end
  return require "perigee.dist.processes"(group, w.everybody, overlap)
end

local read_mirrored = native.signature("dist.mirrored", { { "devices", "any", named = true, type = "string[]",
  doc = "one or more, the first of which holds what is saved; all accelerators, or the processor, if not given" } })

---Data parallelism over devices of this process: `pg.dist.mirrored{devices={"gpu:0", "gpu:1"}}`. Each has parameters
---and buffers of its own, with the same contents. For `fit{strategy=}` and own loops, as pg.dist.multi_worker().
---@param ... {devices: string[]?}
---@return perigee.Strategy
function dist.mirrored(...) return require "perigee.dist.devices"(read_mirrored(...).devices) end

return dist
