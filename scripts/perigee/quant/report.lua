-- SPDX-License-Identifier: Apache-2.0
-- What quantising did to a model, a line a layer.

local native = require "perigee.native"
local cells = require "perigee.printing.cells"

---@class perigee.QuantReport
---@field rows {name: string, dtype: string, group_size: integer, error: number, largest: number, bytes: integer,
---  bytes_before: integer}[] a quantised layer each, in order: `error` is the root of the sum of the squares by
---  which its weight moved over that of the weight's own, `largest` the most that one number moved
---@field left {name: string, why: string}[] Linear and Conv2d layers that stay as they were
---@field folded {name: string, class: string, into: string}[] what was computed behind a layer and is now part of it
---@field bytes integer of the whole model's parameters and buffers now
---@field bytes_before integer and before
local Report = {}
Report.__index = Report

local report = {}

function report.new(model)
  return setmetatable({ rows = {}, left = {}, folded = {}, bytes = model:size(), bytes_before = model:size() }, Report)
end

local function root_of_squares(t) return math.sqrt(t:square():sum():item()) end

---Adds the line of a layer whose weight has become another.
function report.add(self, name, layer, made, after)
  local wide = layer.weight.dtype == "float64" and "float64" or "float32"
  local before, o = layer.weight:detach():to(wide), made.options
  local off = after:to(wide) - before
  local all = root_of_squares(before)
  self.rows[#self.rows + 1] = { name = name, dtype = o.dtype, group_size = o.group_size,
                                error = all > 0 and root_of_squares(off) / all or 0,
                                largest = off:numel() > 0 and off:abs():amax():item() or 0,
                                bytes = made:size(), bytes_before = layer:size() }
end

local thousands = cells.thousands

function Report:__tostring()
  local lines = { { "layer", "dtype", "group", "error", "largest", "bytes", "before" } }
  for _, row in ipairs(self.rows) do
    lines[#lines + 1] = { row.name == "" and "(the model)" or row.name, row.dtype, thousands(row.group_size),
                          ("%.3f %%"):format(100 * row.error), ("%.2g"):format(row.largest), thousands(row.bytes),
                          thousands(row.bytes_before) }
  end
  lines[#lines + 1] = { "all", "", "", "", "", thousands(self.bytes), thousands(self.bytes_before) }
  local texts = cells.lines(lines, 2)
  for _, entry in ipairs(self.folded) do
    texts[#texts + 1] = ("%s (%s) is part of %s"):format(entry.name, entry.class, entry.into)
  end
  for _, entry in ipairs(self.left) do texts[#texts + 1] = ("%s stays: %s"):format(entry.name, entry.why) end
  return table.concat(texts, "\n")
end

native.checked.class(Report, { noun = "what pg.quant.ptq did", call = "report" })

return report
