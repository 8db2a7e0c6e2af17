-- SPDX-License-Identifier: Apache-2.0
-- A picture as SVG.

local picture = require "perigee.plot.picture"

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }
local function escape(text) return (text:gsub('[&<>"]', ENTITIES):gsub("%c", " ")) end

---@param plot table
---@param width integer
---@param height integer
---@return string
return function(plot, width, height)
  local parts = { ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"'):format(
                    width, height, width, height) .. ' font-family="sans-serif" font-size="12">' }
  local function add(text, ...) parts[#parts + 1] = text:format(...) end
  local list = {}
  function list.rectangle(x, y, w, h, colour)
    add('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>', x, y, w, h, colour)
  end
  function list.line(points, colour, thickness)
    local pairs_of = {}
    for i = 1, #points, 2 do pairs_of[#pairs_of + 1] = ("%.2f,%.2f"):format(points[i], points[i + 1]) end
    add('<polyline fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round" points="%s"/>', colour, thickness,
        table.concat(pairs_of, " "))
  end
  function list.text(x, y, text, anchor, colour)
    local turn = anchor == "turned" and (' transform="rotate(-90 %.1f %.1f)"'):format(x, y) or ""
    add('<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s"%s>%s</text>', x, y,
        anchor == "turned" and "middle" or anchor, colour, turn, escape(text))
  end
  picture(plot, width, height, list)
  parts[#parts + 1] = "</svg>\n"
  return table.concat(parts, "\n")
end
