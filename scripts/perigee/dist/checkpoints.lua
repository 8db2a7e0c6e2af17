-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.Checkpoints: a training's state, written by all processes, each its share of the tensors, and read by any
-- number of them.
--
-- step-00000010/ holds NAME-00001-of-00004.CHECKSUM.safetensors of each object, whose tensors are whole ones, and
-- NAME.safetensors.index.json, which says where each is, as Hugging Face's does; checkpoint.json has what is no tensor.
-- A folder is made under another name, and gets its own once all of it is there.

local native = require "perigee.native"
local gradients = require "perigee.dist.gradients"
local partial = require "perigee.nn.partial"
local walk = require "perigee.nn.walk"
local world = require "perigee.dist.world"

local WHERE = "dist.Checkpoints"
local FORMAT = "perigee-sharded-checkpoint/1"

local function pg() return require "perigee" end

---@class perigee.Checkpoints
---@field dir string the folder
---@field keep integer how many of the newest stay
local Checkpoints = { __name = "perigee.Checkpoints" }

-- ---- what objects hold: { name, tensor, part } in an order that is the same in all processes, and plain values ----

local kinds = {}

function kinds.model(model)
  local list = {}
  for i, entry in ipairs(walk.tensors(model)) do
    list[i] = { name = entry.name, tensor = entry.tensor, part = partial.of(entry.tensor) }
  end
  return list, {}
end

-- The part that a state of a parameter is, where it has the parameter's shape.
local function part_of_state(p, t)
  local stretch = partial.stretch_of(p)
  local part = stretch and stretch.part or partial.of(p)
  local shape = stretch and stretch.own.shape or p.shape
  return part and not native.tensor.shapes_differ(t.shape, shape) and part or nil
end

local function sorted(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

function kinds.optimizer(optimizer)
  local list, values = {}, { optimizer = optimizer.name, groups = {} }
  for g, group in ipairs(optimizer.groups) do
    local options = {}
    for _, key in ipairs(group.attributes.info.names) do options[key] = group.attributes:get(key) end
    values.groups[g] = { options = options, steps = pg().json.array { unpack(group.steps) } }
    for _, slot in ipairs(sorted(group.slots)) do
      for i, p in ipairs(group.params) do
        local t = group.slots[slot][i]
        if t then
          list[#list + 1] = { name = ("%d.%s.%d"):format(g - 1, slot, i - 1), tensor = t, part = part_of_state(p, t) }
        end
      end
    end
  end
  return list, values
end

function kinds.average(average)
  local list = {}
  for i, source in ipairs(average.sources) do
    list[i] = { name = tostring(source.name), tensor = average.shadow[source.name], part = partial.of(source.tensor) }
  end
  return list, { updates = average.updates }
end

function kinds.plain(object) return {}, { state = object:state() } end

local function kind_of(object)
  if walk.is_layer(object) then return "model" end
  local class = type(object) == "table" and getmetatable(object)
  if type(class) == "table" and type(rawget(object, "groups")) == "table" then return "optimizer" end
  if type(class) == "table" and type(rawget(object, "sources")) == "table" then return "average" end
  return "plain"
end

-- ---- putting them back ----

local restore = {}

-- `read(visit)` calls visit(name, tensor) for all tensors of an object, a file's at a time.
function restore.model(model, _, read)
  local of, missing = {}, 0
  for _, entry in ipairs(kinds.model(model)) do
    of[entry.name], missing = entry, missing + 1
  end
  read(function(name, t)
    local entry = of[name]
    if not entry then native.raise("invalid_argument", WHERE, ("the model has no %q"):format(name)) end
    if entry.part then t = partial.part_of(t:to(entry.tensor.device), entry.part) end
    if native.tensor.shapes_differ(t.shape, entry.tensor.shape) then
      native.raise("invalid_argument", WHERE, ("%s is %s; the model's is %s"):format(name, tostring(t.shape),
                   tostring(entry.tensor.shape)))
    end
    entry.tensor:copy_(t)
    of[name], missing = nil, missing - 1
  end)
  if missing > 0 then
    native.raise("invalid_argument", WHERE, ("%d tensors of the model are missing: %s"):format(missing, (next(of))))
  end
end

local function slot_part(p) return partial.stretch_of(p) and partial.stretch_of(p).part or partial.of(p) end

function restore.optimizer(optimizer, values, read)
  if values.optimizer ~= optimizer.name or #values.groups ~= #optimizer.groups then
    native.raise("invalid_argument", WHERE, ("it holds %d groups of %s; the optimizer is %d of %s"):format(
                   #values.groups, tostring(values.optimizer), #optimizer.groups, optimizer.name))
  end
  for g, group in ipairs(optimizer.groups) do
    local saved = values.groups[g]
    if #saved.steps ~= #group.params then
      native.raise("invalid_argument", WHERE, ("group %d has %d parameters; the optimizer's has %d"):format(g,
                   #saved.steps, #group.params))
    end
    for key, value in pairs(saved.options) do group.attributes:set(key, value) end
    for i, step in ipairs(saved.steps) do group.steps[i] = step end
    group.slots, group.plan = {}, false
  end
  read(function(name, t)
    local g, slot, i = name:match "^(%d+)%.(.+)%.(%d+)$"
    local group = optimizer.groups[tonumber(g) + 1]
    local p = group.params[tonumber(i) + 1]
    local part = slot_part(p)
    t = t:to(group.offload and "cpu" or p.device)
    if part and not native.tensor.shapes_differ(t.shape, native.shape(partial.whole_shape(p, part))) then
      t = partial.part_of(t, part)
    end
    group.slots[slot] = group.slots[slot] or {}
    group.slots[slot][tonumber(i) + 1] = pg().keep(t:detach():clone())
  end)
end

function restore.average(average, values, read)
  local of = {}
  for _, entry in ipairs(kinds.average(average)) do of[entry.name] = entry end
  read(function(name, t)
    local entry = of[name]
    if not entry then native.raise("invalid_argument", WHERE, ("%s is not what is averaged here"):format(name)) end
    entry.tensor:copy_(entry.part and partial.part_of(t:to(entry.tensor.device), entry.part) or t)
  end)
  average.updates, average.exact = values.updates, nil
end

function restore.plain(object, values) object:load_state(values.state) end

-- ---- writing ----

local function folder_of(self, step) return ("%s/step-%08d"):format(self.dir, step) end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- Who writes which tensor: the process with the least so far.
local function share_out(list, size)
  local bytes, of = {}, {}
  for rank = 0, size - 1 do bytes[rank] = 0 end
  for i, entry in ipairs(list) do
    local least = 0
    for rank = 1, size - 1 do
      if bytes[rank] < bytes[least] then least = rank end
    end
    local shape = entry.part and partial.whole_shape(entry.tensor, entry.part) or entry.tensor.shape
    bytes[least] = bytes[least] + partial.elements(shape) * native.dtypes.by_name[entry.tensor.dtype].bytes
    of[i] = least
  end
  return of
end

-- This process's file of an object. All bring parts together, one tensor at a time.
local function write_own(self, folder, name, list)
  local group, names, tensors = self._group, {}, {}
  local owners, map = share_out(list, group.size), {}
  for i, entry in ipairs(list) do
    local whole = partial.whole(entry.tensor, entry.part)
    if owners[i] == group.rank then
      names[#names + 1], tensors[#tensors + 1] = entry.name, whole:detach():cpu():contiguous()
    elseif entry.part then
      native.handles.close(whole)
    end
    map[entry.name] = owners[i]
  end
  local stem = ("%s/%s-%05d-of-%05d"):format(folder, name, group.rank + 1, group.size)
  native.write_sealed(stem, "safetensors", names, tensors, { format = "pt" })
  return map
end

-- Names of files by rank, as the folder has them.
local function files_of(folder, name, count)
  local files = {}
  for _, file in ipairs(native.folder(folder)) do
    local stem, number = file:match "^(.*)%-(%d+)%-of%-%d+%.%x+%.safetensors$"
    if stem == name then files[tonumber(number) - 1] = file end
  end
  for rank = 0, count - 1 do
    if not files[rank] then
      native.raise("data_loss", WHERE, ("%s has no file %d of %s"):format(folder, rank + 1, name),
                   "all processes must write into one folder that all see")
    end
  end
  return files
end

local function write_index(folder, name, map, count)
  local files, weights = files_of(folder, name, count), {}
  for tensor, rank in pairs(map) do weights[tensor] = files[rank] end
  pg().json.save(("%s/%s.safetensors.index.json"):format(folder, name), { metadata = {}, weight_map = weights })
end

local function remove_folder(folder)
  for _, file in ipairs(native.folder(folder)) do os.remove(folder .. "/" .. file) end
  os.remove(folder)
end

local function steps_of(self)
  local steps = {}
  for _, name in ipairs(native.folder(self.dir)) do
    local step = name:match "^step%-(%d+)$"
    if step and exists(self.dir .. "/" .. name .. "/checkpoint.json") then steps[#steps + 1] = tonumber(step) end
  end
  table.sort(steps)
  return steps
end

local function barrier(self) pg().dist.barrier(self._group) end

---Writes all objects, and plain values besides; called by all processes. Durable when it returns.
---@param given { step: integer } and plain values
---@return string path the folder of the step
function Checkpoints:save(given)
  local where = WHERE .. ":save"
  if not native.is_plain(given) then
    native.raise("invalid_argument", where, "needs a table, got " .. native.describe(given),
                 "checkpoints:save{step=100}")
  end
  local step = given.step
  if type(step) ~= "number" or step < 0 or step % 1 ~= 0 or step >= 1e8 then
    native.raise("invalid_argument", where, "step must be a count below 10^8, got " .. native.describe(step))
  end
  local folder, first = folder_of(self, step), self._group.rank == 0
  local unfinished = folder .. ".unfinished"
  if first then
    native.make_folder(unfinished)
    remove_folder(unfinished) -- what a killed process has left
    native.make_folder(unfinished)
  end
  barrier(self)
  local seed, offset = native.rng_state()
  local tree = { format = FORMAT, processes = self._group.size, values = given, objects = {}, seed = seed,
                 offsets = pg().json.array {} }
  for rank, numbers in ipairs(gradients.exchange({ offset }, self._group)) do tree.offsets[rank] = numbers[1] end
  local maps = {}
  pg().no_grad(function()
    for _, name in ipairs(sorted(self._objects)) do
      local kind = kind_of(self._objects[name])
      local list, values = kinds[kind](self._objects[name])
      tree.objects[name] = { kind = kind, values = values, tensors = #list }
      if #list > 0 then maps[name] = write_own(self, unfinished, name, list) end
    end
  end)
  barrier(self)
  if first then
    for name, map in pairs(maps) do write_index(unfinished, name, map, self._group.size) end
    pg().json.save(unfinished .. "/checkpoint.json", tree, { indent = 2 })
    if exists(folder .. "/checkpoint.json") then remove_folder(folder) end -- the same step, saved anew
    local ok, why = os.rename(unfinished, folder)
    if not ok then native.raise("internal", where, why) end
    local steps = steps_of(self)
    for i = 1, #steps - self.keep do
      if steps[i] ~= step then remove_folder(folder_of(self, steps[i])) end
    end
  end
  barrier(self)
  return folder
end

-- ---- reading ----

local function read_object(folder, name)
  return function(visit)
    local index = pg().json.load(("%s/%s.safetensors.index.json"):format(folder, name))
    local files = {}
    for _, file in pairs(index.weight_map) do files[file] = true end
    for _, file in ipairs(sorted(files)) do
      local path = folder .. "/" .. file
      local sum = file:match "%.(%x+)%.safetensors$"
      if native.checksum(path) ~= sum then
        native.raise("data_loss", WHERE, path .. " is damaged: its checksum differs")
      end
      pg().scope(function()
        local tensors = native.read(path)
        for _, tensor in ipairs(sorted(tensors)) do visit(tensor, tensors[tensor]) end
      end)
    end
  end
end

local function restore_draws(self, tree)
  local rank = self._group.rank
  local offset = tree.offsets[rank + 1]
  if #tree.offsets ~= self._group.size then offset = tree.offsets[1] % 2 ^ 40 + rank * 2 ^ 40 end
  native.set_rng_state(tree.seed, offset)
end

---Loads the newest checkpoint, or that of a step; called by all processes, of which there may be another number than
---have written it, and whose models may be spread in another way. Answers what save was given; nil: there is none.
---@param step? integer
---@return table? values
function Checkpoints:restore(step)
  local steps = steps_of(self)
  local mine = step or steps[#steps] or -1
  local chosen = gradients.exchange({ mine }, self._group)[1][1] -- the first one's, should a folder change meanwhile
  if chosen < 0 then return nil end
  local folder = folder_of(self, chosen)
  if not exists(folder .. "/checkpoint.json") then
    native.raise("not_found", WHERE .. ":restore", ("there is no checkpoint of step %d in %s"):format(chosen, self.dir))
  end
  local tree = pg().json.load(folder .. "/checkpoint.json")
  if tree.format ~= FORMAT then
    native.raise("data_loss", WHERE .. ":restore", ("%s: its format is %s"):format(folder, tostring(tree.format)))
  end
  pg().no_grad(function()
    for _, name in ipairs(sorted(self._objects)) do
      local object, saved = self._objects[name], tree.objects[name]
      if not saved or saved.kind ~= kind_of(object) then
        native.raise("invalid_argument", WHERE .. ":restore", ("%s holds no %s of this kind; it holds %s"):format(
                       folder, name, table.concat(sorted(tree.objects), ", ")))
      end
      restore[saved.kind](object, saved.values, saved.tensors > 0 and read_object(folder, name) or function() end)
    end
  end)
  restore_draws(self, tree)
  return tree.values
end

---The steps that there are checkpoints of, in their order.
---@return integer[]
function Checkpoints:steps() return steps_of(self) end

function Checkpoints:__tostring() return ("Checkpoints(%s; %d steps)"):format(self.dir, #steps_of(self)) end

native.checked.class(Checkpoints, { noun = "a folder of checkpoints", call = "checkpoints", open = true,
  kinds = { restore = { { "step", "integer" } }, save = { { "given", "any", required = true } } } })
Checkpoints.__index = Checkpoints

local RESERVED = { keep = true, group = true }

---@param given table
---@return perigee.Checkpoints
return function(given)
  if not native.is_plain(given) or type(given[1]) ~= "string" or given[1] == "" then
    native.raise("invalid_argument", WHERE, "needs a folder and objects, got " .. native.describe(given),
                 "pg.dist.Checkpoints{folder, model=model, optimizer=optimizer}")
  end
  local self = { dir = given[1], keep = given.keep or 3, _objects = {}, _group = world.group_of(WHERE, given.group) }
  if type(self.keep) ~= "number" or self.keep < 1 or self.keep % 1 ~= 0 then
    native.raise("invalid_argument", WHERE, "keep must be a whole number of at least 1, got " ..
                 native.describe(given.keep))
  end
  for name, object in pairs(given) do
    if type(name) == "string" and not RESERVED[name] then
      local is_object = walk.is_layer(object) or type(object) == "table" and type(object.state) == "function" and
                        type(object.load_state) == "function"
      if not is_object or not name:find "^[%w_]+$" then
        native.raise("invalid_argument", WHERE, ("%s must be an object with state() and load_state(), got %s"):format(
                       name, native.describe(object)), "plain values go into save{...}")
      end
      self._objects[name] = object
    end
  end
  native.make_folder(self.dir)
  return setmetatable(self, Checkpoints)
end
