-- SPDX-License-Identifier: Apache-2.0
-- Reads files of reference vectors and runs their cases. What a PyTorch call is in Perigee says translate.lua.

local pg = require "perigee"
local json = require "perigee.native.json"
local translate = require "vectors.translate"
local compare = require "vectors.compare"
local absent = require "cases.absent"
local errata = require "vectors.errata"

local M = {}

local OUTPUT = { rtol = 1e-7, atol = 1e-7 }
local GRADIENT = { rtol = 1e-5, atol = 1e-7 }
local NULL = {} -- JSON's null, so that lists have no holes

---Paths of the .jsonl files of a folder, sorted. Searched by find(1): Lua cannot list folders.
function M.files_of(folder)
  local quoted = "'" .. folder:gsub("'", "'\\''") .. "'"
  local pipe = assert(io.popen("find -L " .. quoted .. " -maxdepth 1 -name '*.jsonl' -type f | LC_ALL=C sort"))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

-- A view with gaps between its elements and the same contents.
local function with_gaps(t) return pg.stack({ t, t }, -1):select(-1, 1) end

-- The input that a case describes, made once however often it is named.
local function input_tensor(state, v)
  local key = v.tensor
  if state.inputs[key] then return state.inputs[key] end
  if v.complex then error("complex inputs cannot be made from Lua yet", 0) end
  local t = state.tensors[key] or error("there is no tensor " .. key, 0)
  if v.noncontiguous then t = with_gaps(t) end
  t = t:detach()
  if v.grad then t.requires_grad = true end
  state.inputs[key] = t
  return t
end

-- An argument as Lua sees it; None is nil, and false within a list.
local function decode(state, v)
  if v == NULL then return nil end
  if type(v) ~= "table" then return v end
  if v.tensor then return input_tensor(state, v) end
  if v.dtype then return v.dtype end
  if v.float then return ({ inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0 })[v.float] end
  local list = {}
  for i, x in ipairs(v) do
    list[i] = decode(state, x)
    if list[i] == nil then list[i] = false end
  end
  return list
end

-- PyTorch's arguments by name.
local function bind(state, row, case)
  local named = {}
  for i, v in ipairs(case.args) do
    local name = row.params[i] or error(("argument %d has no translation"):format(i), 0)
    named[name] = decode(state, v)
  end
  local known = {}
  for _, name in ipairs(row.params) do known[name] = true end
  for name, v in pairs(case.kwargs) do
    if not known[name] then error(("argument %q has no translation"):format(name), 0) end
    named[name] = decode(state, v)
  end
  return named
end

local function outputs_of(first, ...)
  if type(first) == "table" then return first end
  return { first, ... }
end

local function check_outputs(state, row, case, got)
  local expected = math.min(#case.outputs, row.outputs or #case.outputs)
  if #got ~= expected then error(("%d outputs, expected %d"):format(#got, expected), 0) end
  for i = 1, expected do
    local v = case.outputs[i]
    if v.complex then error("complex outputs cannot be read from Lua yet", 0) end
    compare(("output %d"):format(i), got[i], state.tensors[v.tensor], OUTPUT)
  end
end

local function check_gradients(state, case, got)
  if not case.cotangents or #case.cotangents == 0 then return end
  local outputs, cotangents, inputs = {}, {}, {}
  for i, c in ipairs(case.cotangents) do
    outputs[i], cotangents[i] = got[c.output + 1], state.tensors[c.tensor]
  end
  for i, g in ipairs(case.gradients) do inputs[i] = state.inputs[g.input] end
  -- An input that the outputs do not depend on has no gradient here, and zeros in PyTorch.
  local gradients = { pg.grad(outputs, inputs, { grad_outputs = cotangents, allow_unused = true }) }
  for i, g in ipairs(case.gradients) do
    local expected = state.tensors[g.tensor]
    compare("gradient of " .. g.input, gradients[i] or pg.zeros_like(expected), expected, GRADIENT)
  end
end

-- That a kernel is missing which absent.lua lists, in words.
local function known_hole(message)
  local name, kind = message:match "([%w_]+): no kernel for [^\n]* on (%a+):%d+"
  return name and absent[kind] and absent[kind][name] and ("%s has no kernel on %s"):format(name, kind)
end

local function run_case(case, tensors)
  local name = case.variant ~= "" and case.op .. "." .. case.variant or case.op
  local result = { name = name, title = ("%s, case %d"):format(name, case.case) }
  local row, missing = translate.find(case)
  if missing then
    result.state = "skipped"
    return result
  end
  local ok, err = pcall(function()
    if not row then error("Perigee has this operator, and tests/vectors has no translation of it", 0) end
    local state = { tensors = errata(case, tensors), inputs = {} }
    local got = outputs_of(row.call(decode(state, case.input), bind(state, row, case)))
    check_outputs(state, row, case, got)
    check_gradients(state, case, got)
  end)
  local hole = not ok and known_hole(tostring(err))
  if not ok and type(err) == "table" and rawget(err, "lacks") then
    result.state, result.name = "skipped", err.lacks
  elseif hole then
    result.state, result.name = "skipped", hole
  else
    result.state, result.message = ok and "passed" or "failed", not ok and tostring(err) or nil
  end
  return result
end

local function load_tensors(path, device)
  local tensors = pg.load(path)
  if device then
    for key, t in pairs(tensors) do tensors[key] = t:to(device) end
  end
  return tensors
end

---Runs the cases of one file, on `device` if given. Answers a list of {state = "passed"|"failed"|"skipped", name,
---title, message}.
function M.run_file(path, device)
  local results = {}
  local tensors
  for line in io.lines(path) do
    if line:find("%S") then
      local ok, case = pcall(json, line, NULL)
      if ok and not tensors then ok, tensors = pcall(load_tensors, path:gsub("%.jsonl$", ".safetensors"), device) end
      if not ok then
        results[#results + 1] = { state = "failed", name = path, title = path,
                                  message = tostring(tensors or case) }
        return results
      end
      results[#results + 1] = run_case(case, tensors)
    end
  end
  return results
end

return M
