-- SPDX-License-Identifier: Apache-2.0
-- What runs in a worker's Lua state: functions of a script that were packed elsewhere, called by the threads of a run.
-- The state is made on the script's thread and runs on one other thread at a time. Each call has several elements, so
-- that what calls of Lua cost is shared, and a loop over them compiles.

local ffi = require "ffi"
local native = require "perigee.native"
require "perigee.native.library" -- declares the types; loading the library is left to the thread

local M = {}

local ENDS, END = 0xffffffff, 101
local library, elements, functions, source, callback
local state, element
local seeded -- whether math.random has what this element's draws begin with

-- Drawing begins anew with each element, but most functions draw nothing.
local random, randomseed = math.random, math.randomseed
function math.random(...) -- luacheck: ignore 122
  if not seeded then
    seeded = true
    randomseed(tonumber(state[0] % 0x20000000000000ULL))
  end
  return random(...)
end
function math.randomseed(...) -- luacheck: ignore 122
  seeded = true
  return randomseed(...)
end

-- On the worker's own thread, as loading takes a while.
local function begin()
  assert(require("perigee").tensor) -- touched, it makes what scripts see of tensors
  state, element = ffi.new("uint64_t[2]"), ffi.new("pgc_element[1]")
  library = native.library
  elements = require "perigee.native.elements"
  local function tensor(address)
    local made = ffi.new("pgc_tensor *[1]")
    if library.pgc_detach(ffi.cast("pgc_tensor *", ffi.cast("uintptr_t", address)), made) ~= 0 then
      error(ffi.string(library.pgc_error().message), 0)
    end
    return native.handles.wrap(made[0])
  end
  local function call(code) return assert(loadstring(code)) end
  functions = assert(loadstring(source, "=perigee:worker"))(tensor, call)
  source = nil
end

local function check(code)
  if code ~= 0 then error(ffi.string(library.pgc_error().message), 0) end
end

local function apply(fn)
  local result = fn(elements.decode(element[0]))
  if result == nil then error("the function returned nil", 0) end
  return result
end

local made, results = {}, {} -- of the elements of a call: whether there is a result; it, or the message

-- Takes the elements of a call one after the other; how many they are.
local function compute(fn, exchange)
  local count, code = 0, library.pgc_exchange_take(exchange, element)
  while code == 0 do
    library.pgc_rng_state(state, state + 1)
    seeded = false
    count = count + 1
    made[count], results[count] = pcall(apply, fn)
    code = library.pgc_exchange_take(exchange, element)
  end
  if code ~= END then check(code) end
  return count
end

local function write(exchange, i)
  local layout, count = elements.write(results[i], i)
  if not layout then error(count, 0) end
  check(library.pgc_exchange_answer(exchange, layout, #layout, elements.leaves(), count))
end

local function answer(exchange, count)
  elements.look(results, count)
  for i = 1, count do
    local ok, message = made[i], results[i]
    if ok then ok, message = pcall(write, exchange, i) end
    if not ok then check(library.pgc_exchange_fail(exchange, tostring(message))) end
    results[i] = nil
  end
end

local function serve(index, exchange)
  if not functions then begin() end
  exchange = ffi.cast("pgc_exchange *", exchange)
  answer(exchange, compute(functions[tonumber(index)], exchange))
end

-- What has no answer yet fails.
local function fail_rest(exchange, message)
  local text = tostring(message)
  exchange = ffi.cast("pgc_exchange *", exchange)
  while library.pgc_exchange_fail(exchange, text) == 0 do end -- luacheck: ignore 542
  while library.pgc_exchange_take(exchange, element) == 0 do library.pgc_exchange_fail(exchange, text) end
end

-- Nothing may be raised from here: there is no Lua around it.
local function called(index, exchange)
  if index == ENDS then
    if library then native.handles.release_all() end
    return 0
  end
  local ok, message = pcall(serve, index, exchange)
  if not library then return 1 end -- Perigee itself could not be loaded
  if not ok then fail_rest(exchange, message) end
  native.handles.end_call()
  return 0
end
jit.off(called) -- is called back from C: such code must not be compiled into a call of C

---The address of what calls the functions of `packed`, a text of native/pack.lua.
function M.start(packed)
  source = packed
  callback = ffi.cast("int32_t (*)(uint32_t, void *)", called)
  return tonumber(ffi.cast("uintptr_t", callback))
end

return M
