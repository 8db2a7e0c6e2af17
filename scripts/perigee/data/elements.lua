-- SPDX-License-Identifier: Apache-2.0
-- Stages that do something to each element: map, filter, prefetch.

local native = require "perigee.native"
local base = require "perigee.data.dataset"
local Dataset, fields_of, derive = base.Dataset, base.fields_of, base.derive

local last_function = 0 -- numbers of worker functions

-- What of a pipeline tunes itself, and one thing more.
local function tuned(own, key, value)
  local tunes = {}
  for k, v in pairs(own.tunes or {}) do tunes[k] = v end
  tunes[key] = value
  own.tunes = tunes
end

local function check_workers(where, workers)
  if workers == "auto" then return native.workers.automatic() end
  if workers ~= nil and (type(workers) ~= "number" or workers ~= math.floor(workers) or workers < 1 or workers > 1024)
  then
    native.raise("invalid_argument", where, "workers must be a count of 1 or more, or \"auto\", got " ..
                 native.describe(workers))
  end
  return workers
end

-- A stage of a function that runs on workers: `make(stage, number, epoch)` makes the core's.
local function on_workers(self, o, fn, workers, make, is_auto)
  native.workers.pack { fn } -- what cannot go to a worker is told here
  last_function = last_function + 1
  local number, functions = last_function, { [last_function] = fn }
  for k, f in pairs(fields_of(self).functions or {}) do functions[k] = f end
  o.native = function(stage, epoch) return make(stage, number, epoch) end
  local made = derive(self, o)
  local own = fields_of(made)
  tuned(own, "workers", is_auto and (not own.workers or own.tunes and own.tunes.workers) or nil)
  own.functions, own.workers, own.on_workers = functions, math.max(own.workers or 0, workers), true
  return made
end

local M = {}

-- Threads that run stages in which no function of the script is. `given`: as the user said it.
function M.on_threads(made, given, workers)
  local own = fields_of(made)
  tuned(own, "workers", given == "auto" and (not own.workers or own.tunes and own.tunes.workers) or nil)
  own.functions, own.workers = own.functions or {}, math.max(own.workers or 0, workers)
  return made
end

M.check_workers = check_workers

---Elements of a source by position, but for those that cannot be made, which are counted and logged. `what`: its name.
function M.or_skipped(self, what)
  local line = native.script_line()
  local skips = native.data.skips(what .. (line and " at " .. line or ""))
  local made = derive(self, { name = what, in_order = true, what = what .. " or skip",
    native = function(stage) return native.data.or_skip(stage, skips) end,
    pull = function(next_)
      local i = 0
      return function()
        while true do
          i = i + 1
          local ok, sample = pcall(next_)
          if ok then return sample end
          if sample == "interrupted" then error(sample, 0) end -- Ctrl-C
          native.data.skip(skips, i, tostring(sample))
        end
      end
    end })
  fields_of(made).skips = skips
  return made
end

local WORKERS = "threads that run it, each in a Lua state of its own; on the script's thread if not given"

local read_map = native.signature("map", {
  { "fn", "function", required = true, type = "fun(sample: any): any", doc = "makes one sample of another" },
  { "workers", "any", named = true, type = "integer|\"auto\"", doc = WORKERS },
  { "on_error", "string", named = true, default = "raise", choices = { "raise", "skip" },
    doc = "what an error of the function does; \"skip\" leaves the element out, counts it and logs why" } })

-- As map's, but that elements of which the function fails are left out.
local function mapped_or_skipped(self, fn, apply, workers, is_auto)
  local line = native.script_line()
  local skips = native.data.skips("map" .. (line and " at " .. line or ""))
  local forms = { name = "map", fn = fn, in_order = true, what = base.of_function("map or skip", fn),
    pull = function(next_)
      local i = 0
      return function()
        while true do
          local sample = next_()
          if sample == nil then return nil end
          i = i + 1
          local ok, made = pcall(apply, sample)
          if ok then return made end
          if made == "interrupted" then error(made, 0) end -- Ctrl-C
          native.data.skip(skips, i, tostring(made))
        end
      end
    end }
  local function make(stage, number, epoch) return native.data.map_or_skip(stage, number, epoch, skips) end
  local made = workers and on_workers(self, forms, fn, workers, make, is_auto) or derive(self, forms)
  fields_of(made).skips = skips
  return made
end

---fn(sample) -> sample, for each element. With workers it runs in Lua states of their own, on threads: what it refers
---to is copied once (nil, booleans, numbers, strings, plain tables, Lua functions; tensors of the cpu share their
---memory; modules are required again), and random draws in it depend on (seed, epoch, element) alone. Without, it runs
---on the script's thread, when the next element is wanted, while threads of stages before it work ahead. With
---on_error="skip" nobody knows how many elements are left before the end; ds:skipped() says what was left out.
---@return perigee.Dataset
function Dataset:map(...)
  local o = read_map(...)
  local fn, workers = o.fn, check_workers("map", o.workers)
  local function apply(sample)
    local result = fn(sample)
    if result == nil then native.raise("invalid_argument", "map", "the function returned nil") end
    return result
  end
  if o.on_error == "skip" then return mapped_or_skipped(self, fn, apply, workers, o.workers == "auto") end
  local forms = { name = "map", fn = fn, size = self.size, what = base.of_function("map", fn),
    stage = function(stage)
      return { count = stage.count, get = function(i) return apply(stage.get(i)) end }
    end,
    pull = function(next_)
      return function()
        local sample = next_()
        if sample == nil then return nil end
        return apply(sample)
      end
    end }
  return workers and on_workers(self, forms, fn, workers, native.data.map, o.workers == "auto") or derive(self, forms)
end

-- Transforms of plugins that a pipeline has.
local function count_transforms(own)
  local count = own.transform and 1 or 0
  for _, parent in ipairs(own.parents or {}) do count = count + count_transforms(parent) end
  return count
end

---A transform that a plugin brings, of each element: `ds:transform("jitter", {by=0.2})`. It takes and gives fields of
---the samples, runs in native code on the pipeline's threads, and draws from (seed, epoch, element) alone. A name or an
---option that is not there is an error with those that are. The option `workers` is ours: threads that run it.
---@param name string
---@param options? table<string, string|number|boolean|integer[]|string[]|perigee.Tensor|table<string, perigee.Tensor>>
---@return perigee.Dataset
function Dataset:transform(name, options, ...)
  local parts = require("perigee.data.plugins").parts
  name, options = parts.read("transform", "transform", name, options, ...)
  local given = options.workers
  local workers = check_workers("transform", given)
  options.workers = nil
  local parent = fields_of(self)
  local info = native.parts.transform("transform", name)
  local packed = native.parts.pack("transform", info, options)
  local number, shown = count_transforms(parent), parts.shown("transform", name)
  local transform = native.data.transform(name, packed, shown, number)
  local apply = native.data.apply_transform
  local what = parts.of_options("transform", name, options)
  local made = derive(self, { name = "transform", size = self.size, what = what,
    stage = function(stage, epoch)
      return { count = stage.count, get = function(i) return apply(transform, epoch, i, stage.get(i)) end }
    end,
    pull = function(next_, epoch)
      local i = 0
      return function()
        local sample = next_()
        if sample == nil then return nil end
        i = i + 1
        return apply(transform, epoch, i, sample)
      end
    end,
    native = function(stage, epoch) return native.data.transformed(stage, transform, epoch) end })
  fields_of(made).transform = true
  return workers and M.on_threads(made, given, workers) or made
end

local function read_skips(own, list, seen)
  if seen[own] then return 0 end
  seen[own] = true
  local count = 0
  for _, parent in ipairs(own.parents or {}) do count = count + read_skips(parent, list, seen) end
  return count + (own.skips and native.data.read_skips(own.skips, list) or 0)
end

---How many elements maps with on_error="skip" have left out since the pipeline was made, in all its passes, and why: of
---each map the first thousand.
---@return integer count
---@return string[] messages
function Dataset:skipped()
  local list = {}
  return read_skips(fields_of(self), list, {}), list
end

local read_filter = native.signature("filter", {
  { "fn", "function", required = true, type = "fun(sample: any): boolean", doc = "whether a sample stays" },
  { "workers", "any", named = true, type = "integer|\"auto\"", doc = WORKERS } })
---The elements for which fn(sample) answers true. How many, nobody knows before the end: ds.size is nil. workers= as
---for map.
---@return perigee.Dataset
function Dataset:filter(...)
  local o = read_filter(...)
  local fn, workers = o.fn, check_workers("filter", o.workers)
  local forms = { name = "filter", fn = fn, in_order = true, what = base.of_function("filter", fn) }
  function forms.pull(next_)
    return function()
      while true do
        local sample = next_()
        if sample == nil then return nil end
        local stays = fn(sample)
        if type(stays) ~= "boolean" then
          native.raise("invalid_argument", "filter", "the function must return true or false, got " ..
                       native.describe(stays))
        end
        if stays then return sample end
      end
    end
  end
  if not workers then return derive(self, forms) end
  return on_workers(self, forms, fn, workers, native.data.filter, o.workers == "auto")
end

-- An element with its tensors on a device (nil: where they are).
local function moved(v, device)
  if not device then return v end
  if native.is_tensor(v) then return v:to(device) end
  if type(v) ~= "table" then return v end
  local there = {}
  for key, field in pairs(v) do there[key] = moved(field, device) end
  return there
end

local UNITS = { KB = 2 ^ 10, MB = 2 ^ 20, GB = 2 ^ 30 }

local function read_bytes(given)
  local count, unit = tostring(given):match "^(%d+%.?%d*)%s*([KMG]?B?)$"
  local bytes = type(given) == "number" and given or count and tonumber(count) * (UNITS[unit] or unit == "" and 1 or 0)
  if not bytes or bytes < 1 or bytes > 2 ^ 53 or bytes ~= bytes then
    native.raise("invalid_argument", "prefetch", "memory must be bytes, or a text such as \"512MB\", got " ..
                 native.describe(given))
  end
  return math.floor(bytes)
end

local read_prefetch = native.signature("prefetch", {
  { "n", "any", default = "auto", type = "integer|\"auto\"",
    doc = "elements that are ready at most; auto: as many as the script waits for" },
  { "memory", "any", named = true, type = "integer|string",
    doc = "of auto: bytes of what is ready at most, or \"512MB\"; 1 GB if not given" },
  { "device", "device", named = true, doc = "where their tensors go, beside what the script computes there" } })
---Elements are made ahead of the script, by a thread (or by map's workers), at most n of them. What functions of the
---script make (a generator, a map without workers) is made when the script asks for an element, and threads do the rest
---ahead.
---@return perigee.Dataset
function Dataset:prefetch(...)
  local o = read_prefetch(...)
  local n, memory = o.n == "auto" and 2 or o.n, o.memory and read_bytes(o.memory)
  if type(n) ~= "number" or n ~= math.floor(n) or n < 1 or n > 2 ^ 20 then
    native.raise("invalid_argument", "prefetch", "needs a count of 1 or more, or \"auto\", got " ..
                 native.describe(o.n))
  end
  local made = derive(self, { name = "prefetch", size = self.size, what = "prefetch " .. tostring(o.device),
    stage = function(stage)
      return { count = stage.count, get = function(i) return moved(stage.get(i), o.device) end }
    end,
    pull = function(next_)
      return function()
        local element = next_()
        if element == nil then return nil end
        return moved(element, o.device)
      end
    end,
    native = function(stage)
      return o.device and native.data.to_device(stage, native.find_device(o.device)) or stage
    end })
  local own = fields_of(made)
  if o.n == "auto" then
    tuned(own, "ahead", true)
    tuned(own, "memory", memory)
  elseif memory then
    native.raise("invalid_argument", "prefetch", "memory= is a limit of \"auto\"", "prefetch{\"auto\", memory=...}")
  end
  own.ahead = math.max(own.ahead or 0, n)
  return made
end

return M
