-- SPDX-License-Identifier: Apache-2.0
-- What the layers above use (bindings/lua/README.md). Kept in the registry: a ctype takes one metatable in the life of
-- a Lua state, so a second `require` after clearing package.loaded must find the first one's modules. The library is
-- loaded by `native.start`, or by touching whatever needs it. Modules that not every script needs are loaded when they
-- are asked for: every collector cycle walks through what is loaded, and what dropped tensors hold waits for cycles.

local registry = debug and debug.getregistry and debug.getregistry() or package.loaded
local KEY = "perigee native layer"
if registry[KEY] then
  registry[KEY].put_back()
  return registry[KEY]
end

local modules = require "perigee.native.modules"

local native = {}

-- What modules that are loaded later give to `native`, by the same names.
local given = {
  gradients = "anomalies assign backward backward_plain clear_grads detach gradients identity is_graph_tensor " ..
    "set_detect_anomaly set_grad storage version_of",
  layers = "layer layer_names new_layer new_optimizer optimizer optimizer_names",
  files = "checksum folder make_folder read read_bytes remove_unfinished write write_sealed write_text",
  precision = "autocast_dtype in_autocast new_autocast new_collected_autocast release_autocast " ..
    "release_collected_autocast set_autocast set_condition",
  prepared = "prepare prepare_with writer",
  update_plan = "update_plan",
  layer_call = "compile_layer compile_layer_with",
}
-- Modules that stand in `native` as they are.
local whole = { host = true, custom = true, graphs = true, control = true, data = true, json = true, words = true,
                compiled = true, regex = true, workers = true, fingerprint = true, dist = true, profile = true,
                nvml = true, codecs = true, parts = true }

local started = {}

---Whoever requires a module of this layer gets the one that is at work: a script may clear package.loaded.
native.put_back = modules.put_back

local function load(name, C)
  local module = modules.get(name)
  for _, list in ipairs { given, whole } do -- it may have loaded others
    for other in pairs(list) do
      local found = modules.at_work(other)
      if found and not started[other] then
        started[other] = true
        if found.start then found.start(C) end
      end
    end
  end
  return module
end

-- The value of a name that nothing loaded has given, or nil.
local function value_of(key, C)
  if whole[key] then return load(key, C) end
  local word = "%f[%w_]" .. tostring(key):gsub("%W", "%%%0") .. "%f[^%w_]"
  for name, names in pairs(given) do
    if names:find(word) then return load(name, C)[key] end
  end
end

-- Loads the library and what every call needs.
local function start()
  setmetatable(native, nil)
  local library = require "perigee.native.library"
  local errors = require "perigee.native.errors"
  errors.add_own_source("@" .. library.module_dir)
  local C, home = library.load()
  native.home, native.library = home, C

  local module = {}
  for _, name in ipairs { "handles", "operators", "tensor", "process", "origins" } do
    module[name] = require("perigee.native." .. name)
    module[name].start(C)
  end
  require("perigee.native.attributes").start(function(device, where) -- own code gives numbers
    return type(device) == "number" and device or module.process.place_device(device, where)
  end)

  local grammar = require "perigee.native.grammar"
  for key, value in pairs(module.process) do native[key] = value end
  native.errors, native.raise, native.is_error, native.describe = errors, errors.raise, errors.is_error, errors.describe
  native.script_line, native.is_own_source = errors.script_line, errors.is_own_source
  native.signature, native.parse, native.is_plain = grammar.signature, grammar.parse, grammar.is_plain
  native.spread, native.checked = grammar.spread, require "perigee.native.checked"
  native.signatures, native.module_dir = grammar.signatures, library.module_dir
  native.suggest, native.has_entries = require "perigee.native.suggest", require "perigee.native.has_entries"
  native.entries = require "perigee.native.entries"
  local scopes = require("perigee.native.scopes")
  native.with, native.in_main, native.frames = scopes.with, scopes.in_main, scopes
  native.lifetimes = require "perigee.native.lifetimes"
  native.shape, native.dtypes = require "perigee.native.shape", require "perigee.native.dtypes"
  native.size = require "perigee.native.size"
  native.is_whole = require("perigee.native.attributes").is_whole -- 5LL
  native.handles, native.operators, native.tensor = module.handles, module.operators, module.tensor
  native.origins, native.process = module.origins, module.process
  native.call, native.op, native.op_names = module.operators.call, module.operators.get_function, module.operators.names
  native.is_tensor, native.methods, native.hooks = module.handles.is_tensor, module.tensor.methods, module.tensor.hooks
  native.note_results = require("perigee.native.results").note
  native.start = function() end
  modules.keep()
  setmetatable(native, { __index = function(_, key)
    local value = value_of(key, C)
    if value ~= nil then native[key] = value end
    return value
  end })
  return native
end

setmetatable(native, { __index = function(_, key)
  if key == "start" then return start end
  return start()[key]
end })

registry[KEY] = native
return native
