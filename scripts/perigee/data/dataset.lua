-- SPDX-License-Identifier: Apache-2.0
-- What a pipeline is: a chain of stages over a source, in up to three forms that give the same elements.
--   stage(epoch)          { count, get(i), gather(positions) }: by position, on the script's thread. Not where the
--                         length is unknown.
--   pull(epoch)           next, close: one after the other, on the script's thread; next answers nil at the end.
--   native(epoch, feeds)  the core's stage: what `feeds` gives to it runs on the script's thread. `pure`: nothing does.
-- A pipeline with a stage or a pull has the other forms by what is here.

local native = require "perigee.native"
local pass = require "perigee.data.passes"
local watch = require "perigee.data.watch"

---@class perigee.Dataset
---@field size integer? how many elements, as #; nil where that is unknown
---@field batched boolean? whether elements are batches
---@field [integer] any an element, as at()
---@operator len: integer
local Dataset = {}

-- Lua 5.1 asks no metamethod for # of a table, but does so for a userdata: a dataset is a proxy of its fields, which
-- are its environment. (A weak table of them would keep what fields refer to: a parent, and its data.)
local template = newproxy(true)
local meta = getmetatable(template)
local fields_of, set_fields = debug.getfenv, debug.setfenv
local NO_LENGTH = "the length of this pipeline is unknown before its end: filter, interleave or a generator decide it"

function meta.__index(self, key)
  local method = Dataset[key]
  if method ~= nil then return method end
  if type(key) == "number" then return Dataset.at(self, key) end
  local value = fields_of(self)[key]
  if value == nil and type(key) == "string" and key ~= "batched" and key ~= "size" then
    local names = {}
    for name in pairs(Dataset) do names[#names + 1] = name end
    local near = native.suggest(key, names)
    native.raise("not_found", nil, ("a dataset has no %q"):format(key), near and ("did you mean %q?"):format(near))
  end
  return value
end
function meta.__call()
  native.raise("invalid_argument", "data", "a dataset is no iterator", "for step, batch in ds:each() do")
end
function meta.__newindex(_, key)
  native.raise("invalid_argument", "data", ("a dataset has no settable field %q"):format(tostring(key)))
end
function meta.__len(self)
  local size = fields_of(self).size
  if not size then native.raise("failed_precondition", "data", NO_LENGTH, "ds.size is nil where # is not known") end
  return size
end
function meta.__tostring(self)
  return ("Dataset(%s %s)"):format(self.size or "unknown number of", self.batched and "batches" or "samples")
end

local function new(own)
  local self = newproxy(template)
  set_fields(self, own)
  own.epoch = 0
  return self
end

local function is_dataset(v) return type(v) == "userdata" and debug.getmetatable(v) == meta end

-- Whether some of its stages run on threads.
local function has_threads(own) return own.workers ~= nil or own.ahead ~= nil end

-- A stage by position, with a clock while somebody looks.
local function watched(own, stage)
  local now = watch.now()
  if not now then return stage end
  return { count = stage.count, get = now:timed(own, stage.get),
           gather = stage.gather and now:timed(own, stage.gather) }
end

---The elements of an epoch, one after the other: what answers the next, and what ends it early.
local function pull(own, epoch)
  if has_threads(own) then
    local iterator = pass(own, 0, epoch)
    local function next_()
      local _, element = iterator()
      return element
    end
    local now = watch.now()
    return now and now:timed(own, next_, true) or next_, function() iterator:close() end
  end
  if own.pull then return own.pull(epoch) end
  local stage, i = own.stage(epoch), 0
  return function()
    if i == own.size then return nil end
    i = i + 1
    return stage.get(i)
  end, function() i = own.size end
end

---The core's stage of an epoch.
local function core(own, epoch, feeds)
  if own.native then
    local stage, now = own.native(epoch, feeds), watch.now()
    return now and now:core(own, stage) or stage
  end
  if not own.pull then return feeds:stage(own.size, own.stage(epoch).get) end
  return feeds:stage(own.size, nil, function() return pull(own, epoch) end)
end

---A pipeline over another. `o`: size; stage(stage, epoch), pull(next, epoch, restart) and native(stage, epoch) make
---each form of that of the parent (restart answers a new `next`, of the same elements; pull may answer what ends it
---too); `name`, the method's; `what` it is, as a text or a function that answers it, for caches; `in_order`: its
---elements come one after the other. Without `native` it runs on the script's thread, and threads of the stages before
---go on.
local function derive(parent, o)
  if type(parent) == "userdata" then parent = fields_of(parent) end
  local cut = not o.native and has_threads(parent)
  local own = { size = o.size, batched = o.batched or parent.batched, classes = parent.classes,
                what = o.what, parents = { parent }, name = o.name, fn = o.fn,
                in_memory = o.in_memory, line = native.script_line(),
                in_order = parent.in_order or o.in_order or cut }
  if o.stage and parent.stage then
    own.stage = function(epoch) return watched(own, o.stage(parent.stage(epoch), epoch)) end
  end
  if own.in_order then
    own.pull = function(epoch)
      local next_, close = pull(parent, epoch)
      local function restart()
        close()
        next_, close = pull(parent, epoch)
        return next_
      end
      local made, finish = o.pull(next_, epoch, restart)
      local now = watch.now()
      if now then made = now:timed(own, made) end
      return made, function()
        if finish then finish() end
        close()
      end
    end
  end
  if o.native then
    own.functions, own.workers, own.ahead, own.pure = parent.functions, parent.workers, parent.ahead, parent.pure
    own.tunes = parent.tunes
    own.native = function(epoch, feeds) return o.native(core(parent, epoch, feeds), epoch) end
  end
  return new(own)
end

---A pipeline that has the order of its first epoch in all.
local function first_epoch(own)
  local fixed = {}
  for key, v in pairs(own) do fixed[key] = v end
  fixed.stage = own.stage and function() return own.stage(1) end
  fixed.pull = own.pull and function() return own.pull(1) end
  fixed.native = own.native and function(_, feeds) return own.native(1, feeds) end
  fixed.crew, fixed.packed, fixed.running = nil, nil, nil
  return fixed
end

---A source by position: { count, get, gather, native }, or one after the other: { pull, count }.
---`native(epoch)`, if there, makes the core's stage for the same.
local function source(stage)
  local own = { in_order = stage.pull ~= nil, native = stage.native or nil, pure = stage.native and true or nil,
                size = stage.count, what = stage.what, name = stage.name, line = native.script_line() }
  own.stage = stage.get and function() return watched(own, stage) end
  own.pull = stage.pull and function(epoch)
    local next_, close = stage.pull(epoch)
    local now = watch.now()
    return now and now:timed(own, next_) or next_, close
  end
  return new(own)
end

---What a pipeline is, a line a stage: another text, another pipeline.
local function identity(own)
  local lines = {}
  for _, parent in ipairs(own.parents or {}) do lines[#lines + 1] = identity(parent) end
  local what = own.what or "a source of its own"
  lines[#lines + 1] = type(what) == "function" and what() or what
  return table.concat(lines, "\n")
end

---The same text for the same function and all that it refers to.
local function of_function(name, fn, ...)
  local more = table.concat({ "", ... }, " ")
  return function() return name .. " " .. native.fingerprint.value(fn) .. more end
end

return { identity = identity, of_function = of_function, Dataset = Dataset, first_epoch = first_epoch, new = new,
         source = source, derive = derive, fields_of = fields_of, is_dataset = is_dataset,
         has_threads = has_threads, pull = pull, core = core, NO_LENGTH = NO_LENGTH }
