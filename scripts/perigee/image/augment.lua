-- SPDX-License-Identifier: Apache-2.0
-- The changes of rand_augment, each as change(image, t, strength, sign, how): strength is from 0 to 1.

local common = require "perigee.image.common"

-- Around the picture's middle, as torchvision's affine has it: of a and b columns a column and a row, of d and e rows.
local function around(image, t, a, b, d, e, how)
  local rows, columns = common.sides(t)
  local x, y = columns / 2, rows / 2
  return image.affine(t, { a, b, x - a * x - b * y, d, e, y - d * x - e * y }, how)
end

local function factor(strength, sign) return 1 + 0.9 * strength * sign end

return {
  function(_, t) return t end,
  -- Sheared at the corner, not at the middle.
  function(image, t, strength, sign, how)
    return image.affine(t, { 1, -math.tan(math.atan(0.3 * strength * sign)), 0, 0, 1, 0 }, how)
  end,
  function(image, t, strength, sign, how)
    return image.affine(t, { 1, 0, 0, -math.tan(math.atan(0.3 * strength * sign)), 1, 0 }, how)
  end,
  function(image, t, strength, sign, how)
    local _, columns = common.sides(t)
    local by = math.floor(150 / 331 * columns * strength) * sign
    return image.affine(t, { 1, 0, -by, 0, 1, 0 }, how)
  end,
  function(image, t, strength, sign, how)
    local by = math.floor(150 / 331 * common.sides(t) * strength) * sign
    return image.affine(t, { 1, 0, 0, 0, 1, -by }, how)
  end,
  function(image, t, strength, sign, how)
    local angle = math.rad(30 * strength * sign)
    return around(image, t, math.cos(angle), -math.sin(angle), math.sin(angle), math.cos(angle), how)
  end,
  function(image, t, strength, sign) return image.brightness(t, factor(strength, sign)) end,
  function(image, t, strength, sign) return image.saturation(t, factor(strength, sign)) end,
  function(image, t, strength, sign) return image.contrast(t, factor(strength, sign)) end,
  function(image, t, strength, sign) return image.sharpness(t, factor(strength, sign)) end,
  function(image, t, strength) return image.posterize(t, 8 - math.floor(4 * strength + 0.5)) end,
  function(image, t, strength) return image.solarize(t, 255 * (1 - strength)) end,
  function(image, t) return image.autocontrast(t) end,
  function(image, t) return image.equalize(t) end,
}
