-- SPDX-License-Identifier: Apache-2.0
-- Lines of cells as a table whose columns stand under each other: what reports print.

local columns = require "perigee.printing.columns"

local cells = {}

---"1,234,567"
function cells.thousands(n)
  return (("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

---The lines, each a list of as many cells, as texts: the first line is the heading and the last the sums, each with a
---rule between it and the rest.
---@param lines string[][]
---@param left integer how many columns, the first ones, stand to the left; the others stand to the right
---@return string[]
function cells.lines(lines, left)
  local widths, texts = {}, {}
  for _, line in ipairs(lines) do
    for i, cell in ipairs(line) do widths[i] = math.max(widths[i] or 0, columns.count(cell)) end
  end
  for k, line in ipairs(lines) do
    local padded = {}
    for i, cell in ipairs(line) do
      local blanks = (" "):rep(widths[i] - columns.count(cell))
      padded[i] = i <= left and cell .. blanks or blanks .. cell
    end
    texts[k] = table.concat(padded, "  ")
  end
  local rule = ("-"):rep(columns.count(texts[1]))
  table.insert(texts, 2, rule)
  table.insert(texts, #texts, rule)
  return texts
end

return cells
