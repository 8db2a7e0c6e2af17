-- SPDX-License-Identifier: Apache-2.0
-- What `perigee conform` found, as text or as JSON.

local pg = require "perigee"

local dtypes = require("perigee.command.conform.kernels").dtypes
local letters = { "f32", "f64", "bf16", "f16", "i64", "i32", "i16", "i8", "u8", "bool" }
local GROUPS = { "abi", "lifecycle", "memory", "copies", "streams", "threads", "kernels", "strides", "orders", "empty",
                 "aliases", "repeated", "gradients", "training", "errors", "captured", "random", "profiler",
                 "collectives", "sources", "transforms", "codecs" }
local PARTS = { sources = true, transforms = true, codecs = true }
local MOST = 50 -- failures that are printed

local function symbol(cell)
  if not cell then return "" end
  if cell.failed > 0 then return "FAIL" end
  if cell.passed == 0 then return "-" end
  return cell.absent > 0 and "part" or "ok"
end

local function print_table(results)
  print(("\n%-32s%s"):format("operator", ("%5s"):rep(#letters):format(unpack(letters))))
  local none = {}
  for _, row in ipairs(results) do
    local texts, some = {}, false
    for i, dtype in ipairs(dtypes) do
      texts[i] = symbol(row.cells[dtype])
      some = some or (texts[i] ~= "" and texts[i] ~= "-")
    end
    if some then
      print(("%-32s%s"):format(row.op, ("%5s"):rep(#texts):format(unpack(texts))))
    elseif next(row.cells) then
      none[#none + 1] = row.op
    end
  end
  print("ok: agrees with the CPU in every case; part: refuses some cases; -: refuses all; blank: has no such dtype")
  if #none > 0 then print(("no kernel for %d operators: %s"):format(#none, table.concat(none, ", "))) end
end

local function print_json(report, o, level_of)
  local groups, ops = {}, {}
  for name, counts in pairs(report.groups) do
    groups[name] = { level = level_of[name], passed = counts.passed, failed = counts.failed, absent = counts.absent }
  end
  for _, row in ipairs(report.results) do
    local cells = {}
    for dtype, cell in pairs(row.cells) do cells[dtype] = symbol(cell) end
    if next(cells) then ops[row.op] = cells end
  end
  print(pg.json.encode { device = report.device, description = report.description,
                         level = not report.parts and report.level or nil, asked = o.level, why = report.why,
                         groups = groups, failures = pg.json.array(report.failures),
                         unasked = pg.json.array(report.unasked), operators = ops })
end

return function(report, o, level_of)
  if o.json then return print_json(report, o, level_of) end
  if report.device then print(("%s: %s"):format(report.device, report.description)) end
  for _, name in ipairs(GROUPS) do
    local counts = report.groups[name]
    if counts then
      local absent = PARTS[name] and "not asked" or "refused"
      print(("%-10s %d passed, %d failed%s"):format(name, counts.passed, counts.failed,
        counts.absent > 0 and (", %d %s"):format(counts.absent, absent) or ""))
    end
  end
  for i = 1, math.min(#report.failures, MOST) do
    local f = report.failures[i]
    print(("FAIL %s: %s: %s"):format(f.group, f.name, f.problem))
  end
  if #report.failures > MOST then print(("... and %d more"):format(#report.failures - MOST)) end
  for _, part in ipairs(report.unasked) do print(("%s: %s: %s"):format(part.group, part.name, part.why)) end
  if report.parts then return end
  if #report.results > 0 then print_table(report.results) end
  print(("level %d of %d%s"):format(report.level, o.level, report.why and ": " .. report.why or ""))
end
