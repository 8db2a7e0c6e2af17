-- SPDX-License-Identifier: Apache-2.0
-- Every operator's class for mixed precision stands in plugins/ops/numeric_classes.md, and is what its schema says.

local native = require "perigee.native"
native.start()

local classes = { keep = 0, lower = 1, float32 = 2, widest = 3 }
local by_number = {}
for name, number in pairs(classes) do by_number[number] = name end

-- Chapters whose operators compute nothing, or are never called in a forward pass.
local kept = { creation = true, index = true, memory = true, optimizer = true, random = true, view = true,
               collective = true }

local function read_table(path)
  local file = io.open(path)
  if not file then return nil end
  local listed, class = {}, nil
  for line in file:lines() do
    class = line:match("^## (%S+)") or class
    for name in line:gmatch("`([%l%d_]+)`") do
      if class and not classes[name] then listed[name] = class end
    end
  end
  file:close()
  return listed
end

test("every operator has a class, and the one in the table", function(t)
  local here = debug.getinfo(1, "S").source:match("^@(.*)tests/lua/[^/]*/[^/]*$")
  local listed = here and read_table(here .. "plugins/ops/numeric_classes.md")
  if not listed then t.skip("the table is not beside the tests") end
  local wrong = {}
  for _, name in ipairs(native.op_names()) do
    local op = native.operators.get(name)
    local own = by_number[op.numeric] or "?"
    local by_nature = kept[op.category] or name:find("_grad$") or name:find("_grad_") or name:find("_like$")
    local expected = listed[name] or (by_nature and "keep")
    if not expected then
      wrong[#wrong + 1] = ("%s (%s in its schema) is not in the table: decide, and list it"):format(name, own)
    elseif expected ~= own and not (by_nature and not listed[name]) then
      wrong[#wrong + 1] = ("%s is %s in its schema, %s in the table"):format(name, own, expected)
    end
  end
  t.equal(table.concat(wrong, "\n"), "")
  local known = {}
  for _, name in ipairs(native.op_names()) do known[name] = true end
  for name in pairs(listed) do t.ok(known[name], "the table lists " .. name .. ", which is no operator") end
end)
