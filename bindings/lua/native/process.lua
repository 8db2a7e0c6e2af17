-- SPDX-License-Identifier: Apache-2.0
-- Devices, memory, plugins, threads, random seeds: the state of the process and of the calling thread.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local dtypes = require "perigee.native.dtypes"
local json = require("perigee.native.modules").json
local tensor = require "perigee.native.tensor"
local operators = require "perigee.native.operators"
local scopes = require "perigee.native.scopes"

local M = {}
local C
local number = ffi.new("int32_t[1]")

local function check(rc, where)
  if rc ~= 0 then errors.raise_native(C, where) end
end

---The number of a device by name; raises, listing what there is.
function M.find_device(name, where)
  if type(name) ~= "string" then
    errors.raise("invalid_argument", where, "device must be a name such as \"cpu\", got " .. errors.describe(name))
  end
  check(C.pgc_find_device(name, number), where)
  return number[0]
end

---The same for what is placed on a device, which in a graph that is being recorded need not be here.
function M.place_device(name, where)
  if type(name) ~= "string" then return M.find_device(name, where) end
  check(C.pgc_place_device(name, number), where)
  return number[0]
end
---The first accelerator that answers to "gpu", by number; nil: there is none.
function M.first_accelerator()
  check(C.pgc_first_accelerator(number), "graph")
  return number[0] >= 0 and number[0] or nil
end

function M.device_name(index)
  local name = C.pgc_device_name(index)
  if name == nil then -- nothing has asked for devices yet
    C.pgc_devices_json()
    name = C.pgc_device_name(index)
  end
  return name ~= nil and tensor.canonical_device(ffi.string(name)) or nil
end

function M.devices() return json(ffi.string(C.pgc_devices_json())) end

---Sets the ambient device (-1: none) and answers the old one.
function M.set_device(index)
  local value = C.pgc_set_device(index)
  return value
end
function M.set_stream(index)
  local value = C.pgc_set_stream(index)
  return value
end
function M.set_grad_enabled(on) return C.pgc_set_grad_enabled(on and 1 or 0) ~= 0 end
function M.grad_enabled() return C.pgc_grad_enabled() ~= 0 end
function M.current_device()
  local value = C.pgc_device()
  return value
end
---Sets where eager code makes what no scope decides about (-1: on the processor).
function M.set_default_device(index) C.pgc_set_default_device(index) end
---The number that was set; nil: none.
function M.default_device()
  local index = C.pgc_default_device()
  return index >= 0 and index or nil
end
---The device that new tensors go to, by number: the scope's, else the default one, else the processor.
function M.ambient_device()
  local index = C.pgc_device()
  return index >= 0 and index or M.default_device() or M.find_device("cpu")
end

local function leave_devices(old)
  C.pgc_set_device(old[1])
  C.pgc_set_default_device(old[2])
end
local function enter_no_device()
  return { C.pgc_set_device(-1), C.pgc_set_default_device(-1) }
end
---Whether no scope's device is in force, none is the default, and Ctrl-C was not pressed: a loop that asks is never
---compiled beyond that.
function M.undisturbed()
  local is = C.pgc_undisturbed() ~= 0
  return is
end
---Runs fn(...) as another thread would, where no scope's device is in force and none is the default: it makes tensors
---on the processor, and computes where its inputs are.
function M.without_device(fn, ...)
  if C.pgc_device() < 0 and C.pgc_default_device() < 0 then return fn(...) end
  return scopes.with(enter_no_device, leave_devices, fn, ...)
end

function M.set_log_placement(on) return C.pgc_set_log_placement(on and 1 or 0) ~= 0 end
---Shows and finds these devices only (nil: all), besides processors.
function M.set_visible_devices(names)
  local list = names and ffi.new("const char *[?]", math.max(#names, 1), names)
  check(C.pgc_set_visible_devices(list, names and #names or 0), "visible_devices")
end

function M.synchronize(index) check(C.pgc_synchronize(index or -1), "synchronize") end

function M.memory_stats(index)
  local stats = ffi.new("pgc_memory_stats")
  check(C.pgc_get_memory_stats(index, stats), "memory.stats")
  local result = {}
  for _, name in ipairs { "live", "reserved", "peak", "limit", "allocations", "device_allocations", "requested" } do
    result[name] = tonumber(stats[name])
  end
  result.grows = stats.grows ~= 0
  return result
end

function M.set_memory_limit(index, bytes) check(C.pgc_set_memory_limit(index, bytes), "memory_limit") end
function M.set_memory_growth(index, on) check(C.pgc_set_memory_growth(index, on and 1 or 0), "memory_growth") end
---The numbers of the devices that share the memory of one, by these limits.
function M.split_device(index, limits)
  local bytes, ids = ffi.new("uint64_t[?]", #limits), ffi.new("int32_t[?]", #limits)
  for i, limit in ipairs(limits) do bytes[i - 1] = limit end
  check(C.pgc_split_device(index, bytes, #limits, ids), "logical_devices")
  local list = {}
  for i = 1, #limits do list[i] = ids[i - 1] end
  return list
end
---For tests: `count` allocations fail (nil: all), from the nth from now on (nil: none does).
function M.fail_allocations(index, nth, count)
  check(C.pgc_fail_allocations(index, nth or 0, nth and (count or ffi.cast("uint64_t", -1LL)) or 0), "memory")
end
local function findings(rc, lines, where)
  check(rc, where)
  local list = {}
  for group, name, mark, problem in ffi.string(lines[0]):gmatch("([^\t\n]*)\t([^\t\n]*)\t(%a*)\t([^\n]*)\n") do
    list[#list + 1] = { group = group, name = name, absent = mark == "absent",
                        problem = problem ~= "" and problem or nil }
  end
  return list
end
---What the conformance suite finds of a plugin's library, by its path, before it is loaded: { group, name, problem }.
function M.conform_library(path)
  local lines = ffi.new("const char *[1]")
  return findings(C.pgc_conform_library(path, lines), lines, "conform")
end
---The same of a device's table; of one group of checks, or of all.
function M.conform_device(index, group)
  local lines = ffi.new("const char *[1]")
  return findings(C.pgc_conform_device(index, group, lines), lines, "conform")
end
---The same of a plugin's sources, transforms and codecs, which loads it; `absent` where one could not be asked, with
---the reason. options: lines "name.option=value".
function M.conform_parts(path, options)
  local lines = ffi.new("const char *[1]")
  return findings(C.pgc_conform_parts(path, options, lines), lines, "conform")
end
---What the plugin of a device answers to a word of its own.
function M.device_native(index, what, handle)
  local out = ffi.new("uint64_t[1]")
  check(C.pgc_device_native(index, what, handle or 0, out), "device")
  return tonumber(out[0])
end
function M.reset_peak(index) check(C.pgc_reset_peak(index), "memory.reset_peak") end
function M.empty_cache(index) check(C.pgc_empty_cache(index or -1), "empty_cache") end
function M.live_bytes()
  local value = tonumber(C.pgc_live_bytes())
  return value
end

function M.set_threads(count) check(C.pgc_set_threads(count), "config.set") end
function M.threads()
  local value = C.pgc_threads()
  return value
end
function M.set_deterministic(on) C.pgc_set_deterministic(on and 1 or 0) end
function M.deterministic() return C.pgc_deterministic() ~= 0 end

function M.set_default_dtype(name)
  return dtypes.by_code[C.pgc_set_default_dtype(dtypes.find(name, "set_default_dtype").code)].name
end
function M.default_dtype() return dtypes.by_code[C.pgc_default_dtype()].name end

function M.manual_seed(seed)
  check(C.pgc_manual_seed(seed < 0 and ffi.cast("int64_t", seed) or seed), "manual_seed")
end
function M.rng_state()
  local state = ffi.new("uint64_t[2]")
  check(C.pgc_rng_state(state, state + 1), "rng_state")
  return tostring(state[0]):gsub("ULL", ""), tonumber(state[1])
end
function M.set_rng_state(seed, offset)
  local value = 0ULL
  for digit in tostring(seed):gmatch("%d") do value = value * 10 + tonumber(digit) end
  check(C.pgc_set_rng_state(value, offset), "set_rng_state")
end

function M.load_plugin(path)
  check(C.pgc_load_plugin(path), "load_plugin")
  operators.refresh()
end
function M.plugins_text(load) return ffi.string(C.pgc_plugins_json(load and 1 or 0)) end
function M.plugins(load) return json(ffi.string(C.pgc_plugins_json(load and 1 or 0))) end
---Which plugins of a kind ("ops", "layers", "optimizers") cannot be used, and why, for messages about names that are
---not found; nil where there is none. Those without a readable manifest may be of any kind.
function M.unavailable(kind)
  local reasons = {}
  for _, plugin in ipairs(M.plugins(false)) do
    local kinds = plugin.kinds:gsub("%a+", function(word) return word:gsub("s$", "") .. "s" end)
    local fits = kinds == "" or ("," .. kinds:gsub(" ", "") .. ","):find("," .. kind .. ",", 1, true)
    if plugin.state == "unavailable" and fits then
      reasons[#reasons + 1] = ("plugin '%s' is unavailable: %s"):format(plugin.name, plugin.reason)
    end
  end
  return reasons[1] and table.concat(reasons, "; ")
end
function M.shutdown() check(C.pgc_shutdown(), "shutdown") end
function M.version() return ffi.string(C.pgc_version()) end

---Whether a file descriptor (1: standard output) is a terminal.
function M.is_terminal(descriptor) return ffi.C.perigee_isatty(descriptor) ~= 0 end

local window = ffi.new("perigee_winsize")
local TIOCGWINSZ = 0x5413 -- Linux
---Columns of the terminal that standard output is; nil where it is none. A terminal that does not tell has 80.
---@return integer?
function M.terminal_width()
  if not M.is_terminal(1) then return nil end
  if ffi.C.perigee_ioctl(1, TIOCGWINSZ, window) == 0 and window.columns > 0 then return window.columns end
  return tonumber(os.getenv("COLUMNS") or nil) or 80
end

local time = ffi.new("perigee_timespec")
---Seconds from some fixed moment.
function M.clock()
  ffi.C.perigee_clock(1, time)
  return tonumber(time.seconds) + tonumber(time.nanoseconds) * 1e-9
end

---Seconds since 1970, with what is behind the point.
function M.time()
  ffi.C.perigee_clock(0, time)
  return tonumber(time.seconds) + tonumber(time.nanoseconds) * 1e-9
end

---Does nothing for that many seconds, or until a signal.
function M.sleep(seconds)
  time.seconds, time.nanoseconds = math.floor(seconds), seconds % 1 * 1e9
  ffi.C.perigee_sleep(time, nil)
end

function M.start(library) C = library end

return M
