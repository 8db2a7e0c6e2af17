-- SPDX-License-Identifier: Apache-2.0
-- A test of steps under pg.compile against the same steps without it.

local pg = require "perigee"

local M = {}

---A result as plain numbers, tables of tensors too.
function M.numbers(v)
  if type(v) == "table" then
    local list = {}
    for i, x in ipairs(v) do list[i] = M.numbers(x) end
    return list
  end
  return pg.is_tensor(v) and v:detach():clone():totable() or v
end

---same(name, make, check): a test (made by `test`, the file's) that trace(make, compiled) answers the same with and
---without pg.compile: a list of `count` rows, and the step. check(t, stats, step) looks at the compiled one.
function M.same_by(test, trace, count)
  return function(name, make, check)
    test(name, function(t)
      local expected = trace(make, false)
      local got, step = trace(make, true)
      for i = 1, count do
        local ok, problem = pcall(t.equal, got[i], expected[i])
        if not ok then error(("step %d: %s\n%s"):format(i, tostring(problem), step:explain()), 0) end
      end
      if check then check(t, step:stats(), step) end
    end)
  end
end

return M
