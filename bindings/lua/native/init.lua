-- SPDX-License-Identifier: Apache-2.0
-- What the layers above use (bindings/lua/README.md). Kept in the registry: a ctype takes one metatable in the life of
-- a Lua state, so a second `require` after clearing package.loaded must find the first one's modules. The library is
-- loaded by `native.start`, or by touching whatever needs it.

local registry = debug and debug.getregistry and debug.getregistry() or package.loaded
local KEY = "perigee native layer"
if registry[KEY] then return registry[KEY] end

local native = {}

-- Loads the library and all modules; afterwards every function stands in `native` itself.
local function start()
  setmetatable(native, nil)
  local library = require "perigee.native.library"
  local errors = require "perigee.native.errors"
  errors.add_own_source("@" .. library.module_dir)
  local C, home = library.load()
  native.home = home

  local module = {}
  local names = { "handles", "operators", "prepared", "tensor", "host", "process", "gradients", "custom", "layers",
                  "files", "graphs", "layer_call", "update_plan", "precision", "origins" }
  for _, name in ipairs(names) do
    module[name] = require("perigee.native." .. name)
    module[name].start(C)
  end
  require("perigee.native.attributes").start(function(device, where) -- own code gives numbers
    return type(device) == "number" and device or module.process.find_device(device, where)
  end)

  local grammar = require "perigee.native.grammar"
  for _, source in ipairs { module.process, module.gradients, module.layers, module.files, module.precision } do
    for key, value in pairs(source) do native[key] = value end
  end
  native.errors, native.raise, native.is_error, native.describe = errors, errors.raise, errors.is_error, errors.describe
  native.script_line, native.is_own_source = errors.script_line, errors.is_own_source
  native.signature, native.parse, native.is_plain = grammar.signature, grammar.parse, grammar.is_plain
  native.spread, native.checked = grammar.spread, require "perigee.native.checked"
  native.signatures, native.module_dir = grammar.signatures, library.module_dir
  native.suggest, native.has_entries = require "perigee.native.suggest", require "perigee.native.has_entries"
  local scopes = require("perigee.native.scopes")
  native.with, native.in_main, native.frames = scopes.with, scopes.in_main, scopes
  native.shape, native.dtypes = require "perigee.native.shape", require "perigee.native.dtypes"
  native.size = require "perigee.native.size"
  native.handles, native.operators, native.tensor = module.handles, module.operators, module.tensor
  native.custom, native.origins = module.custom, module.origins
  native.host, native.graphs, native.process = module.host, module.graphs, module.process
  native.call, native.op, native.op_names = module.operators.call, module.operators.get_function, module.operators.names
  native.is_tensor, native.methods, native.hooks = module.handles.is_tensor, module.tensor.methods, module.tensor.hooks
  native.prepare, native.writer = module.prepared.prepare, module.prepared.writer
  native.compile_layer, native.compile_layer_with = module.layer_call.compile, module.layer_call.compile_with
  native.update_plan, native.anomalies = module.update_plan.update_plan, module.gradients.anomalies
  native.json, native.note_results = require "perigee.native.json", require("perigee.native.results").note
  native.start = function() end
  return native
end

setmetatable(native, { __index = function(_, key)
  if key == "start" then return start end
  return start()[key]
end })

registry[KEY] = native
return native
