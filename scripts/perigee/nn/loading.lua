-- SPDX-License-Identifier: Apache-2.0
-- Tensors by name into a layer: which of the names meet, what is said where they do not, and the copying. A plan knows
-- names alone, so that files of many parts are looked at before the first is read.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"

local loading = {}

local WHERE = "load_state"
local OPTIONS = { strict = "boolean", strip_prefix = "string", add_prefix = "string" }

---Looks at the options of load_state.
---@param options any
---@return {strict?: boolean, strip_prefix?: string, add_prefix?: string}
function loading.read_options(options)
  if options == nil then return {} end
  if not native.is_plain(options) then
    native.raise("invalid_argument", WHERE, "options must be a table, got " .. native.describe(options),
                 type(options) == "function" and "pg.load answers a file's notes behind its tensors: pg.load(path, " ..
                 "model), or model:load_state((pg.load(path)))" or nil)
  end
  for key, value in pairs(options) do
    local kind = OPTIONS[key]
    if not kind then
      native.raise("invalid_argument", WHERE, ("unknown option %q"):format(tostring(key)),
                   "options are strict, strip_prefix, add_prefix")
    end
    if type(value) ~= kind or value == "" then
      native.raise("invalid_argument", WHERE, ("%s must be %s, got %s"):format(key, kind == "boolean" and
                   "true or false" or "the beginning of names, such as \"model.\"", native.describe(value)))
    end
  end
  return options
end

-- Files of PyTorch count batches beside a normalisation's statistics. Nothing here reads that number.
local function is_counter(name) return name:match("num_batches_tracked$") ~= nil end

local function begins_with(text, beginning) return text:sub(1, #beginning) == beginning end

-- What is loaded, by the names that the options make of its names; and those that are no names.
local function rename(names, options)
  local strip, add = options.strip_prefix, options.add_prefix or ""
  local renamed, strange, found = {}, {}, false
  for _, name in ipairs(names) do
    if type(name) ~= "string" then
      strange[#strange + 1] = tostring(name)
    else
      local has = strip and begins_with(name, strip)
      local new = add .. (has and name:sub(#strip + 1) or name)
      found = found or has
      if renamed[new] then
        local first, second = renamed[new], name
        if second < first then first, second = second, first end
        native.raise("invalid_argument", WHERE, ("%q and %q both become %q"):format(first, second, new))
      end
      renamed[new] = name
    end
  end
  if strip and not found then
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
    native.raise("invalid_argument", WHERE, ("no name that is loaded begins with strip_prefix=%q"):format(strip),
                 names[1] and ("the first of %d is %q"):format(#names, tostring(names[1])) or "there is none")
  end
  return renamed, strange
end

-- Of what a parameter is computed of (nn.utils), PyTorch's other names become ours.
local function take_other_names(entries, renamed)
  for _, entry in ipairs(entries) do
    local set = entry.owner[walk.META].hooks
    for _, rule in pairs(set and set.computed or {}) do
      for own, theirs in pairs(rule.aliases) do
        local stem = #entry.name - #own
        local other = entry.name:sub(1, stem) .. theirs
        if entry.name:sub(stem + 1) == own and not renamed[entry.name] and renamed[other] then
          renamed[entry.name], renamed[other] = renamed[other], nil
        end
      end
    end
  end
end

-- All names of each tensor: a parameter that two layers share has several.
local function names_by_tensor(entries)
  local names = {}
  for _, entry in ipairs(entries) do
    local list = names[entry.tensor] or {}
    names[entry.tensor] = list
    list[#list + 1] = entry.name
  end
  return names
end

-- The first of some names that, behind `beginning`, or without it, is loaded.
local function find_loaded(names, renamed, beginning, without)
  for _, name in ipairs(names) do
    if not without then
      if renamed[beginning .. name] then return name end
    elseif begins_with(name, beginning) and renamed[name:sub(#beginning + 1)] then
      return name
    end
  end
end

local function list_some(names)
  local shown = table.concat(names, ", ", 1, math.min(#names, 8))
  return #names > 8 and ("%s and %d more"):format(shown, #names - 8) or shown
end

-- What all missing names lack in front, or have too much of, beside those that are loaded ("model."); and an example of
-- both. nil: they differ otherwise.
local function find_beginning(plan, renamed, without)
  local example = plan.missing[1]
  for _, other in ipairs(example and plan.unexpected or {}) do
    local long, short = other, example
    if without then long, short = example, other end
    local beginning = long:sub(1, math.max(#long - #short, 0))
    if beginning ~= "" and beginning .. short == long then
      local all = true
      for _, name in ipairs(plan.missing) do
        all = all and find_loaded(plan.aliases[name], renamed, beginning, without)
      end
      if all then return beginning, other, example end
    end
  end
end

local function refuse(plan, renamed)
  for _, option in ipairs { "strip_prefix", "add_prefix" } do
    local beginning, theirs, own = find_beginning(plan, renamed, option == "add_prefix")
    if beginning then
      native.raise("invalid_argument", WHERE, ("names differ by one beginning: what is loaded has %q for %q"):format(
                     theirs, own), ("{%s=%q}"):format(option, beginning))
    end
  end
  local missing, unexpected = plan.missing, plan.unexpected
  native.raise("invalid_argument", WHERE, ("names differ. Missing: %s. Unexpected: %s"):format(
                 #missing > 0 and list_some(missing) or "none", #unexpected > 0 and list_some(unexpected) or "none"),
               "{strict=false} loads the rest")
end

---Which of `names` go where in a layer. Of a tensor with several names (tied weights) one is enough.
---@param layer perigee.Layer
---@param names any[] what is loaded
---@param options table as read_options gives them
---@return {pairs: table[], missing: string[], unexpected: string[]} plan
function loading.plan(layer, names, options)
  local renamed, strange = rename(names, options)
  local entries = walk.tensors(layer)
  take_other_names(entries, renamed)
  local by_tensor, own = names_by_tensor(entries), {}
  local plan = { pairs = {}, missing = {}, unexpected = strange, aliases = {}, loaded = {} }
  for _, entry in ipairs(entries) do
    local aliases = by_tensor[entry.tensor]
    own[entry.name], plan.aliases[entry.name] = true, aliases
    if renamed[entry.name] then
      plan.pairs[#plan.pairs + 1] = { name = entry.name, tensor = entry.tensor, source = renamed[entry.name] }
    elseif not find_loaded(aliases, renamed, "") then
      plan.missing[#plan.missing + 1] = entry.name
    end
  end
  for name, source in pairs(renamed) do
    if not own[name] and not is_counter(name) then plan.unexpected[#plan.unexpected + 1] = source end
  end
  table.sort(plan.unexpected)
  if options.strict ~= false and #plan.missing + #plan.unexpected > 0 then refuse(plan, renamed) end
  return plan
end

local function check(name, target, value)
  if not native.is_tensor(value) then
    native.raise("invalid_argument", WHERE, ("%s must be a tensor, got %s"):format(name, native.describe(value)))
  end
  if target:numel() > 0 and target.shape ~= value.shape then
    native.raise("invalid_argument", WHERE, ("%s is %s here but %s in what is loaded"):format(name,
                 tostring(target.shape), tostring(value.shape)))
  end
end

local function same(a, b)
  if a.shape ~= b.shape then return false end
  b = b:to(a.device):to(a.dtype)
  if native.dtypes.by_name[a.dtype].floating then
    return a:allclose(b, { rtol = 0, atol = 0, equal_nan = true })
  end
  return a:equal(b)
end

-- Two names of one tensor here must stand for one there, too.
local function check_tied(first, value, pair, other)
  if rawequal(value, other) or same(value, other) then return end
  native.raise("invalid_argument", WHERE, ("%s and %s are one tensor here but differ in what is loaded"):format(
                 first.name, pair.name), "leave one of them out, or give each layer a parameter of its own")
end

-- An empty tensor waits for its shape: it takes the loaded one's.
local function copy_into(target, value)
  value = value:detach()
  if target:numel() == 0 then
    native.assign(target, value:clone():to(target.dtype):to(target.device))
  else
    native.call("copy", { target, value:to(target.device) })
  end
end

-- Looks at all that `given` has of a plan; answers which pair of each tensor is to be copied.
local function check_all(plan, given)
  local chosen = {}
  for _, pair in ipairs(plan.pairs) do
    local value, target = given[pair.source], pair.tensor
    if value ~= nil then
      check(pair.name, target, value)
      local before, now = plan.loaded[target], chosen[target]
      if now then
        check_tied(now, given[now.source], pair, value)
      elseif before then
        check_tied(before, value:to(target.dtype), pair, target:detach())
      else
        chosen[target] = pair
      end
    end
  end
  return chosen
end

local function copy_all(plan, given)
  for target, pair in pairs(check_all(plan, given)) do
    copy_into(target, given[pair.source])
    plan.loaded[target] = pair
  end
end

---Copies the tensors of a plan that are in `given`. All of them are looked at before the first is written; what earlier
---calls with this plan have written stays.
function loading.copy(plan, given)
  require("perigee").no_grad(copy_all, plan, given)
end

return loading
