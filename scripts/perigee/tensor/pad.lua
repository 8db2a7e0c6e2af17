-- SPDX-License-Identifier: Apache-2.0
-- pg.pad: elements before and behind the positions of axes.

return function(pg, native)
  local rank = native.tensor.rank
  local run, attrs, struct = native.prepare("pad_axes", nil, "pad")
  local before, behind, modes = attrs.before, attrs.behind, {}
  for i, name in ipairs { "constant", "reflect", "replicate", "circular" } do modes[name] = i - 1 end

  local function refuse(message, hint) native.raise("invalid_argument", "pad", message, hint) end

  local function width(w)
    if type(w) ~= "number" or w ~= math.floor(w) or math.abs(w) >= 2 ^ 53 then
      refuse("widths must be whole numbers, got " .. native.describe(w))
    end
    return w
  end

  -- What the next run adds. A flat list begins with the last axis, a list of pairs with the first.
  local function set_widths(x, pad)
    local axes, count = rank(x), #pad
    for i = 0, axes - 1 do before.value[i], behind.value[i] = 0, 0 end
    before.count, behind.count = axes, axes
    if type(pad[1]) == "table" then
      if count ~= axes then refuse(("%d pairs for %d axes"):format(count, axes), "one pair an axis") end
      for axis, pair in ipairs(pad) do
        if type(pair) ~= "table" then
          refuse(("widths of axis %d must be a pair, got %s"):format(axis, native.describe(pair)))
        end
        before.value[axis - 1], behind.value[axis - 1] = width(pair[1]), width(pair[2])
      end
    else
      if count % 2 == 1 or count > 2 * axes then
        refuse(("%d widths for %d axes; expected two an axis"):format(count, axes))
      end
      for i = 1, count / 2 do
        before.value[axes - i], behind.value[axes - i] = width(pad[2 * i - 1]), width(pad[2 * i])
      end
    end
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
    set_widths(o.x, o.pad)
    if o.mode == "constant" then native.dtypes.check_number("pad", o.value, native.tensor.dtype(o.x)) end
    attrs.mode[0], attrs.value[0] = modes[o.mode], o.value
    return struct and run(o.x)
  end
  native.methods.pad = pg.pad
end
