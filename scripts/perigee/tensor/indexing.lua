-- SPDX-License-Identifier: Apache-2.0
-- t[...] and t[...] = v. Positions count from 1; numbers and slices give views; masks and index tensors give copies.

jit.off(true, true) -- walks option tables with next, which cannot be compiled; attempts at it thrash

return function(pg, native)
  local tensor, call = native.tensor, native.call
  local rank, size = tensor.rank, tensor.size
  local is_tensor, is_size = native.is_tensor, native.size.is

  ---Inserts an axis of size 1: `t[{pg.newaxis, {1, 2}}]`.
  local newaxis = setmetatable({}, { __tostring = function() return "pg.newaxis" end })
  pg.newaxis = newaxis

  local function bad(message, hint) native.raise("invalid_argument", "index", message, hint) end

  -- A slice with ends that are sizes of a graph. Where only a run tells how far they are from the ends of the axis, the
  -- positions as an index tensor.
  local function sized_slice(first, last, step, t, axis)
    local n = size(t, axis)
    if type(first) == "number" and first < 0 then first = n + first + 1 end
    if type(last) == "number" and last < 0 then last = n + last + 1 end
    local start, stop = tensor.place(first - 1, n), tensor.place(last, n)
    if start and stop then return start, stop, step end
    return pg.arange(first - 1, last, step, { device = t.device })
  end

  local FAR = 2 ^ 53 -- from here on numbers are not whole ones for sure

  -- {first, last[, step]} as start, stop, step from 0 with the end excluded; {} is all. Of that axis of t.
  local function read_slice(entry, t, axis)
    for k, v in pairs(entry) do
      local fits = type(v) == "number" and v == math.floor(v) and math.abs(v) < FAR or is_size(v)
      if type(k) ~= "number" or not fits then
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
    if type(first) ~= "number" or type(last) ~= "number" then
      return sized_slice(first, last, step or 1, t, axis)
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

  -- An entry of the key for an axis; of a slice also its start, stop and step. What a size of a graph says becomes a
  -- number, or else an index tensor.
  local function entry_at(t, axis, entry)
    if type(entry) == "table" and getmetatable(entry) == nil then
      local start, stop, step = read_slice(entry, t, axis)
      if type(start) ~= "number" then return start end
      return entry, start, stop, step
    end
    if not is_size(entry) then return entry end
    return tensor.place(entry - 1, size(t, axis)) or
      pg.arange(entry - 1, entry, 1, { device = t.device }):reshape({})
  end

  -- The part of the key that gives a view. Answers the view, the tensors met as { axis of the view, index, shown: axis
  -- of t }, and whether anything was cut.
  local function basic(t, entries)
    local tensors, new, ranges = {}, {}, 0
    local axis, view_axis, cut = 0, 0, false
    for _, given in ipairs(entries) do
      local entry, start, stop, step = entry_at(t, axis + 1, given)
      if is_tensor(entry) and type(given) == "table" then ranges = ranges + 1 end
      if entry == newaxis then
        view_axis = view_axis + 1
        new[#new + 1] = view_axis
      elseif is_tensor(entry) and axes_of(entry) == 0 then -- one answer: a mask of an axis that it brings along
        view_axis = view_axis + 1
        new[#new + 1] = view_axis
        tensors[#tensors + 1] = { axis = view_axis, index = entry:reshape(1), shown = axis + 1 }
      else
        axis = axis + 1
        tensor.slice_axis(axis, 0, tensor.TO_END, 1, 0)
        if type(entry) == "number" then
          check_position(t, axis, entry)
          local at = entry > 0 and entry - 1 or entry
          tensor.slice_axis(axis, at, entry == -1 and tensor.TO_END or at + 1, 1, 1)
          cut = true
        elseif is_tensor(entry) then
          view_axis = view_axis + 1
          tensors[#tensors + 1] = { axis = view_axis, index = entry, shown = axis }
          for _ = 2, axes_of(entry) do
            axis, view_axis = axis + 1, view_axis + 1
            tensor.slice_axis(axis, 0, tensor.TO_END, 1, 0)
          end
        elseif start then
          tensor.slice_axis(axis, start, stop, step, 0)
          view_axis, cut = view_axis + 1, cut or next(entry) ~= nil
        else
          bad("an entry must be a number, a slice, a tensor, \"...\" or pg.newaxis, got " .. native.describe(entry))
        end
      end
    end
    if ranges > 0 and #tensors > 1 then
      bad("a slice that ends at a size of another axis stands beside index tensors",
          "x:narrow(axis, start, length) cuts first")
    end
    if cut then t = tensor.slice(t, axis) end
    for _, position in ipairs(new) do t = t:unsqueeze(position) end
    return t, tensors, cut or #new > 0
  end

  local function check_mask(t, axis, mask)
    for i = 1, rank(mask) do
      if tensor.sizes_differ(size(mask, i), size(t, axis + i - 1)) then
        bad(("a mask %s does not fit axes %d.. of a tensor %s"):format(tostring(mask.shape), axis, tostring(t.shape)))
      end
    end
  end

  local function is_mask(index) return index.dtype == "bool" end

  -- An index tensor in a dtype that operators take.
  local function as_index(index)
    local dtype = index.dtype
    if dtype == "int64" or dtype == "int32" then return index end
    if not native.dtypes.by_name[dtype].integer then
      bad(("an index tensor must be integer or bool, got %s"):format(dtype), "t:to(\"int64\")")
    end
    return index:to("int64")
  end

  -- ---- several tensors at once ----

  -- Masks as the index tensors of their true elements: a list of { axis of the view, index }, and the view, which has
  -- an axis more for a mask without axes.
  local function numbered(view, tensors)
    local list, added = {}, 0
    for _, entry in ipairs(tensors) do
      local axis, index, shown = entry.axis + added, entry.index, entry.shown
      if not is_mask(index) then
        list[#list + 1] = { axis = axis, index = as_index(index), shown = shown }
      elseif rank(index) == 0 then
        view, added = view:unsqueeze(axis), added + 1
        list[#list + 1] = { axis = axis, index = index:reshape(1):nonzero():reshape(-1), shown = shown }
      else
        check_mask(view, axis, index)
        local places = index:nonzero()
        for k = 1, rank(index) do
          list[#list + 1] = { axis = axis + k - 1, index = tensor.select(places, 2, k), shown = shown + k - 1 }
        end
      end
    end
    return view, list
  end

  -- Whether the axes follow each other when those of tensors without axes, which stand for numbers, are taken out.
  local function in_a_row(list)
    local last, gone = nil, 0
    for _, entry in ipairs(list) do
      if rank(entry.index) == 0 then
        gone = gone + 1
      else
        local at = entry.axis - gone
        if last and at ~= last + 1 then return false end
        last = at
      end
    end
    return true
  end

  -- The view with its indexed axes in a row, the first of them, the index tensors in that order, and the axes' numbers
  -- in messages. What they broadcast to stands where the first index tensor stood, or in front where they are apart.
  local function gathered(view, list)
    local in_front, indexed, first = not in_a_row(list), {}, nil
    for _, entry in ipairs(list) do
      indexed[entry.axis] = true
      if rank(entry.index) > 0 then first = first or entry.axis end
    end
    local axes, at = {}, nil
    local function add_indexed()
      at = #axes + 1
      for _, zero_dim in ipairs { true, false } do
        for _, entry in ipairs(list) do
          if (rank(entry.index) == 0) == zero_dim then axes[#axes + 1] = entry.axis end
        end
      end
    end
    first = first or list[1].axis
    if in_front then add_indexed() end
    for axis = 1, rank(view) do
      if not in_front and axis == first then add_indexed() end
      if not indexed[axis] then axes[#axes + 1] = axis end
    end
    local by_axis, indices, shown, moved = {}, {}, {}, false
    for _, entry in ipairs(list) do by_axis[entry.axis] = entry end
    for k = 1, #list do
      local entry = by_axis[axes[at + k - 1]]
      indices[k], shown[k] = entry.index, entry.shown
    end
    for i, axis in ipairs(axes) do moved = moved or i ~= axis end
    return moved and view:permute(axes) or view, at, indices, shown
  end

  local function take_several(view, tensors)
    local list, at, indices, shown
    view, list = numbered(view, tensors)
    view, at, indices, shown = gathered(view, list)
    return call("index", { view, indices }, { axis = at, shown = shown })
  end

  -- ---- one tensor ----

  -- A copy of the elements at the contents of an index tensor along an axis.
  local function take_index(t, axis, index, shown)
    local shape, attrs = index.shape, { axis = axis, shown = shown }
    if #shape == 1 then return call("index_select", { t, index }, attrs) end
    local picked = call("index_select", { t, index:reshape(-1) }, attrs)
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
    if rank(mask) == rank(t) and rank(mask) > 0 then return call("masked_select", { t, mask }) end
    local joined = rank(mask) > 1 and t:flatten(axis, axis + rank(mask) - 1) or t
    return take_index(joined, axis, mask:reshape(-1):nonzero():reshape(-1), axis)
  end

  local function take(t, tensors)
    if #tensors > 1 then return take_several(t, tensors) end
    local axis, index = tensors[1].axis, tensors[1].index
    if is_mask(index) then
      if rank(index) == 0 then return take_several(t, tensors) end
      return take_mask(t, axis, index)
    end
    index = as_index(index)
    if rank(t) == 0 then bad("a 0-dim tensor cannot be indexed") end
    return take_index(t, axis, index, tensors[1].shown)
  end

  function tensor.any_index(t, key)
    if type(key) == "number" then
      if rank(t) == 0 then bad("a 0-dim tensor cannot be indexed", "t:item() gives its number") end
      return tensor.select(t, 1, key)
    end
    if is_size(key) then key = { key } end
    if is_tensor(key) then
      tensor.check_open(key, "index")
      return take(t, { { axis = 1, index = key, shown = 1 } })
    end
    if key == "..." then return t:expand(t.shape) end
    if key == newaxis then return t:unsqueeze(1) end
    if type(key) ~= "table" then bad("cannot index a tensor with " .. native.describe(key)) end
    local view, tensors, cut = basic(t, expand(t, key))
    if tensors[1] then return take(view, tensors) end
    return cut and view or view:expand(view.shape)
  end

  -- ---- writing ----

  -- One value wherever a mask is true: nothing is counted, so nothing waits.
  local function fill_mask(t, axis, mask, value)
    check_mask(t, axis, mask)
    for _ = rank(mask) + axis, rank(t) do mask = mask:unsqueeze(-1) end
    if is_tensor(value) then
      t:copy_(call("where", { mask, value:reshape({}):to(t.dtype), t }))
    else
      t:masked_fill_(mask, value)
    end
  end

  -- Without axes of size 1 in front that the target has no place for.
  local function fitting(value, most)
    while rank(value) > most and size(value, 1) == 1 do value = tensor.select(value, 1, 1) end
    return value
  end

  local function put_several(view, tensors, value, accumulate)
    local list, at, indices, shown
    view, list = numbered(view, tensors)
    view, at, indices, shown = gathered(view, list)
    local common = 0
    for _, index in ipairs(indices) do common = math.max(common, rank(index)) end
    if is_tensor(value) then
      value = fitting(value, rank(view) - #indices + common):to(view.dtype)
    else
      value = pg.full({ {}, value, dtype = view.dtype, device = view.device })
    end
    call("index_put", { view, indices, value }, { axis = at, shown = shown, accumulate = accumulate }, true)
  end

  local function put(view, tensors, value, accumulate)
    local index, single = tensors[1].index, not is_tensor(value) or value:numel() == 1
    if #tensors == 1 and is_mask(index) and single and not accumulate then
      return fill_mask(view, tensors[1].axis, index, value)
    end
    put_several(view, tensors, value, accumulate)
  end

  -- The value as operators take it.
  local function check_value(where, t, value)
    if type(value) ~= "number" and type(value) ~= "boolean" and not is_tensor(value) then
      native.raise("invalid_argument", where, "the value must be a number or a tensor, got " .. native.describe(value),
                   type(value) == "table" and "pg.tensor makes a tensor of a table" or nil)
    end
    if is_tensor(value) then
      tensor.check_open(value, where)
    else
      native.dtypes.check_number(where, value, tensor.dtype(t))
    end
    if type(value) == "boolean" then return value and 1 or 0 end
    return value
  end

  function tensor.any_newindex(t, key, value)
    value = check_value("assignment", t, value)
    local view, tensors = t, {}
    if is_size(key) then key = { key } end
    if type(key) == "number" then view = native.hooks.index(t, key)
    elseif is_tensor(key) then view, tensors = basic(t, expand(t, { key }))
    elseif type(key) == "table" and key ~= newaxis then view, tensors = basic(t, expand(t, key))
    elseif key ~= "..." and key ~= newaxis then bad("cannot index a tensor with " .. native.describe(key)) end
    if tensors[1] then return put(view, tensors, value, false) end
    view:copy_(is_tensor(value) and fitting(value, rank(view)) or value)
  end

  local read_put = native.signature("index_put", {
    { "x", "tensor", required = true }, { "index", "any", required = true }, { "values", "any", required = true },
    { "accumulate", "boolean", default = false } })
  local function index_put_(o)
    local values, key = check_value("index_put", o.x, o.values), o.index
    if type(key) ~= "table" or getmetatable(key) ~= nil then key = { key } end
    local view, tensors = basic(o.x, expand(o.x, key))
    if tensors[1] then
      put(view, tensors, values, o.accumulate)
    elseif o.accumulate then
      view:add_(values)
    else
      view:copy_(values)
    end
    return o.x
  end

  ---A copy of x with `values` (a number or a tensor that broadcasts) written, or with `accumulate` added, at `index`:
  ---what stands between the brackets of `x[...]`. Of equal places the last one stays, and with `accumulate` all add up.
  ---@param x perigee.Tensor
  ---@param index integer|string|table|perigee.Tensor
  ---@param values perigee.Tensor|number|boolean
  ---@param accumulate? boolean
  ---@return perigee.Tensor
  function pg.index_put(...)
    local o = read_put(...)
    o.x = o.x:clone()
    return index_put_(o)
  end
  native.methods.index_put = pg.index_put
  ---The same, into x.
  native.methods.index_put_ = function(...) return index_put_(read_put(...)) end
end
