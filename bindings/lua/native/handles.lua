-- SPDX-License-Identifier: Apache-2.0
-- Tensor handles. A handle has no finalizer: those cost 280 to 415 ns each, and one that fires while a trace is being
-- recorded blacklists the operator. Instead each handle owns a slot; `objects[slot]` refers to it weakly, and
-- `ptrs[slot]` keeps its native reference. Once a collector cycle has ended, slots whose object is gone are released
-- in one call.
--
-- Looking for dead slots happens when the free slots run out, or when the native bytes have grown past a limit. Either
-- takes the cycle that the host's collector has just ended, if it freed enough, else drives one full cycle. Free slots
-- are handed out in proportion to the Lua heap, so that what a cycle costs is spread over as many handles. The limit of
-- bytes weighs the cycle against the processor's caches: garbage that fits them is memory that is written again before
-- it has left them, which makes a loop of large tensors twice as fast, unless the cycles over a large Lua heap take
-- more than that saves.
--
-- Handles are larger than 16 bytes: smaller ones that a function holds (an upvalue that is never assigned) become
-- constants of traces, which then keep the tensor for good.
--
-- Finalizers of the host must not call Perigee: they would run in the middle of a call.

local ffi = require "ffi"
local errors = require "perigee.native.errors"

local M = {}

local Handle = ffi.typeof("perigee_handle")
local S = ffi.new("perigee_slots")
local objects = setmetatable({}, { __mode = "v" })
local sentinel = setmetatable({}, { __mode = "v" }) -- loses its entry in every collector cycle
local anchors = {}
local closed_by = { "t:free()" } -- what closed a handle, by the number that a closed handle keeps in `slot`
local log -- of the handles that are made, where they are noted: see open_log
local C

local MIN_SLOTS, MAX_SLOTS = 2048, 262144
local FIRST_SLOTS, SLOT_BYTES = 256, 32
local SLOTS_PER_KB = 8             -- of Lua heap; more, and what is not yet collected no longer fits the caches
local SMALL_HEAP = 1024              -- KB of Lua heap up to which garbage is kept in the caches
local CACHED_GARBAGE = 8 * 1024 * 1024 -- bytes of the processor's memory: a share of the last level that is ours
local CACHED_TENSOR = 8 * 1024 * 1024  -- bytes of a tensor: of larger ones too few would pay for a cycle
local MIN_GARBAGE = 64 * 1024 * 1024 -- native bytes, otherwise
local CALL_GARBAGE = 16 * 1024 * 1024 -- bytes that a worker takes before the end of a call is worth a cycle
local FLUSH_BYTES = 256 * 1024 * 1024
local ALL_KB, MOST_STEPS = 1024 * 1024, 64 -- of a step that is to end the cycle

local function grow(capacity)
  local ptrs = ffi.new("pgc_tensor *[?]", capacity + 1)
  local free = ffi.new("int32_t[?]", capacity + 1)
  local old = S.capacity
  if old > 0 then
    ffi.copy(ptrs, S.ptrs, (old + 1) * ffi.sizeof("void *"))
    ffi.copy(free, S.free, S.top * 4)
  end
  anchors.ptrs, anchors.free, anchors.dead = ptrs, free, ffi.new("pgc_tensor *[?]", capacity + 1)
  S.ptrs, S.free, S.capacity = ptrs, free, capacity
  -- Lowest slots on top of the stack.
  local top, added = S.top, capacity - old
  for i = top - 1, 0, -1 do free[i + added] = free[i] end
  for i = 1, added do
    objects[old + i] = false -- makes room in the array part
    free[added - i] = old + i
  end
  S.top = top + added
end

-- Releases the slots whose objects a collector cycle has cleared. Answers how many.
local function sweep()
  local ptrs, free, dead, top, count = S.ptrs, S.free, anchors.dead, S.top, 0
  for slot = S.capacity, 1, -1 do
    if objects[slot] == nil then
      dead[count] = ptrs[slot]
      count = count + 1
      ptrs[slot] = nil
      objects[slot] = false
      free[top] = slot
      top = top + 1
    end
  end
  S.top = top
  if count > 0 then C.pgc_release_many(dead, count) end
  M.forget()
  sentinel[1] = {}
  return count
end

---Releases what a collector cycle has found dead, if one has ended since the last time.
function M.release_dead()
  if sentinel[1] == nil then sweep() end
end

---Lets go of what Lua keeps for native objects that are gone; native/custom.lua sets it.
function M.forget() end

local heap = 0 -- KB that a cycle walks through, as of the last one: without garbage, and without the slots' arrays

local function measure_heap() heap = collectgarbage("count") - S.capacity * SLOT_BYTES / 1024 end

-- One cycle to its end, by steps: `collect` sweeps before it marks too, which is a third of its time. One that the host
-- has begun ends without what was dropped since.
local function by_steps()
  for _ = 1, MOST_STEPS do
    if collectgarbage("step", ALL_KB) then return end
  end
  collectgarbage("collect")
end
local function collect() collectgarbage("collect") end

local function full_cycle(how)
  local running = collectgarbage("isrunning") -- a collection would restart a stopped collector
  how()
  if not running then collectgarbage("stop") end
  measure_heap()
end

local function wanted_slots() return math.min(MAX_SLOTS, math.max(MIN_SLOTS, math.floor(heap * SLOTS_PER_KB))) end

-- What may be alive before the next look: a quarter more than now, but not so little that cycles over a large Lua heap
-- would follow each other closely. Other devices have no use for our caches.
local stats, processor = ffi.new("pgc_memory_stats"), ffi.new("int32_t[1]", -1)
local typical = 0 -- bytes of a tensor, as of the last ones that were found dead
local call_end -- of a worker's state: the bytes that it had taken when a cycle ended a call
local function set_limit()
  local own = tonumber(C.pgc_own_bytes())
  if call_end then
    S.limit = own + MIN_GARBAGE
    return
  end
  if processor[0] < 0 then C.pgc_find_device("cpu", processor) end
  local cached = heap <= SMALL_HEAP and typical <= CACHED_TENSOR and
                 C.pgc_get_memory_stats(processor[0], stats) == 0 and stats.live == C.pgc_live_bytes()
  S.limit = own + math.max(cached and CACHED_GARBAGE or MIN_GARBAGE, own / 4, heap * 1024)
end

-- Compiled traces keep the functions that they call, and so what those hold: a model that a closure was made for. They
-- are let go of, to be compiled anew, whenever the live bytes have doubled since the last time.
local flushed_at = 0
local function flush_traces()
  jit.flush()
  full_cycle(collect)
  sweep()
  flushed_at = tonumber(C.pgc_live_bytes())
end

-- Out of free slots, or past the limit of native bytes. Slots are not made before they are needed: looking for dead
-- ones goes through all.
local function pressure()
  if sentinel[1] == nil then
    sweep()
    measure_heap()
  end
  local wanted = wanted_slots()
  local over = C.pgc_own_bytes() > S.limit
  if S.capacity > 0 and (over or S.capacity >= wanted and S.top < wanted / 2) then
    local before, count = C.pgc_live_bytes(), 0
    for _ = 1, 2 do -- the first cycle may have been the host's
      full_cycle(by_steps)
      count = count + sweep()
      if not over or call_end or C.pgc_own_bytes() <= S.limit then break end
    end
    if count > 0 then typical = tonumber(before - C.pgc_live_bytes()) / count end
    if C.pgc_live_bytes() > 2 * flushed_at + FLUSH_BYTES then flush_traces() end
  end
  if S.capacity >= wanted then
    if S.top < wanted / 2 then grow(S.capacity + math.max(wanted - S.top, math.floor(S.capacity / 2))) end
  elseif S.top <= S.capacity / 2 then
    grow(math.min(wanted, math.max(FIRST_SLOTS, 2 * S.capacity)))
  end
  set_limit()
end

---For a worker's state. It hands on what it makes, and what its calls drop would hold on to that: so a call's end lets
---go of it, at the price of a cycle for each CALL_GARBAGE that it has taken. What is alive in all states together is no
---measure: they would make room for each other's garbage.
function M.end_call()
  local own = tonumber(C.pgc_own_bytes())
  if own - (call_end or 0) < CALL_GARBAGE then
    call_end = call_end or 0
    return
  end
  call_end = own
  full_cycle(collect)
  sweep()
  set_limit()
end

---A new handle that takes over one native reference.
local function wrap(p)
  if S.top == 0 or C.pgc_own_bytes() > S.limit then pressure() end
  local top = S.top - 1
  S.top = top
  local slot = S.free[top]
  S.ptrs[slot] = p
  local handle = Handle(p, slot)
  objects[slot] = handle
  if S.scoped ~= 0 then
    local n = log.n + 1
    log.n, log.made[n] = n, handle
  end
  return handle
end

---The handle that already shows this native tensor, if it is alive, else a new one that will be found again. Takes over
---one reference.
local function wrap_shared(p)
  local slot = tonumber(C.pgc_tag(p))
  if slot ~= 0 and slot <= S.capacity and S.ptrs[slot] == p and objects[slot] then
    local handle = objects[slot]
    C.pgc_release(p)
    return handle
  end
  local handle = wrap(p)
  C.pgc_set_tag(p, handle.slot)
  return handle
end

---What C knows an open tensor by, never nil: raises for anything else.
function M.pointer(t, where)
  if type(t) ~= "cdata" or t.ptr == nil then
    if M.is_tensor(t) then M.raise_closed(t, where) end
    errors.raise("invalid_argument", where, "needs a tensor, got " .. errors.describe(t))
  end
  return t.ptr
end
local pointer = M.pointer

---Says that a layer's input is no tensor, or a closed one.
function M.raise_input(x, where)
  if M.is_tensor(x) then M.raise_closed(x, where) end
  errors.raise("invalid_argument", where, "the input must be a tensor, got " .. errors.describe(x),
               type(x) == "table" and getmetatable(x) == nil and "pg.tensor makes one of a table" or nil)
end

---Lets a handle be found again by wrap_shared.
function M.share(handle) C.pgc_set_tag(pointer(handle), handle.slot) end

---Releases a handle at once. `reason` is a number from M.reason.
function M.close(handle, reason)
  if handle.ptr == nil then return end
  local slot = handle.slot
  S.ptrs[slot] = nil
  objects[slot] = false
  S.free[S.top] = slot
  S.top = S.top + 1
  local p = handle.ptr
  handle.ptr, handle.slot = nil, reason or 1
  C.pgc_release(p)
end

---Lets two open handles change places: each shows what the other did. A closed one keeps both as they are.
function M.exchange(a, b)
  local p, q = a.ptr, b.ptr
  if p == nil or q == nil then return end
  a.ptr, b.ptr = q, p
  S.ptrs[a.slot], S.ptrs[b.slot] = q, p
  C.pgc_set_tag(q, a.slot)
  C.pgc_set_tag(p, b.slot)
end

---The number of a reason: what closed a handle, as text.
function M.reason(text)
  local number = closed_by[text]
  if not number then
    number = #closed_by + 1
    closed_by[number], closed_by[text] = text, number
  end
  return number
end

function M.raise_closed(handle, where)
  errors.raise("failed_precondition", where, "this tensor was closed by " .. tostring(closed_by[handle.slot]),
               "pg.keep(t) takes a tensor out of its scope")
end

---Releases everything that is dead, at the price of a full collector cycle and of compiling anew.
function M.reclaim()
  flush_traces()
  set_limit()
end

---Lets go of every tensor: for a state that is about to be closed.
function M.release_all()
  for slot = 1, S.capacity do
    local p = S.ptrs[slot]
    S.ptrs[slot] = nil
    C.pgc_release(p)
  end
end

-- ---- logs: handles that are closed together, but for those that are spared ----

local FOREVER = -1
local weak = { __mode = "v" }
local MOST_IDLE = 1024 -- logs, and tensors that one of them has noted
local idle, idle_count = {}, 0 -- logs that may be used again
local closing = 1              -- the number of the log that is closed next: `kept` of what it spares

local function set_log(new)
  log = new or nil
  S.scoped = new and 1 or 0
end

---The log in force, and setting it (false: none).
function M.current_log() return log or false end
M.set_log = set_log

---A log, to be closed some time.
function M.new_log()
  if idle_count == 0 then return { n = 0, made = setmetatable({}, weak), outer = false } end
  idle_count = idle_count - 1
  return idle[idle_count + 1]
end

---Puts a log in force: what is made from now on is noted there.
function M.open_log(own)
  own.outer = log or false
  set_log(own)
end

---Puts the log in force that was so before, if this one still is.
function M.leave_log(own)
  if log == own then set_log(own.outer) end
end

---The log that is closed next lets this tensor pass on to the one that is in force then.
function M.spare(t)
  if t.kept ~= FOREVER then t.kept = closing end
end

---No log closes this tensor.
function M.keep(t) t.kept = FOREVER end

local close = M.close
local function close_noted(t, reason)
  if not t then return end -- collected
  if t.kept ~= closing and t.kept ~= FOREVER then
    close(t, reason)
  elseif log then
    local n = log.n + 1
    log.n, log.made[n] = n, t
  end
end

local function close_four(made, i, n, reason)
  close_noted(made[i], reason)
  if i + 1 <= n then close_noted(made[i + 1], reason) end
  if i + 2 <= n then close_noted(made[i + 2], reason) end
  if i + 3 <= n then close_noted(made[i + 3], reason) end
end

---Closes what a log has noted, and has not been spared. The log has been left, and is nobody's any more. `by` is what
---closed tensors will say has closed them.
function M.close_log(own, by)
  local made, n, reason = own.made, own.n, by and M.reason(by) or 1
  if n >= 1 then close_four(made, 1, n, reason) end -- see "Code that compiles" in bindings/lua/README.md
  if n >= 5 then close_four(made, 5, n, reason) end
  if n >= 9 then close_four(made, 9, n, reason) end
  if n >= 13 then close_four(made, 13, n, reason) end
  if n >= 17 then close_four(made, 17, n, reason) end
  for i = 21, n, 4 do close_four(made, i, n, reason) end
  own.n, own.outer, closing = 0, false, closing + 1
  if n > MOST_IDLE or idle_count == MOST_IDLE then return end -- larger ones are rare, and collector cycles walk them
  idle_count = idle_count + 1
  idle[idle_count] = own
end

function M.start(library) C = library end

---Where the native tensor is, for another Lua state of the process.
function M.address(t) return tonumber(ffi.cast("uintptr_t", M.pointer(t))) end

function M.is_tensor(value)
  local is = ffi.istype(Handle, value) -- no tail call: see "Code that compiles" in bindings/lua/README.md
  return is
end

M.Handle, M.wrap, M.wrap_shared = Handle, wrap, wrap_shared
return M
