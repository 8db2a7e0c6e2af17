-- SPDX-License-Identifier: Apache-2.0
-- compare(name, make, fn, calls): calls fn eagerly and compiled, on inputs of their own that make() gives, and demands
-- the same bits and the same inputs afterwards. Answers the compiled function.

local pg = require "perigee"

local function text(x)
  if not pg.is_tensor(x) then return tostring(x) end
  local parts = { x.dtype, table.concat(x.shape, "x") }
  for _, v in ipairs(x:reshape { -1 }:totable()) do
    parts[#parts + 1] = type(v) ~= "number" and tostring(v) or v ~= v and "nan" or ("%.17g"):format(v)
  end
  return table.concat(parts, " ")
end

-- Whether two tensors hold the same bits but for which NaN it is.
local function same(a, b)
  if not pg.is_tensor(a) or a.dtype ~= b.dtype or a:numel() == 0 then return text(a) == text(b) end
  local equal = a:eq(b)
  if a.dtype:find "float" then
    local one = pg.ones({ 1 }):to(a.dtype)
    equal = pg.where(a:ne(a), b:ne(b), equal:logical_and(one:copysign(a):eq(one:copysign(b))))
  end
  return table.concat(a.shape, "x") == table.concat(b.shape, "x") and equal:all():item()
end

local function compare(name, make, fn, calls)
  pg.manual_seed(11)
  local plain = make()
  pg.manual_seed(11)
  local mine = make()
  local step = pg.compile(fn)
  for i = 1, calls or 4 do
    local expected, got = { fn(i, unpack(plain)) }, { step(i, unpack(mine)) }
    local lists = { { expected, got, "result" }, { plain, mine, "input" } }
    for _, list in ipairs(lists) do
      for k = 1, #list[1] do
        if not same(list[1][k], list[2][k]) then
          local a, b = text(list[1][k]), text(list[2][k])
          local form = "%s, call %d, %s %d:\n%s\n-- instead of\n%s\n%s"
          error(form:format(name, i, list[3], k, b:sub(1, 1500), a:sub(1, 1500), step:explain()), 0)
        end
      end
    end
  end
  return step
end

return compare
