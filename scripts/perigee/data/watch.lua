-- SPDX-License-Identifier: Apache-2.0
-- Clocks for the stages of a pipeline, while ds:benchmark runs: of what the script's thread does, and of the core's.

local native = require "perigee.native"

local watch = { active = nil }

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

return watch
