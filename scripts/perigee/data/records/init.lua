-- SPDX-License-Identifier: Apache-2.0
-- data.records and data.write_records: TFRecord files and WebDataset's archives, one or many, compressed or not, as a
-- pipeline and from one.

local native = require "perigee.native"
local framed = require "perigee.data.records.framed"
local shards = require "perigee.data.records.shards"
local pipeline = require "perigee.data.pipeline"
local elements = require "perigee.data.elements"
local plugins = require "perigee.data.plugins"

local READ, WRITE = "data.records", "data.write_records"

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

-- TFRecord files, or, by their names, archives.
local function kind_of(path)
  local name = path:lower()
  return (name:find "%.tar$" or name:find "%.tar%.gz$" or name:find "%.tgz$") and shards or framed
end

-- All files must be of one kind: a spec says fields of one.
local function kind_of_all(where, paths)
  local kind = kind_of(paths[1])
  for _, path in ipairs(paths) do
    if kind_of(path) ~= kind then
      native.raise("invalid_argument", where, ("%s and %s are of different kinds"):format(paths[1], path))
    end
  end
  return kind
end

local read_records = native.signature(READ, {
  { "path", "any", required = true, type = "string|string[]",
    doc = "the file, or several, or a pattern: part-{000..009}.tfrecord, part-{000..009}.tar.gz" },
  { "spec", "table", named = true,
    doc = "fields: of Examples name to dtype, or to { dtype, shape=, default= }; of archives ending to \"bytes\", " ..
      "\"int64\", \"json\", \"npy\" or \"image\", or to { kind, from=, default= }; without it all is bytes" },
  { "on_error", "string", named = true, default = "raise", choices = { "raise", "skip" },
    doc = "what damaged records do; \"skip\" reads all files once to find them" },
  { "workers", "any", named = true, type = "integer|\"auto\"",
    doc = "threads that read and parse; on the script's thread if not given" } })

local function stage_of(name, options, shown) return plugins.parts.stage_of(READ, name, options, shown or "records") end

local function check_there(paths)
  for _, path in ipairs(paths) do
    local file, problem = io.open(path, "rb")
    if not file then native.raise("not_found", READ, tostring(problem)) end
    file:close()
  end
end

-- Where the records of all files are, as one tensor, and what is damaged; nil where some file is compressed.
local function index(kind, paths, skips)
  local stage = stage_of("record_index", { paths = paths, kind = kind.name, tell = skips })
  local places, problems = {}, {}
  for i = 1, #paths do
    local found = native.data.stage_get(stage, i)
    if found.packed then return nil end
    places[i], problems[#problems + 1] = found.places, found.__problem__
  end
  return require("perigee").cat(places, 1), problems
end

local function with(options, more)
  local all = {}
  for k, v in pairs(options) do all[k] = v end
  for k, v in pairs(more) do all[k] = v end
  return all
end

-- What is wrong with a sample, or with what a function of the script makes of it; nil: nothing is.
local function problem_of(sample, finish)
  if sample.__problem__ or not finish then return sample.__problem__ end
  local ok, problem = pcall(finish, sample)
  if ok then return nil end
  if not native.is_error(problem) or problem.code ~= "data_loss" then error(problem, 0) end
  return (problem.message:gsub("^.-data%.records: ", ""))
end

-- Records of plain files, by position. With `skips` all are read once to find what is damaged.
local function by_position(own, places, finish, skips, skipped)
  if skips then
    local stage, whole = stage_of("records", with(own, { places = places, tell = true })), {}
    for i = 1, places:size(1) do
      local problem = problem_of(native.data.stage_get(stage, i), finish)
      if problem then skipped[#skipped + 1] = problem else whole[#whole + 1] = i - 1 end
    end
    if #whole < places:size(1) then
      local pg = require "perigee"
      places = pg.index_select(places, 1, pg.tensor(whole, { dtype = "int64", device = "cpu" }))
    end
  end
  return plugins.parts.dataset_of(READ, "records", with(own, { places = places }), "records",
                                  plugins.parts.shown("source", "records"))
end

-- Records of files of which some are compressed: one after the other, a file in memory at a time.
local function one_by_one(own, finish, skips, skipped)
  local shown = plugins.parts.shown("source", "records")
  local function open(options)
    return function() return stage_of("packed_records", options, shown) end
  end
  if skips then
    local left_out, i = {}, 0
    for _, sample in plugins.parts.in_order(open(with(own, { tell = true })), "records"):each() do
      local problem = problem_of(sample, finish)
      if problem then skipped[#skipped + 1], left_out[#left_out + 1] = problem, i end
      i = i + 1
    end
    own = with(own, { left_out = require("perigee").tensor(left_out, { dtype = "int64", device = "cpu" }) })
  end
  return plugins.parts.in_order(open(own), "records", pipeline.of_function("records", own))
end

---Records of files, as samples. TFRecord: { data = bytes }, or with spec the fields of tf.train.Example: "int64",
---"float32" or "bytes", of the shape {} if not given, or a list, or "any" for a length of its own; bytes are strings,
---with one axis lists of strings; numbers are tensors. WebDataset's archives (.tar, .tar.gz, .tgz): files of one name
---are a sample, their endings its fields, and `__key__` the name; { "image", size=224 } takes options of image.load,
---{ "image", from="jpg;png" } the first ending that is there. Plain files are read by position; where some are
---compressed (gzip, or TensorFlow's ZLIB), records come one after the other, and a file is unpacked in memory at a
---time. With on_error="skip" the second result is a list of what was left out and why.
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
  local paths, skips, skipped = all_paths(o.path), o.on_error == "skip", {}
  local kind, workers = kind_of_all(READ, paths), elements.check_workers(READ, o.workers)
  local own, finish = kind.rules(READ, o.spec)
  own.paths, own.kind, own.placed = paths, kind.name, finish ~= nil
  check_there(paths)
  local places, problems = index(kind, paths, skips)
  local ds
  if places then
    skipped = problems
    ds = by_position(own, places, finish, skips, skipped)
  else
    ds = one_by_one(own, finish, skips, skipped)
  end
  if finish then
    ds = ds:map { finish, workers = o.workers }
  elseif workers then
    elements.on_threads(ds, o.workers, workers)
  end
  return ds, skipped
end

local read_write = native.signature(WRITE, {
  { "path", "string", required = true,
    doc = "the file, or with per_file a pattern: part-{000..009}.tfrecord; .tar, .tar.gz and .tgz are archives" },
  { "samples", "any", required = true, type = "perigee.Dataset|table[]|string[]",
    doc = "each a record's bytes, or the fields of a tf.train.Example: tensors, strings, lists of strings; for an " ..
      "archive fields by endings of files: strings, numbers, tensors as npy, png, jpg or webp, tables as json" },
  { "per_file", "integer", named = true, doc = "records in a file at most" },
  { "compression", "string", named = true, choices = { "none", "gzip" },
    doc = "gzip where the name ends in .gz or .tgz if not given" } })

-- Files under their names only when they are whole.
local function writer(paths, kind, packs)
  local file, at, done = nil, 0, {}
  local self = {}
  local function check(ok, problem)
    if not ok then native.raise("unavailable", WRITE, ("%s: %s"):format(paths[at], tostring(problem))) end
    return ok
  end
  -- The whole file in place of what was written.
  local function pack()
    local part = paths[at] .. ".part"
    local plain = check(io.open(part, "rb"))
    local bytes = plain:read "*a"
    plain:close()
    local t = native.host.from_bytes(WRITE, bytes, native.dtypes.by_name.uint8, { #bytes })
    native.write(part .. ".gz", { "data" }, { t })
    check(os.rename(part .. ".gz", part))
  end
  function self.finish()
    if not file then return end
    local written, unwritten = file:write(kind.finish)
    local whole, problem = file:close()
    file = nil
    check(written, unwritten)
    check(whole, problem)
    if packs then pack() end
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
  function self.add(sample, i) check(file:write(kind.bytes(WRITE, sample, i))) end
  function self.abandon()
    if file then file:close() end
    if at > 0 and paths[at] then os.remove(paths[at] .. ".part") end
  end
  self.done = done
  return self
end

---Writes samples as TFRecord files, or as WebDataset's archives, each under its name when it is whole. A sample's
---`__key__` is the name of its files in an archive; without one it is the sample's number.
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
  local packs = o.compression == "gzip" or not o.compression and (paths[1]:find "%.gz$" or paths[1]:find "%.tgz$")
  local out = writer(paths, kind_of_all(WRITE, paths), packs)
  local function write_all()
    out.next_file()
    local function add(i, sample)
      if o.per_file and i > 1 and (i - 1) % o.per_file == 0 then out.next_file() end
      if type(sample) ~= "string" and not native.is_plain(sample) then
        native.raise("invalid_argument", WRITE, ("sample %d must be a string or a table of fields, got %s"):format(i,
                     native.describe(sample)))
      end
      out.add(sample, i)
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
