-- SPDX-License-Identifier: Apache-2.0
-- Operators on views give what they give on dense copies; in-place forms give what the others give.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"

local layouts = {}

function layouts.transposed(x)
  local axes = {}
  for i = 1, x:dim() do axes[i] = x:dim() + 1 - i end
  return x:permute(axes):clone():permute(axes)
end

function layouts.stepped(x)
  local shape, cut = { unpack(x.shape) }, {}
  shape[#shape] = 2 * shape[#shape] + 1
  for i = 1, #shape do cut[i] = {} end
  cut[#shape] = { 2, -1, 2 }
  if x:numel() == 0 then return x end
  local base = pg.full(shape, 1, { dtype = x.dtype })
  base[cut]:copy_(x)
  return base[cut]
end

-- The first position of the first axis, shown everywhere.
function layouts.expanded(x)
  if #x == 0 then return x end
  return x[{ { 1, 1 } }]:expand(x.shape)
end

local function mutates(op)
  for _, input in ipairs(op.inputs) do
    if check.is_mutated(input) or op.name == "copy" then return true end
  end
  return false
end

local function run(op, row, case, layout)
  local args = check.tensors(op, case, "float32")
  local views = check.map_tensors(op, args, function(t) return t:dim() > 0 and layout(t) or t end)
  local dense = check.map_tensors(op, views, function(t) return t:clone() end)
  pg.manual_seed(3)
  local want = check.call(op, dense, case.attrs)
  pg.manual_seed(3)
  local got = check.call(op, views, case.attrs)
  for k, y in ipairs(got) do
    check.compare(y, check.array(want[k]), row.class or "exact", y.dtype, "result " .. k)
  end
end

local function in_place(op, row, case, layout)
  local args = check.tensors(op, case, "float32")
  local want = check.call(op, args, case.attrs)[1]
  if want.shape ~= args[1].shape or want.dtype ~= args[1].dtype then return end
  args[1] = layout(args[1]:clone())
  for key, v in pairs(case.attrs or {}) do args[key] = v end
  local y = native.op(op.name .. "_")(args)
  if not rawequal(y, args[1]) then error("the result is another tensor", 0) end
  check.compare(y, check.array(want), row.class, y.dtype, "in place")
end

check.for_each(require "cases", function(op, row, case, name)
  if row.creates or not check.takes(op, row, case, "float32") then return end
  for kind, layout in pairs(layouts) do
    -- batch statistics of equal rows are dominated by rounding
    local skip = kind == "expanded" and (case.expanded == false or mutates(op) or row.class == "composed" or
                                         row.class == "differences" or row.name:find("grad"))
    if not skip and op.category ~= "optimizer" then
      test("view/" .. name .. "/" .. kind, function() run(op, row, case, layout) end)
    end
  end
  if op.in_place and op.name ~= "copy" and native.is_tensor(check.tensors(op, case, "float32")[1]) then
    test("in_place/" .. name, function()
      in_place(op, row, case, function(t) return t end)
      in_place(op, row, case, function(t) return t:dim() > 1 and layouts.transposed(t) or t end)
    end)
  end
end)
