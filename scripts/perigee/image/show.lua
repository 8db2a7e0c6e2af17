-- SPDX-License-Identifier: Apache-2.0
-- pg.image: pictures for people: in the terminal, and many in one.

local native = require "perigee.native"
local common = require "perigee.image.common"

local refuse, check = common.refuse, common.check
local image = {}
local function pg() return require "perigee" end

-- What people see of a picture: uint8 in 1, 3 or 4 channels; of floats 0 to 1.
local function visible(where, t)
  check(where, t)
  local channels = t:size(-1)
  if channels < 1 or channels > 4 then
    refuse(where, ("image must have 1 to 4 channels, got %s"):format(tostring(t.shape)))
  end
  t = t:detach():to "cpu"
  if t.dtype ~= "uint8" then t = (t:to "float32":clamp(0, 1) * 255):round():to "uint8" end
  return t
end

local read_grid = native.signature("image.grid", {
  { "images", "tensor", required = true,
    doc = "a batch [n, rows, columns, channels], uint8 or of numbers from 0 to 1" },
  { "columns", "integer", named = true, doc = "pictures side by side; about as many as below each other if not given" },
  { "padding", "integer", default = 2, named = true, doc = "pixels around each" },
  { "value", "number", default = 0, named = true, doc = "of these pixels" } })
---A batch as one uint8 picture, in rows: `pg.image.save("batch.png", pg.image.grid(x))`.
---@return perigee.Tensor
function image.grid(...)
  local where, o = "image.grid", read_grid(...)
  local x = o.images
  if x:dim() ~= 4 or x:size(1) < 1 then
    refuse(where, "images must be [n, rows, columns, channels], n at least 1, got " .. tostring(x.shape))
  end
  if o.padding < 0 then refuse(where, "padding must not be negative, got " .. o.padding) end
  x = visible(where, x)
  local n = x:size(1)
  local across = math.min(o.columns or math.ceil(math.sqrt(n)), n)
  if across < 1 then refuse(where, "columns must be 1 or more, got " .. across) end
  local down, p = math.ceil(n / across), o.padding
  x = x:pad({ { 0, down * across - n }, { 0, p }, { 0, p }, { 0, 0 } }, { value = o.value })
  local rows, columns, channels = x:size(2), x:size(3), x:size(4)
  if n < down * across then x:narrow(1, n + 1, down * across - n):fill_(o.value) end
  x = x:reshape(down, across, rows, columns, channels):transpose(2, 3):reshape(down * rows, across * columns, channels)
  return x:pad({ { p, 0 }, { p, 0 }, { 0, 0 } }, { value = o.value })
end

local SHADES = " .:-=+*#%@"

-- Two rows of pixels a line: the upper half of a character, and what lies behind it.
local function coloured(pixels)
  local lines = {}
  for row = 1, #pixels, 2 do
    local line, last = {}, nil
    for column, above in ipairs(pixels[row]) do
      local below = pixels[row + 1] and pixels[row + 1][column]
      local code = ("\27[38;2;%d;%d;%dm"):format(above[1], above[2], above[3]) ..
                   (below and ("\27[48;2;%d;%d;%dm"):format(below[1], below[2], below[3]) or "\27[49m")
      line[#line + 1] = (code ~= last and code or "") .. "\226\150\128"
      last = code
    end
    lines[#lines + 1] = table.concat(line) .. "\27[0m\n"
  end
  return table.concat(lines)
end

local function shaded(pixels)
  local lines = {}
  for row = 1, #pixels, 2 do
    local line = {}
    for column, above in ipairs(pixels[row]) do
      local below = (pixels[row + 1] or pixels[row])[column]
      local luma = 0
      for c, weight in ipairs { 0.299, 0.587, 0.114 } do luma = luma + weight * (above[c] + below[c]) / 2 end
      local at = 1 + math.floor(luma / 256 * #SHADES)
      line[column] = SHADES:sub(at, at)
    end
    lines[#lines + 1] = table.concat(line) .. "\n"
  end
  return table.concat(lines)
end

-- Red, green and blue, over black where a picture has an opacity.
local function in_colours(t)
  local channels = t:size(3)
  local colours = channels <= 2 and t:narrow(3, 1, 1) or t:narrow(3, 1, 3)
  if channels == 2 or channels == 4 then
    colours = (colours:to "int32" * t:narrow(3, channels, 1):to "int32" + 127):floor_div(255):to "uint8"
  end
  return colours:size(3) == 1 and pg().cat({ colours, colours, colours }, 3) or colours
end

local read_text = native.signature("image.text", { common.IMAGE,
  { "width", "integer", default = 80, named = true,
    doc = "characters across, at most; smaller pictures stay as they are" },
  { "color", "boolean", default = true, named = true,
    doc = "by escape sequences; else by characters of more and less ink" } })
---A picture, or a batch of them as a grid, as text: a character shows two pixels, one above the other.
---@return string
function image.text(...)
  local where, o = "image.text", read_text(...)
  if o.width < 1 then refuse(where, "width must be 1 or more, got " .. o.width) end
  local t = visible(where, o.image)
  if t:dim() == 4 then t = image.grid(t) end
  t = in_colours(t)
  local rows, columns = common.sides(t)
  if rows == 0 or columns == 0 then return "" end
  if columns > o.width then
    t = require("perigee.image").resize(t, { math.max(math.floor(rows * o.width / columns + 0.5), 1), o.width },
                                        { filter = "area" })
  end
  return (o.color and coloured or shaded)(t:totable())
end

local CELL = 8 -- columns of pixels a character, of sixels

-- What a terminal that shows pixels reads.
local function pixels_of(t, protocol, width)
  t = visible("image.show", t)
  if t:dim() == 4 then t = image.grid(t) end
  local rows, columns = common.sides(t)
  if rows == 0 or columns == 0 then return "" end
  local terminal, most = require "perigee.image.terminal", width * CELL
  if protocol == "kitty" then
    if t:size(3) ~= 4 then t = in_colours(t) end
    return terminal.kitty(t, columns > most and width or nil)
  end
  t = in_colours(t)
  if columns > most then
    t = require("perigee.image").resize(t, { math.max(math.floor(rows * most / columns + 0.5), 1), most },
                                        { filter = "area" })
  end
  return terminal.sixel(t)
end

local read_show = native.signature("image.show", { common.IMAGE,
  { "width", "integer", named = true, doc = "characters across, at most; 80 if not given" },
  { "protocol", "string", named = true, default = "auto", choices = { "auto", "blocks", "sixel", "kitty" },
    doc = "pixels by kitty's protocol or sixels, or characters; auto: what the terminal says it understands" } })
---Prints a picture, or a batch of them as a grid, into the terminal: as pixels where it shows such (kitty, Ghostty,
---WezTerm, Konsole; sixels in foot, mlterm, iTerm2 and others), else in characters, in colours where it is a terminal.
function image.show(...)
  local where, o = "image.show", read_show(...)
  local is_terminal, protocol, width = native.is_terminal(1), o.protocol, o.width or 80
  if width < 1 then refuse(where, "width must be 1 or more, got " .. width) end
  if protocol == "auto" then
    protocol = is_terminal and require("perigee.image.terminal").protocol() or "blocks"
  end
  if protocol ~= "blocks" then
    io.stdout:write(pixels_of(o.image, protocol, width))
  else
    io.stdout:write(image.text(o.image, { width = width, color = is_terminal }))
  end
end

return image
