-- SPDX-License-Identifier: Apache-2.0
-- Aligned texts of elements as nested brackets, lines wrapped, the middle of long axes left out.

local layout = {}

---Texts of equal length, filled from the left.
---@param list string[]
function layout.align(list)
  local width = 0
  for _, s in ipairs(list) do width = math.max(width, #s) end
  for i, s in ipairs(list) do list[i] = (" "):rep(width - #s) .. s end
end

-- The elements of the last axis behind `margin` blanks, no line longer than `width` with what closes it.
local function row(words, margin, width)
  local lines, line = {}, margin
  for i, word in ipairs(words) do
    if #line + #word > width - 1 and #line > #margin then
      lines[#lines + 1] = (line:gsub("%s+$", ""))
      line = margin
    end
    line = line .. word .. (i < #words and ", " or "")
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

---@param list string[] the elements that are shown, row-major
---@param shape integer[]
---@param edge integer? positions shown at each end of an axis; nil: all
---@param indent integer blanks before every line but the first
---@param width integer of a line
---@return string
function layout.brackets(list, shape, edge, indent, width)
  local at, rank = 0, #shape
  local function walk(axis, margin, room)
    local n, parts = shape[axis], {}
    local gap = edge and n > 2 * edge
    for i = 1, gap and 2 * edge or n do
      if gap and i == edge + 1 then parts[#parts + 1] = "..." end
      if axis == rank then
        at = at + 1
        parts[#parts + 1] = list[at]
      else
        parts[#parts + 1] = walk(axis + 1, margin .. " ", room - 1)
      end
    end
    if axis == rank then return "[" .. row(parts, margin, room):sub(#margin + 1) .. "]" end
    return "[" .. table.concat(parts, "," .. ("\n"):rep(rank - axis) .. margin) .. "]"
  end
  return walk(1, (" "):rep(indent + 1), width)
end

return layout
