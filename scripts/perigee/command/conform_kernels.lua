-- SPDX-License-Identifier: Apache-2.0
-- What `perigee conform` asks of a device's kernels: what the CPU computes, over the operators' case table
-- (tests/cases).

local pg = require "perigee"
local native = require "perigee.native"

local K = {}
K.dtypes = { "float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool" }
local dtypes = K.dtypes

local function first_line(err) return (tostring(err):match("^[^\n]*")) end

---The case table and its helper, where `folder` holds `cases`; or nil.
function K.cases_in(folder)
  package.path = folder .. "/?.lua;" .. folder .. "/?/init.lua;" .. package.path
  local ok, rows = pcall(require, "cases")
  if not ok then return nil end
  return rows, require "cases.check"
end

local function on(device, check, op, row, case, dtype, all)
  return pg.device(device, function()
    local args = check.map_tensors(op, check.tensors(op, case, dtype), function(t)
      return t.device == device and t or pg.device(device, function() return check.tensor(check.array(t), t.dtype) end)
    end)
    local attrs = case.attrs
    if row.creates then
      attrs = { dtype = dtype }
      for k, v in pairs(case.attrs) do attrs[k] = v end
    end
    pg.manual_seed(77)
    return check.call(op, args, attrs, all)
  end)
end

local function creatable(row, case, dtype)
  if row.integers then return dtype:find("int") and not (dtype:find("8") and case.number == 1) end
  if row.random then return dtype:find("float") ~= nil end
  return dtype ~= "bool" and not (dtype == "uint8" and case.signed)
end

-- "passed", "absent" (no kernel, with the reason) or "failed" (with what).
local function try(device, check, op, row, case, dtype)
  local fine, want = pcall(on, "cpu", check, op, row, case, dtype)
  if not fine then return nil end -- nothing to compare with
  local ok, got = pcall(on, device, check, op, row, case, dtype)
  if not ok then
    local text = first_line(got)
    return native.is_error(got) and got.code == "not_supported" and "absent" or "failed", text
  end
  local same_numbers, err = pcall(function()
    for k, y in ipairs(got) do
      local rounds = native.dtypes.by_name[y.dtype].floating and not row.random
      check.compare(y, check.array(want[k]), rounds and row.class or "exact", y.dtype, "result " .. k)
    end
    if not check.hides(op) then return end
    local all = on(device, check, op, row, case, dtype, true) -- a kernel may leave hidden outputs out, else
    for k = 1, op.visible_outputs do check.same(got[k], all[k], "with hidden outputs, result " .. k) end
  end)
  return same_numbers and "passed" or "failed", not same_numbers and first_line(err) or nil
end

---Runs every case that the CPU can compute: a list of { op, cells = { dtype = counts } }, the failures as text, and the
---counts of passed, failed and absent (refused) in all.
function K.run(device, rows, check)
  local results, failures, total = {}, {}, { passed = 0, failed = 0, absent = 0 }
  for _, name in ipairs(rows.names) do
    local op, row = native.operators.get(name), rows.rows[name]
    if op then
      local cells = {}
      for _, case in ipairs(row.cases) do
        for _, dtype in ipairs(dtypes) do
          local takes
          if row.creates then takes = creatable(row, case, dtype) else takes = check.takes(op, row, case, dtype) end
          if takes then
            local state, why = try(device, check, op, row, case, dtype)
            if state then
              local cell = cells[dtype] or { passed = 0, failed = 0, absent = 0 }
              cell[state], total[state], cells[dtype] = cell[state] + 1, total[state] + 1, cell
              if state == "failed" then
                failures[#failures + 1] = ("%s/%d %s: %s"):format(name, case.number, dtype, why)
              end
            end
          end
        end
        collectgarbage("step", 200)
      end
      results[#results + 1] = { op = name, cells = cells }
    end
  end
  return results, failures, total
end

return K
