-- SPDX-License-Identifier: Apache-2.0
-- Compares a tensor with what is expected, number by number in Lua, so that no operator is judged by another one.

local function close(a, b, tolerance)
  if type(a) ~= "number" then return a == b end
  if a == b or (a ~= a and b ~= b) then return true end
  return math.abs(a - b) <= tolerance.atol + tolerance.rtol * math.abs(b)
end

-- The first place where nested lists differ, as text.
local function difference(got, expected, tolerance, path)
  if type(expected) ~= "table" then
    if close(got, expected, tolerance) then return nil end
    return ("%s is %s, expected %s"):format(path == "" and "the value" or path, tostring(got), tostring(expected))
  end
  for i = 1, #expected do
    local d = difference(got[i], expected[i], tolerance, ("%s[%d]"):format(path, i))
    if d then return d end
  end
end

---Raises what differs first: shape, dtype, or an element (its position counts from 1).
return function(what, got, expected, tolerance)
  if got.shape ~= expected.shape then
    error(("%s: shape %s, expected %s"):format(what, tostring(got.shape), tostring(expected.shape)), 0)
  end
  if got.dtype ~= expected.dtype then error(("%s: %s, expected %s"):format(what, got.dtype, expected.dtype), 0) end
  local d = difference(got:detach():totable(), expected:totable(), tolerance, "")
  if d then error(("%s: %s"):format(what, d), 0) end
end
