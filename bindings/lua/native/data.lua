-- SPDX-License-Identifier: Apache-2.0
-- Input pipelines: stages, and runs over them.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local elements = require "perigee.native.elements"
local handles = require "perigee.native.handles"

local M = {}

local RETRY, END, WAITING, ASKED = 10, 101, 102, 103
local C
local decode, to_leaves, leaves_of = elements.decode, elements.to_leaves, elements.leaves
local out, element = ffi.new("pgc_stage *[1]"), ffi.new("pgc_element[1]")
local stage_type = ffi.typeof("pgc_stage *")

-- ---- stages ----

local function stage(code, where, called)
  if code ~= 0 then errors.raise_native(C, where, nil, called) end
  return ffi.gc(out[0], C.pgc_stage_release)
end

-- Memory is short, or the script is to be interrupted once this layer has been left.
local function make_room()
  handles.reclaim()
  C.pgc_again()
end

local function process_seed()
  local state = ffi.new("uint64_t[2]")
  C.pgc_rng_state(state, state + 1)
  return state[0]
end

---A source of a plugin. `packed`: its options, as native/parts.lua packs them.
function M.plugin_source(name, packed, shown, where)
  local code = C.pgc_stage_source(name, packed.struct, packed.tensors, packed.count, shown, out)
  return stage(code, where or "data.source", "data.source")
end

---How many elements a stage has; nil where that is unknown.
function M.stage_count(made)
  local count = tonumber(C.pgc_stage_count(made))
  return count >= 0 and count or nil
end

---Whether its elements come one after the other.
function M.stage_in_order(made) return C.pgc_stage_in_order(made) ~= 0 end

---Element i, from 1, of a stage whose elements have positions.
function M.stage_get(made, i)
  local code = C.pgc_stage_get(made, i - 1, element)
  if code == RETRY then
    make_room()
    code = C.pgc_stage_get(made, i - 1, element)
  end
  if code ~= 0 then errors.raise_native(C, "data") end
  return decode(element[0])
end

---Opens a transform of a plugin; `number`: which of its pipeline's it is.
function M.transform(name, packed, shown, number)
  local made = ffi.new("pgc_transform *[1]")
  if C.pgc_transform_open(name, packed.struct, packed.tensors, packed.count, shown, number, made) ~= 0 then
    errors.raise_native(C, "transform")
  end
  return ffi.gc(made[0], C.pgc_transform_release)
end

---A sample as a transform makes it, in an epoch; i: its position, from 1.
function M.apply_transform(transform, epoch, i, sample)
  local text, filled = to_leaves(sample)
  if not text then errors.raise("invalid_argument", "transform", (filled:gsub("^the result", "the sample"))) end
  if C.pgc_transform_apply(transform, process_seed(), epoch, i - 1, text, #text, leaves_of(), filled, element) ~= 0 then
    errors.raise_native(C, "transform")
  end
  return decode(element[0])
end

function M.transformed(parent, transform, epoch)
  return stage(C.pgc_stage_transform(parent, transform, process_seed(), epoch, out), "transform")
end

---Element k, from 0, is the parent's k % modulo * step + offset; of a parent in order, `modulo` has no effect.
function M.window(parent, count, modulo, step, offset)
  return stage(C.pgc_stage_window(parent, count, math.max(modulo, 1), step, offset, out))
end

---Elements of the parent in the order of draw_order.
function M.shuffle(parent, seed, epoch, buffer)
  return stage(C.pgc_stage_shuffle(parent, seed, epoch, math.min(buffer, 2 ^ 53), out), "shuffle")
end

function M.zip(parents)
  return stage(C.pgc_stage_zip(ffi.new("pgc_stage *[?]", #parents, parents), #parents, out), "zip")
end

function M.batch(parent, size, drop_last)
  return stage(C.pgc_stage_batch(parent, size, drop_last and 1 or 0, out), "batch")
end

---A function that calls another with random numbers of its own, which go on where they were: what it draws depends on
---the process's seed, on the epoch, and on what it drew before.
function M.own_draws(epoch)
  local own, outer = ffi.new("uint64_t[2]"), ffi.new("uint64_t[2]")
  own[0] = (process_seed() + epoch) * 0x9e3779b97f4a7c15ULL + 1
  return function(fn, ...)
    C.pgc_rng_state(outer, outer + 1)
    C.pgc_set_rng_state(own[0], own[1])
    local ok, a, b = pcall(fn, ...)
    C.pgc_rng_state(own, own + 1)
    C.pgc_set_rng_state(outer[0], outer[1])
    if not ok then error(a, 0) end
    return a, b
  end
end

---Function number `index` of the run's workers.
function M.map(parent, index, epoch) return stage(C.pgc_stage_map(parent, index, process_seed(), epoch, out), "map") end

---The same, but that what the function fails of is left out, and told to `skips`.
function M.map_or_skip(parent, index, epoch, skips)
  return stage(C.pgc_stage_map_or_skip(parent, index, process_seed(), epoch, skips, out), "map")
end

---Elements of a parent by position; what cannot be made is left out, and told to `skips`.
function M.or_skip(parent, skips) return stage(C.pgc_stage_or_skip(parent, skips, out), "data") end

---What a stage left out. `what`: its name, for the log.
function M.skips(what)
  local made = ffi.new("pgc_skips *[1]")
  if C.pgc_skips_create(what, made) ~= 0 then errors.raise_native(C, "map") end
  return ffi.gc(made[0], C.pgc_skips_release)
end

---Element i, from 1, is left out.
function M.skip(skips, i, message)
  if C.pgc_skips_add(skips, i - 1, message) ~= 0 then errors.raise_native(C, "map") end
end

---How many were left out, and the messages of the first of them.
function M.read_skips(skips, list)
  local i = 0
  while true do
    local message = C.pgc_skips_message(skips, i)
    if message == nil then break end
    list[#list + 1], i = ffi.string(message), i + 1
  end
  return tonumber(C.pgc_skips_count(skips))
end

---Elements for which function number `index` of the run's workers answers true.
function M.filter(parent, index, epoch)
  return stage(C.pgc_stage_filter(parent, index, process_seed(), epoch, out), "filter")
end

---Elements of a parent in order through a buffer.
function M.mix(parent, seed, epoch, buffer)
  return stage(C.pgc_stage_mix(parent, seed, epoch, math.min(buffer, 2 ^ 53), out), "shuffle")
end

function M.repeated(parent, times) return stage(C.pgc_stage_repeat(parent, times, out), "repeated") end

function M.to_device(parent, device) return stage(C.pgc_stage_device(parent, device, out), "prefetch") end

---Positions 1 .. n in a random order, in an array that counts from 1.
function M.draw_order(n, seed, epoch, buffer)
  local positions = ffi.new("int64_t[?]", n + 1)
  if C.pgc_draw_order(n, seed, epoch, buffer, positions + 1) ~= 0 then errors.raise_native(C, "shuffle") end
  return positions
end

---Step i of a random order, from 0: which of `reach` that are left in the buffer, from 0.
function M.draw_step(seed, epoch, i, reach) return tonumber(C.pgc_draw_step(seed, epoch, i, reach)) end

function M.is_stage(v) return ffi.istype(stage_type, v) end

-- ---- caches ----

---Elements that are kept, in memory (path nil) or in a file, of the pipeline that `identity` describes.
function M.cache(path, identity)
  local made = ffi.new("pgc_cache *[1]")
  if C.pgc_cache_create(path, identity, made) ~= 0 then errors.raise_native(C, "cache") end
  return ffi.gc(made[0], C.pgc_cache_release)
end

---How many elements it has, nil where it has not all.
function M.cache_count(cache)
  local count = tonumber(C.pgc_cache_count(cache))
  return count >= 0 and count or nil
end

---Element i, from 1; nil where it is not there.
function M.cache_get(cache, i)
  local code = C.pgc_cache_get(cache, i - 1, element)
  if code == 0 then return decode(element[0]) end
  if code ~= END then errors.raise_native(C, "cache") end
end

---Keeps element i of `count` (nil: unknown); nil in its place: the pipeline ends before it.
function M.cache_put(cache, i, count, value)
  local code
  if value == nil then
    code = C.pgc_cache_put(cache, i - 1, count or -1, nil, 0, nil, 0)
  else
    local text, filled = to_leaves(value)
    if not text then
      errors.raise("invalid_argument", "cache", (filled:gsub("^the result", ("element %d"):format(i))))
    end
    code = C.pgc_cache_put(cache, i - 1, count or -1, text, #text, leaves_of(), filled)
  end
  if code ~= 0 then errors.raise_native(C, "cache") end
end

function M.cached(parent, cache) return stage(C.pgc_stage_cache(parent, cache, out), "cache") end

-- ---- feeds: what the script's thread makes for a run's threads ----

local Feeds = {}
Feeds.__index = Feeds
local request, answered = ffi.new("pgc_request[1]"), ffi.new("pgc_request[1]")

---The sources of one pass that run on the script's thread.
function M.feeds()
  local made = ffi.new("pgc_feeds *[1]")
  if C.pgc_feeds_create(made) ~= 0 then errors.raise_native(C, "each") end
  return setmetatable({ ptr = ffi.gc(made[0], C.pgc_feeds_release), sources = {}, count = 0, failures = {} }, Feeds)
end

---A stage of what a source makes: `get(i)`, i from 1, or where that is nil `begin()`, which answers a function for the
---next element, nil at the end, and one that ends it early. count nil: unknown.
function Feeds:stage(count, get, begin)
  self.sources[self.count] = { get = get, begin = begin, times = {} }
  self.count = self.count + 1
  return stage(C.pgc_stage_feed(self.ptr, self.count - 1, count or -1, get and 0 or 1, out), "each")
end

-- The answer to `answered[0]`.
local function answer(self, ok, made)
  local code
  if not ok then
    self.failures[#self.failures + 1] = made
    code = C.pgc_feeds_fail(self.ptr, answered, ("script error %d"):format(#self.failures))
  elseif made == nil then
    code = C.pgc_feeds_answer(self.ptr, answered, nil, 0, nil, 0)
  else
    local text, filled = to_leaves(made)
    if not text then
      local said = filled:gsub("^the result", "an element for threads")
      return answer(self, false, errors.new("invalid_argument", "each", said))
    end
    code = C.pgc_feeds_answer(self.ptr, answered, text, #text, leaves_of(), filled)
  end
  if code ~= 0 then errors.raise_native(C, "each") end
end

-- One after the other up to the position that is asked for.
local function answer_in_order(self, source)
  local wanted, time = tonumber(answered[0].position), answered[0].time
  local state = source.times[time]
  if not state then
    state = { position = 0 }
    source.times[time] = state
    local ok, next_, close = pcall(source.begin)
    if not ok then return answer(self, false, next_) end
    state.next, state.close = next_, close
  end
  if state.ended then return answer(self, true, nil) end
  while state.position <= wanted and not state.ended do
    local ok, made = pcall(state.next)
    answered[0].position = state.position
    answer(self, ok, made)
    state.position, state.ended = state.position + 1, not ok or made == nil
  end
  if state.ended and state.position <= wanted then
    answered[0].position = wanted
    answer(self, true, nil)
  end
end

---Ends what runs for it.
function Feeds:close()
  for i = 0, self.count - 1 do
    for _, state in pairs(self.sources[i].times) do
      if state.close then state.close() end
    end
    self.sources[i].times = {}
  end
end
jit.off(Feeds.close) -- walks a table with next

---Makes one thing that threads wait for; whether there was any.
function Feeds:serve()
  if C.pgc_feeds_next(self.ptr, request) ~= 0 then return false end
  answered[0] = request[0] -- what makes elements may begin passes of its own
  local source = self.sources[tonumber(request[0].source)]
  if not source.get then
    answer_in_order(self, source)
  else
    local mine = ffi.new("pgc_request", request[0])
    local ok, made = pcall(source.get, tonumber(mine.position) + 1)
    answered[0] = mine
    answer(self, ok, made)
  end
  return true
end

-- ---- runs ----

---A pass over a stage from element `first` on, from 0: see pgc_run_start. `pace`: threads, capacity, tunes_threads,
---tunes_capacity, memory.
function M.start_run(top, first, pace, workers, feeds)
  local made = ffi.new("pgc_run *[1]")
  if C.pgc_run_start(top, first, ffi.new("pgc_pace", pace), workers, feeds and feeds.ptr, made) ~= 0 then
    errors.raise_native(C, "each")
  end
  return ffi.gc(made[0], C.pgc_run_release)
end

-- What pgc_run_next has answered in place of an element.
local function without_element(code, feeds)
  if code == END then return nil, false end
  if code == WAITING then return nil, true end
  if code == ASKED then return nil, "asked" end
  local said = ffi.string(C.pgc_error().message)
  local failure = feeds and said:match "script error (%d+)"
  if failure then error(feeds.failures[tonumber(failure)], 0) end
  -- A worker's error has the script's line.
  if said:find "^%S+:%d+: " then errors.raise("invalid_argument", "map", said) end
  if said:find "sample %d" then errors.raise("invalid_argument", "batch", said) end
  errors.raise_native(C, "each")
end

---The next element; or nil, and whether it is to be asked for again (a caller outside of this layer is where signals
---are looked at): "asked" where feeds are to be served before.
function M.next_element(run, feeds)
  local code = C.pgc_run_next(run, element)
  if code == RETRY then
    make_room()
    code = C.pgc_run_next(run, element)
  end
  if code ~= 0 then return without_element(code, feeds) end
  return decode(element[0])
end

---Ends a run; whether its threads have left.
function M.close_run(run)
  local code = C.pgc_run_close(run)
  if code ~= 0 and code ~= WAITING then errors.raise_native(C, "each") end
  return code == 0
end

---What a run has come to, as a table of pgc_run_state.
function M.run_state(run)
  local state, list = ffi.new("pgc_run_state[1]"), {}
  if C.pgc_run_look(run, state) ~= 0 then errors.raise_native(C, "each") end
  for _, name in ipairs { "threads", "capacity", "element_bytes", "given", "starved", "starved_ns", "blocked_ns",
                          "run_ns" } do
    list[name] = tonumber(state[0][name])
  end
  return list
end

---A clock for stages, and what it says: elements, nanoseconds of its own, of waits.
function M.times()
  local made = ffi.new("pgc_times *[1]")
  if C.pgc_times_create(made) ~= 0 then errors.raise_native(C, "benchmark") end
  return ffi.gc(made[0], C.pgc_times_release)
end
function M.read_times(times)
  local v = ffi.new("int64_t[3]")
  C.pgc_times_look(times, v, v + 1, v + 2)
  return tonumber(v[0]), tonumber(v[1]), tonumber(v[2])
end
function M.timed(parent, times) return stage(C.pgc_stage_timed(parent, times, out), "benchmark") end

---A stage that profiles note, with its name and line.
function M.noted(parent, name, line) return stage(C.pgc_stage_noted(parent, name, line, out), "profile") end

---Threads that compute elements now, in the whole process.
function M.run_threads() return C.pgc_run_threads() end

---The address of what answers that, for who outlives this state.
function M.run_threads_address() return tonumber(ffi.cast("uintptr_t", C.pgc_run_threads)) end

function M.start(library) C = library end

return M
