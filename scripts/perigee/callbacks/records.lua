-- SPDX-License-Identifier: Apache-2.0
-- CSVLogger, Monitor, ProgressBar: what a training shows and leaves behind.

local native = require "perigee.native"
local new_progress = require "perigee.fit.progress"
local usage = require "perigee.profile.usage"

local callbacks = {}

-- ---- CSVLogger ----

local CSVLogger = {}
CSVLogger.__index = CSVLogger
CSVLogger.rank_zero = true
CSVLogger.last = true

local read_csv = native.signature("CSVLogger", {
  { "path", "string", required = true, doc = "the file" } })

---The history as a table, a line an epoch, rewritten whole (and atomically) at each epoch's end: a run that was resumed
---has each epoch once.
---@return perigee.Callback
function callbacks.CSVLogger(...) return setmetatable({ path = read_csv(...).path }, CSVLogger) end

local function csv_text(history)
  local seen, names = { epoch = true }, {}
  for _, entry in ipairs(history) do
    for name in pairs(entry) do
      if not seen[name] then seen[name], names[#names + 1] = true, name end
    end
  end
  table.sort(names)
  local lines = { "epoch," .. table.concat(names, ",") }
  if #names == 0 then lines[1] = "epoch" end
  for _, entry in ipairs(history) do
    local cells = { ("%d"):format(entry.epoch) }
    for _, name in ipairs(names) do
      local v = entry[name]
      cells[#cells + 1] = type(v) == "number" and ("%.9g"):format(v) or v ~= nil and tostring(v) or ""
    end
    lines[#lines + 1] = table.concat(cells, ",")
  end
  return table.concat(lines, "\n") .. "\n"
end

function CSVLogger:on_epoch_end(job) native.write_text(self.path, csv_text(job.history)) end

-- ---- Monitor ----

---@class perigee.callbacks.Monitor: perigee.Callback
---@field records {done: integer, name: string, norm: number, grad_norm: number?}[]
---@field usage table<string, perigee.Usage> of `processor`, `memory`, `memory of cpu`, `energy`, `use of nvidia 0`,
---  `energy of nvidia 0`
local Monitor = {}
Monitor.__index = Monitor
Monitor.rank_zero = true

local read_monitor = native.signature("Monitor", {
  { "every", "integer", default = 100, doc = "batches between two records" },
  { "pattern", "string", named = true, default = "", doc = "Lua pattern of the parameters' names" },
  { "seconds", "number", named = true, default = 0.5, doc = "between two looks at what the process uses" },
  { "print", "boolean", named = true, default = true, doc = "whether to print them too" } })

---After every so many batches the Euclidean norms of the parameters whose names fit the Lua pattern, and of their
---gradients, as they were in the last step. They are kept in `callback.records`: { done, name, norm, grad_norm }.
---What the process uses meanwhile is in `callback.usage`, each with { unit, total, mean, least, most, count }: of the
---processor (1: a whole core), of memory, of the memory of the device that the model is on, the energy of the whole
---processor where it tells (RAPL), and where NVIDIA's driver is (NVML), how busy each of its devices was and the energy
---that it took, whoever used it; it is printed at the end.
---@return perigee.callbacks.Monitor
function callbacks.Monitor(...)
  local o = read_monitor(...)
  if o.every < 1 then native.raise("invalid_argument", "Monitor", "every must be at least 1, got " .. o.every) end
  if o.seconds < 0 or o.seconds ~= o.seconds then
    native.raise("invalid_argument", "Monitor", "seconds must be at least 0, got " .. tostring(o.seconds))
  end
  return setmetatable({ options = o, records = {}, usage = {} }, Monitor)
end

local function look(self, job)
  self.next_look = native.clock() + self.options.seconds
  self.meter:sample { job.device or "cpu:0" }
end

function Monitor:on_train_begin()
  self.meter = usage.meter()
  self.usage, self.next_look = self.meter.values, 0
end

function Monitor:on_train_end(job)
  look(self, job)
  if self.options.print then io.stdout:write(usage.report(self.usage), "\n") end
end

local function norm_of(t) return t:detach():to("float32"):square():sum():sqrt():item() end

function Monitor:on_batch_end(job)
  if native.clock() >= self.next_look then look(self, job) end
  if job.done % self.options.every ~= 0 then return end
  for name, p in job.model:named_parameters() do
    if name:find(self.options.pattern) then
      local gradient = p.grad
      local record = { done = job.done, name = name, norm = norm_of(p), grad_norm = gradient and norm_of(gradient) }
      self.records[#self.records + 1] = record
      if self.options.print then
        io.stdout:write(("step %d  %s  norm %.4g  gradient %s\n"):format(record.done, name, record.norm,
                        record.grad_norm and ("%.4g"):format(record.grad_norm) or "none"))
      end
    end
  end
end

-- ---- ProgressBar ----

local ProgressBar = {}
ProgressBar.__index = ProgressBar
ProgressBar.rank_zero = true

local read_bar = native.signature("ProgressBar", {
  { "verbose", "integer", named = true, default = 1, doc = "1: a bar on a terminal; 2: lines" } })

---Fit's bar as a callback, for fit{verbose=0}. 2: lines only.
---@return perigee.Callback
function callbacks.ProgressBar(...) return setmetatable({ verbose = read_bar(...).verbose }, ProgressBar) end

function ProgressBar:on_epoch_begin(job, epoch)
  self.bar = new_progress(epoch, job.epochs, job.train.size or job.seen, self.verbose)
end
function ProgressBar:on_batch_end(job, step) self.bar:update(step, job.samples, job.values) end
function ProgressBar:on_epoch_end(_, entry)
  local values = {}
  for name, v in pairs(entry) do
    if type(v) == "number" and name ~= "epoch" and name ~= "seconds" then values[#values + 1] = { name, v } end
  end
  table.sort(values, function(a, b) return a[1] < b[1] end)
  self.bar:finish(values)
end

return callbacks
