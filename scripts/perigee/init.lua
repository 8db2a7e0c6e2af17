-- SPDX-License-Identifier: Apache-2.0
-- require "perigee": the table that scripts call `pg`. Nothing is loaded before it is touched. The table is kept in the
-- registry, so that a script that clears package.loaded gets the same one again.

local registry = debug and debug.getregistry and debug.getregistry() or package.loaded
local KEY = "perigee"
if registry[KEY] then return registry[KEY] end

---@class perigee
---@field nn perigee.nn layers, losses, initialisers
---@field optim perigee.optim optimizers and their schedules
---@field data perigee.data input pipelines
---@field amp perigee.amp mixed precision
---@field metrics perigee.metrics how good outputs are
---@field callbacks perigee.callbacks what fit calls while it trains
---@field linalg perigee.linalg norms of vectors and matrices
---@field memory perigee.memory what devices have given out
---@field config perigee.config settings of the process
---@field newaxis any as an index: a new axis of size 1
local pg = {}
registry[KEY] = pg

-- Sub-tables, and functions that modules of their own provide.
local modules = {
  nn = "perigee.nn", optim = "perigee.optim", data = "perigee.data", amp = "perigee.amp",
  callbacks = "perigee.callbacks", metrics = "perigee.metrics", linalg = "perigee.linalg",
}
local providers = {
  save = "perigee.files", load = "perigee.files", load_npy = "perigee.npy", save_npy = "perigee.npy",
  custom_grad = "perigee.custom_grad", recompute = "perigee.recompute",
  load_npz = "perigee.npy", save_npz = "perigee.npy",
  bench = "perigee.bench", plot = "perigee.plot", gradcheck = "perigee.gradcheck", einsum = "perigee.einsum",
  CheckpointManager = "perigee.checkpoint", graph = "perigee.graph", Session = "perigee.graph.session",
}
local core = { "creation", "random", "views", "parts", "indexing", "scatter", "printing", "compare", "compose",
               "arrange", "order", "reductions", "neural", "pad", "windows", "resampling", "autograd", "devices" }

---Names that are there but not loaded yet.
local function lazy_names()
  local names = {}
  for name, module in pairs(modules) do
    if package.searchpath(module, package.path) then names[#names + 1] = name end
  end
  for name, module in pairs(providers) do
    if package.searchpath(module, package.path) then names[#names + 1] = name end
  end
  return names
end

-- Makes the tensor functions: loads libperigee, but no plugin and no thread.
local function start(native)
  setmetatable(pg, nil)
  native.start()
  native.lazy_names = lazy_names
  local suggest = native.suggest
  function suggest.foreign.hint(...) return require("perigee.foreign").hint(...) end
  function suggest.foreign.option(...) return require("perigee.foreign").option(...) end
  for _, name in ipairs(core) do require("perigee." .. name)(pg, native) end
  setmetatable(pg, { __index = function(_, key)
    local value
    if modules[key] then
      value = require(modules[key])
    elseif providers[key] then
      value = require(providers[key])[key]
    elseif type(key) == "string" then
      value = native.op(key)
    end
    if value == nil then
      local names = native.op_names()
      for name in pairs(pg) do names[#names + 1] = name end
      local hint = require("perigee.foreign").hint("perigee", tostring(key))
      local near = not hint and native.suggest(tostring(key), names)
      native.raise("not_found", nil, ("perigee has no %q"):format(tostring(key)),
                   hint or near and ("did you mean %q?"):format(near) or native.unavailable "ops")
    end
    rawset(pg, key, value)
    return value
  end })
end

setmetatable(pg, { __index = function(_, key)
  start(require "perigee.native")
  return pg[key]
end })

return pg
