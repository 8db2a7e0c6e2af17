-- SPDX-License-Identifier: Apache-2.0
-- data.records and data.write_records: TFRecord files, one or many, as a pipeline and from one.

local native = require "perigee.native"
local framing = require "perigee.events.records"
local example = require "perigee.data.records.example"
local pipeline = require "perigee.data.pipeline"

local READ, WRITE = "data.records", "data.write_records"
local HEAD, TAIL = framing.HEAD, framing.TAIL
local MOST_OPEN = 64 -- files at a time

---The names that "part-{000..009}.x" stands for; a name without braces stands for itself.
local function expand(path)
  local before, first, last, behind = path:match "^(.-){(%d+)%.%.(%d+)}(.*)$"
  if not before then return { path } end
  if tonumber(last) < tonumber(first) or tonumber(last) - tonumber(first) > 1e6 then
    native.raise("invalid_argument", READ, ("%q stands for no files"):format(path))
  end
  local list = {}
  for n = tonumber(first), tonumber(last) do
    for _, rest in ipairs(expand(behind)) do
      list[#list + 1] = before .. ("%0" .. #first .. "d"):format(n) .. rest
    end
  end
  return list
end

local function all_paths(given)
  local list = {}
  for i, path in ipairs(type(given) == "string" and { given } or given) do
    if type(path) ~= "string" then
      native.raise("invalid_argument", READ, ("path %d must be a string, got %s"):format(i, native.describe(path)))
    end
    for _, name in ipairs(expand(path)) do list[#list + 1] = name end
  end
  if #list == 0 then native.raise("invalid_argument", READ, "needs a path") end
  return list
end

-- Files that were opened, not all at a time.
local function opener()
  local open, count = {}, 0
  return function(path)
    if open[path] then return open[path] end
    if count >= MOST_OPEN then
      for _, file in pairs(open) do file:close() end
      open, count = {}, 0
    end
    local file, problem = io.open(path, "rb")
    if not file then native.raise("not_found", READ, tostring(problem)) end
    open[path], count = file, count + 1
    return file
  end
end

local function place(path, at, number) return ("%s: record %d at byte %d"):format(path, number, at) end

-- The data at a position, or nil and what is wrong.
local function data_at(file, at)
  file:seek("set", at)
  local head = file:read(HEAD)
  local length = head and #head == HEAD and framing.length_of(head)
  if not length then return nil, "wrong checksum of its length" end
  local body = file:read(length + TAIL)
  if not body or #body < length + TAIL then return nil, "the file ends inside of it" end
  local data = framing.data_of(body, length)
  if not data then return nil, "wrong checksum of its content" end
  return data
end

-- Where a file's records are: only their first bytes are read. The second result is what is wrong with the rest.
local function index(file, path)
  local size, list, at = file:seek("end"), {}, 0
  while at and at < size do
    file:seek("set", at)
    local head, problem = file:read(HEAD), nil
    local length = head and #head == HEAD and framing.length_of(head)
    if not head or #head < HEAD then
      problem = "the file ends inside of it"
    elseif not length then
      problem = "wrong checksum of its length"
      if at == 0 and head:sub(1, 2) == "\31\139" then problem = "the file is compressed; gunzip it first" end
    elseif at + HEAD + length + TAIL > size then
      problem = "the file ends inside of it"
    end
    if problem then return list, ("%s: %s"):format(place(path, at, #list + 1), problem) end
    list[#list + 1] = at
    at = at + HEAD + length + TAIL
  end
  return list
end

local read_records = native.signature(READ, {
  { "path", "any", required = true, type = "string|string[]",
    doc = "the file, or several, or a pattern: part-{000..009}.tfrecord" },
  { "spec", "table", named = true,
    doc = "fields of the Examples: name to dtype, or to { dtype, shape=, default= }; without it records are bytes" },
  { "on_error", "string", named = true, default = "raise", choices = { "raise", "skip" },
    doc = "what damaged records do; \"skip\" reads all files once to find them" } })

---Records of TFRecord files, by position, as samples: { data = bytes }, or with spec the fields of tf.train.Example.
---A field's dtype is "int64", "float32" or "bytes"; its shape {} if not given, or a list, or "any" for a length of its
---own. Bytes are strings, with one axis lists of strings; numbers are tensors. With on_error="skip" the second result
---is a list of what was left out and why.
---@return perigee.Dataset records
---@return string[] skipped
local function records(...)
  local first = ...
  local list = select("#", ...) == 1 and native.is_plain(first) and #first > 1
  local o
  if list then -- many paths, the options among them
    local named, paths = {}, {}
    for k, v in pairs(first) do if type(k) == "number" then paths[k] = v else named[k] = v end end
    o = read_records(paths, named)
  else
    o = read_records(...)
  end
  if type(o.path) ~= "string" and not native.is_plain(o.path) then
    native.raise("invalid_argument", READ, "path must be a string or a list, got " .. native.describe(o.path))
  end
  local rules = o.spec and example.rules(READ, o.spec)
  local paths, open = all_paths(o.path), opener()
  local files, starts, numbers, skipped = {}, {}, {}, {}

  -- A sample, or nil and the whole message.
  local function sample_at(path, at, number)
    local data, problem = data_at(open(path), at)
    if data and not rules then return { data = data } end
    local sample
    if data then sample, problem = example.parse(READ, data, rules) end
    if sample then return sample end
    return nil, ("%s: %s"):format(place(path, at, number), problem)
  end

  for _, path in ipairs(paths) do
    local found, damage = index(open(path), path)
    if damage and o.on_error == "raise" then native.raise("data_loss", READ, damage) end
    for number, at in ipairs(found) do
      local problem
      if o.on_error == "skip" then problem = select(2, sample_at(path, at, number)) end
      if problem then
        skipped[#skipped + 1] = problem
      else
        local n = #starts + 1
        files[n], starts[n], numbers[n] = path, at, number
      end
    end
    skipped[#skipped + 1] = damage
  end

  local what = pipeline.of_function("records", { paths, starts, o.spec or false })
  return pipeline.source { name = "records", count = #starts, what = what, get = function(i)
    local sample, problem = sample_at(files[i], starts[i], numbers[i])
    if not sample then native.raise("data_loss", READ, problem) end
    return sample
  end }, skipped
end

local read_write = native.signature(WRITE, {
  { "path", "string", required = true, doc = "the file, or with per_file a pattern: part-{000..009}.tfrecord" },
  { "samples", "any", required = true, type = "perigee.Dataset|table[]|string[]",
    doc = "each a record's bytes, or the fields of a tf.train.Example: tensors, strings, lists of strings" },
  { "per_file", "integer", named = true, doc = "records in a file at most" } })

-- Files under their names only when they are whole.
local function writer(paths)
  local file, at, done = nil, 0, {}
  local self = {}
  local function check(ok, problem)
    if not ok then native.raise("unavailable", WRITE, ("%s: %s"):format(paths[at], tostring(problem))) end
    return ok
  end
  function self.finish()
    if not file then return end
    local whole, problem = file:close()
    file = nil
    check(whole, problem)
    check(os.rename(paths[at] .. ".part", paths[at]))
    done[#done + 1] = paths[at]
  end
  function self.next_file()
    self.finish()
    at = at + 1
    if not paths[at] then
      native.raise("invalid_argument", WRITE, ("more records than %d files hold"):format(#paths),
                   "a higher per_file, or a longer pattern")
    end
    local problem
    file, problem = io.open(paths[at] .. ".part", "wb")
    check(file, problem)
  end
  function self.add(data) check(file:write(framing.frame(data))) end
  function self.abandon()
    if file then file:close() end
    if at > 0 and paths[at] then os.remove(paths[at] .. ".part") end
  end
  self.done = done
  return self
end

---Writes samples as TFRecord files, each under its name when it is whole.
---@return string[] paths of the files that were written
local function write_records(...)
  local o = read_write(...)
  local paths, samples = expand(o.path), o.samples
  local is_dataset = pipeline.is_dataset(samples)
  if not is_dataset and not native.is_plain(samples) then
    native.raise("invalid_argument", WRITE, "samples must be a dataset or a list, got " .. native.describe(samples))
  elseif o.per_file and o.per_file < 1 then
    native.raise("invalid_argument", WRITE, "per_file must be at least 1, got " .. o.per_file)
  elseif #paths > 1 and not o.per_file then
    native.raise("invalid_argument", WRITE, "a pattern needs per_file", "per_file=1000")
  end
  local out = writer(paths)
  local function write_all()
    out.next_file()
    local function add(i, sample)
      if o.per_file and i > 1 and (i - 1) % o.per_file == 0 then out.next_file() end
      if type(sample) ~= "string" and not native.is_plain(sample) then
        native.raise("invalid_argument", WRITE, ("sample %d must be a string or a table of fields, got %s"):format(i,
                     native.describe(sample)))
      end
      out.add(type(sample) == "string" and sample or example.bytes(WRITE, sample, i))
    end
    if is_dataset then
      for i, sample in samples:each() do add(i, sample) end
    else
      for i, sample in ipairs(samples) do add(i, sample) end
    end
    out.finish()
  end
  local ok, problem = pcall(write_all)
  if not ok then
    out.abandon()
    error(problem, 0)
  end
  return out.done
end

return { records = records, write_records = write_records }
