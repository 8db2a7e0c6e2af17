-- SPDX-License-Identifier: Apache-2.0
-- WebDataset's shards: what a sample is in one, and what a spec asks for. The source of records reads them.

local native = require "perigee.native"
local tar = require "perigee.data.records.tar"

local shards = { name = "tar", finish = tar.FINISH }

local KINDS = { bytes = true, int64 = true, json = true, npy = true, image = true }
local IMAGES = { jpg = true, jpeg = true, png = true, webp = true }
local OPTIONS = { from = true, default = true }

local function refuse(where, text, hint) native.raise("invalid_argument", where, text, hint) end

-- Options of image.load that the source takes, and those that need more.
local COUNTS = { channels = true, scale = true, max_pixels = true }
local MORE = { crop = true, size = true, filter = true, draft = true }

local function is_more(options)
  return options.crop ~= nil or options.size ~= nil
end

local function check_picture(what, options)
  for key, v in pairs(options) do
    if not COUNTS[key] and not MORE[key] then
      refuse(("%s has an unknown option %q"):format(what, tostring(key)), "image.load's are known, from and default")
    end
    if COUNTS[key] and (type(v) ~= "number" or v % 1 ~= 0 or v < 1) then
      refuse(("%s: %s must be a count, got %s"):format(what, key, native.describe(v)))
    end
  end
  if options.channels and options.channels > 4 then
    refuse(("%s: channels must be 1, 2, 3 or 4, got %d"):format(what, options.channels))
  end
end

-- Checks a spec: field -> what it becomes, or { what, from=, default= } and options of image.load.
local function rules_of(where, spec)
  local rules = {}
  for name, given in pairs(spec) do
    local row = type(given) == "string" and { given } or given
    local what = ("spec.%s"):format(tostring(name))
    if type(name) ~= "string" or not native.is_plain(row) then
      refuse(where, what .. " must be a kind or a table, got " .. native.describe(given),
             "spec={ jpg=\"image\", cls=\"int64\" }")
    end
    if not KINDS[row[1]] then
      refuse(where, ("%s must be bytes, int64, json, npy or image, got %s"):format(what, native.describe(row[1])))
    end
    local rule = { kind = row[1], from = {}, default = row.default, options = {} }
    for key, v in pairs(row) do
      if key ~= 1 and not OPTIONS[key] then
        if rule.kind ~= "image" then
          refuse(where, ("%s has an unknown option %q"):format(what, tostring(key)), "from and default are known")
        end
        rule.options[key] = v
      end
    end
    if row.from ~= nil and type(row.from) ~= "string" then
      refuse(where, ("%s: from must be a string such as \"jpg;png\", got %s"):format(what, native.describe(row.from)))
    end
    for field in (row.from or name):gmatch "[^;]+" do rule.from[#rule.from + 1] = field:lower() end
    if rule.kind == "image" then check_picture(what, rule.options) end
    rules[name] = rule
  end
  return rules
end

-- What a function of the script, which may run on workers, makes of samples where the source alone does not: JSON,
-- pictures that are cropped or resized, and what stands for fields that are missing.
local function finisher(rules)
  return function(sample)
    local pg, errors = require "perigee", require "perigee.native"
    local place = sample.__place__
    sample.__place__ = nil
    for name, rule in pairs(rules) do
      local value, ok, made = sample[name], true, sample[name]
      if value == nil then
        made = rule.default
      elseif rule.kind == "json" then
        ok, made = pcall(pg.json.decode, value)
      elseif rule.kind == "image" then
        local options = { value }
        for key, v in pairs(rule.options) do options[key] = v end
        ok, made = pcall(pg.image.load, options)
      end
      if not ok then
        if not errors.is_error(made) then error(made, 0) end
        errors.raise("data_loss", "data.records", ("%s: field %q: %s"):format(place, rule.field,
                     (made.message:gsub("^[%w_.]+: ", ""))))
      end
      sample[name] = made
    end
    return sample
  end
end

local function option_lines(options)
  local lines = {}
  for key, v in pairs(options) do
    if COUNTS[key] then lines[#lines + 1] = ("%s=%.0f"):format(key, v) end
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end

---What the source of records takes of a spec, and a function that finishes its samples, or nil.
---@param where string
---@param spec? table
function shards.rules(where, spec)
  local own = { fields = {}, types = {}, from = {}, codec_options = {}, optional = {}, raw = not spec }
  local rules, names, rest = rules_of(where, spec or {}), {}, {}
  for name in pairs(rules) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local rule = rules[name]
    local in_lua = rule.kind == "json" or rule.kind == "image" and is_more(rule.options)
    own.fields[i], own.types[i] = name, in_lua and "bytes" or rule.kind
    own.from[i] = table.concat(rule.from, ";")
    own.codec_options[i] = rule.kind == "image" and not in_lua and option_lines(rule.options) or ""
    if rule.default ~= nil then own.optional[#own.optional + 1] = name end
    if in_lua or rule.default ~= nil then
      rest[name] = { kind = in_lua and rule.kind or "whole", default = rule.default, options = rule.options,
                     field = #rule.from == 1 and rule.from[1] or name }
    end
  end
  return own, next(rest) and finisher(rest) or nil
end

-- The bytes of a file that another function writes.
local function written(ending, write)
  local name = os.tmpname()
  local path = name .. "." .. ending
  local ok, bytes = pcall(function()
    write(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read "*a"
    file:close()
    return text
  end)
  os.remove(path)
  os.remove(name)
  if not ok then error(bytes, 0) end
  return bytes
end

-- A field's value as bytes; nil where it is none.
local function encoded(where, field, value)
  local ending = field:match "([^.]+)$"
  if type(value) == "string" then return value end
  if native.is_tensor(value) then
    native.host.need_contents(where, value)
    if ending == "npy" then
      return written(ending, function(path) native.write(path, { "data" }, { value:detach():to "cpu" }) end)
    end
    if IMAGES[ending] then
      return written(ending, function(path) require("perigee").image.save(path, value) end)
    end
    if value:numel() ~= 1 or native.dtypes.by_name[value.dtype].floating then return nil end
    return (tostring(value:item_int64()):gsub("LL$", ""))
  end
  if ending == "json" and (native.is_plain(value) or type(value) == "boolean" or type(value) == "number") then
    return require("perigee").json.encode(value)
  end
  if type(value) == "number" then return (value % 1 == 0 and "%.0f" or "%.17g"):format(value) end
end

---A sample as files of an archive: its `__key__`, or its number, and fields in the order of their names.
function shards.bytes(where, sample, i)
  if type(sample) == "string" then
    refuse(where, ("sample %d must be a table of fields for an archive, got a string"):format(i),
           "{ txt=\"...\" } becomes a file KEY.txt")
  end
  local key, names, parts = sample.__key__, {}, {}
  if key == nil then key = ("%08d"):format(i - 1) end
  if type(key) ~= "string" or #key > 1000 or not key:find "^[^%z]*[^./%z]$" or key:match("[^/]*$"):find("%.") then
    refuse(where, ("__key__ of sample %d must be a name without dots, got %s"):format(i, native.describe(key)))
  end
  for name in pairs(sample) do
    if type(name) ~= "string" or name ~= "__key__" and (name:find "[/%z%u]" or name:find "^%.*$") then
      refuse(where, ("sample %d must have names of files' endings in small letters, got field %s"):format(i,
             native.describe(name)))
    end
    if not name:find "^__.*__$" then names[#names + 1] = name end
  end
  table.sort(names)
  if #names == 0 then refuse(where, ("sample %d has no fields"):format(i)) end
  for k, name in ipairs(names) do
    local bytes = encoded(where, name, sample[name])
    if not bytes then
      refuse(where, ("%s of sample %d cannot be a file, got %s"):format(name, i, native.describe(sample[name])),
             "strings, numbers, tensors as npy, png, jpg or webp, tables as json")
    end
    parts[k] = tar.member(key .. "." .. name, bytes)
  end
  return table.concat(parts)
end

return shards
