-- SPDX-License-Identifier: Apache-2.0
-- A picture as pixels, smoothed: every stroke covers a pixel by its distance from the pixel's middle.

local native = require "perigee.native"
local picture = require "perigee.plot.picture"
local letters = require "perigee.plot.letters"

local UNIT, STROKE = 1.35, 0.55 -- pixels of a letter's grid, half a stroke's width

local function colour_of(text)
  local r, g, b = text:match("^#(%x%x)(%x%x)(%x%x)$")
  return { tonumber(r, 16), tonumber(g, 16), tonumber(b, 16) }
end

-- A canvas of one list a channel.
local function new_canvas(width, height)
  local channels = { {}, {}, {} }
  local canvas = {}

  local function blend(x, y, colour, alpha)
    if x < 0 or y < 0 or x >= width or y >= height then return end
    local at = y * width + x + 1
    for i = 1, 3 do
      local channel = channels[i]
      channel[at] = channel[at] + (colour[i] - channel[at]) * alpha
    end
  end

  function canvas.fill(x0, y0, x1, y1, colour)
    for y = math.max(0, math.floor(y0 + 0.5)), math.min(height, math.floor(y1 + 0.5)) - 1 do
      for x = math.max(0, math.floor(x0 + 0.5)), math.min(width, math.floor(x1 + 0.5)) - 1 do
        for i = 1, 3 do channels[i][y * width + x + 1] = colour[i] end
      end
    end
  end

  function canvas.stroke(x0, y0, x1, y1, colour, radius)
    local dx, dy = x1 - x0, y1 - y0
    local square = dx * dx + dy * dy
    local reach = radius + 1
    for y = math.floor(math.min(y0, y1) - reach), math.ceil(math.max(y0, y1) + reach) do
      for x = math.floor(math.min(x0, x1) - reach), math.ceil(math.max(x0, x1) + reach) do
        local px, py = x + 0.5 - x0, y + 0.5 - y0
        local along = square > 0 and math.max(0, math.min(1, (px * dx + py * dy) / square)) or 0
        local distance = math.sqrt((px - along * dx) ^ 2 + (py - along * dy) ^ 2)
        local alpha = math.min(1, radius + 0.5 - distance)
        if alpha > 0 then blend(x, y, colour, alpha) end
      end
    end
  end

  function canvas.bytes()
    local rows, char, r, g, b = {}, string.char, channels[1], channels[2], channels[3]
    local function byte(v) return math.floor(v + 0.5) end
    for y = 0, height - 1 do
      local row = {}
      for x = 1, width do
        local at = y * width + x
        row[x] = char(byte(r[at]), byte(g[at]), byte(b[at]))
      end
      rows[y + 1] = table.concat(row)
    end
    return table.concat(rows)
  end
  return canvas
end

local function drawing_on(canvas)
  local list = {}
  function list.rectangle(x, y, w, h, colour) canvas.fill(x, y, x + w, y + h, colour_of(colour)) end
  function list.line(points, colour, thickness)
    local rgb = colour_of(colour)
    for i = 1, #points - 3, 2 do
      canvas.stroke(points[i], points[i + 1], points[i + 2], points[i + 3], rgb, thickness / 2)
    end
  end
  function list.text(x, y, text, anchor, colour)
    local rgb, length = colour_of(colour), letters.width(text) * UNIT
    local shift = anchor == "start" and 0 or anchor == "end" and -length or -length / 2
    letters.strokes(text, function(a, b, c, d)
      local function place(u, v)
        u, v = u * UNIT + shift, (v - 6) * UNIT
        if anchor == "turned" then return x + v, y - u end
        return x + u, y + v
      end
      local x0, y0 = place(a, b)
      local x1, y1 = place(c, d)
      canvas.stroke(x0, y0, x1, y1, rgb, STROKE)
    end)
  end
  return list
end

---Writes the picture of a plot.
---@param plot table
---@param width integer
---@param height integer
---@param path string
return function(plot, width, height, path)
  local canvas = new_canvas(width, height)
  picture(plot, width, height, drawing_on(canvas))
  local image = native.host.from_bytes("plot", canvas.bytes(), native.dtypes.by_name.uint8, { height, width, 3 },
                                       native.find_device("cpu", "plot"))
  native.write(path, { "image" }, { image }, plot.title and { Title = plot.title } or nil)
end
