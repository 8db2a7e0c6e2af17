-- SPDX-License-Identifier: Apache-2.0
-- What a picture of curves consists of, as lines, rectangles and texts; svg.lua and png.lua draw these.

local scale = require "perigee.plot.scale"
local columns = require "perigee.printing.columns"

local COLOURS = { "#1f5fa8", "#d9701e", "#2f8f3e", "#c0303a", "#7d4fb0", "#7a5638", "#c956a5", "#5f6670" }
local GREY, BLACK, WHITE = "#d8dce0", "#303438", "#ffffff"
local LEFT, RIGHT, TOP, BOTTOM = 74, 20, 20, 46
local LETTER = 8.1 -- pixels that a letter takes at most, on average

-- The legend's items between x0 and x1, in as many rows as they need, and how many those are: it stands above the
-- curves, so that it covers none.
local function legend_of(plot, x0, x1)
  local items, row, x = {}, 1, x0
  for number, series in ipairs(plot.series) do
    if series.label then
      local text = columns.cut(series.label, math.max(1, math.floor((x1 - x0 - 30) / LETTER)))
      local width = 30 + columns.count(text) * LETTER
      if x > x0 and x + width > x1 then row, x = row + 1, x0 end
      items[#items + 1] = { number = number, text = text, row = row, x = x }
      x = x + width + 18
    end
  end
  return items, #items > 0 and row or 0
end

---@param plot table
---@param width integer pixels
---@param height integer
---@param list {line: function, rectangle: function, text: function} what draws
return function(plot, width, height, list)
  local x0, x1 = LEFT + (plot.ylabel and 18 or 0), width - RIGHT
  local legend, rows = legend_of(plot, x0, x1)
  local title = TOP + (plot.title and 22 or 0)
  local top = title + 18 * rows
  local y0, y1 = height - BOTTOM - (plot.xlabel and 18 or 0), top
  local function across(v)
    local at = scale.place(v, plot.x_low, plot.x_high)
    return at and x0 + at * (x1 - x0)
  end
  local function up(v)
    local at = scale.place(v, plot.y_low, plot.y_high, plot.logy)
    return at and y0 + at * (y1 - y0)
  end

  list.rectangle(0, 0, width, height, WHITE)
  local ticks = scale.ticks(plot.x_low, plot.x_high, math.max(2, math.floor((x1 - x0) / 90)), false,
                            scale.has_whole_x(plot))
  for i, text in ipairs(scale.texts(ticks)) do
    local x = across(ticks[i])
    list.line({ x, y0, x, y1 }, GREY, 1)
    list.text(x, y0 + 18, text, "middle", BLACK)
  end
  ticks = scale.ticks(plot.y_low, plot.y_high, math.max(2, math.floor((y0 - y1) / 50)), plot.logy)
  for i, text in ipairs(scale.texts(ticks, plot.logy)) do
    local y = up(ticks[i])
    list.line({ x0, y, x1, y }, GREY, 1)
    list.text(x0 - 8, y + 4, text, "end", BLACK)
  end
  list.line({ x0, y1, x0, y0, x1, y0 }, BLACK, 1)
  if plot.title then list.text((x0 + x1) / 2, title - 14, plot.title, "middle", BLACK) end
  if plot.xlabel then list.text((x0 + x1) / 2, height - 14, plot.xlabel, "middle", BLACK) end
  if plot.ylabel then list.text(18, (y0 + y1) / 2, plot.ylabel, "turned", BLACK) end

  for number, series in ipairs(plot.series) do
    local colour = COLOURS[(number - 1) % #COLOURS + 1]
    local points = {}
    local function flush()
      if #points == 2 then points[3], points[4] = points[1] + 0.5, points[2] end -- a point between two gaps
      if #points > 0 then list.line(points, colour, 2) end
      points = {}
    end
    for i, v in ipairs(series.y) do
      local x, y = across(series.x[i]), up(v)
      if x and y then
        points[#points + 1], points[#points + 2] = x, y
      else
        flush()
      end
    end
    flush()
  end

  for _, item in ipairs(legend) do
    local x, y = item.x, top - 9 - 18 * (rows - item.row)
    list.line({ x, y - 4, x + 22, y - 4 }, COLOURS[(item.number - 1) % #COLOURS + 1], 3)
    list.text(x + 30, y, item.text, "start", BLACK)
  end
end
