-- SPDX-License-Identifier: Apache-2.0
-- What runs in a worker's Lua state: functions of a script that were packed elsewhere, called by the threads of a run.
-- The state is made on the script's thread and runs on one other thread at a time.

local ffi = require "ffi"
local native = require "perigee.native"
require "perigee.native.library" -- declares the types; loading the library is left to the thread

local M = {}
jit.off(true, true) -- is called back from C: such code must not be compiled into a call of C

local ENDS = 0xffffffff
local library, data, functions, source, callback
local state, element

-- On the worker's own thread, as loading takes a while.
local function begin()
  assert(require("perigee").tensor) -- touched, it makes what scripts see of tensors
  library = native.library
  data = native.data
  state, element = ffi.new("uint64_t[2]"), ffi.new("pgc_element[1]")
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

local function answer(index, exchange)
  if not functions then begin() end
  exchange = ffi.cast("pgc_exchange *", exchange)
  if library.pgc_exchange_take(exchange, element) ~= 0 then error(ffi.string(library.pgc_error().message), 0) end
  library.pgc_rng_state(state, state + 1)
  math.randomseed(tonumber(state[0] % 0x20000000000000ULL))
  local result = functions[tonumber(index)](data.decode(element[0]))
  if result == nil then error("the function returned nil", 0) end
  local text, leaves = data.to_leaves(result)
  if not text then error(leaves, 0) end
  if library.pgc_exchange_answer(exchange, text, #text, data.leaves(), #leaves) ~= 0 then
    error(ffi.string(library.pgc_error().message), 0)
  end
end

-- Nothing may be raised from here: there is no Lua around it.
local function called(index, exchange)
  if index == ENDS then
    if library then native.handles.release_all() end
    return 0
  end
  local ok, message = pcall(answer, index, exchange)
  if library then native.handles.end_call() end
  if ok then return 0 end
  if not library then return 1 end -- Perigee itself could not be loaded
  library.pgc_exchange_fail(ffi.cast("pgc_exchange *", exchange), tostring(message))
  return 1
end

---The address of what calls the functions of `packed`, a text of native/pack.lua.
function M.start(packed)
  source = packed
  callback = ffi.cast("int32_t (*)(uint32_t, void *)", called)
  return tonumber(ffi.cast("uintptr_t", callback))
end

return M
