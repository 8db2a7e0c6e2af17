-- SPDX-License-Identifier: Apache-2.0
-- WebDataset's shards: tar archives in which files of one name, up to its first dot, are one sample, and what follows
-- the dot is the name of a field. A place is a list of such files.

local native = require "perigee.native"
local reader = require "perigee.data.records.reader"
local tar = require "perigee.data.records.tar"

local shards = { finish = tar.FINISH, is_packed = reader.is_gzip }

local KINDS = { bytes = true, int64 = true, json = true, npy = true, image = true }
local IMAGES = { jpg = true, jpeg = true, png = true, webp = true }
local OPTIONS = { from = true, default = true }

local function refuse(where, text, hint) native.raise("invalid_argument", where, text, hint) end

function shards.describe(place, number)
  return ("sample %d (%s) at byte %d"):format(number, tostring(place.key):sub(1, 80), place.at)
end

-- A file's sample and field; nil of one that belongs to none.
local function parts_of(name)
  local folder, file = name:match "^(.*/)([^/]*)$"
  folder, file = folder or "", file or name
  if file:find "^__.*__$" then return nil end -- about the archive
  local key, field = file:match "^([^.]+)%.(.+)$"
  if key then return folder .. key, field:lower() end
end

---The samples of an archive. Behind them: the place of what is damaged, and how.
function shards.index(file)
  local list, last = {}, nil
  local at, problem = tar.each(file, function(name, data, size)
    local key, field = parts_of(name)
    if not key then return nil end
    if not last or last.key ~= key then
      last = { key = key, at = data - 512, fields = {} }
      list[#list + 1] = last
    end
    if last.fields[field] then last.twice = field end
    last.fields[field] = { data, size }
  end)
  if not at then return list end
  -- The sample that is being read may lack fields.
  if last and last.at <= at then list[#list] = nil end
  return list, { at = at, key = last and last.key or "none" }, problem
end

---Checks a spec: field -> what it becomes, or { what, from=, default= } and options of image.load.
function shards.rules(where, spec)
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
    rules[name] = rule
  end
  return rules
end

local decoders = {}
function decoders.bytes(_, bytes) return bytes end
function decoders.int64(_, bytes, where)
  local digits = bytes:match "^%s*(%-?%d+)%s*$"
  local number = digits and tonumber(digits)
  if not number or math.abs(number) > 2 ^ 53 then return nil, "no whole number" end
  return native.host.from_bytes(where, native.words.int64s { number }, native.dtypes.by_name.int64, {})
end
function decoders.json(_, bytes) return require("perigee").json.decode(bytes) end
function decoders.npy(_, bytes, where) return native.read_bytes(bytes, ".npy", nil, where).data end
function decoders.image(rule, bytes)
  local options = { bytes }
  for key, v in pairs(rule.options) do options[key] = v end
  return require("perigee").image.load(options)
end

local function found_field(place, rule)
  for _, field in ipairs(rule.from) do
    if place.fields[field] then return field, place.fields[field] end
  end
end

---The sample at a place, or nil and what is wrong.
function shards.sample(where, file, place, rules)
  if place.twice then return nil, ("it has the field %q twice"):format(place.twice) end
  local sample = { __key__ = place.key }
  if not rules then
    for field, at in pairs(place.fields) do sample[field] = file:read(at[1], at[2]) end
    return sample
  end
  for name, rule in pairs(rules) do
    local field, at = found_field(place, rule)
    if field then
      local ok, value, problem = pcall(decoders[rule.kind], rule, file:read(at[1], at[2]), where)
      if not ok then
        if not native.is_error(value) then error(value, 0) end
        value, problem = nil, (value.message:gsub("^[%w_.]+: ", ""))
      end
      if value == nil then return nil, ("field %q: %s"):format(field, problem) end
      sample[name] = value
    elseif rule.default ~= nil then
      sample[name] = rule.default
    else
      return nil, ("it has no field %q, and spec.%s no default"):format(table.concat(rule.from, ";"), name)
    end
  end
  return sample
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
