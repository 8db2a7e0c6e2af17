-- SPDX-License-Identifier: Apache-2.0
-- What is shown again and again in a terminal, and texts in columns.

local native = require "perigee.native"

local live = {}

---Rows of text as aligned columns.
---@param rows string[][]
---@return string
function live.columns(rows)
  local widths, lines = {}, {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  for _, row in ipairs(rows) do
    local line = {}
    for i, cell in ipairs(row) do line[i] = i < #row and cell .. (" "):rep(widths[i] - #cell) or cell end
    lines[#lines + 1] = table.concat(line, "  "):gsub("%s+$", "")
  end
  return table.concat(lines, "\n")
end

---Words of a command: options with values, flags, and the rest.
---@param values table<string, true> options that have a value
---@param flags table<string, true>
---@return table? options nil: something is wrong
---@return string[]|string rest or what is wrong
function live.words(values, flags, ...)
  local given, options, rest, i = { ... }, {}, {}, 1
  while i <= #given do
    local word = given[i]
    if flags[word] then
      options[word] = true
    elseif values[word] then
      if given[i + 1] == nil then return nil, word .. " needs a value" end
      options[word], i = given[i + 1], i + 1
    elseif word:sub(1, 2) == "--" then
      return nil, "unknown option " .. word
    else
      rest[#rest + 1] = word
    end
    i = i + 1
  end
  return options, rest
end

---Seconds of --every; nil and what is wrong.
function live.seconds(text)
  local seconds = tonumber(text or 2)
  if not seconds or seconds < 0.1 or seconds > 86400 then
    return nil, ("--every must be a number of seconds from 0.1, got %s"):format(text)
  end
  return seconds
end

---Shows what draw() answers: once, or over itself every so many seconds until it is interrupted.
---@param draw fun(): string
function live.show(draw, once, seconds)
  if once or not native.is_terminal(1) then
    print(draw())
    return 0
  end
  while true do
    local text = draw():gsub("\n", "\27[K\n")
    io.stdout:write("\27[H", text, "\27[K\n\27[J")
    io.stdout:flush()
    if os.execute(("sleep %g"):format(seconds)) ~= 0 then return 0 end -- Ctrl-C ends the sleep
  end
end

return live
