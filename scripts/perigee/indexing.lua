-- SPDX-License-Identifier: Apache-2.0
-- t[...] and t[...] = v. Positions count from 1; numbers and slices give views; masks and index tensors give copies.

jit.off(true, true) -- walks option tables with next, which cannot be compiled; attempts at it thrash

return function(pg, native)
  local tensor, call = native.tensor, native.call
  local rank, size = tensor.rank, tensor.size
  local is_tensor = native.is_tensor

  ---Inserts an axis of size 1: `t[{pg.newaxis, {1, 2}}]`.
  local newaxis = setmetatable({}, { __tostring = function() return "pg.newaxis" end })
  pg.newaxis = newaxis

  local function bad(message, hint) native.raise("invalid_argument", "index", message, hint) end

  -- {first, last[, step]} as start, stop, step from 0 with the end excluded; {} is all.
  local function read_slice(entry)
    for k, v in pairs(entry) do
      if type(k) ~= "number" or type(v) ~= "number" or v ~= math.floor(v) then
        bad(("a slice is {first, last[, step]} of whole numbers, got %s = %s"):format(tostring(k), native.describe(v)))
      end
    end
    local first, last, step = entry[1], entry[2], entry[3]
    if first == nil and last == nil and step == nil then return 0, tensor.TO_END, 1 end
    if first == nil or last == nil or #entry > 3 then
      bad(("a slice has two or three numbers, got %d"):format(#entry),
          "{first, last[, step]}, both ends included; {} is all")
    end
    if first == 0 or last == 0 then
      bad("position 0 in a slice, but positions count from 1", "the first is 1, the last -1")
    end
    if step ~= nil and step < 1 then
      bad(("the step of a slice must be at least 1, got %d"):format(step), "flip reverses")
    end
    local start = first > 0 and first - 1 or first
    local stop = last
    if last == -1 then stop = tensor.TO_END elseif last < 0 then stop = last + 1 end
    return start, stop, step or 1
  end

  local function takes_axis(entry) return entry ~= newaxis and entry ~= "..." end

  -- How many axes an entry takes: masks take as many as they have.
  local function axes_of(entry)
    if is_tensor(entry) and entry.dtype == "bool" then return rank(entry) end
    return takes_axis(entry) and 1 or 0
  end

  -- The entries of a key, with "..." expanded so that there is one for each axis (or new axis).
  local function expand(t, key)
    local entries, taken, dots = {}, 0, 0
    local count = 0
    for k in pairs(key) do
      if type(k) ~= "number" then bad(("an index has no entry named %q"):format(tostring(k))) end
      if k > count then count = k end
    end
    for i = 1, count do
      if key[i] == nil then bad(("the index has a hole at entry %d"):format(i), "{} stands for a whole axis") end
      taken = taken + axes_of(key[i])
      if key[i] == "..." then dots = dots + 1 end
    end
    local r = rank(t)
    if dots > 1 then bad('"..." occurs more than once') end
    if taken > r then bad(("%d entries for a tensor %s"):format(taken, tostring(t.shape))) end
    for i = 1, count do
      if key[i] == "..." then
        for _ = 1, r - taken do entries[#entries + 1] = {} end
      else
        entries[#entries + 1] = key[i]
      end
    end
    return entries
  end

  local function check_position(t, axis, i)
    local n = size(t, axis)
    if i == 0 then bad("position 0, but positions count from 1", "the first is 1, the last -1") end
    if i ~= math.floor(i) then bad(("position %s is not whole"):format(tostring(i))) end
    if type(n) == "number" and (i > n or i < -n) then
      bad(("%d is out of range for axis %d of a tensor %s; expected 1..%d or -%d..-1"):format(
            i, axis, tostring(t.shape), n, n))
    end
  end

  -- The part of the key that gives a view. Answers the view, the tensors met as {axis of the view, tensor}, and whether
  -- anything was cut.
  local function basic(t, entries)
    local tensors, new = {}, {}
    local axis, view_axis, cut = 0, 0, false
    for _, entry in ipairs(entries) do
      if entry == newaxis then
        view_axis = view_axis + 1
        new[#new + 1] = view_axis
      else
        axis = axis + 1
        tensor.slice_axis(axis, 0, tensor.TO_END, 1, 0)
        if type(entry) == "number" then
          check_position(t, axis, entry)
          local start = entry > 0 and entry - 1 or entry
          tensor.slice_axis(axis, start, entry == -1 and tensor.TO_END or start + 1, 1, 1)
          cut = true
        elseif is_tensor(entry) then
          view_axis = view_axis + 1
          tensors[#tensors + 1] = { axis = view_axis, index = entry }
          for _ = 2, axes_of(entry) do
            axis, view_axis = axis + 1, view_axis + 1
            tensor.slice_axis(axis, 0, tensor.TO_END, 1, 0)
          end
        elseif type(entry) == "table" and getmetatable(entry) == nil then
          local start, stop, step = read_slice(entry)
          tensor.slice_axis(axis, start, stop, step, 0)
          view_axis, cut = view_axis + 1, cut or next(entry) ~= nil
        else
          bad("an entry must be a number, a slice, a tensor, \"...\" or pg.newaxis, got " .. native.describe(entry))
        end
      end
    end
    if cut then t = tensor.slice(t, axis) end
    for _, position in ipairs(new) do t = t:unsqueeze(position) end
    return t, tensors, cut or #new > 0
  end

  local function check_mask(t, axis, mask)
    for i = 1, rank(mask) do
      if size(mask, i) ~= size(t, axis + i - 1) then
        bad(("a mask %s does not fit axes %d.. of a tensor %s"):format(tostring(mask.shape), axis, tostring(t.shape)))
      end
    end
  end

  -- A copy of the elements at the contents of an index tensor along an axis.
  local function take_index(t, axis, index)
    local shape = index.shape
    if #shape == 1 then return call("index_select", { t, index }, { axis = axis }) end
    local picked = call("index_select", { t, index:reshape(-1) }, { axis = axis })
    local result = {}
    for i = 1, rank(picked) do
      if i == axis then
        for _, d in ipairs(shape) do result[#result + 1] = d end
      else
        result[#result + 1] = size(picked, i)
      end
    end
    return picked:reshape(result)
  end

  -- The elements where a mask is true, its axes joined into one.
  local function take_mask(t, axis, mask)
    check_mask(t, axis, mask)
    if rank(mask) == rank(t) then return call("masked_select", { t, mask }) end
    if rank(mask) == 0 then bad("a 0-dim mask cannot select a part of a tensor") end
    local joined = rank(mask) > 1 and t:flatten(axis, axis + rank(mask) - 1) or t
    return take_index(joined, axis, mask:reshape(-1):nonzero():reshape(-1))
  end

  local function take(t, axis, index)
    local dtype = native.dtypes.by_name[index.dtype]
    if dtype.boolean then return take_mask(t, axis, index) end
    if not dtype.integer then
      bad(("an index tensor must be integer or bool, got %s"):format(index.dtype), "t:to(\"int64\")")
    end
    if rank(t) == 0 then bad("a 0-dim tensor cannot be indexed") end
    return take_index(t, axis, index)
  end

  local function only_one(tensors)
    if #tensors > 1 then
      native.raise("not_supported", "index", ("%d index tensors in one index"):format(#tensors),
                   "index one axis after the other, or use gather")
    end
  end

  function native.hooks.index(t, key)
    if type(key) == "number" then
      if rank(t) == 0 then bad("a 0-dim tensor cannot be indexed", "t:item() gives its number") end
      return tensor.select(t, 1, key)
    end
    if is_tensor(key) then
      tensor.check_open(key, "index")
      return take(t, 1, key)
    end
    if key == "..." then return t:expand(t.shape) end
    if key == newaxis then return t:unsqueeze(1) end
    if type(key) ~= "table" then bad("cannot index a tensor with " .. native.describe(key)) end
    local view, tensors, cut = basic(t, expand(t, key))
    only_one(tensors)
    if tensors[1] then return take(view, tensors[1].axis, tensors[1].index) end
    return cut and view or view:expand(view.shape)
  end

  local function assign_mask(t, axis, mask, value)
    check_mask(t, axis, mask)
    for _ = rank(mask) + axis, rank(t) do mask = mask:unsqueeze(-1) end
    if is_tensor(value) then
      if native.host.numel(value) ~= 1 then
        native.raise("not_supported", "assignment",
                     ("a tensor %s assigned through a mask"):format(tostring(value.shape)),
                     "assign a number or a tensor of one element, or use pg.where")
      end
      t:copy_(call("where", { mask, value:reshape({}), t }))
    else
      t:masked_fill_(mask, value)
    end
  end

  function native.hooks.newindex(t, key, value)
    if type(value) ~= "number" and type(value) ~= "boolean" and not is_tensor(value) then
      native.raise("invalid_argument", "assignment",
                   "the value must be a number or a tensor, got " .. native.describe(value),
                   type(value) == "table" and "pg.tensor makes a tensor of a table" or nil)
    end
    if is_tensor(value) then tensor.check_open(value, "assignment") end
    local view, tensors = t, {}
    if type(key) == "number" then view = native.hooks.index(t, key)
    elseif is_tensor(key) then tensors = { { axis = 1, index = key } }
    elseif type(key) == "table" then view, tensors = basic(t, expand(t, key))
    elseif key ~= "..." then bad("cannot index a tensor with " .. native.describe(key)) end
    only_one(tensors)
    if not tensors[1] then return view:copy_(value) end
    local index = tensors[1].index
    if index.dtype == "bool" then return assign_mask(view, tensors[1].axis, index, value) end
    native.raise("not_supported", "assignment",
                 "there is no operator yet that writes at the contents of an index tensor",
                 "assign slices, or use a mask")
  end
end
