-- SPDX-License-Identifier: Apache-2.0
-- ds:benchmark: what each stage takes, and what waits for what.

local native = require "perigee.native"
local base = require "perigee.data.dataset"
local pass = require "perigee.data.passes"
local watch = require "perigee.data.watch"
local cells = require "perigee.printing.cells"
local Dataset, fields_of = base.Dataset, base.fields_of

---@class perigee.PipelineReport
---@field elements integer that were taken
---@field seconds number that it took
---@field per_second number
---@field waited number part of the time that the script waited for threads
---@field threads integer at work at the end; 0: all ran on the script's thread
---@field ahead integer elements that threads might have ready at the end
---@field stages { name: string, line: string, elements: integer, seconds: number, waited: number, script: boolean }[]
---@field verdict string what holds it, and what to do
local Report = { __name = "perigee.PipelineReport" }
Report.__index = Report

local function percent(part) return ("%.0f%%"):format(100 * part) end

function Report:__tostring()
  local lines, busy = { { "stage", "line", "runs on", "elements", "us an element", "share", "waits" } }, 0
  for _, s in ipairs(self.stages) do busy = busy + s.seconds end
  for _, s in ipairs(self.stages) do
    lines[#lines + 1] = { s.name, s.line, s.script and "script" or "core", cells.thousands(s.elements),
                          s.elements > 0 and ("%.1f"):format(s.seconds / s.elements * 1e6) or "-",
                          percent(busy > 0 and s.seconds / busy or 0), ("%.3fs"):format(s.waited) }
  end
  lines[#lines + 1] = { "all", "", ("%d threads"):format(self.threads), cells.thousands(self.elements),
                        ("%.1f"):format(self.seconds / math.max(self.elements, 1) * 1e6), percent(1),
                        ("%.3fs"):format(self.waited * self.seconds) }
  return table.concat(cells.lines(lines, 3), "\n") .. "\n" .. self.verdict
end

-- Stages from the sources on, each once.
local function stages_of(own, list, seen)
  if seen[own] then return list end
  seen[own] = true
  for _, parent in ipairs(own.parents or {}) do stages_of(parent, list, seen) end
  list[#list + 1] = own
  return list
end

local FUNCTIONS = { map = true, filter = true }

local function verdict_of(report, busy)
  local slow = report.stages[1]
  for _, s in ipairs(report.stages) do if s.seconds > slow.seconds then slow = s end end
  if busy > 0 and report.waited < 0.05 then
    return ("the script waited for %s of the time: the pipeline keeps up with it"):format(percent(report.waited))
  end
  local text = ("%s at %s takes most: %s of all stages"):format(slow.name, slow.line,
                percent(slow.seconds / math.max(report.total, 1e-12)))
  local advice
  if slow.script and FUNCTIONS[slow.name] then
    advice = ("give it to threads: %s{fn, workers=\"auto\"}"):format(slow.name)
  elseif slow.script then
    advice = "it runs on the script's thread; prefetch lets the stages behind it run beside"
  elseif report.threads == 0 then
    advice = "prefetch at the end makes elements ahead, beside the script"
  elseif FUNCTIONS[slow.name] then
    advice = "more workers, where there are processors for them; or cache behind it, if it is not random"
  else
    advice = "cache behind it, where its elements are the same in each epoch"
  end
  return text .. " (" .. advice .. ")"
end

local read_benchmark = native.signature("benchmark", {
  { "elements", "integer", named = true, doc = "that are taken at most; an epoch if not given" },
  { "seconds", "number", named = true, default = 5, doc = "after which it ends" },
  { "step", "number", named = true, default = 0, doc = "seconds that the script takes for each: a training's step" } })

local function check(o)
  if o.elements and o.elements < 1 then
    native.raise("invalid_argument", "benchmark", "elements must be at least 1, got " .. o.elements)
  end
  for _, name in ipairs { "seconds", "step" } do
    if not (o[name] >= 0 and o[name] < math.huge) then
      native.raise("invalid_argument", "benchmark", ("%s must be 0 or more, got %s"):format(name, tostring(o[name])))
    end
  end
end

-- Takes elements; answers how many, and the run's state.
local function take(iterator, o)
  local elements, state, begin = 0, nil, native.clock()
  local over = begin + o.seconds
  repeat
    if iterator() == nil then break end
    elements = elements + 1
    if iterator.run then state = native.data.run_state(iterator.run) end
    local free = math.min(native.clock() + o.step, over)
    while native.clock() < free do end -- luacheck: ignore 542
  until elements == o.elements or native.clock() >= over
  return elements, state, native.clock() - begin
end

---Takes elements of an epoch as fast as they come, and says what each stage took, what waited for what, and what to do:
---print(ds:benchmark()). `step` stands for a training: with it, the report says whether the pipeline keeps up. The
---pipeline's epoch and the random numbers of the script stay as they were.
---@param ... any elements=, seconds=5, step=0
---@return perigee.PipelineReport
function Dataset:benchmark(...)
  local o, own = read_benchmark(...), fields_of(self)
  check(o)
  local watched, seed, offset = watch.new(), native.rng_state()
  watch.set(watched)
  local iterator
  local ok, elements, state, seconds = pcall(function()
    iterator = pass(own, 0, math.max(own.epoch, 1))
    return take(iterator, o)
  end)
  watch.set(nil)
  if iterator then iterator:close() end
  native.set_rng_state(seed, offset)
  if not ok then error(elements, 0) end
  local span = math.max(seconds, 1e-12)
  local report = setmetatable({ elements = elements, seconds = seconds, per_second = elements / span, stages = {},
                                waited = state and state.starved_ns / 1e9 / span or 0, total = 0,
                                threads = state and base.has_threads(own) and state.threads or 0,
                                ahead = state and state.capacity or 0 }, Report)
  for i, one in ipairs(stages_of(own, {}, {})) do
    local row = watched:read(one)
    report.stages[i] = { name = one.name or "source", line = one.line or "?", elements = row.elements,
                         seconds = row.seconds, waited = row.waited, script = row.script }
    report.total = report.total + row.seconds
  end
  report.verdict = verdict_of(report, o.step)
  return report
end
