-- SPDX-License-Identifier: Apache-2.0
-- perigee conform PLUGIN.so [--cases FOLDER]: asks a device plugin for what every device must do, and each of its
-- kernels for what the CPU computes, over the operators' case table. Prints what failed, a table of operators and
-- dtypes, and the level reached. Exit status 0: nothing failed (kernels that are not there do not count).

local pg = require "perigee"
local kernels = require "perigee.command.conform_kernels"
local run_checks = require "perigee.command.conform_device"

local dtypes = kernels.dtypes
local letters = { "f32", "f64", "bf16", "f16", "i64", "i32", "i16", "i8", "u8", "bool" }

local function first_line(err) return (tostring(err):match("^[^\n]*")) end

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

-- Levels: 0 loads, 1 memory and copies, 2 streams, 3 core kernels in float32 and none that is wrong.
local core = { "add", "sub", "mul", "div", "neg", "exp", "sum", "matmul", "zeros_like", "ones_like", "sum_like" }

local function level_of(groups, results, total)
  if groups.memory.failed + groups.copies.failed > 0 then return 0, "memory or copies fail" end
  if groups.streams.failed > 0 then return 1, "streams fail" end
  if not results then return 2, "no case table was found (--cases FOLDER)" end
  if total.failed > 0 then return 2, total.failed .. " cases of kernels fail" end
  local has = {}
  for _, row in ipairs(results) do has[row.op] = row.cells.float32 and row.cells.float32.passed > 0 end
  for _, name in ipairs(core) do
    if not has[name] then return 2, "level 3 needs a kernel for " .. name .. " in float32" end
  end
  return 3
end

local function report(device, o)
  local groups, failures = run_checks(device)
  local rows, check = kernels.cases_in(o.cases)
  local results, wrong, total
  if rows then results, wrong, total = kernels.run(device, rows, check) end
  local level, why = level_of(groups, results, total)
  print(("%s: %s"):format(device, o.description))
  for _, kind in ipairs { "memory", "copies", "streams" } do
    print(("%-8s %d passed, %d failed"):format(kind, groups[kind].passed, groups[kind].failed))
  end
  if results then
    print(("%-8s %d passed, %d failed, %d refused"):format("kernels", total.passed, total.failed, total.absent))
  end
  for _, failure in ipairs(failures) do print("FAIL " .. failure) end
  for i = 1, math.min(wrong and #wrong or 0, 50) do print("FAIL " .. wrong[i]) end
  if wrong and #wrong > 50 then print(("... and %d more"):format(#wrong - 50)) end
  if results then print_table(results) end
  print(("level %d of 3%s"):format(level, why and ": " .. why or ""))
  return #failures + (wrong and #wrong or 0)
end

local function new_devices(path)
  local before = {}
  for _, d in ipairs(pg.devices()) do before[d.name] = true end
  local name = path:match("([^/]+)%.so$")
  pg.load_plugin(path)
  local list = {}
  for _, d in ipairs(pg.devices()) do
    if not before[d.name] then list[#list + 1] = d end
  end
  if #list > 0 then return list end
  for _, d in ipairs(pg.devices()) do -- it was on the search path already
    if d.type == name then list[#list + 1] = d end
  end
  return list
end

local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  local pwd = os.getenv("PWD")
  return (pwd and pwd .. "/" or "") .. path
end

local function refuse()
  io.stderr:write("perigee: conform takes a plugin (perigee conform --help)\n")
  return 2
end

return function(...)
  local o, path = {}, nil
  local words, i = { ... }, 1
  while words[i] do
    if words[i] == "--cases" and words[i + 1] then
      o.cases, i = words[i + 1], i + 1
    elseif not path and words[i]:sub(1, 1) ~= "-" then
      path = words[i]
    else
      return refuse()
    end
    i = i + 1
  end
  if not path then return refuse() end
  -- The table of cases is a part of Perigee's tests; FOLDER is what holds `cases`.
  o.cases = o.cases or "tests"
  local ok, devices = pcall(new_devices, absolute(path))
  if not ok then
    print("level -1: it does not load: " .. first_line(devices))
    return 1
  end
  if #devices == 0 then
    print(path .. ": loads, but has no device here")
    return 1
  end
  o.description = devices[1].description or ""
  return report(devices[1].name, o) == 0 and 0 or 1
end
