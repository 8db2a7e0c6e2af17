-- SPDX-License-Identifier: Apache-2.0
-- pg.SummaryWriter: event files, which TensorBoard and `perigee watch` show.

local native = require "perigee.native"
local protobuf = require "perigee.events.protobuf"
local records = require "perigee.events.records"
local kinds = require "perigee.events.summary"

local events = {}

---@class perigee.SummaryWriter
---@field dir string the folder
---@field path string the event file
local Writer = {}

local opened = 0 -- writers of this process: two of one second have files of their own, whose names are in order

local function first_word(path)
  local file = io.open(path, "rb")
  local word = file and file:read("*a"):match("%S+")
  if file then file:close() end
  return word
end

local function new_path(dir, now)
  opened = opened + 1
  return ("%s/events.out.tfevents.%010d.%s.%s.%06d"):format(dir, math.floor(now),
           (first_word "/proc/sys/kernel/hostname" or "localhost"):gsub("[^%w%-.]", "_"),
           first_word "/proc/self/stat" or "0", opened)
end

-- Writes the record of one event; `what` is its field of the union.
local function add(self, step, what)
  if not self.file then
    native.raise("failed_precondition", "SummaryWriter", ("%s was closed"):format(self.path))
  end
  local event = protobuf.double(1, native.time()) .. (step > 0 and protobuf.int(2, step) or "") .. what
  local ok, problem = self.file:write(records.frame(event))
  if not ok then native.raise("out_of_disk", "SummaryWriter", tostring(problem)) end
end

local function add_value(self, step, value) add(self, step, protobuf.bytes(5, protobuf.bytes(1, value))) end

local read_writer = native.signature("SummaryWriter", {
  { "dir", "string", required = true, doc = "folder of the run; made if it is not there" },
  { "purge_step", "integer", named = true,
    doc = "what earlier files of the folder have from this step on is shown no more: a training that goes on again" } })

---Writes what TensorBoard and `perigee watch` show into a new event file in the folder:
---`pg.SummaryWriter{"runs/first"}`. Steps count from 0 up; 0 if none is given. A record is in the file when the call
---returns.
---@return perigee.SummaryWriter
function events.SummaryWriter(...)
  local o = read_writer(...)
  if o.dir == "" then native.raise("invalid_argument", "SummaryWriter", "needs a folder, got an empty name") end
  if o.purge_step and o.purge_step < 0 then
    native.raise("invalid_argument", "SummaryWriter", "purge_step must be at least 0, got " .. o.purge_step)
  end
  native.make_folder(o.dir)
  local path = new_path(o.dir, native.time())
  local file, problem = io.open(path, "ab")
  if not file then native.raise("not_found", "SummaryWriter", tostring(problem)) end
  file:setvbuf "no" -- a record is one write
  local self = setmetatable({ dir = o.dir, path = path, file = file }, Writer)
  add(self, 0, protobuf.bytes(3, "brain.Event:2"))
  if o.purge_step then add(self, o.purge_step, protobuf.bytes(7, protobuf.int(1, 1))) end
  return self
end

local TAG = { "tag", "string", required = true, doc = "name of the curve; slashes make groups" }
local STEP = { "step", "integer", default = 0, doc = "where on the axis" }

-- The table of options that arguments in order stand for. A table that is a value is none of options, though it may be
-- the last argument.
local function by_name(name, params, ...)
  local n, given, o, required = select("#", ...), { ... }, {}, 0
  if n == 1 and native.is_plain(given[1]) then return given[1] end
  for _, param in ipairs(params) do required = required + (param.required and 1 or 0) end
  if n > required and native.is_plain(given[n]) then
    for key, value in pairs(given[n]) do o[key] = value end
    n = n - 1
  end
  for i = 1, n do
    if not params[i] or params[i].named then
      native.raise("invalid_argument", name, ("takes %d arguments and options, got %d"):format(i - 1, n))
    end
    o[params[i][1]] = given[i]
  end
  return o
end

-- Arguments that are checked alike by all methods.
local function reader(name, params)
  local read = native.signature(name, params)
  return function(...)
    local o = read(by_name(name, params, ...))
    if o.tag == "" then native.raise("invalid_argument", name, "tag must not be empty") end
    if o.step and o.step < 0 then
      native.raise("invalid_argument", name, ("step must be at least 0, got %d"):format(o.step))
    end
    return o
  end
end

local function number_of(where, v)
  if native.is_tensor(v) then v = v:detach():to("float64"):item() end
  if type(v) ~= "number" then
    native.raise("invalid_argument", where, "value must be a number or a tensor of one element, got " ..
                 native.describe(v))
  end
  return v
end

local VALUE = { "value", "any", required = true, type = "number|perigee.Tensor" }
local read_scalar = reader("add_scalar", { TAG, VALUE, STEP })
---A point of a curve: `w:add_scalar("loss", loss, step)`. It is kept as float32.
---@return perigee.SummaryWriter self
function Writer:add_scalar(...)
  local o = read_scalar(...)
  add_value(self, o.step, kinds.scalar(o.tag, number_of("add_scalar", o.value)))
  return self
end

local read_scalars = reader("add_scalars", { TAG, { "values", "table", required = true,
  type = "table<string, number|perigee.Tensor>" }, STEP })
---Points of several curves, TAG/NAME each: `w:add_scalars("loss", {train=0.2, test=0.3}, step)`.
---@return perigee.SummaryWriter self
function Writer:add_scalars(...)
  local o = read_scalars(...)
  local names, parts = {}, {}
  for name in pairs(o.values) do
    if type(name) ~= "string" then
      native.raise("invalid_argument", "add_scalars", "values must have names, got " .. native.describe(name))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    parts[i] = protobuf.bytes(1, kinds.scalar(o.tag .. "/" .. name, number_of("add_scalars", o.values[name])))
  end
  if #parts > 0 then add(self, o.step, protobuf.bytes(5, table.concat(parts))) end
  return self
end

local read_histogram = reader("add_histogram", { TAG, { "values", "any", required = true,
  type = "perigee.Tensor|number[]" }, STEP, { "bins", "integer", named = true, default = 64, doc = "how many steps" } })
---How numbers are spread, from the least to the largest in equal steps: `w:add_histogram("fc/weight", w, step)`. What
---is not finite is left out.
---@return perigee.SummaryWriter self
function Writer:add_histogram(...)
  local o = read_histogram(...)
  if o.bins < 1 then native.raise("invalid_argument", "add_histogram", "bins must be at least 1, got " .. o.bins) end
  add_value(self, o.step, kinds.histogram(o.tag, o.values, o.bins))
  return self
end

local read_image = reader("add_image", { TAG, { "image", "tensor", required = true }, STEP,
  { "layout", "string", named = true, choices = { "HW", "CHW", "HWC", "NCHW", "NHWC" },
    doc = "what the axes are; HW, CHW or NCHW by their number if not given" } })
---A picture, or several under one tag: [H, W], [C, H, W] or [N, C, H, W], uint8 or floating from 0 to 1 (what lies
---outside is cut off).
---@return perigee.SummaryWriter self
function Writer:add_image(...)
  local o = read_image(...)
  add_value(self, o.step, kinds.images(o.tag, o.image, o.layout))
  return self
end

local read_text = reader("add_text", { TAG, { "text", "string", required = true }, STEP })
---A text; TensorBoard shows it as Markdown.
---@return perigee.SummaryWriter self
function Writer:add_text(...)
  local o = read_text(...)
  add_value(self, o.step, kinds.text(o.tag, o.text))
  return self
end

local read_curve = reader("add_pr_curve", { TAG,
  { "labels", "any", required = true, type = "perigee.Tensor|number[]", doc = "0 or 1" },
  { "predictions", "any", required = true, type = "perigee.Tensor|number[]", doc = "from 0 to 1" }, STEP,
  { "thresholds", "integer", named = true, default = 127, doc = "how many points the curve has" } })
---Precision over recall of a classifier with two classes.
---@return perigee.SummaryWriter self
function Writer:add_pr_curve(...)
  local o = read_curve(...)
  if o.thresholds < 2 then
    native.raise("invalid_argument", "add_pr_curve", "thresholds must be at least 2, got " .. o.thresholds)
  end
  add_value(self, o.step, require("perigee").no_grad(kinds.pr_curve, o.tag, o.labels, o.predictions, o.thresholds))
  return self
end

---The nodes of a graph, with their devices, shapes and script lines.
---@param graph perigee.Graph|perigee.Session
---@return perigee.SummaryWriter self
function Writer:add_graph(graph)
  local inner = type(graph) == "table" and rawget(graph, "graph") -- of a session
  local found = type(inner) == "table" and inner or graph
  if type(found) ~= "table" or rawget(found, "native") == nil or rawget(found, "results") == nil then
    native.raise("invalid_argument", "add_graph", "needs what pg.graph or pg.Session returned, got " ..
                 native.describe(graph))
  end
  add(self, 0, protobuf.bytes(4, require "perigee.events.graph_def"(found)))
  return self
end

local function sorted_names(t, what)
  local names = {}
  for name in pairs(t) do
    if type(name) ~= "string" then
      native.raise("invalid_argument", "add_hparams", ("%s must have names, got %s"):format(what,
                   native.describe(name)))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

---The settings of this run and what came out: `w:add_hparams({lr=0.1, model="small"}, {accuracy=0.93})`. TensorBoard
---compares the runs of a folder by them.
---@param params table<string, number|string|boolean>
---@param metrics? table<string, number|perigee.Tensor> scalars that tell how good they were
---@return perigee.SummaryWriter self
function Writer:add_hparams(params, metrics)
  for name, t in pairs { params = params or false, metrics = metrics == nil and {} or metrics } do
    if not native.is_plain(t) then
      native.raise("invalid_argument", "add_hparams", ("%s must be a table of names, got %s"):format(name,
                   native.describe(t or nil)))
    end
  end
  local tags = sorted_names(metrics or {}, "metrics")
  local values = require "perigee.events.hparams"(params, sorted_names(params, "params"), tags, native.time())
  for _, value in ipairs(values) do add_value(self, 0, value) end
  for _, tag in ipairs(tags) do self:add_scalar(tag, metrics[tag]) end
  return self
end

---Returns when the operating system has all records; each call of add_... does that.
---@return perigee.SummaryWriter self
function Writer:flush()
  if self.file then self.file:flush() end
  return self
end

---Closes the file. A second call does nothing.
function Writer:close()
  if self.file then self.file:close() end
  self.file = nil
end

native.checked.class(Writer, { noun = "a summary writer", call = "writer", fields = "file" })

function Writer:__tostring() return ("SummaryWriter(%s)"):format(self.path) end

return events
