-- SPDX-License-Identifier: Apache-2.0
-- pg.pad: elements before and behind the positions of axes.

return function(pg, native)
  local tensor = native.tensor
  local rank, size = tensor.rank, tensor.size

  local function refuse(message, hint) native.raise("invalid_argument", "pad", message, hint) end

  -- Widths as {before, behind} by axis. A flat list begins with the last axis, a list of pairs with the first.
  local function widths_of(x, pad)
    local widths = {}
    if type(pad[1]) == "table" then
      if #pad ~= rank(x) then refuse(("%d pairs for %d axes"):format(#pad, rank(x)), "one pair an axis") end
      for axis, pair in ipairs(pad) do
        if type(pair) ~= "table" then
          refuse(("widths of axis %d must be a pair, got %s"):format(axis, native.describe(pair)))
        end
        widths[axis] = { pair[1], pair[2] }
      end
    else
      if #pad % 2 == 1 or #pad > 2 * rank(x) then
        refuse(("%d widths for %d axes; expected two an axis"):format(#pad, rank(x)))
      end
      for i = 1, #pad / 2 do widths[rank(x) + 1 - i] = { pad[2 * i - 1], pad[2 * i] } end
    end
    for axis, pair in pairs(widths) do
      for i = 1, 2 do
        local w = pair[i]
        if type(w) ~= "number" or w ~= math.floor(w) then
          refuse("widths must be whole numbers, got " .. native.describe(w))
        end
      end
      local n = size(x, axis)
      if type(n) == "number" and n + pair[1] + pair[2] < 0 then
        refuse(("widths %d and %d take more than axis %d of %s has"):format(pair[1], pair[2], axis, tostring(x.shape)))
      end
    end
    return widths
  end

  -- What negative widths leave.
  local function cropped(x, axis, before, behind)
    if before >= 0 and behind >= 0 then return x end
    local n = size(x, axis)
    return tensor.part(x, axis, math.max(0, -before), n + math.min(0, behind))
  end

  local function constant(x, axis, before, behind, value)
    x = cropped(x, axis, before, behind)
    local parts = {}
    local function add(width)
      if width <= 0 then return end
      local shape = x.shape
      shape[axis] = width
      parts[#parts + 1] = pg.full(shape, value, { dtype = x.dtype, device = x.device })
    end
    add(before)
    parts[#parts + 1] = x
    add(behind)
    return #parts > 1 and pg.cat(parts, { axis = axis }) or x
  end

  -- Which positions (from 0) stand at positions i, which may be outside of 0..n-1.
  local source = {
    reflect = function(i, n) return (n - 1) - ((n - 1) - i:abs()):abs() end,
    replicate = function(i, n) return i:clamp { min = 0, max = n - 1 } end,
    circular = function(i, n) return i % n end,
  }
  local most = { reflect = function(n) return n - 1 end, circular = function(n) return n end }

  local function copied(x, axis, before, behind, mode)
    if mode == "circular" then -- goes round what is left
      x = cropped(x, axis, before, behind)
      before, behind = math.max(0, before), math.max(0, behind)
    end
    local n = size(x, axis)
    if type(n) == "number" then
      local limit = most[mode] and most[mode](n) or n > 0 and math.huge or 0
      if before > limit or behind > limit then
        refuse(("widths %d and %d are too large for axis %d of %s in mode %s"):format(
                 before, behind, axis, tostring(x.shape), mode))
      end
    end
    return x:index_select(source[mode](pg.arange(-before, n + behind, 1, { device = x.device }), n), axis)
  end

  local read = native.signature("pad", {
    { "x", "tensor", required = true }, { "pad", "table", required = true },
    { "mode", "string", default = "constant", choices = { "constant", "reflect", "replicate", "circular" } },
    { "value", "number", default = 0 } })

  ---Adds elements around x, or takes some away (negative widths). `pad` is {before, behind} of the last axis, then of
  ---the one before it, ...; or a pair an axis, first axis first. Modes: constant (`value`), reflect, replicate,
  ---circular.
  ---@return perigee.Tensor
  function pg.pad(...)
    local o = read(...)
    local x, widths = o.x, widths_of(o.x, o.pad)
    for axis = 1, rank(x) do
      local before, behind = unpack(widths[axis] or { 0, 0 })
      if before ~= 0 or behind ~= 0 then
        if o.mode == "constant" then
          x = constant(x, axis, before, behind, o.value)
        else
          x = copied(x, axis, before, behind, o.mode)
        end
      end
    end
    return rawequal(x, o.x) and x:clone() or x
  end
  native.methods.pad = pg.pad
end
