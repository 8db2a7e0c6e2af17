-- SPDX-License-Identifier: Apache-2.0
-- Devices, memory, plugins and settings of the process.

return function(pg, native)
  ---Devices there are: a list of { name, type, index, memory_total, ... }, with `.unavailable` giving reasons.
  ---`kind` narrows it to a type or to "gpu" (any accelerator).
  ---@param kind? string
  ---@return {name: string, type: string, index: integer, memory_total: integer}[]
  function pg.devices(kind)
    if kind ~= nil and type(kind) ~= "string" then
      native.raise("invalid_argument", "devices", "kind must be a type such as \"cpu\", or \"gpu\", got "
        .. native.describe(kind))
    end
    local all = native.devices()
    local list = { unavailable = all.unavailable }
    for _, d in ipairs(all.devices) do
      if kind == nil or d.type == kind or (kind == "gpu" and d.accelerator and d.accelerator ~= 0) then
        d.name = native.tensor.canonical_device(d.name)
        list[#list + 1] = d
      end
    end
    return list
  end

  ---Waits for a device (nil: for all). What failed asynchronously is raised here.
  ---@param device? string
  function pg.synchronize(device) native.synchronize(device and native.find_device(device, "synchronize")) end

  ---Runs fn(...) with its operators on stream `index` (from 0) of the devices they run on, so that independent work may
  ---overlap on an asynchronous device. Tensors may cross streams: what touches them waits for what wrote them.
  ---@param index integer 0 to 31
  ---@param fn function
  ---@param ... any arguments of fn
  ---@return any ... what fn returns
  function pg.stream(index, fn, ...)
    native.checked.need_function("stream", fn)
    if type(index) ~= "number" or index ~= math.floor(index) or index < 0 or index > 31 then
      native.raise("invalid_argument", "stream", "index must be a whole number from 0 to 31, got "
        .. native.describe(index))
    end
    return native.with(function() return native.set_stream(index) end, native.set_stream, fn, ...)
  end

  ---Where eager code makes tensors that no scope, no `device=` and no input says another device of, in this thread:
  ---`pg.set_default_device("gpu:0")`. What is computed stays where its inputs are. Graphs that are recorded from now on
  ---have there what no scope of theirs decides about; without a default that is the first accelerator there is, or the
  ---processor. nil: back to that.
  ---@param name? string
  function pg.set_default_device(name)
    native.set_default_device(name == nil and -1 or native.find_device(name, "set_default_device"))
  end

  ---@class perigee.memory
  pg.memory = {}
  ---Bytes `.live .reserved .peak .limit` and `.allocations` of a device. `.live` is what blocks in use take,
  ---`.requested` what was asked for of it, to the byte; `.grows`: whether memory is taken as it is needed.
  ---@param device? string
  ---@return {live: integer, reserved: integer, peak: integer, limit: integer, allocations: integer,
  ---  requested: integer, grows: boolean}
  function pg.memory.stats(device)
    return native.memory_stats(native.find_device(device or pg.device(), "memory.stats"))
  end
  ---Makes the peak of a device what is live there now: `.peak` then tells of what comes after.
  ---@param device? string
  function pg.memory.reset_peak(device)
    native.reset_peak(native.find_device(device or pg.device(), "memory.reset_peak"))
  end
  ---Gives memory that no tensor uses back to the device, and pinned memory of the host that nobody uses.
  ---@param device? string
  function pg.memory.empty_cache(device)
    native.handles.reclaim()
    native.empty_cache(device and native.find_device(device, "memory.empty_cache"))
  end
  ---Releases everything that is unreachable, now, what compiled traces keep too: code is compiled anew afterwards.
  function pg.memory.collect() native.handles.reclaim() end

  local units = { [""] = 1, B = 1, K = 2 ^ 10, KB = 2 ^ 10, M = 2 ^ 20, MB = 2 ^ 20, G = 2 ^ 30, GB = 2 ^ 30,
                  T = 2 ^ 40, TB = 2 ^ 40 }
  local function bytes(where, v)
    if type(v) == "number" and v >= 0 then return v end
    local number, unit = tostring(v):match("^%s*([%d%.]+)%s*(%a*)%s*$")
    local factor = unit and units[unit:upper():gsub("IB$", "B")]
    if type(v) ~= "string" or not tonumber(number) or not factor then
      native.raise("invalid_argument", where, "a size must be bytes or text like \"10GB\", got " .. native.describe(v))
    end
    return math.floor(tonumber(number) * factor)
  end

  ---@class perigee.config
  pg.config = {}
  local DEVICE = { "device", "device", required = true }
  local read_limit = native.signature("config.memory_limit", { DEVICE, { "size", "single", required = true } })
  ---At most so much memory of a device: `pg.config.memory_limit("gpu:0", "10GB")`. 0: no limit. What is cached above it
  ---goes back to the device at once. An operator that would need more raises `out_of_memory`, which names what holds
  ---most: operators, the layers of plugins that called them, and the script's lines if they were recorded under
  ---`pg.config.set{origins=true}`.
  ---@param device string
  ---@param size integer|string
  function pg.config.memory_limit(...)
    local o = read_limit(...)
    native.set_memory_limit(native.find_device(o.device, "config.memory_limit"), bytes("config.memory_limit", o.size))
  end

  local read_fraction = native.signature("config.memory_fraction", {
    DEVICE, { "fraction", "single", required = true } })
  ---At most this share of a device's memory: `pg.config.memory_fraction("gpu:0", 0.4)`.
  ---@param device string
  ---@param fraction number above 0, up to 1
  function pg.config.memory_fraction(...)
    local where, o = "config.memory_fraction", read_fraction(...)
    local index, fraction = native.find_device(o.device, where), o.fraction
    if type(fraction) ~= "number" or not (fraction > 0 and fraction <= 1) then
      native.raise("invalid_argument", where, "the fraction must be above 0 and at most 1, got "
        .. native.describe(fraction))
    end
    local name = native.device_name(index)
    for _, d in ipairs(pg.devices()) do
      if d.name == name and (d.memory_total or 0) > 0 then
        return native.set_memory_limit(index, math.floor(d.memory_total * fraction))
      end
    end
    native.raise("not_supported", where, name .. " does not say how much memory it has",
                 "config.memory_limit takes bytes")
  end
  local read_growth = native.signature("config.memory_growth", { DEVICE, { "on", "boolean", required = true } })
  ---Whether memory is taken from a device as it is needed, which is how it begins. false: the whole limit (without one,
  ---what the device has free; the processor needs one) is taken now and nothing more later, so that nobody else takes
  ---it; a new limit then takes more, or gives back what nobody uses.
  ---@param device string
  ---@param on boolean
  function pg.config.memory_growth(...)
    local o = read_growth(...)
    native.set_memory_growth(native.find_device(o.device, "config.memory_growth"), o.on)
  end

  local read_logical = native.signature("config.logical_devices", {
    DEVICE, { "parts", "table", required = true } })
  ---Several devices that stand for one, each with a share of its memory and streams of its own:
  ---`pg.config.logical_devices("gpu:0", {{memory_limit="4GB"}, {memory_limit="4GB"}})`. The device itself is the first;
  ---the others get the numbers that follow those of its kind. Answers their names. Called again, it changes the limits,
  ---and adds devices where the list is longer; taken away they cannot be. `config.memory_limit`, `memory_fraction` (of
  ---the whole device) and `memory_growth` go for each of them.
  ---@param device string
  ---@param parts {memory_limit: integer|string}[]
  ---@return string[] names
  function pg.config.logical_devices(...)
    local where, o = "config.logical_devices", read_logical(...)
    local limits = {}
    for i, part in ipairs(o.parts) do
      if type(part) ~= "table" or part.memory_limit == nil then
        native.raise("invalid_argument", where, ("part %d must be {memory_limit=...}, got %s"):format(i,
          native.describe(part)))
      end
      for key in pairs(part) do
        if key ~= "memory_limit" then
          native.raise("invalid_argument", where, ("part %d has no option '%s'; there is memory_limit"):format(i,
            tostring(key)))
        end
      end
      limits[i] = bytes(where, part.memory_limit)
    end
    if #limits == 0 then native.raise("invalid_argument", where, "needs a list of {memory_limit=...}") end
    local names = {}
    for i, index in ipairs(native.split_device(native.find_device(o.device, where), limits)) do
      names[i] = native.device_name(index)
    end
    return names
  end

  local log_placement, visible = false, nil
  ---Of all devices only these can be used from now on, besides the processor: `pg.config.visible_devices{"cuda:1"}`.
  ---Names stay what they are; "gpu:0" is the first one named. A device that has been used cannot be hidden any more.
  ---Without an argument all are visible. (CUDA_VISIBLE_DEVICES in the environment acts before the driver counts.)
  ---@param names? string[]
  function pg.config.visible_devices(names)
    local where = "config.visible_devices"
    if names ~= nil and not native.is_plain(names) then
      native.raise("invalid_argument", where, "needs a list of names, got " .. native.describe(names))
    end
    for i, name in ipairs(names or {}) do
      if type(name) ~= "string" then
        native.raise("invalid_argument", where, ("name %d is %s"):format(i, native.describe(name)))
      end
    end
    native.set_visible_devices(names)
    visible = names and { unpack(names) }
  end

  local threads_at_start
  ---Back to how the process began, but for what the script holds: waits for all devices and forgets what has failed
  ---there, releases what is unreachable and all cached memory, lifts memory limits and lets memory grow, and restores
  ---the default dtype, the policy of layers (amp.policy), the number of threads and the other settings.
  function pg.reset()
    for _, d in ipairs(pg.devices()) do
      local index = native.find_device(d.name, "reset")
      for _ = 1, 32 do -- a stream's failure at a time
        if pcall(native.synchronize, index) then break end
      end
      native.set_memory_growth(index, true)
      native.set_memory_limit(index, 0)
    end
    native.handles.reclaim()
    native.empty_cache()
    native.set_default_dtype("float32")
    if native.precision_policy then native.precision_policy.set("float32") end
    native.origins.set(false)
    log_placement = false
    native.set_log_placement(false)
    native.set_default_device(-1)
    if visible then pg.config.visible_devices() end
    if threads_at_start then native.set_threads(threads_at_start) end
    native.set_deterministic(false)
  end

  local read_settings = native.signature("config.set", {
    { "threads", "integer", named = true }, { "origins", "boolean", named = true },
    { "matmul_precision", "string", named = true }, { "deterministic", "boolean", named = true },
    { "log_device_placement", "boolean", named = true }, { "visible_devices", "table", named = true } })
  ---Settings of the process: `pg.config.set{threads=2}`.
  ---threads: that one operator on the CPU may use. origins: what fails on an asynchronous device, where errors show up
  ---late, names the script's line and the layer that called it; costs a walk over the stack an operator.
  ---matmul_precision: "highest", which is what every device computes with; there is no other yet.
  ---deterministic: on one device and with one number of threads a program gives the same bits in every run, always.
  ---true, which is not how it begins: bits depend on the number of threads, devices or workers no more either. Products
  ---and convolutions then take ways that hold to it, some of them slower, and an operator that has none raises by its
  ---name (all_reduce, of sums and means of floating tensors). Other kinds of processors and accelerators, and other
  ---versions of Perigee or its libraries, may still give other bits. log_device_placement: every operator that is
  ---called or recorded becomes a line on standard error, `add: (Add): /gpu:0`. visible_devices: as
  ---`config.visible_devices`.
  ---@param ... {threads: integer?, origins: boolean?, matmul_precision: string?, deterministic: boolean?,
  ---  log_device_placement: boolean?, visible_devices: string[]?}
  function pg.config.set(...)
    local o = read_settings(...)
    if o.matmul_precision and o.matmul_precision ~= "highest" then
      native.raise("not_supported", "config.set", ("matmul_precision %q: products are computed in the precision of "
        .. "their operands"):format(o.matmul_precision), "the only one is \"highest\"; amp.autocast computes in less")
    end
    if o.visible_devices then pg.config.visible_devices(o.visible_devices) end
    if o.log_device_placement ~= nil then
      log_placement = o.log_device_placement
      native.set_log_placement(log_placement)
    end
    if o.threads then
      threads_at_start = threads_at_start or native.threads()
      native.set_threads(o.threads)
    end
    if o.deterministic ~= nil then native.set_deterministic(o.deterministic) end
    if o.origins ~= nil then native.origins.set(o.origins) end
  end
  ---The settings in force.
  ---@return {threads: integer, origins: boolean, matmul_precision: string, deterministic: boolean,
  ---  log_device_placement: boolean, visible_devices: string[]?}
  function pg.config.get()
    return { threads = native.threads(), origins = native.origins.asked(), matmul_precision = "highest",
             deterministic = native.deterministic(), log_device_placement = log_placement, visible_devices = visible }
  end

  ---Loads a plugin by its path; a relative one is relative to the current directory.
  ---@param path string
  function pg.load_plugin(path)
    if type(path) ~= "string" then
      native.raise("invalid_argument", "load_plugin", "needs a path, got " .. native.describe(path))
    end
    native.load_plugin(path)
  end
  local read_plugins = native.signature("plugins", { { "load", "boolean", named = true } })
  ---All plugins found: a list of { name, kinds, version, path, state, reason }.
  ---`load=true` loads those that have not been asked for yet.
  ---@param ... {load: boolean?}
  ---@return table[]
  function pg.plugins(...) return native.plugins(read_plugins(...).load) end
  ---The version of Perigee.
  ---@return string
  function pg.version() return native.version() end
end
