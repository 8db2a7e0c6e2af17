-- SPDX-License-Identifier: Apache-2.0
-- require "perigee": the table that scripts call `pg`. Nothing is loaded before it is touched: a file of a room runs
-- when one of its names (names/contents.lua) is asked for. The table is kept in the registry, so that a script that
-- clears package.loaded gets the same one again.

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
---@field image perigee.image pictures as tensors, from and to files
---@field prune perigee.prune models with fewer weights
---@field compress perigee.compress layers replaced by smaller ones
---@field quant perigee.quant models with fewer bits a weight
---@field tune perigee.tune settings of a training, found by trying
---@field dist perigee.dist many processes that run one script
---@field json perigee.json values as JSON text, and files of it
---@field memory perigee.memory what devices have given out
---@field config perigee.config settings of the process
---@field newaxis any as an index: a new axis of size 1
local pg = {}
registry[KEY] = pg

-- Sub-tables, and functions that modules of their own provide.
local modules = {
  nn = "perigee.nn", optim = "perigee.optim", data = "perigee.data", amp = "perigee.amp",
  callbacks = "perigee.callbacks", metrics = "perigee.metrics", linalg = "perigee.linalg",
  json = "perigee.json", image = "perigee.image", prune = "perigee.prune",
  compress = "perigee.compress", quant = "perigee.quant", tune = "perigee.fit.tune", dist = "perigee.dist",
}
local providers = {
  save = "perigee.files", load = "perigee.files", load_npy = "perigee.files.npy", save_npy = "perigee.files.npy",
  load_npz = "perigee.files.npy", save_npz = "perigee.files.npy",
  custom_grad = "perigee.autograd.custom_grad", recompute = "perigee.autograd.recompute",
  gradcheck = "perigee.autograd.gradcheck", einsum = "perigee.linalg.einsum",
  bench = "perigee.profile.bench", profile = "perigee.profile",
  range = "perigee.profile", bench_compare = "perigee.profile.compare", plot = "perigee.plot",
  SummaryWriter = "perigee.events", CheckpointManager = "perigee.checkpoint", compile = "perigee.compile",
  graph = "perigee.graph", Session = "perigee.graph.session",
  load_graph = "perigee.graph.load", name_scope = "perigee.graph.name_scope",
  cond = "perigee.control.cond", scan = "perigee.control.scan", while_loop = "perigee.control.while_loop",
}
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

-- What a room hands on to one above it, which it does not know: loaded when it is called.
local function connect(native)
  local suggest = native.suggest
  function suggest.foreign.hint(...) return require("perigee.names.foreign").hint(...) end
  function suggest.foreign.option(...) return require("perigee.names.foreign").option(...) end
  native.methods.eval = native.checked.behind("eval", function(t, feeds)
    return require("perigee.graph.session").eval(t, feeds)
  end)
  native.methods.save_npy = native.checked.behind("save_npy", function(t, path)
    return require("perigee.files.npy").save_npy(t, path)
  end)
  native.training = {} -- methods of layers
  for _, name in ipairs { "fit", "evaluate", "predict" } do
    native.training[name] = function(...) return require("perigee.fit")[name](...) end
  end
end

-- A part of pg, whose functions count their arguments; names that it has not raise.
local function packaged(native, name, package)
  native.checked.functions(package, name .. ".")
  if getmetatable(package) then return package end
  local otherwise = name == "config" and "settings are made with pg.config.set{...}" or nil
  return setmetatable(package, { __index = function(_, key) -- what answers is loaded when it is needed
    require("perigee.names.package").refuse(package, "pg." .. name, key, name, nil, otherwise)
  end })
end

local contents = {} -- names by file, of those that have not run yet; with a blank before and behind each
local running = {}
local packages = { memory = true, config = true }

-- What a file has defined looks at its arguments.
local function check(native, names)
  local checked, methods = native.checked, native.methods
  for name in names:gmatch "%S+" do
    local f, method = rawget(pg, name), rawget(methods, name)
    if type(f) == "function" then pg[name] = checked.plain(name, f) end
    if method then methods[name] = checked.behind(name, method) end
    if packages[name] then packaged(native, name, f) end
  end
end

local function finish(native, file, ok, problem)
  running[file] = nil
  if not ok then error(problem, 0) end -- it may run again
  check(native, contents[file])
  contents[file] = nil
end

local function run(native, file)
  running[file] = true
  finish(native, file, pcall(function() require("perigee." .. file)(pg, native) end))
end

-- Runs the file that has a name. Answers whether there was one to run.
local function provide(native, name)
  if type(name) ~= "string" then return false end
  local word = " " .. name .. " "
  for file, names in pairs(contents) do
    if not running[file] and names:find(word, 1, true) then
      run(native, file)
      return true
    end
  end
  return false
end

-- Names that a table has not are looked for in the files that have not run.
local function fill_in(native, t)
  setmetatable(t, { __index = function(_, name) return provide(native, name) and rawget(t, name) or nil end })
end

-- Makes the tensor functions: loads libperigee, but no plugin and no thread.
local function start(native)
  setmetatable(pg, nil)
  native.start()
  native.lazy_names = lazy_names
  connect(native)
  for file, names in pairs(require "perigee.names.contents") do contents[file] = " " .. names .. " " end
  for _, t in ipairs { native.methods, native.hooks, native.tensor } do fill_in(native, t) end
  function native.run_rooms()
    for file in pairs(contents) do
      if not running[file] then run(native, file) end
    end
  end
  native.hooks.run_rooms = native.run_rooms
  setmetatable(pg, { __index = function(_, key)
    local value
    if modules[key] then
      value = packaged(native, key, require(modules[key]))
    elseif providers[key] then
      value = native.checked.plain(key, require(providers[key])[key])
    elseif type(key) == "string" then
      value = provide(native, key) and rawget(pg, key) or nil
      if value == nil then value = native.op(key) end
    end
    if value == nil then
      native.run_rooms()
      require("perigee.names.package").refuse(pg, "perigee", key, "perigee", native.op_names(),
                                              native.unavailable "ops")
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
