-- SPDX-License-Identifier: Apache-2.0
-- TensorBoard: a training's curves as an event file.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"

local callbacks = {}

---@class perigee.callbacks.TensorBoard: perigee.Callback
---@field writer? perigee.SummaryWriter what writes, once the training has begun
local TensorBoard = {}
TensorBoard.__index = TensorBoard
TensorBoard.rank_zero = true
TensorBoard.last = true -- what others add to an epoch's entry is written too

local read = native.signature("TensorBoard", {
  { "dir", "string", required = true, doc = "folder of the run" },
  { "every", "integer", named = true, default = 0, doc = "batches between two points inside of epochs; 0: none" },
  { "histograms", "integer", named = true, default = 0,
    doc = "epochs between two histograms of all parameters and gradients; 0: none" },
  { "input", "table", named = true,
    doc = "shape of one input, without the batch: the model's graph is written too" } })

---Writes each epoch's values (`loss`, `val_loss`, metrics, `lr`, `seconds`) into an event file, which TensorBoard and
---`perigee watch` show; inside of epochs the means so far, as `batch/loss`. A point's step is the number of batches
---that the training has done, so that all curves of a run, taken up again or not, have one axis.
---@return perigee.callbacks.TensorBoard
function callbacks.TensorBoard(...)
  local o = read(...)
  for _, name in ipairs { "every", "histograms" } do
    if o[name] < 0 then
      native.raise("invalid_argument", "TensorBoard", ("%s must be at least 0, got %d"):format(name, o[name]))
    end
  end
  return setmetatable({ options = o }, TensorBoard)
end

-- The model as it is recorded for inputs of this shape, in evaluation mode.
local function graph_of(model, shape)
  local pg = require "perigee"
  local sizes, modes = { "batch" }, {}
  for i, size in ipairs(shape) do sizes[i + 1] = size end
  for _, layer in ipairs(walk.modules(model)) do modes[layer] = layer.training end
  return native.with(function() model:eval() end, function()
    for layer, mode in pairs(modes) do rawset(layer, "training", mode) end
  end, pg.graph, function(g) return { output = model(g:placeholder { "input", shape = sizes }) } end)
end

function TensorBoard:on_train_begin() self.writer, self.drawn = nil, false end

-- The first epoch knows where the training begins.
function TensorBoard:on_epoch_begin(job)
  if self.writer then return end
  local o = self.options
  self.writer = require("perigee").SummaryWriter { o.dir, purge_step = job.done > 0 and job.done + 1 or nil }
  if o.input and not walk.is_lazy(job.model) then
    self.writer:add_graph(graph_of(job.model, o.input))
    self.drawn = true
  end
end

function TensorBoard:on_batch_end(job)
  local every = self.options.every
  if every == 0 or job.done % every ~= 0 then return end
  for _, pair in ipairs(job.values()) do self.writer:add_scalar("batch/" .. pair[1], pair[2], job.done) end
end

local function write_histograms(writer, job)
  for name, p in job.model:named_parameters() do
    writer:add_histogram("parameters/" .. name, p, job.done)
    if p.grad then writer:add_histogram("gradients/" .. name, p.grad, job.done) end
  end
end

function TensorBoard:on_epoch_end(job, entry)
  local o, names = self.options, {}
  for name, v in pairs(entry) do
    if type(v) == "number" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do self.writer:add_scalar(name, entry[name], job.done) end
  if entry.lr == nil then self.writer:add_scalar("lr", job.optimizer.groups[1].lr, job.done) end
  if o.histograms > 0 and entry.epoch % o.histograms == 0 then write_histograms(self.writer, job) end
  if o.input and not self.drawn then -- of a model that did not know its sizes
    self.writer:add_graph(graph_of(job.model, o.input))
    self.drawn = true
  end
end

function TensorBoard:on_train_end()
  if self.writer then self.writer:close() end
end

return callbacks
