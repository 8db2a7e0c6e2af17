-- SPDX-License-Identifier: Apache-2.0
-- Axes of PyTorch (from 0) as Perigee counts them (from 1).

local M = {}

---One axis; nil stays nil.
function M.axis(d)
  if d == nil or d < 0 then return d end
  return d + 1
end

---An axis or a list of them, as a list; nil stays nil. A tensor without axes has none to name.
function M.axes(x, d)
  if d == nil or x:dim() == 0 then return nil end
  if type(d) == "number" then d = { d } end
  local list = {}
  for i, v in ipairs(d) do list[i] = M.axis(v) end
  return list
end

---f along an axis. PyTorch lets a tensor without axes pass as one of length 1.
function M.along(x, d, f)
  if x:dim() > 0 then return f(x, M.axis(d)) end
  return f(x:reshape(1), 1):reshape {}
end

---Says, in a row's call, that Perigee has the operator without this (a text): the case is skipped under that name.
function M.lacks(what) error({ lacks = what }, 0) end

return M
