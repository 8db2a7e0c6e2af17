-- SPDX-License-Identifier: Apache-2.0
-- What `perigee conform` asks of a device's kernels, over the operators' case table (tests/cases): what the CPU
-- computes in float64, rounded to the result's dtype; whatever the inputs' strides; empty; time and again, though the
-- inputs are written to in between; over an input; with the CPU's gradients and random bits.

local pg = require "perigee"
local native = require "perigee.native"

local K = {}
K.dtypes = { "float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool" }
local dtypes = K.dtypes
local ELEMENTWISE, IN_PLACE = 1, 8 -- PG_OP_*
local MUTATES = 4                    -- PG_INPUT_*
local SEED = 77

local function has(flags, flag) return math.floor(flags / flag) % 2 == 1 end
local function first_line(err) return (tostring(err):match("^[^\n]*")) end
local function floating(dtype) return native.dtypes.by_name[dtype].floating end

---The case table and its helper, where `folder` holds `cases`; or nil.
function K.cases_in(folder)
  package.path = folder .. "/?.lua;" .. folder .. "/?/init.lua;" .. package.path
  local ok, rows = pcall(require, "cases")
  if not ok then return nil end
  return rows, require "cases.check"
end

-- ---- one call ----

local function attributes(row, case, dtype)
  if not row.creates then return case.attrs end
  local attrs = { dtype = dtype }
  for k, v in pairs(case.attrs) do attrs[k] = v end
  return attrs
end

-- The tensors of a case on the CPU.
local function on_cpu(check, op, case, dtype)
  return pg.device("cpu", function() return check.tensors(op, case, dtype) end)
end

-- A call's outputs and what it wrote; `args` lie on the device.
local function call(device, check, op, row, case, dtype, args, all)
  return pg.device(device, function()
    pg.manual_seed(SEED)
    return check.call(op, args, attributes(row, case, dtype), all)
  end)
end

local function moved(device, check, op, args)
  return check.map_tensors(op, args, function(t) return t:to(device) end)
end

-- What the CPU computes, in float64 where the operator takes that, rounded to the dtypes of what it gives otherwise.
local function expected(check, op, row, case, dtype)
  local plain = call("cpu", check, op, row, case, dtype, on_cpu(check, op, case, dtype))
  if row.creates or row.random or not floating(dtype) or dtype == "float64" then return plain end
  local ok, exact = pcall(function()
    local wide = check.map_tensors(op, on_cpu(check, op, case, dtype), function(t)
      return floating(t.dtype) and t:to("float64") or t
    end)
    return call("cpu", check, op, row, case, dtype, wide)
  end)
  if not ok then return plain end -- it takes no float64
  for k, y in ipairs(exact) do
    if plain[k] and y.dtype == "float64" and floating(plain[k].dtype) then plain[k] = y:to(plain[k].dtype) end
  end
  return plain
end

local function compare(check, row, got, want, what)
  for k, y in ipairs(got) do
    if y.dtype ~= want[k].dtype then
      error(("%sresult %d is %s, expected %s"):format(what, k, y.dtype, want[k].dtype), 0)
    end
    local rounds = floating(y.dtype) and not row.random
    check.compare(y, check.array(want[k]), rounds and row.class or "exact", y.dtype, what .. "result " .. k)
  end
end

-- ---- what is asked of a case: each gets what `try` below has gathered; errors are failures ----

local questions = {}
local function ask(name, fn) questions[#questions + 1] = { name = name, fn = fn } end

ask("kernels", function(s)
  compare(s.check, s.row, s.call(s.args()), s.want, "")
  if not s.check.hides(s.op) then return end
  local few, all = s.call(s.args()), s.call(s.args(), true) -- a kernel may leave hidden outputs out, else
  for k = 1, s.op.visible_outputs do s.check.same(few[k], all[k], "with hidden outputs, result " .. k) end
end)

-- The same numbers among others, every second element of a longer row; and stored by columns.
local function spread(t, device)
  if t:dim() == 0 or t:dim() == 8 or t:numel() == 0 then return t:to(device) end -- no room for one more axis
  local other = t.dtype == "bool" and t:logical_not() or pg.device("cpu", function() return pg.full_like(t, 99) end)
  return pg.device("cpu", function() return pg.stack({ other, t }, -1):contiguous() end):to(device):select(-1, 2)
end
local function by_columns(t, device)
  if t:dim() < 2 then return t:to(device) end
  return pg.device("cpu", function() return t:transpose(1, -1):contiguous() end):to(device):transpose(1, -1)
end

ask("strides", function(s)
  if s.row.creates then return "none" end
  local cpu = s.cpu_args()
  for name, layout in pairs { spread = spread, columns = by_columns } do
    local args = s.check.map_tensors(s.op, cpu, function(t) return layout(t, s.device) end)
    compare(s.check, s.row, s.call(args), s.want, name .. ", ")
  end
end)

-- Where results may lie in any order of axes, all operands turned, or the first alone, and a turned target.
local function turned(t, device)
  local rank = t:dim()
  if rank < 2 then return t:to(device) end
  local axes = {}
  for i = 1, rank do axes[i] = rank + 1 - i end
  return pg.device("cpu", function() return t:permute(axes):contiguous() end):to(device):permute(axes)
end

ask("orders", function(s)
  if not has(s.op.traits, ELEMENTWISE) or s.row.creates or s.row.random then return "none" end
  local cpu = s.cpu_args()
  local function some(count)
    local seen = 0
    return s.check.map_tensors(s.op, cpu, function(t)
      seen = seen + 1
      return seen <= count and turned(t, s.device) or t:to(s.device)
    end)
  end
  compare(s.check, s.row, s.call(some(math.huge)), s.want, "turned, ")
  compare(s.check, s.row, s.call(some(1)), s.want, "the first operand turned, ")
  local x = cpu[1]
  if not has(s.op.traits, IN_PLACE) or not native.is_tensor(x) or s.want[1].dtype ~= x.dtype
    or tostring(s.want[1].shape) ~= tostring(x.shape) then return end
  local function over(device, list)
    return pg.device(device, function() return native.call(s.op.name, list, s.case.attrs, true) end)
  end
  if not pcall(over, "cpu", s.cpu_args()) then return end
  compare(s.check, s.row, { over(s.device, some(1)) }, s.want, "written over a turned input, ")
end)

ask("repeated", function(s)
  if s.row.creates or s.row.random then return "none" end
  for _, input in ipairs(s.op.inputs) do
    if has(input.flags, MUTATES) then return "none" end
  end
  local args, cpu, other = s.args(), s.cpu_args(), s.cpu_args()
  local function write(to, from)
    if type(to) == "table" and not native.is_tensor(to) then
      for i = 1, #to do write(to[i], from[i]) end
    elseif native.is_tensor(to) and floating(to.dtype) then
      to:copy_(from:to(s.device))
    end
  end
  -- Other numbers in the same memory first, whatever comes of them: nothing may be left of that afterwards.
  s.check.map_tensors(s.op, other, function(t)
    if floating(t.dtype) and t:dim() > 0 and t:numel() > 1 then t:copy_(t:flip(1)) end
    return t
  end)
  for i = 1, #s.op.inputs do write(args[i], other[i]) end
  for _ = 1, 2 do pcall(s.call, args) end
  pcall(pg.synchronize, s.device)
  for i = 1, #s.op.inputs do write(args[i], cpu[i]) end
  for i = 1, 3 do compare(s.check, s.row, s.call(args), s.want, ("call %d, "):format(i)) end
end)

ask("aliases", function(s)
  if not has(s.op.traits, IN_PLACE) or s.row.random then return "none" end
  local args = s.args()
  local x = args[1]
  if not native.is_tensor(x) or s.want[1].dtype ~= x.dtype or tostring(s.want[1].shape) ~= tostring(x.shape) then
    return "none"
  end
  local function over(device, list)
    return pg.device(device, function() return native.call(s.op.name, list, s.case.attrs, true) end)
  end
  if not pcall(over, "cpu", s.cpu_args()) then return "none" end -- of mixed dtypes the first is not the result's
  local y = over(s.device, args)
  compare(s.check, s.row, { y }, s.want, "written over its input, ")
end)

ask("empty", function(s)
  if not has(s.op.traits, ELEMENTWISE) or s.row.creates then return "none" end
  local cpu = s.check.map_tensors(s.op, s.cpu_args(), function(t)
    return pg.device("cpu", function() return pg.zeros({ 0, 3 }, { dtype = t.dtype }) end)
  end)
  local ok, want = pcall(call, "cpu", s.check, s.op, s.row, s.case, s.dtype, cpu)
  if not ok then return "none" end
  compare(s.check, s.row, s.call(moved(s.device, s.check, s.op, cpu)), want, "")
end)

local function weights(check, t, salt)
  return pg.device("cpu", function()
    local numbers = {}
    for i = 1, t:numel() do numbers[i] = math.sin(i * 0.739 + salt) + 1.5 end
    return pg.tensor(numbers, { dtype = "float64" }):reshape(check.array(t).shape)
  end)
end

-- How far a gradient may be off, of the largest number in it: sums of many terms, in the leaf's dtype.
local NEAR = { float64 = 1e-9, float32 = 2e-3, float16 = 2e-2, bfloat16 = 1e-1 }

-- Of the outputs' weighted sums: of each leaf, or nil.
local function gradients(s, device, args)
  local leaves = s.check.leaves(s.op, s.row, s.case, args)
  for _, leaf in ipairs(leaves) do leaf.requires_grad = true end
  pg.manual_seed(SEED)
  local total
  pg.device(device, function()
    for k, y in ipairs { native.call(s.op.name, args, s.case.attrs) } do
      if y and floating(y.dtype) and y.requires_grad then
        local term = (y * weights(s.check, y, k):to(y.dtype):to(device)):sum()
        total = total and total + term or term
      end
    end
  end)
  if total then total:backward() end
  local list = {}
  for i, leaf in ipairs(leaves) do list[i] = leaf.grad and leaf.grad:cpu() or false end
  return list
end

ask("gradients", function(s)
  if not floating(s.dtype) or s.row.creates or s.case.special
    or not s.check.differentiable(s.op, s.row, s.case) then return "none" end
  local ok, want = pcall(gradients, s, "cpu", s.check.map_tensors(s.op, s.cpu_args(), function(t)
    return floating(t.dtype) and t:to("float64") or t
  end))
  if not ok then return "none" end
  local got = gradients(s, s.device, s.args())
  for i, g in ipairs(want) do
    if g and g:numel() > 0 and g:isfinite():all():item() then
      if not got[i] then error(("input %d has no gradient"):format(i), 0) end
      local scale = math.max(g:abs():max():item(), 1)
      local off = (got[i]:to("float64") - g):abs():max():item()
      if off ~= off or off > NEAR[s.dtype] * scale then
        error(("the gradient of input %d is off by %.3g, of numbers up to %.3g"):format(i, off, scale), 0)
      end
    elseif got[i] and g == false then
      local off = got[i]:abs():sum():item()
      if off ~= 0 then error(("input %d has a gradient where the CPU has none"):format(i), 0) end
    end
  end
end)

ask("random", function(s)
  if not s.row.random then return "none" end
  local function after(device)
    call(device, s.check, s.op, s.row, s.case, s.dtype, moved(device, s.check, s.op, s.cpu_args()))
    return pg.device("cpu", function() return pg.rand({ 4 }):totable() end)
  end
  local want, got = after("cpu"), after(s.device)
  for i = 1, 4 do
    if want[i] ~= got[i] then error("the generator stands elsewhere afterwards", 0) end
  end
end)

-- ---- all of them ----

local function creatable(row, case, dtype)
  if row.integers then return dtype:find("int") and not (dtype:find("8") and case.number == 1) end
  if row.random then return dtype:find("float") ~= nil end
  return dtype ~= "bool" and not (dtype == "uint8" and case.signed)
end

local function takes(check, op, row, case, dtype)
  if row.creates then return creatable(row, case, dtype) end
  return check.takes(op, row, case, dtype)
end

-- "passed", "absent" (no kernel, with the reason), "failed" (with what), or nil: not asked.
local function answer(question, s)
  local ok, said = pcall(question.fn, s)
  if ok then return said ~= "none" and "passed" or nil end
  if native.is_error(said) and said.code == "not_supported" then return "absent", first_line(said) end
  return "failed", first_line(said)
end

local function subject(device, check, op, row, case, dtype)
  local fine, want = pcall(expected, check, op, row, case, dtype)
  if not fine then return nil end -- nothing to compare with
  local s = { device = device, check = check, op = op, row = row, case = case, dtype = dtype, want = want }
  function s.cpu_args() return on_cpu(check, op, case, dtype) end
  function s.args() return moved(device, check, op, s.cpu_args()) end
  function s.call(args, all) return call(device, check, op, row, case, dtype, args, all) end
  return s
end

local function note(out, question, name, case, dtype, state, why)
  local group = out.groups[question.name] or { passed = 0, failed = 0, absent = 0 }
  out.groups[question.name] = group
  group[state] = group[state] + 1
  if state == "failed" then
    out.failures[#out.failures + 1] = { group = question.name, name = ("%s/%d %s"):format(name, case.number, dtype),
                                        problem = why }
  end
end

---Runs every case that the CPU can compute. Answers { results, failures, groups }: results is a list of
---{ op, cells = { dtype = counts } }. `only`: a set of operators' names. `group`: the one question that is asked.
---@param device string
---@param rows table the case table
---@param check table its helper
---@param only? table
---@param group? string
function K.run(device, rows, check, only, group)
  local asked = {}
  for _, question in ipairs(questions) do
    if not group or question.name == group then asked[#asked + 1] = question end
  end
  local out = { results = {}, failures = {}, groups = {} }
  for _, name in ipairs(rows.names) do
    local op, row = native.operators.get(name), rows.rows[name]
    if op and #asked > 0 and (not only or only[name]) then
      local cells = {}
      for _, case in ipairs(row.cases) do
        local whole = false -- whether everything has been asked of a dtype
        for _, dtype in ipairs(dtypes) do
          local s = takes(check, op, row, case, dtype) and subject(device, check, op, row, case, dtype)
          if s then
            local cell = cells[dtype] or { passed = 0, failed = 0, absent = 0 }
            cells[dtype] = cell
            local all = false
            for i = 1, #asked do
              local question = asked[i]
              if whole and question ~= questions[1] then break end -- the others: of one dtype that it computes with
              local state, why = answer(question, s)
              if question ~= questions[1] and state == "passed" then all = true end
              if state then note(out, question, name, case, dtype, state, why) end
              if state and question == questions[1] then cell[state] = cell[state] + 1 end
            end
            whole = whole or all
          end
        end
        collectgarbage("step", 200)
      end
      out.results[#out.results + 1] = { op = name, cells = cells }
    end
  end
  return out
end

return K
