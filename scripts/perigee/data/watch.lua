-- SPDX-License-Identifier: Apache-2.0
-- Clocks for the stages of a pipeline, while ds:benchmark or a profile runs: of what the script's thread does, and of
-- the core's.

local native = require "perigee.native"

local watch = {}
local benchmark -- the one that runs

local Watch = {}
Watch.__index = Watch

function watch.new() return setmetatable({ rows = {}, inner = 0 }, Watch) end

---What is known of a stage.
function Watch:row(own)
  local row = self.rows[own]
  if not row then
    row = { elements = 0, seconds = 0, waited = 0, script = false }
    self.rows[own] = row
  end
  return row
end

---The same function, whose time counts for a stage: all of it but what stages before it take. `waits`: it only waits
---for their threads.
function Watch:timed(own, fn, waits)
  local row, clock = self:row(own), native.clock
  local key = waits and "waited" or "seconds"
  row.script = row.script or not waits
  return function(...)
    local outer = self.inner
    self.inner = 0
    local begin = clock()
    local value = fn(...)
    local all = clock() - begin
    row[key] = row[key] + all - self.inner
    if value ~= nil and not waits then row.elements = row.elements + 1 end
    self.inner = outer + all
    return value
  end
end

---The core's stage of a stage, with a clock.
function Watch:core(own, stage)
  local row = self:row(own)
  row.times = row.times or native.data.times()
  return native.data.timed(stage, row.times)
end

---What has been measured of a stage: elements, seconds, waited.
function Watch:read(own)
  local row = self:row(own)
  if not row.times then return row end
  local elements, own_ns, waited_ns = native.data.read_times(row.times)
  return { elements = math.max(row.elements, elements), seconds = row.seconds + own_ns / 1e9,
           waited = row.waited + waited_ns / 1e9, script = row.script }
end

-- ---- in a profile ----

local Noted = {}
Noted.__index = Noted
local noted = setmetatable({}, Noted)
local profile = native.profile

local function name_of(own) return own.name or "source" end

---The same function, each of whose elements a profile notes.
function Noted:timed(own, fn, waits) -- luacheck: ignore 212/self
  if waits then return fn end
  local name = name_of(own)
  return function(...)
    local begin = profile.now()
    local value = fn(...)
    if value ~= nil then profile.note_stage(begin, name) end
    return value
  end
end

function Noted:core(own, stage) -- luacheck: ignore 212/self
  return native.data.noted(stage, name_of(own), own.line)
end

---Who wants to know of stages now, a benchmark or a profile: an object with the methods timed and core; nil: nobody.
function watch.now() return benchmark or profile.on and noted or nil end

---A benchmark begins; nil: it is over.
function watch.set(now) benchmark = now end

return watch
