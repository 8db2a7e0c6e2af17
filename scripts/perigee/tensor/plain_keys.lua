-- SPDX-License-Identifier: Apache-2.0
-- t[...] and t[...] = v where the key is numbers and ranges of numbers: one slice, and one write, in code that
-- compiles. Every other key, and every one that is wrong, goes to indexing.lua.

return function(_, native)
  local tensor, hooks = native.tensor, native.hooks
  local rank, size, slice_axis = tensor.rank, tensor.size, tensor.slice_axis
  local is_tensor, floor, TO_END = native.is_tensor, math.floor, tensor.TO_END
  local has_entries = native.has_entries
  local FAR = 2 ^ 53

  -- Makes the next slice take position i of an axis; false where there is none, or only a run knows.
  local function take_position(t, axis, i)
    local n = size(t, axis)
    if type(n) ~= "number" or i == 0 or i > n or i < -n or i ~= floor(i) then return false end
    local at = i > 0 and i - 1 or i
    slice_axis(axis, at, i == -1 and TO_END or at + 1, 1, 1)
    return true
  end

  local function is_end(v) return type(v) == "number" and v ~= 0 and v == floor(v) and v > -FAR and v < FAR end

  -- Makes the next slice take {} or {first, last} of an axis; false for other ranges.
  local function take_range(axis, range)
    local first, last = range[1], range[2]
    if first == nil then
      if next(range) ~= nil then return false end
      slice_axis(axis, 0, TO_END, 1, 0)
      return true
    end
    if not (is_end(first) and is_end(last) and has_entries(range, 2)) then return false end
    local stop = last == -1 and TO_END or last < 0 and last + 1 or last
    slice_axis(axis, first > 0 and first - 1 or first, stop, 1, 0)
    return true
  end

  -- Prepares the slice that a key names. Answers how many axes it tells of, and how many of them go; 0 where the key
  -- is none of these.
  local function prepare(t, key)
    local axes = rank(t)
    if type(key) == "number" then
      if axes == 0 or not take_position(t, 1, key) then return 0, 0 end
      return 1, 1
    end
    if type(key) ~= "table" or getmetatable(key) ~= nil then return 0, 0 end
    local count, gone = #key, 0
    if count > axes or not has_entries(key, count) then return 0, 0 end
    for axis = 1, count do
      local entry, fits = key[axis], false
      if type(entry) == "number" then
        fits, gone = take_position(t, axis, entry), gone + 1
      elseif type(entry) == "table" and getmetatable(entry) == nil then
        fits = take_range(axis, entry)
      end
      if not fits then return 0, 0 end
    end
    return count, gone
  end

  function hooks.index(t, key)
    local count = prepare(t, key)
    if count == 0 then return tensor.any_index(t, key) end
    return tensor.slice(t, count)
  end

  function hooks.newindex(t, key, value)
    local count, gone = prepare(t, key)
    if count == 0 then return tensor.any_newindex(t, key, value) end
    if type(value) == "number" then
      native.dtypes.check_number("assignment", value, tensor.dtype(t))
      tensor.slice_axes(count)
      return tensor.writer.fill_part(t, value, "assignment")
    end
    if not is_tensor(value) or value.ptr == nil or rank(value) > rank(t) - gone then
      return tensor.any_newindex(t, key, value)
    end
    tensor.slice_axes(count)
    tensor.writer.copy_part(t, value, "copy")
  end
end
