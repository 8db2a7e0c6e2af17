-- SPDX-License-Identifier: Apache-2.0
-- data.csv: a table in text, as one tensor, or its rows as samples.

local native = require "perigee.native"

local WHERE = "data.csv"
local TYPES = { float32 = true, float64 = true, int64 = true, string = true }

local function refuse(text, hint) native.raise("invalid_argument", WHERE, text, hint) end

local EXAMPLE = "columns={ x={\"float32\", from={\"width\", \"height\"}}, y=\"int64\" }, or by their order " ..
                "{ {\"x\", \"float32\", 2}, {\"y\", \"int64\"} }"

local function check_row(what, row, known)
  if not native.is_plain(row) then refuse(("%s must be a dtype or a table, got %s"):format(what,
                                          native.describe(row)), EXAMPLE) end
  for key in pairs(row) do
    if not known[key] then
      refuse(("%s has an unknown option %s"):format(what, type(key) == "string" and ("%q"):format(key) or
             native.describe(key)), EXAMPLE)
    end
  end
end

-- A field of some columns behind what the source is given of each.
local function add(own, what, field, dtype, columns, is_vector, default)
  if type(field) ~= "string" or field == "" then
    refuse(("%s must have a name, got %s"):format(what, native.describe(field)), EXAMPLE)
  end
  if not TYPES[dtype] then
    refuse(("%s must be float32, float64, int64 or string, got %s"):format(what, native.describe(dtype)))
  end
  if is_vector and dtype == "string" then refuse(what .. " is a string, and can be of one column only") end
  local fits = type(default) == (dtype == "string" and "string" or "number")
  if default ~= nil and (not fits or dtype == "int64" and default % 1 ~= 0) then
    refuse(("%s: default must be of dtype %s, got %s"):format(what, dtype, native.describe(default)))
  end
  for _, column in ipairs(columns) do
    local n = #own.fields + 1
    own.fields[n], own.types[n], own.columns[n] = field, dtype .. (is_vector and "[]" or ""), column
    own.defaults[n] = type(default) == "number" and ("%.17g"):format(default) or default or ""
  end
end

-- Columns in the file's order: { name, dtype, count, default= } each.
local function add_in_order(own, list)
  local known, at = { true, true, true, default = true }, 1
  for i, row in ipairs(list) do
    local what = ("columns[%d]"):format(i)
    check_row(what, row, known)
    local count, columns = row[3] or 1, {}
    if type(count) ~= "number" or count % 1 ~= 0 or count < 1 or count > 1e6 then
      refuse(("%s: a count of columns must be 1 or more, got %s"):format(what, native.describe(count)))
    end
    for k = 1, count do columns[k] = tostring(at + k - 1) end
    at = at + count
    add(own, what, row[1], row[2], columns, row[3] ~= nil, row.default)
  end
end

-- Columns by the names in the file's first line: field to dtype, or to { dtype, from=, default= }.
local function add_by_name(own, columns)
  local names, known = {}, { true, from = true, default = true }
  for name in pairs(columns) do
    if type(name) ~= "string" then
      refuse(("columns has the key %s; it is a list, or a table by name"):format(native.describe(name)), EXAMPLE)
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local row = type(columns[name]) == "string" and { columns[name] } or columns[name]
    local what = ("columns.%s"):format(name)
    check_row(what, row, known)
    local from = row.from or name
    local list = type(from) == "string" and { from } or from
    if not native.is_plain(list) or #list == 0 then
      refuse(("%s: from must be a name of a column or a list of them, got %s"):format(what, native.describe(from)))
    end
    for i, column in ipairs(list) do
      if type(column) ~= "string" then
        refuse(("%s: from[%d] must be a name of a column, got %s"):format(what, i, native.describe(column)))
      end
    end
    add(own, what, name, row[1], list, type(from) ~= "string", row.default)
  end
  own.header = true
end

local function paths_of(given)
  local paths = type(given) == "string" and { given } or given
  if not native.is_plain(paths) or #paths == 0 then
    refuse("path must be a string or a list of them, got " .. native.describe(given))
  end
  for i, path in ipairs(paths) do
    if type(path) ~= "string" then refuse(("path %d must be a string, got %s"):format(i, native.describe(path))) end
  end
  return paths
end

-- Rows as samples.
local function rows(o)
  local own = { paths = paths_of(o.path), delimiter = o.delimiter, skip = o.skip, fields = {}, types = {},
                columns = {}, defaults = {} }
  if o.dtype then refuse("dtype is that of a tensor; columns= has one for each column", EXAMPLE) end
  if #o.columns > 0 then add_in_order(own, o.columns) else add_by_name(own, o.columns) end
  if not own.fields[1] then refuse("columns has none", EXAMPLE) end
  local elements, parts = require "perigee.data.elements", require("perigee.data.plugins").parts
  local workers = elements.check_workers(WHERE, o.workers)
  local ds = parts.dataset_of(WHERE, "csv", own, "csv", parts.shown("source", "csv"))
  if o.on_error == "skip" then ds = elements.or_skipped(ds, "csv") end
  return workers and elements.on_threads(ds, o.workers, workers) or ds
end

local read_csv = native.signature(WHERE, {
  { "path", "any", required = true, type = "string|string[]", doc = "the file; with columns several too" },
  { "delimiter", "string", named = true, doc = "between columns; a comma, or a tab for .tsv, if not given" },
  { "skip", "integer", named = true, doc = "lines at the beginning that are left out" },
  { "dtype", "dtype", named = true, doc = "of the tensor: \"float32\" if not given, \"float64\" or \"int64\"" },
  { "columns", "table", named = true,
    doc = "makes samples: by the names in the first line field to dtype, or to { dtype, from=, default= }; or a " ..
      "list, in the file's order, of { field, dtype, count, default= }; dtypes: float32, float64, int64, string" },
  { "workers", "any", named = true, type = "integer|\"auto\"",
    doc = "threads that read samples; on the script's thread if not given" },
  { "on_error", "string", named = true, default = "raise", choices = { "raise", "skip" },
    doc = "what a damaged row does; \"skip\" leaves it out, counts it and logs why" } })
---A table in text, plain or .gz. Without `columns` a file of numbers as one tensor [rows, columns]; with it a dataset
---of its rows, by position: tensors without axes, a vector where a field is of several columns, strings. `default` is
---what an empty column stands for. Compressed files stay in memory. What is damaged is an error that names the line.
---@return perigee.Tensor|perigee.Dataset
local function csv(...)
  local first = ...
  local o
  if select("#", ...) == 1 and native.is_plain(first) and type(first[2]) == "string" then
    refuse("several files are a list: data.csv { { \"a.csv\", \"b.csv\" }, columns=... }")
  end
  o = read_csv(...)
  if o.columns then return rows(o) end
  if type(o.path) ~= "string" then
    refuse("path must be a string, got " .. native.describe(o.path), "several files are read with columns=")
  end
  if o.workers or o.on_error == "skip" then refuse("workers and on_error are of samples, which columns= makes") end
  local tensors = native.read(o.path, { delimiter = o.delimiter, skip = o.skip, dtype = o.dtype }, WHERE)
  if not tensors.data then refuse(o.path .. " is not a csv file") end
  return tensors.data
end

return csv
