-- SPDX-License-Identifier: Apache-2.0
-- ds:lint: what makes a pipeline slow, large or other than meant, by the script's line.

local native = require "perigee.native"
local util = require "jit.util"
local base = require "perigee.data.dataset"
local Dataset, fields_of = base.Dataset, base.fields_of

---@class perigee.PipelineAdvice
---@field [integer] { line: string, stage: string, text: string, remedy: string }
local Advice = { __name = "perigee.PipelineAdvice" }
Advice.__index = Advice
function Advice:__tostring()
  local lines = {}
  for i, one in ipairs(self) do lines[i] = ("%s: %s: %s (%s)"):format(one.line, one.stage, one.text, one.remedy) end
  return #lines > 0 and table.concat(lines, "\n") or "nothing to say"
end

local function is_random(name)
  return name:find "^rand" or name:find "random" or name == "bernoulli" or name == "dropout" or name == "multinomial"
end

-- The name of what a function draws by, or nil: of its own constants, and of functions in it and of its upvalues.
local function drawn_by(fn, seen)
  if seen[fn] then return nil end
  seen[fn] = true
  for i = -1, -math.huge, -1 do
    local constant = util.funck(fn, i)
    if constant == nil then break end
    if type(constant) == "string" and is_random(constant) then return constant end
    local inner = type(constant) == "proto" and drawn_by(constant, seen)
    if inner then return inner end
  end
  if type(fn) ~= "function" then return nil end
  for i = 1, 60 do
    local name, value = debug.getupvalue(fn, i)
    if not name then break end
    if type(value) == "function" and debug.getinfo(value, "S").what ~= "C" and
      not native.is_own_source(debug.getinfo(value, "S").source) then
      local inner = drawn_by(value, seen)
      if inner then return inner end
    end
  end
end

-- The first element of a stage; nil of an empty one, and of one that fails (when it is used, it says so).
local function first_of(own)
  local made, next_, close = pcall(base.pull, own, 1)
  if not made then return nil end
  local ok, element = pcall(native.without_device, next_)
  close()
  return ok and element or nil
end

-- Calls fn(tensor, path) for all tensors of an element.
local function tensors_of(v, fn, path)
  if native.is_tensor(v) then
    fn(v, path or "it")
  elseif native.is_plain(v) then
    for key, field in pairs(v) do tensors_of(field, fn, path and path .. "." .. tostring(key) or tostring(key)) end
  end
end

local function bytes_of(element)
  local bytes = 0
  tensors_of(element, function(t) bytes = bytes + t:numel() * native.dtypes.by_name[t.dtype].bytes end)
  return bytes
end

local function free_memory()
  local file = io.open("/proc/meminfo")
  local text = file and file:read "*a" or ""
  if file then file:close() end
  local kilobytes = text:match "MemAvailable:%s*(%d+)"
  return kilobytes and tonumber(kilobytes) * 1024
end

local function wide_field(own)
  local found
  local element = first_of(own)
  tensors_of(element, function(t, path) if t.dtype == "float64" then found = found or path end end)
  return found
end

-- The stage that first has a field of float64.
local function widening(stages)
  for _, own in ipairs(stages) do
    local makes = own.name ~= "shuffle" and own.name ~= "repeated" and own.name ~= "skip"
    local field = makes and wide_field(own)
    if field then return own, field end
  end
end

-- What a function behind batch makes of a batch, if that is none.
local function of_one_element(own)
  local parent = own.parents[1]
  local batch = first_of(parent)
  local rows, wrong, right
  tensors_of(batch, function(t) rows = rows or t:dim() > 0 and t.shape[1] end)
  if not rows or rows == 1 then return nil end
  local ok, result = pcall(own.fn, batch)
  if not ok then return "fails on a batch: " .. tostring(result):gsub("^%S+:%d+: ", "") end
  tensors_of(result, function(t, path)
    if t:dim() > 0 and t.shape[1] == rows then right = true
    else wrong = ("makes %s %s of a batch of %d"):format(path, tostring(t.shape), rows) end
  end)
  if wrong and not right then return wrong end
end

local RULES = {
  function(own, say)
    if own.name == "shuffle" and own.parents[1].batched then
      say(own, "it orders batches, whose samples stay together", "shuffle before batch")
    end
  end,
  function(own, say, stages)
    if own.name ~= "cache" then return end
    for _, before in ipairs(stages.before(own)) do
      local by = before.fn and drawn_by(before.fn, {})
      if by then
        say(before, ("it draws by %s before the cache at %s, which keeps the first epoch's draws"):format(by, own.line),
            "put it behind cache")
      elseif before.name == "shuffle" then
        say(before, ("the cache at %s keeps its first order"):format(own.line), "shuffle behind cache")
      end
    end
  end,
  function(own, say)
    if own.name ~= "cache" or not own.in_memory or not own.size then return end
    local bytes, free = bytes_of(first_of(own.parents[1])) * own.size, free_memory()
    if free and bytes > 0.8 * free then
      say(own, ("its %d elements take about %.1f GB, and %.1f GB of memory are free"):format(own.size, bytes / 2 ^ 30,
          free / 2 ^ 30), "cache(\"a file\"), or cache before what makes them large")
    end
  end,
  function(own, say)
    if own.name ~= "map" or not own.parents[1].batched then return end
    local what = of_one_element(own)
    if what then say(own, "it works on one element, and stands behind batch: it " .. what, "map before batch") end
  end,
  function(own, say, stages)
    if (own.name == "map" or own.name == "filter") and not own.on_workers and stages.threaded then
      say(own, "it runs on the script's thread, which threads wait for", ("%s{fn, workers=\"auto\"}"):format(own.name))
    end
  end,
}

local function stages_of(own, list, seen)
  if seen[own] then return list end
  seen[own] = true
  for _, parent in ipairs(own.parents or {}) do stages_of(parent, list, seen) end
  list[#list + 1] = own
  return list
end

---What makes the pipeline slow, large or other than meant, each with the script's line and the remedy:
---print(ds:lint()). First elements are computed to see what they are.
---@return perigee.PipelineAdvice
function Dataset:lint()
  local top, advice = fields_of(self), setmetatable({}, Advice)
  local stages, seed, offset = stages_of(top, {}, {}), native.rng_state()
  function stages.before(own)
    local list = stages_of(own, {}, {})
    list[#list] = nil
    return list
  end
  for _, own in ipairs(stages) do stages.threaded = stages.threaded or base.has_threads(own) end
  local function say(own, text, remedy)
    advice[#advice + 1] = { line = own.line or "?", stage = own.name or "source", text = text, remedy = remedy }
  end
  for _, own in ipairs(stages) do
    for _, rule in ipairs(RULES) do rule(own, say, stages) end
  end
  if wide_field(top) then
    local own, field = widening(stages)
    if own then
      say(own, ("%s is float64: twice the memory, and devices compute it slowly"):format(field),
          "x:to(\"float32\") there, or a dtype in the spec")
    end
  end
  if not stages.threaded then
    say(top, "nothing is made ahead of the script", "prefetch() at the end; prefetch{device=...} for a device")
  end
  native.set_rng_state(seed, offset)
  return advice
end
