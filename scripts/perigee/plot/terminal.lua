-- SPDX-License-Identifier: Apache-2.0
-- Curves as text: dots of braille characters (2 x 4 to a cell), or one mark a cell.

local scale = require "perigee.plot.scale"
local columns = require "perigee.printing.columns"

local MARKS = { "*", "+", "o", "x", "#", "@", "%", "&" }
local COLOURS = { 34, 33, 32, 31, 35, 36, 94, 93 } -- of ANSI terminals
-- The bit of each dot of a braille cell, by row and column.
local DOTS = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } }

local function utf8(code)
  return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

-- A canvas of cells; dots(x, y, series) sets one, counted from 0 at the top left.
local function new_canvas(width, height, style)
  local canvas = { width = width, height = height, across = style == "braille" and 2 or 1,
                   down = style == "braille" and 4 or 1, bits = {}, owner = {} }
  function canvas.dot(x, y, series)
    local column, row = math.floor(x / canvas.across), math.floor(y / canvas.down)
    if column < 0 or row < 0 or column >= width or row >= height then return end
    local cell = row * width + column
    canvas.owner[cell] = series
    local dots = canvas.bits[cell] or {}
    dots[DOTS[y % canvas.down + 1][x % canvas.across + 1]] = true
    canvas.bits[cell] = dots
  end
  return canvas
end

local function line(canvas, x0, y0, x1, y1, series)
  local steps = math.max(math.abs(x1 - x0), math.abs(y1 - y0), 1)
  for i = 0, steps do
    canvas.dot(math.floor(x0 + (x1 - x0) * i / steps + 0.5), math.floor(y0 + (y1 - y0) * i / steps + 0.5), series)
  end
end

local function draw(canvas, plot)
  local wide, high = canvas.width * canvas.across - 1, canvas.height * canvas.down - 1
  for number, series in ipairs(plot.series) do
    local last_x, last_y
    for i, v in ipairs(series.y) do
      local px = scale.place(series.x[i], plot.x_low, plot.x_high)
      local py = scale.place(v, plot.y_low, plot.y_high, plot.logy)
      local x, y = px and math.floor(px * wide + 0.5), py and math.floor((1 - py) * high + 0.5)
      if x and y then line(canvas, last_x or x, last_y or y, x, y, number) end
      last_x, last_y = y and x, y -- what is not finite leaves a gap
    end
  end
end

local function cell_text(canvas, cell, style, colour)
  local series = canvas.owner[cell]
  if not series then return " " end
  local text = MARKS[(series - 1) % #MARKS + 1]
  if style == "braille" then
    local code = 0x2800
    for bit in pairs(canvas.bits[cell]) do code = code + bit end
    text = utf8(code)
  end
  if not colour then return text end
  return ("\27[%dm%s\27[0m"):format(COLOURS[(series - 1) % #COLOURS + 1], text)
end

-- Labels of the left axis by row.
local function left_labels(plot, height)
  local ticks = scale.ticks(plot.y_low, plot.y_high, math.max(2, math.floor(height / 2.5)), plot.logy)
  local texts, by_row, width = scale.texts(ticks, plot.logy), {}, 0
  for i, v in ipairs(ticks) do
    local at = scale.place(v, plot.y_low, plot.y_high, plot.logy)
    by_row[math.floor((1 - at) * (height - 1) + 0.5)] = texts[i]
    width = math.max(width, #texts[i])
  end
  return by_row, width
end

-- The axis below, and its numbers.
local function bottom(plot, width, margin)
  local ticks = scale.ticks(plot.x_low, plot.x_high, math.max(2, math.floor(width / 12)), false,
                            scale.has_whole_x(plot))
  local texts, axis, labels = scale.texts(ticks), {}, (" "):rep(width + margin + 8)
  for i = 0, width - 1 do axis[i] = "─" end
  local free_from = 1
  for i, v in ipairs(ticks) do
    local column = math.floor(scale.place(v, plot.x_low, plot.x_high) * (width - 1) + 0.5)
    axis[column] = "┬"
    local from = math.max(1, margin + 2 + column - math.floor(#texts[i] / 2))
    if from >= free_from then
      labels = labels:sub(1, from - 1) .. texts[i] .. labels:sub(from + #texts[i])
      free_from = from + #texts[i] + 1
    end
  end
  return (" "):rep(margin) .. " └" .. table.concat(axis, "", 0, width - 1), " " .. labels:gsub("%s+$", "")
end

local function centred(text, margin, width)
  return (" "):rep(margin + 2 + math.max(0, math.floor((width - columns.count(text)) / 2))) .. text
end

local function legend(plot, style, colour)
  local parts = {}
  for i, series in ipairs(plot.series) do
    local mark = style == "braille" and "⠒⠒" or MARKS[(i - 1) % #MARKS + 1]
    if colour then mark = ("\27[%dm%s\27[0m"):format(COLOURS[(i - 1) % #COLOURS + 1], mark) end
    if series.label then parts[#parts + 1] = mark .. " " .. series.label end
  end
  return #parts > 0 and table.concat(parts, "   ") or nil
end

---@param plot table
---@param options {width: integer, height: integer, style: string, colour: boolean}
---@return string
return function(plot, options)
  local style = options.style
  local by_row, margin = left_labels(plot, options.height)
  local width = math.max(10, options.width - margin - 2)
  local canvas = new_canvas(width, options.height, style)
  draw(canvas, plot)
  local lines = {}
  local function add(text) lines[#lines + 1] = text end
  if plot.title then add(centred(plot.title, margin, width)) end
  if plot.ylabel then add(plot.ylabel) end
  for row = 0, options.height - 1 do
    local parts = {}
    for column = 0, width - 1 do parts[column] = cell_text(canvas, row * width + column, style, options.colour) end
    local label = by_row[row]
    add(((" "):rep(margin - #(label or "")) .. (label or "") .. (label and " ┤" or " │") ..
         table.concat(parts, "", 0, width - 1):gsub("%s+$", "")))
  end
  local axis, labels = bottom(plot, width, margin)
  add(axis)
  add(labels)
  if plot.xlabel then add(centred(plot.xlabel, margin, width)) end
  local key = legend(plot, style, options.colour)
  if key then add((" "):rep(margin + 2) .. key) end
  return table.concat(lines, "\n")
end
