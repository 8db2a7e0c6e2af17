-- SPDX-License-Identifier: Apache-2.0
-- pg.profile and pg.range: what a function does and when, and what holds it back.

local native = require "perigee.native"
local pg = require "perigee"
local analysis = require "perigee.profile.analysis"
local verdict = require "perigee.profile.verdict"

local profile = {}
local core = native.profile

---@class perigee.ProfileRow
---@field name string operator, or upload, download, transfer, synchronize
---@field calls integer
---@field total number seconds, without what it called: on the host, and on devices that tell what they do
---@field mean number seconds a call
---@field share number of the whole time
---@field host number part of the total that the calling threads spent
---@field kernel number seconds of its kernels; 0 on an asynchronous device that does not tell
---@field bytes number that kernels read and wrote at least
---@field flops number operations, estimated from shapes
---@field roofline number? share of what the device could do: the least time that its arithmetic and its memory allow,
---  by the kernels' time; over 1 where the data lay in caches
---@field bound string? which of them allows no less, compute or memory

---@class perigee.ProfileStage
---@field name string of the pipeline's method
---@field line string? of the script
---@field elements integer that it made, of a batch stage batches
---@field seconds number on all threads, without stages before it
---@field threads string[] that made them

---@class perigee.Profile
---@field seconds number the whole time, but what looking for script lines took
---@field noting number seconds of that
---@field rows perigee.ProfileRow[] the longest first
---@field records table[] all that was noted: { kind, name, from, to, shapes, line, layer, bytes, device, thread,
---  stream }
---@field lost integer how many records had no room
---@field parts table<string, number> seconds of input, copies, kernels, waits, dispatch (operators without their
---  kernels) and the script: what a device does that tells, else what the script's thread is at
---@field busy number share of the time in which kernels and copies ran or were waited for
---@field devices table<string, perigee.ProfileDevice> by name
---@field stages perigee.ProfileStage[] of pipelines, the longest first
---@field gaps {seconds: number, at: number, after: string?, origin: string?}[] the longest times without any operator
---@field memory table<string, perigee.ProfileMemory> by device
---@field verdict {kind: string, text: string, advice: string}
local Profile = {}

local read = native.signature("profile", {
  { "fn", "function", required = true, doc = "what is looked at" },
  { "trace", "string", named = true, doc = "file of a time line, for ui.perfetto.dev or chrome://tracing" },
  { "origins", "boolean", named = true, default = true,
    doc = "whether operators have the script's line and the layer: finding them takes time, which the figures " ..
      "leave out but the time line shows" },
  { "roofline", "boolean", named = true, default = true,
    doc = "whether devices are measured (once a process, tens of milliseconds), to say how near to their limits " ..
      "kernels are" },
  { "capacity", "integer", named = true, default = 2 ^ 18,
    doc = "records, of 80 bytes: if there are more, the first are lost" } })

local function run(o)
  core.begin(o.capacity, o.origins)
  local clock, base = native.clock(), core.time()
  local ok, problem = xpcall(o.fn, function(e) return e end)
  if ok then ok, problem = pcall(pg.synchronize) end
  local seconds = native.clock() - clock
  if not ok then
    core.drop()
    error(problem, 0)
  end
  local records, lost, noting = core.finish(base)
  return records, lost, seconds, math.min(noting, seconds)
end

---Runs fn once and notes every operator, kernel, copy, wait, gradient rule, optimizer step and allocation, with script
---lines and layers, the ranges of pg.range and of `fit`, and the stages of pipelines, on the script's thread and on
---those of pipelines. tostring tells the verdict, a table by operator, and who held memory when most was in use.
---Asynchronous devices tell themselves what they did and when where their plugin can (pg.profiler/0); else they are
---seen from the host: what was submitted, and what was waited for.
---@return perigee.Profile
function profile.profile(...)
  local o = read(...)
  if o.capacity < 1 then
    native.raise("invalid_argument", "profile", "capacity must be at least 1, got " .. o.capacity)
  end
  if core.on then
    native.raise("failed_precondition", "profile", "a profile is under way", "pg.range names a part of it")
  end
  local live = {}
  for i, d in ipairs(pg.devices()) do live[i - 1] = { name = d.name, bytes = native.memory_stats(i - 1).live } end
  local records, lost, seconds, spent = run(o)
  local self = setmetatable({ records = records, lost = lost, seconds = seconds - spent, noting = spent }, Profile)
  analysis(self, live, o.roofline and require "perigee.profile.roofline" or nil)
  self.verdict = verdict(self)
  if o.trace then self:save(o.trace) end
  return self
end

---Calls fn(...) and answers what it returns. In a profile the time is marked with the name; otherwise it costs a
---tenth of a microsecond. Ranges named "input" count as waiting for data.
---@param name string
---@param fn function
---@param ... any arguments of fn
---@return any ...
function profile.range(name, fn, ...)
  if type(name) ~= "string" then
    native.raise("invalid_argument", "range", "name must be a string, got " .. native.describe(name))
  end
  native.checked.need_function("range", fn)
  return core.range(name, fn, ...)
end

---Writes the time line as Chrome's trace format, which ui.perfetto.dev shows.
---@param path string
function Profile:save(path) require "perigee.profile.trace"(self, path) end

native.checked.class(Profile, { noun = "a profile", call = "profile",
  kinds = { save = { { "path", "string", required = true } } } })

function Profile:__tostring() return require "perigee.profile.report"(self) end

return profile
