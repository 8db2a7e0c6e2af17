-- SPDX-License-Identifier: Apache-2.0
-- pg.prune.report: a line a layer, of what its parameters hold.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local hooks = require "perigee.nn.hooks"
local cells = require "perigee.printing.cells"

local prune = {}

---@class perigee.PruneReport
---@field rows {name: string, class: string, shapes: string, parameters: integer, zeros: integer, sparsity: number,
---  bytes: integer}[] a layer that holds parameters each, in order
---@field parameters integer elements of all parameters, each counted once
---@field zeros integer of them
---@field sparsity number zeros / parameters
---@field bytes integer of parameters and buffers, masks among them
local Report = {}
Report.__index = Report

local function bytes_of(t) return t:numel() * native.dtypes.by_name[t.dtype].bytes end

-- What a parameter is in calls: of a computed one its value, of which `entry` is the trained part.
local function value_of(layer, entry)
  local set = layer[walk.META].hooks
  for name, rule in pairs(set and set.computed or {}) do
    for _, key in ipairs(rule.keys) do
      if key == entry.name then
        return key == rule.trained and hooks.computed(layer, name).compute(layer, false) or nil
      end
    end
  end
  return entry.value
end

local function row_of(layer, name, seen)
  local row = { name = name, class = getmetatable(layer).__name, parameters = 0, zeros = 0, bytes = 0, shapes = {} }
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind ~= "layer" and not seen[entry.value] then
      seen[entry.value] = true
      row.bytes = row.bytes + bytes_of(entry.value)
      local value = entry.kind == "parameter" and value_of(layer, entry)
      if value then
        row.parameters = row.parameters + value:numel()
        row.zeros = row.zeros + value:eq(0):sum():item()
        row.shapes[#row.shapes + 1] = tostring(value.shape)
      end
    end
  end
  row.shapes = table.concat(row.shapes, " ")
  row.sparsity = row.parameters > 0 and row.zeros / row.parameters or 0
  return row
end

local function add(report, layer, name, seen, visited)
  if visited[layer] then return end
  visited[layer] = true
  local row = row_of(layer, name, seen)
  if row.parameters > 0 then report.rows[#report.rows + 1] = row end
  for _, key in ipairs { "parameters", "zeros", "bytes" } do report[key] = report[key] + row[key] end
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "layer" then
      add(report, entry.value, name == "" and entry.name or name .. "." .. entry.name, seen, visited)
    end
  end
end

local read = native.signature("prune.report", {
  { "model", "any", required = true, type = "perigee.Layer", doc = "pruned or not" } })
---How sparse a model is, a line a layer that has parameters: how many there are, how many of them are exactly 0, and
---the bytes of what the layer holds itself. `print(pg.prune.report(model))` shows it.
---@return perigee.PruneReport
function prune.report(...)
  local o = read(...)
  if not walk.is_layer(o.model) then
    native.raise("invalid_argument", "prune.report", "needs a layer, got " .. native.describe(o.model))
  end
  if walk.is_lazy(o.model) then
    native.raise("failed_precondition", "prune.report", "sizes are not known before the first input",
                 "call the model once")
  end
  local report = setmetatable({ rows = {}, parameters = 0, zeros = 0, bytes = 0 }, Report)
  require("perigee").no_grad(add, report, o.model, "", {}, {})
  report.sparsity = report.parameters > 0 and report.zeros / report.parameters or 0
  return report
end

local thousands = cells.thousands

local function line_of(label, shapes, row)
  return { label, shapes, thousands(row.parameters), thousands(row.zeros), ("%.2f %%"):format(100 * row.sparsity),
           thousands(row.bytes) }
end

function Report:__tostring()
  local lines = { { "layer", "shapes", "parameters", "zeros", "sparsity", "bytes" } }
  for _, row in ipairs(self.rows) do
    local label = row.name == "" and row.class or ("%s (%s)"):format(row.name, row.class)
    lines[#lines + 1] = line_of(label, row.shapes, row)
  end
  lines[#lines + 1] = line_of("all", "", self)
  return table.concat(cells.lines(lines, 2), "\n")
end

return prune
