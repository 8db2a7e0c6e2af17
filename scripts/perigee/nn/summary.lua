-- SPDX-License-Identifier: Apache-2.0
-- model:summary{input=...}: runs the model once and says what every layer gave and holds.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"

local summary = {}

---@class perigee.Summary
---@field rows {name: string, class: string, depth: integer, output: string?, parameters: integer, calls: integer,
---  shared: boolean, bytes: integer}[]
---@field parameters integer elements of all parameters, each counted once
---@field trainable integer
---@field bytes integer of parameters and buffers
---@field output_bytes integer of what all layers without layers inside gave: what training keeps, roughly
local Summary = {}
Summary.__index = Summary
Summary.__perigee_said = true -- the prompt does not show it a second time

-- "1,234,567"
local function thousands(n)
  return (("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

local UNITS = { "bytes", "KiB", "MiB", "GiB", "TiB" }
local function amount(bytes)
  local unit = 1
  while bytes >= 1024 and unit < #UNITS do bytes, unit = bytes / 1024, unit + 1 end
  return (unit == 1 and "%d %s" or "%.1f %s"):format(bytes, UNITS[unit])
end

local function bytes_of(t) return t:numel() * native.dtypes.by_name[t.dtype].bytes end

-- The shape of what a layer gave; of several tensors in a table: all of them.
local function shape_text(v)
  if native.is_tensor(v) then return tostring(v.shape) end
  if type(v) ~= "table" then return type(v) end
  local parts = {}
  for i, x in ipairs(v) do parts[i] = shape_text(x) end
  return table.concat(parts, " ")
end

local function output_bytes(v)
  if native.is_tensor(v) then return bytes_of(v) end
  local sum = 0
  for _, x in ipairs(type(v) == "table" and v or {}) do sum = sum + output_bytes(x) end
  return sum
end

-- ---- running the model ----

local function bad_input()
  native.raise("invalid_argument", "summary",
               "needs the shape of one sample, a tensor, or a list of them, one an input",
               "model:summary{input={1, 28, 28}}")
end

local function is_shape(v)
  if type(v) ~= "table" or #v == 0 then return type(v) == "table" and next(v) == nil end
  for _, n in ipairs(v) do
    if type(n) ~= "number" or n < 0 or n ~= math.floor(n) then return false end
  end
  return true
end

local function make_input(v, batch, dtype)
  if native.is_tensor(v) then return v end
  if not is_shape(v) then bad_input() end
  local size = { batch, unpack(v) }
  return require("perigee").zeros(size, { dtype = dtype })
end

-- The inputs on the model's device: of shapes zeros, with a batch axis in front.
local function make_inputs(self, options)
  local pg, given = require "perigee", options.input
  local list = (native.is_tensor(given) or is_shape(given)) and { given } or given
  local dtypes = type(options.dtype) == "table" and options.dtype or {}
  local single = type(options.dtype) == "string" and options.dtype or nil
  local first = self:parameters()[1]
  return pg.device(first and first.device or pg.device(), function()
    local inputs = {}
    for i, v in ipairs(list) do inputs[i] = make_input(v, options.batch or 1, dtypes[i] or single) end
    return inputs
  end)
end

-- What every layer inside gave at its first call, and how often it was called.
local function run(self, inputs)
  local pg, seen, handles, training = require "perigee", {}, {}, {}
  for _, layer in ipairs(walk.modules(self)) do
    training[layer] = layer.training
    handles[#handles + 1] = layer:hook("forward", function(l, _, output)
      local note = seen[l] or { calls = 0, output = shape_text(output), bytes = output_bytes(output) }
      note.calls = note.calls + 1
      seen[l] = note
    end)
  end
  local ok, problem = pcall(pg.no_grad, function()
    self:eval()
    self(unpack(inputs))
  end)
  for _, handle in ipairs(handles) do handle:remove() end
  for layer, on in pairs(training) do rawset(layer, "training", on) end
  if not ok then error(problem, 0) end
  return seen
end

-- ---- counting ----

-- Elements and bytes of the tensors directly in a layer that were not counted before.
local function own_size(layer, counted)
  local elements, bytes = 0, 0
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind ~= "layer" and not counted[entry.value] then
      counted[entry.value] = true
      bytes = bytes + bytes_of(entry.value)
      if entry.kind == "parameter" then elements = elements + entry.value:numel() end
    end
  end
  return elements, bytes
end

local function add_rows(result, layer, name, depth, notes, state)
  local note = notes[layer] or { calls = 0, bytes = 0 }
  local row = { name = name, class = getmetatable(layer).__name, depth = depth, output = note.output,
                calls = note.calls, shared = state.seen[layer] == true, parameters = 0, bytes = 0 }
  result.rows[#result.rows + 1] = row
  if row.shared then return end
  state.seen[layer] = true
  row.parameters, row.bytes = own_size(layer, state.counted)
  local children = 0
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "layer" then
      children = children + 1
      add_rows(result, entry.value, entry.name, depth + 1, notes, state)
    end
  end
  if children == 0 then result.output_bytes = result.output_bytes + note.bytes * note.calls end
end

-- ---- showing ----

local HEAD = { "layer", "output", "parameters", "bytes" }

local function cells(row)
  local label = ("  "):rep(row.depth) .. (row.name == "" and row.class or ("%s (%s)"):format(row.name, row.class))
  if row.calls > 1 and not row.shared then label = ("%s x%d"):format(label, row.calls) end
  if row.shared then return { label, "shared, see above", "", "" } end
  return { label, row.output or "not called", row.parameters > 0 and thousands(row.parameters) or "",
           row.bytes > 0 and thousands(row.bytes) or "" }
end

function Summary:__tostring()
  local lines, widths = { HEAD }, {}
  for _, row in ipairs(self.rows) do lines[#lines + 1] = cells(row) end
  for _, line in ipairs(lines) do
    for i, cell in ipairs(line) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  local total = widths[1] + widths[2] + widths[3] + widths[4] + 6
  for i, line in ipairs(lines) do
    lines[i] = (("%s%s  %s%s  %s%s  %s%s"):format(
      line[1], (" "):rep(widths[1] - #line[1]), line[2], (" "):rep(widths[2] - #line[2]),
      (" "):rep(widths[3] - #line[3]), line[3], (" "):rep(widths[4] - #line[4]), line[4]):gsub("%s+$", ""))
  end
  table.insert(lines, 2, ("-"):rep(total))
  lines[#lines + 1] = ("-"):rep(total)
  lines[#lines + 1] = ("%s parameters, %s trainable"):format(thousands(self.parameters), thousands(self.trainable))
  lines[#lines + 1] = ("%s of parameters and buffers, %s of outputs"):format(amount(self.bytes),
                                                                            amount(self.output_bytes))
  return table.concat(lines, "\n")
end

---Runs the model once, without gradients and as in evaluation, and prints a line a layer: the shape of its output, the
---parameters and bytes that it holds itself; then the totals. What occurs several times counts once. `input` is the
---shape of one sample, `{1, 28, 28}`, or a tensor; for a model of several inputs a list of these. `batch` samples are
---made, of zeros; `dtype` is one name or a list of them.
---@param options {input: integer[]|perigee.Tensor|table, dtype?: string|string[], batch?: integer}
---@return perigee.Summary summary what was printed: `.rows .parameters .trainable .bytes .output_bytes`
function summary.summary(self, options)
  if type(options) ~= "table" or options.input == nil then bad_input() end
  for key in pairs(options) do
    if key ~= "input" and key ~= "dtype" and key ~= "batch" then
      local near = native.suggest(tostring(key), { "input", "dtype", "batch" })
      native.raise("invalid_argument", "summary", ("unknown option %q"):format(tostring(key)),
                   near and ("did you mean %q?"):format(near))
    end
  end
  if type(options.input) ~= "table" and not native.is_tensor(options.input) then bad_input() end
  local notes = run(self, make_inputs(self, options))
  local result = setmetatable({ rows = {}, output_bytes = 0, parameters = self:count_parameters(),
                                trainable = self:count_parameters { trainable = true }, bytes = self:size() }, Summary)
  add_rows(result, self, "", 0, notes, { seen = {}, counted = {} })
  print(tostring(result))
  return result
end

return summary
