-- SPDX-License-Identifier: Apache-2.0
-- pg.CheckpointManager: the state of a training in a folder of files, of which a kill at any moment loses nothing that
-- was reported saved.

local native = require "perigee.native"
local contents = require "perigee.checkpoint.contents"
local walk = require "perigee.nn.walk"

local checkpoint = {}

local NAME = "^step%-(%d+)(.-)%.(%x+)%.safetensors$"
local RUN = "^%.run(%d+)$" -- behind the step, where a later run counts from anew: step-00000001.run2.CHECKSUM...

---@class perigee.CheckpointManager
---@field dir string the folder
---@field keep integer how many of the newest stay
---@field skipped string[] what the last restore passed over, and why
local Manager = {}

local options = { keep = true, mode = true }

local function has_state(v)
  return walk.is_layer(v) or (type(v) == "table" and type(v.state) == "function" and type(v.load_state) == "function")
end

-- Objects and options of the constructor; what is neither is refused by name.
local function read_options(given, self)
  for key, value in pairs(given) do
    if type(key) == "string" and not options[key] then
      if not has_state(value) then
        native.raise("invalid_argument", "CheckpointManager", ("%s must be an object with state() and load_state(), " ..
                     "got %s"):format(key, native.describe(value)), "plain values go into save{...}")
      end
      self.objects[key] = value
    end
  end
  self.keep = given.keep == nil and 3 or given.keep
  if type(self.keep) ~= "number" or self.keep < 1 or self.keep ~= math.floor(self.keep) then
    native.raise("invalid_argument", "CheckpointManager", "keep must be a whole number of at least 1, got " ..
                 native.describe(self.keep))
  end
  self.mode = given.mode or "min"
  if self.mode ~= "min" and self.mode ~= "max" then
    native.raise("invalid_argument", "CheckpointManager", 'mode must be "min" or "max", got ' ..
                 native.describe(self.mode))
  end
end

---`pg.CheckpointManager{dir, keep=3, mode="min", model=model, optimizer=opt, ...}`: a folder of checkpoints (made if it
---is not there) of these objects: all that has state() and load_state(), under any names. The state of the random
---number generator always goes with them. Of the files the `keep` that were saved last stay, and the best where saves
---give a metric: those of earlier runs in the folder count too.
---@return perigee.CheckpointManager
function checkpoint.CheckpointManager(...)
  local given, named, more = ...
  if named ~= nil and not native.is_plain(named) or more ~= nil then
    native.raise("invalid_argument", "CheckpointManager", "takes a folder and a table of objects and options, got " ..
                 native.describe(more == nil and named or more))
  end
  if not native.is_plain(given) then
    given = { given }
    for key, value in pairs(named or {}) do given[key] = value end
  end
  if type(given[1]) ~= "string" or given[1] == "" then
    native.raise("invalid_argument", "CheckpointManager", "needs a folder, got " .. native.describe(given[1]))
  end
  local self = setmetatable({ dir = given[1], objects = {}, skipped = {} }, Manager)
  read_options(given, self)
  native.make_folder(self.dir)
  native.remove_unfinished(self.dir, "step-") -- of processes that were killed
  return self
end

-- Entries { step, run, checksum, path } in the order in which they were saved. Of one step the last in the order of
-- names.
local function files_of(self)
  local list = {}
  for _, name in ipairs(native.folder(self.dir)) do
    local step, rest, checksum = name:match(NAME)
    local run = rest == "" and 1 or rest and tonumber(rest:match(RUN))
    if run then
      list[#list + 1] = { step = tonumber(step), run = run, checksum = checksum, path = self.dir .. "/" .. name }
    end
  end
  table.sort(list, function(a, b)
    if a.run ~= b.run then return a.run < b.run end
    if a.step ~= b.step then return a.step < b.step end
    return a.path < b.path
  end)
  return list
end

---The steps that there are files of, in the order in which they were saved.
---@return integer[]
function Manager:steps()
  local steps = {}
  for i, file in ipairs(files_of(self)) do steps[i] = file.step end
  return steps
end

-- Object or value as a plain tree.
local function state_of(v)
  if has_state(v) then
    if walk.is_layer(v) and walk.is_lazy(v) then
      native.raise("failed_precondition", "CheckpointManager:save", "the model's sizes are not known before its " ..
                   "first input", "call it once")
    end
    return v:state()
  end
  if type(v) == "table" and not native.is_tensor(v) and type(v.state) == "function" then return v:state() end
  return v
end

local function prune(self, current)
  local steps = {}
  for _, file in ipairs(files_of(self)) do
    if file.step == current.step and file.path ~= current.path then
      os.remove(file.path) -- the same step, saved anew
    else
      steps[#steps + 1] = file
    end
  end
  for i = 1, #steps - self.keep do
    local file = steps[i]
    if file.step ~= self.best_step and file.path ~= current.path then os.remove(file.path) end
  end
end

-- The best checkpoint as the file that was saved last knows it.
local function look_up_best(self)
  self.looked_up = true
  local files = files_of(self)
  for i = #files, 1, -1 do
    local tree = contents.read(files[i])
    if tree then
      self.best_step, self.best_metric = tree.best.step, tree.best.metric
      return
    end
  end
end

local function is_better(self, metric)
  local old = self.best_metric
  return old == nil or (self.mode == "min" and metric < old) or (self.mode == "max" and metric > old)
end

-- The best of all files but those of a step, which is saved anew.
local function find_best_without(self, step)
  self.best_step, self.best_metric = nil, nil
  for _, file in ipairs(files_of(self)) do
    local tree = file.step ~= step and contents.read(file)
    local metric = tree and tree.values.metric
    if metric and metric == metric and is_better(self, metric) then
      self.best_step, self.best_metric = file.step, metric
    end
  end
end

local function note_metric(self, step, metric)
  if metric ~= nil and type(metric) ~= "number" then
    native.raise("invalid_argument", "CheckpointManager:save", "metric must be a number, got " ..
                 native.describe(metric))
  end
  if not self.looked_up then look_up_best(self) end
  if step == self.best_step then find_best_without(self, step) end
  if metric and metric == metric and is_better(self, metric) then -- NaN is never the best
    self.best_step, self.best_metric = step, metric
  end
end

-- The path of a step's file without what the format adds. Steps of a run grow: one that falls back begins a new one.
local function stem_of(self, step)
  local files, stem = files_of(self), ("%s/step-%08.0f"):format(self.dir, step)
  local last = files[#files]
  local run = not last and 1 or step < last.step and last.run + 1 or last.run
  return run == 1 and stem or ("%s.run%d"):format(stem, run)
end

---Saves all objects, and whatever else is given: plain values, tensors, tables of them, and things with a state() such
---as what `ds:each()` returned. Durable when it returns.
---@param given { step: integer, metric: number? } step: a count of what is done; metric: to judge the best by
---@return string path
function Manager:save(given)
  if type(given) ~= "table" or native.is_tensor(given) then
    native.raise("invalid_argument", "CheckpointManager:save", "needs a table, got " .. native.describe(given),
                 "manager:save{step=100}")
  end
  local step = given.step
  if type(step) ~= "number" or step < 0 or step ~= math.floor(step) or step >= 1e15 then
    native.raise("invalid_argument", "CheckpointManager:save", "step must be a count, got " .. native.describe(step))
  end
  local seed, offset = native.rng_state()
  local tree = { objects = {}, values = {}, rng = { seed = seed, offset = offset } }
  for name, object in pairs(self.objects) do tree.objects[name] = state_of(object) end
  for name, value in pairs(given) do tree.values[name] = state_of(value) end
  local best_step, best_metric = self.best_step, self.best_metric
  note_metric(self, step, given.metric)
  tree.best = { step = self.best_step, metric = self.best_metric }
  local stem = stem_of(self, step)
  local ok, result = pcall(function()
    return contents.write("CheckpointManager:save", stem, tree)
  end)
  if not ok then
    self.best_step, self.best_metric = best_step, best_metric
    error(result, 0)
  end
  local path = stem .. "." .. result .. ".safetensors"
  prune(self, { step = step, path = path })
  return path
end

-- Names of objects, layers first: what follows them looks at shapes, which a layer may first learn here.
local function in_order(objects)
  local names = {}
  for name in pairs(objects) do names[#names + 1] = name end
  table.sort(names, function(a, b)
    local first, second = walk.is_layer(objects[a]), walk.is_layer(objects[b])
    if first ~= second then return first end
    return a < b
  end)
  return names
end

local function copied(v)
  if native.is_tensor(v) then return v:detach():clone() end
  if type(v) ~= "table" then return v end
  local tree = {}
  for key, x in pairs(v) do tree[key] = copied(x) end
  return tree
end

-- Loads all, or after an error none: each checks what it is given before it changes, so that those before it are put
-- back. (A layer that did not know its sizes keeps what it has loaded.)
local function load_all(objects, saved)
  local names, before = in_order(objects), {}
  for i, name in ipairs(names) do
    local object = objects[name]
    local is_lazy = walk.is_layer(object) and walk.is_lazy(object)
    if i < #names and not is_lazy then before[name] = copied(object:state()) end
    local ok, err = pcall(object.load_state, object, saved[name])
    if not ok then
      for k = 1, i - 1 do
        local own = before[names[k]]
        if own then objects[names[k]]:load_state(own) end
      end
      if not native.is_error(err) then error(err, 0) end
      local at = err.where and err.message:find(err.where .. ": ", 1, true) or 1
      native.raise(err.code, "CheckpointManager:restore", ("%s: %s"):format(name, err.message:sub(at)))
    end
  end
end

local function apply(self, tree, path)
  for name in pairs(self.objects) do
    if tree.objects[name] == nil then
      local names = {}
      for known in pairs(tree.objects) do names[#names + 1] = known end
      table.sort(names)
      native.raise("invalid_argument", "CheckpointManager:restore", ("%s holds no %q; it holds %s"):format(path, name,
                   table.concat(names, ", ")))
    end
  end
  load_all(self.objects, tree.objects)
  native.set_rng_state(tree.rng.seed, tree.rng.offset)
end

local function choose(self, step)
  local files = files_of(self)
  if step == nil then return files end
  local list = {}
  for _, file in ipairs(files) do
    if file.step == step then list[#list + 1] = file end
  end
  if #list == 0 then
    native.raise("not_found", "CheckpointManager:restore", ("there is no checkpoint of step %s in %s"):format(
                   tostring(step), self.dir))
  end
  return list
end

---Loads the checkpoint that was saved last and is whole (or that of a step) into the objects, all or after an error
---none, and puts the random number generator where it was. Damaged files are passed over with a line on standard error
---each (also in `self.skipped`); where all are damaged, or one that was asked for by step, it is an error.
---@param step? integer
---@return table? values what save was given: values.step, ...; nil: there is no checkpoint
function Manager:restore(step)
  local files = choose(self, step)
  self.skipped = {}
  for i = #files, 1, -1 do
    local tree, why = contents.read(files[i])
    if tree then
      apply(self, tree, files[i].path)
      if step == nil then -- else what was saved later may know better
        self.best_step, self.best_metric, self.looked_up = tree.best.step, tree.best.metric, true
      end
      return tree.values, files[i].path
    end
    local line = ("checkpoint %s is skipped: %s"):format(files[i].path, why)
    self.skipped[#self.skipped + 1] = line
    io.stderr:write("perigee: ", line, "\n")
  end
  if #files > 0 then
    native.raise("data_loss", "CheckpointManager:restore", ("none of the %d checkpoints in %s can be read"):format(
                   #files, self.dir), self.skipped[1])
  end
  return nil
end

---Path and step of the file that was saved last; nil where there is none. It is looked at by restore.
---@return string? path, integer? step
function Manager:latest()
  local files = files_of(self)
  local last = files[#files]
  if last then return last.path, last.step end
end

---Path, step and metric of the best checkpoint so far; nil before one was saved with a metric.
---@return string? path, integer? step, number? metric
function Manager:best()
  if not self.best_step then look_up_best(self) end -- of an earlier run
  for _, file in ipairs(files_of(self)) do
    if file.step == self.best_step then return file.path, file.step, self.best_metric end
  end
end

---Loads the best checkpoint's objects, as restore does.
---@return table? values what save was given
function Manager:restore_best()
  local _, step = self:best()
  if not step then
    native.raise("not_found", "CheckpointManager:restore_best", "no checkpoint was saved with a metric")
  end
  return self:restore(step)
end

native.checked.class(Manager, { noun = "a checkpoint manager", call = "manager",
  fields = "best_step best_metric looked_up", kinds = { restore = { { "step", "integer" } } } })

function Manager:__tostring() return ("CheckpointManager(%s; %d files)"):format(self.dir, #files_of(self)) end

return checkpoint
