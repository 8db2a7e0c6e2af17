-- SPDX-License-Identifier: Apache-2.0
-- Images at other sizes and places: interpolation, pixels and channels exchanged, sampling at the points of a grid.

return function(pg, native)
  local rank, size, differ = native.tensor.rank, native.tensor.size, native.tensor.sizes_differ

  local function refuse(where, message, hint) native.raise("invalid_argument", where, message, hint) end

  -- quick(...) answers common calls, and nil where the grammar is to read them.
  local function both(name, params, f, quick)
    table.insert(params, 1, { "x", "tensor", required = true })
    local read = native.signature(name, params)
    local function call(...) return f(read(...)) end
    if quick then
      function call(...) return quick(...) or f(read(...)) end
    end
    pg[name], native.methods[name] = call, call
  end

  -- Calls f with 16-bit floats widened, so that a chain of operators rounds once.
  local function widened(x, f)
    local dtype = x.dtype
    if dtype ~= "float16" and dtype ~= "bfloat16" then return f(x) end
    return f(x:to "float32"):to(dtype)
  end

  -- ---- interpolate ----

  local modes = { nearest = "nearest", linear = "linear", bilinear = "linear", trilinear = "linear", bicubic = "cubic",
                  area = "area" }
  local axes_of_mode = { linear = 1, bilinear = 2, trilinear = 3, bicubic = 2 }
  local mode_names = { "nearest", "linear", "bilinear", "bicubic", "trilinear", "area" }

  local function list_of(name, v, axes)
    if type(v) == "number" or native.size.is(v) then
      local list = {}
      for i = 1, axes do list[i] = v end
      return list
    end
    if type(v) ~= "table" or #v ~= axes then
      refuse("interpolate", ("%s must be one number or %d, got %s"):format(name, axes, native.describe(v)))
    end
    return v
  end

  -- n * factor, rounded down; of a size of a graph where the factor is a fraction of whole numbers.
  local function scaled(x, axis, factor)
    local n = size(x, axis)
    if type(n) == "number" then return math.floor(n * factor) end
    for q = 1, 64 do
      if factor * q == math.floor(factor * q) then return n * (factor * q) / q end
    end
    refuse("interpolate", ("axis %d of %s has no size before the graph runs, which times %s could be rounded down")
           :format(axis, tostring(x.shape), tostring(factor)), "a factor such as 1.5 or 3 / 16 goes")
  end

  -- Sizes to interpolate to, and by axis the input elements an output element (0: by the sizes).
  local function sizes_of(o, axes)
    if (o.size == nil) == (o.scale_factor == nil) then
      refuse("interpolate", "takes either a size or a scale_factor")
    end
    local sizes, scales = {}, {}
    if o.size ~= nil then
      for i, n in ipairs(list_of("size", o.size, axes)) do sizes[i], scales[i] = n, 0 end
    else
      for i, factor in ipairs(list_of("scale_factor", o.scale_factor, axes)) do
        if type(factor) ~= "number" or factor ~= factor or factor <= 0 then
          refuse("interpolate", "scale_factor must be positive, got " .. native.describe(factor))
        end
        sizes[i], scales[i] = scaled(o.x, i + 2, factor), o.recompute_scale_factor and 0 or 1 / factor
      end
    end
    for _, n in ipairs(sizes) do
      if not native.size.is(n) and (type(n) ~= "number" or n < 1 or n ~= math.floor(n)) then
        refuse("interpolate", "sizes must be whole numbers from 1, got " .. native.describe(n))
      end
    end
    return sizes, scales
  end

  local function cubic_weights(t)
    local a = -0.75
    local function near(d) return ((d * (a + 2) - (a + 3)) * d * d) + 1 end
    local function far(d) return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a end
    return { far(t + 1), near(t), near(1 - t), far(2 - t) }
  end

  -- The operator resample; by gathering where only a run tells the new size, which the operator takes as a number.
  local function resampled(x, o)
    local n, axis, mode = o.size, o.axis, o.mode
    if not native.size.is(n) then return native.call("resample", { x }, o) end
    local function number(v) return pg.full { {}, v, dtype = "float64", device = x.device } end
    local before = size(x, axis)
    local step = o.scale > 0 and o.scale or number(before) / n
    if o.align_corners then step = number(before - 1) / native.size.max(n - 1, 1) end
    local place = pg.arange(0, n, 1, { dtype = "float64", device = x.device })
    local function pick(at) return x:index_select(at:clamp { min = 0, max = before - 1 }:to("int64"), axis) end
    if mode == "nearest" then return pick((place * step):floor()) end
    place = o.align_corners and place * step or (place + 0.5) * step - 0.5
    if mode == "linear" then place = place:clamp { min = 0 } end
    local low, sum = place:floor(), nil
    local part = place - low
    local weights = mode == "linear" and { 1 - part, part } or cubic_weights(part)
    local shape = {}
    for i = 1, rank(x) do shape[i] = i == axis and -1 or 1 end
    for k, weight in ipairs(weights) do
      local term = pick(low + (k - #weights / 2)) * weight:to(x.dtype):reshape(shape)
      sum = sum and sum + term or term
    end
    return sum
  end

  -- ---- images, whose two axes go in one pass ----

  local choices = { nearest = 0, linear = 1, cubic = 2 } -- of the operator
  local run_planes, planes -- made when they are first asked for

  local function resampled_planes(x, mode, rows, columns, scale_rows, scale_columns, align)
    if not run_planes then
      run_planes, planes = native.prepare "resample2d"
      planes.size.count = 2
    end
    planes.size.value[0], planes.size.value[1] = rows, columns
    planes.mode[0], planes.align_corners[0] = choices[mode], align and 1 or 0
    planes.scale_rows[0], planes.scale_columns[0] = scale_rows, scale_columns
    return run_planes(x)
  end

  local function is_count(v) return type(v) == "number" and v >= 1 and v < 2 ^ 53 and v == math.floor(v) end
  local function two(v)
    if type(v) == "table" and not native.size.is(v) and #v == 2 then return v[1], v[2] end
    return v, v
  end
  local plain = { size = true, scale_factor = true, mode = true, align_corners = true, recompute_scale_factor = true }

  -- The common calls, read without the grammar: images at another size. nil where it is another call, or a mistake,
  -- which the grammar and what is behind it know to name.
  local function quick(x, o, surplus)
    if surplus ~= nil or type(o) ~= "table" or getmetatable(o) ~= nil or not native.is_tensor(x) then return end
    for key in pairs(o) do
      if not plain[key] then return end
    end
    local name, align, again = o.mode or "nearest", o.align_corners, o.recompute_scale_factor
    local mode = modes[name]
    if not choices[mode] or (axes_of_mode[name] or 2) ~= 2 or rank(x) ~= 4 then return end
    if align ~= nil and (mode == "nearest" or type(align) ~= "boolean") then return end
    if again ~= nil and type(again) ~= "boolean" then return end
    if o.size ~= nil then
      local rows, columns = two(o.size)
      if o.scale_factor ~= nil or not is_count(rows) or not is_count(columns) then return end
      return resampled_planes(x, mode, rows, columns, 0, 0, align)
    end
    local a, b = two(o.scale_factor)
    local h, w = size(x, 3), size(x, 4)
    if type(a) ~= "number" or type(b) ~= "number" or type(h) ~= "number" or type(w) ~= "number" then return end
    local rows, columns = math.floor(h * a), math.floor(w * b)
    if not is_count(rows) or not is_count(columns) then return end
    return resampled_planes(x, mode, rows, columns, again and 0 or 1 / a, again and 0 or 1 / b, align)
  end

  local function interpolated(o)
    local x, axes, mode = o.x, rank(o.x) - 2, modes[o.mode]
    if axes < 1 or axes > 3 then refuse("interpolate", ("x is %s; expected 3 to 5 axes"):format(tostring(x.shape))) end
    if (axes_of_mode[o.mode] or axes) ~= axes then
      refuse("interpolate", ("mode %s is for %d axes beside N and C; x is %s"):format(o.mode, axes_of_mode[o.mode],
                                                                                     tostring(x.shape)))
    end
    if o.align_corners ~= nil and (mode == "nearest" or mode == "area") then
      refuse("interpolate", ("mode %s knows no align_corners"):format(o.mode))
    end
    local sizes, scales = sizes_of(o, axes)
    for i, n in ipairs(sizes) do
      if mode == "area" and native.size.is(n) then
        native.raise("not_supported", "interpolate", ("the new size %s of axis %d has no number before the graph runs")
                     :format(tostring(n), i + 2), "modes but area go")
      end
    end
    if mode == "area" then return native.call(("adaptive_avg_pool%dd"):format(axes), { x }, { size = sizes }) end
    local align, last = o.align_corners or false, axes
    -- The last two axes in one pass, a volume's first one before them.
    local both_last = axes > 1 and not native.size.is(sizes[axes]) and not native.size.is(sizes[axes - 1])
    if both_last then last = axes - 2 end
    local function all(y)
      for i = 1, last do
        y = resampled(y, { axis = i + 2, size = sizes[i], mode = mode, scale = scales[i], align_corners = align })
      end
      if not both_last then return y end
      return resampled_planes(y, mode, sizes[axes - 1], sizes[axes], scales[axes - 1], scales[axes], align)
    end
    return last == 0 and all(x) or widened(x, all)
  end

  ---Images [N, C, L], [N, C, H, W] or [N, C, D, H, W] at another `size` of their last axes, or `scale_factor` times as
  ---large. Modes: nearest, linear (1 axis), bilinear, bicubic (2), trilinear (3), area (mean of what an output covers).
  ---@return perigee.Tensor
  both("interpolate", { { "size", "any", type = "integer|integer[]" },
                        { "scale_factor", "any", type = "number|number[]" },
                        { "mode", "string", default = "nearest", choices = mode_names },
                        { "align_corners", "boolean" },
                        { "recompute_scale_factor", "boolean", default = false } }, interpolated, quick)

  -- ---- pixels and channels ----

  local function check_factor(where, x, r)
    if rank(x) < 3 then refuse(where, ("x is %s; expected [..., C, H, W]"):format(tostring(x.shape))) end
    if r < 1 then refuse(where, "the factor must be at least 1, got " .. r) end
  end

  local function last_three(x) return size(x, rank(x) - 2), size(x, rank(x) - 1), size(x, rank(x)) end

  -- A shape's axes before the last three, then the given sizes.
  local function shaped(x, ...)
    local shape, more = {}, { ... }
    for i = 1, rank(x) - 3 do shape[i] = size(x, i) end
    for _, n in ipairs(more) do shape[#shape + 1] = n end
    return shape
  end
  local function permuted(x, ...)
    local axes, lead = {}, rank(x) - select("#", ...)
    for i = 1, lead do axes[i] = i end
    for _, axis in ipairs { ... } do axes[#axes + 1] = lead + axis end
    return x:permute(axes)
  end

  ---[..., C * r^2, H, W] to [..., C, H * r, W * r]: channels become pixels (Shi and others, 2016).
  ---@return perigee.Tensor
  both("pixel_shuffle", { { "factor", "integer", required = true } }, function(o)
    local x, r = o.x, o.factor
    check_factor("pixel_shuffle", x, r)
    local c, h, w = last_three(x)
    if differ(c % (r * r), 0) then
      refuse("pixel_shuffle", ("x is %s; its %d channels are no multiple of %d, the factor's square"):format(
               tostring(x.shape), c, r * r))
    end
    return permuted(x:reshape(shaped(x, c / (r * r), r, r, h, w)), 1, 4, 2, 5, 3):reshape(
      shaped(x, c / (r * r), h * r, w * r))
  end)

  ---The inverse of pixel_shuffle: [..., C, H * r, W * r] to [..., C * r^2, H, W].
  ---@return perigee.Tensor
  both("pixel_unshuffle", { { "factor", "integer", required = true } }, function(o)
    local x, r = o.x, o.factor
    check_factor("pixel_unshuffle", x, r)
    local c, h, w = last_three(x)
    if differ(h % r, 0) or differ(w % r, 0) then
      refuse("pixel_unshuffle", ("x is %s; height and width must be multiples of %d"):format(tostring(x.shape), r))
    end
    return permuted(x:reshape(shaped(x, c, h / r, r, w / r, r)), 1, 3, 5, 2, 4):reshape(
      shaped(x, c * r * r, h / r, w / r))
  end)

  ---[N, C, ...] with the channels of `groups` groups interleaved (Zhang and others, 2018).
  ---@return perigee.Tensor
  both("channel_shuffle", { { "groups", "integer", required = true } }, function(o)
    local x, g = o.x, o.groups
    if rank(x) < 3 or g < 1 or differ(size(x, 2) % g, 0) then
      refuse("channel_shuffle", ("x is %s; expected [N, C, ...] with C a multiple of %d"):format(tostring(x.shape), g))
    end
    return x:unflatten(2, { g, size(x, 2) / g }):transpose(2, 3):reshape(x.shape)
  end)

  -- ---- sampling ----

  -- Places in [-1, 1] as positions (from 0) on an axis of n.
  local function unnormalised(place, n, align_corners)
    if align_corners then return (place + 1) * (n - 1) * 0.5 end
    return ((place + 1) * n - 1) * 0.5
  end

  local function reflected(p, n, align_corners)
    local low, span = align_corners and 0 or -0.5, align_corners and n - 1 or n
    if span == 0 then return p * 0 end
    span = native.size.max(span, 1)
    local distance = (p - low):abs()
    local extra = distance - (distance / span):floor() * span
    local odd = (distance / span):floor() % 2
    return (pg.where(odd:eq(0), extra, span - extra) + low):clamp { min = 0, max = n - 1 }
  end

  -- The positions that a padding mode sees.
  local function placed(p, n, mode, align_corners)
    if mode == "border" then return p:clamp { min = 0, max = n - 1 } end
    if mode == "reflection" then return reflected(p, n, align_corners) end
    return p
  end

  -- Images or volumes x [N, C, ...] at whole positions, a tensor [N, ...] an axis, the last axis first: [N, C, ...];
  -- zeros outside.
  local function at_whole(x, positions)
    local shape, axes, inside, place, pixels = { size(x, 1), size(x, 2) }, #positions, nil, nil, 1
    for i = axes, 1, -1 do
      local p, n = positions[i], size(x, axes + 3 - i)
      local here = p:ge(0):logical_and(p:le(n - 1))
      local at = pg.where(here, p:detach(), 0):to("int64") -- whole numbers that no float would round
      inside = inside and inside:logical_and(here) or here
      place = place and place * n + at or at
      pixels = pixels * n
    end
    local count = 1
    for axis = 2, axes + 1 do
      shape[axis + 1] = size(place, axis)
      count = count * shape[axis + 1]
    end
    local index = place:reshape(shape[1], 1, count):expand { shape[1], shape[2], count }
    local picked = x:reshape(shape[1], shape[2], pixels):gather(index, 3):reshape(shape)
    return pg.where(inside:unsqueeze(2), picked, 0)
  end

  -- samplers[mode](x, positions, see): `see(p, axis)` are the positions that the padding mode sees on an axis of x.
  local samplers = {}
  local function axis_of_place(x, i) return rank(x) + 1 - i end

  function samplers.nearest(x, positions, see)
    local whole = {}
    for i, p in ipairs(positions) do whole[i] = see(p, axis_of_place(x, i)):round() end
    return at_whole(x, whole)
  end
  -- Every corner of the cell counts by how near it is.
  function samplers.bilinear(x, positions, see)
    local low, high, near, far, sum = {}, {}, {}, {}, nil
    for i, p in ipairs(positions) do
      p = see(p, axis_of_place(x, i))
      low[i] = p:detach():floor()
      high[i], far[i] = low[i] + 1, (p - low[i]):unsqueeze(2)
      near[i] = 1 - far[i]
    end
    for corner = 0, 2 ^ #positions - 1 do
      local at, weight = {}, nil
      for i = 1, #positions do
        local is_high = math.floor(corner / 2 ^ (i - 1)) % 2 == 1
        local part = is_high and far[i] or near[i]
        at[i], weight = is_high and high[i] or low[i], weight and weight * part or part
      end
      local term = at_whole(x, at) * weight
      sum = sum and sum + term or term
    end
    return sum
  end
  function samplers.bicubic(x, positions, see)
    local px, py = positions[1], positions[2]
    local x0, y0 = px:detach():floor(), py:detach():floor()
    local wx, wy, sum = cubic_weights((px - x0):unsqueeze(2)), cubic_weights((py - y0):unsqueeze(2)), nil
    for j = 1, 4 do
      for i = 1, 4 do
        local term = at_whole(x, { see(x0 + (i - 2), 4), see(y0 + (j - 2), 3) }) * (wx[i] * wy[j])
        sum = sum and sum + term or term
      end
    end
    return sum
  end

  ---Images x [N, C, H, W] sampled at `grid` [N, Ho, Wo, 2] of (x, y) in [-1, 1], where -1 and 1 are the outer edges, or
  ---with align_corners the centres of the outer pixels (Jaderberg and others, 2015); volumes [N, C, D, H, W] at a grid
  ---[N, Do, Ho, Wo, 3] of (x, y, z). Modes: bilinear (of volumes, trilinear), nearest, and of images bicubic; padding
  ---modes: zeros, border, reflection. 16-bit floats are computed in float32.
  ---@return perigee.Tensor
  both("grid_sample", { { "grid", "tensor", required = true },
                        { "mode", "string", default = "bilinear", choices = { "bilinear", "nearest", "bicubic" } },
                        { "padding_mode", "string", default = "zeros", choices = { "zeros", "border", "reflection" } },
                        { "align_corners", "boolean", default = false } }, function(o)
    local x, grid, where = o.x, o.grid, "grid_sample"
    local axes = rank(x) - 2
    if axes < 2 or axes > 3 or rank(grid) ~= rank(x) or differ(size(grid, rank(x)), axes) or
      differ(size(grid, 1), size(x, 1)) then
      refuse(where, ("x is %s and grid %s; expected [N, C, H, W] and [N, Ho, Wo, 2], or [N, C, D, H, W] and " ..
                     "[N, Do, Ho, Wo, 3]"):format(tostring(x.shape), tostring(grid.shape)))
    end
    if o.mode == "bicubic" and axes == 3 then refuse(where, "mode bicubic is one for images; x is a volume") end
    local dtype = x.dtype
    local narrow = dtype == "float16" or dtype == "bfloat16"
    if narrow then x, grid = x:to("float32"), grid:to("float32") end
    local function see(p, axis) return placed(p, size(x, axis), o.padding_mode, o.align_corners) end
    local positions = {}
    for i = 1, axes do
      positions[i] = unnormalised(grid:select(rank(x), i), size(x, rank(x) + 1 - i), o.align_corners)
    end
    local y = samplers[o.mode](x, positions, see)
    return narrow and y:to(dtype) or y
  end)

  -- n places between -1 and 1: the ends included with align_corners, else centres of n equal parts.
  local function places(n, align_corners, like)
    local at = pg.arange(0, n, 1, { dtype = like.dtype, device = like.device })
    local gaps = native.size.max(n - 1, 1)
    if align_corners then return at * 2 / gaps - (n - gaps) end -- n - gaps is 1, or 0 of one place alone
    return (at * 2 + 1) / n - 1
  end

  ---The grid [N, H, W, 2] for grid_sample that affine matrices x [N, 2, 3] make of images of `size` {N, C, H, W}.
  ---@return perigee.Tensor
  both("affine_grid", { { "size", "list", required = true }, { "align_corners", "boolean", default = false } },
       function(o)
    local x = o.x
    if rank(x) ~= 3 or differ(size(x, 2), 2) or differ(size(x, 3), 3) or #o.size ~= 4 or
      differ(size(x, 1), o.size[1]) then
      refuse("affine_grid", ("x is %s and size has %d numbers; expected [N, 2, 3] and {N, C, H, W}"):format(
               tostring(x.shape), #o.size))
    end
    local n, h, w = o.size[1], o.size[3], o.size[4]
    local across = places(w, o.align_corners, x):unsqueeze(1):expand { h, w }
    local down = places(h, o.align_corners, x):unsqueeze(2):expand { h, w }
    local base = pg.stack({ across, down, pg.ones_like(across) }, -1):reshape(1, h * w, 3):expand { n, h * w, 3 }
    return base:matmul(x:transpose(2, 3)):reshape(n, h, w, 2)
  end)
end
