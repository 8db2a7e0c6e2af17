-- SPDX-License-Identifier: Apache-2.0
-- PyTorch's calls as Perigee's public Lua API has them: a row an operator, by PyTorch's name (with or without the
-- variant). A row is { needs, params, call, outputs }: the name that Perigee must have (default: PyTorch's), the names
-- of PyTorch's arguments after the first, a function of the first argument and the others by name, and how many outputs
-- Perigee shows (default: all). Of unlisted operators those that take tensors only are called under their own name.

local pg = require "perigee"

local M = {}

local rows = {}
for _, name in ipairs { "create", "shape", "math", "reduction", "neural", "loss", "vectors", "window" } do
  for key, row in pairs(require("vectors.translate_" .. name)) do
    assert(rows[key] == nil, key)
    rows[key] = row
  end
end

local probe = pg.zeros { 1 } -- to ask for methods

-- Whether Perigee has a function ("roll", "nn.mse") or a method of that name.
local function exists(name)
  local function has(space, key)
    local ok, value = pcall(function() return space[key] end)
    return ok and type(value) == "function"
  end
  if name:find("^nn%.") then return has(pg.nn, name:sub(4)) end
  return has(pg, name) or has(probe, name)
end

-- Only tensors, and no names: the call is the same in both.
local function is_plain(case)
  if next(case.kwargs) ~= nil or type(case.input) ~= "table" or not case.input.tensor then return false end
  for _, v in ipairs(case.args) do
    if type(v) ~= "table" or not v.tensor then return false end
  end
  return true
end

local function plain_row(name, case)
  local params = {}
  for i = 1, #case.args do params[i] = "arg" .. i end
  return { params = params, call = function(x, a)
    local list = {}
    for i, param in ipairs(params) do list[i] = a[param] end
    return x[name](x, unpack(list))
  end }
end

---The row for a case; or nil, and whether Perigee lacks the operator.
function M.find(case)
  local row = rows[case.op .. "." .. case.variant] or rows[case.op]
  local own = case.op:gsub("^nn%.functional%.", "")
  if not exists(row and row.needs or own) then return nil, true end
  if row then return row, false end
  return is_plain(case) and plain_row(own, case) or nil, false
end

return M
