-- SPDX-License-Identifier: Apache-2.0
-- Pictures as what terminals that show pixels read: kitty's graphics protocol, and sixels (DEC STD 070).

local native = require "perigee.native"

local terminal = {}

---What a terminal understands, by what it says of itself: "kitty", "sixel", or "blocks", which all do. Inside of a
---multiplexer, which passes neither on, it is the last.
function terminal.protocol(get)
  get = get or os.getenv
  local term, program = (get "TERM" or ""):lower(), (get "TERM_PROGRAM" or ""):lower()
  if get "TMUX" or term:find "^screen" or term:find "^tmux" then return "blocks" end
  local kin = term:find "kitty" or term:find "ghostty" or program == "ghostty" or program == "wezterm"
  if kin or get "KITTY_WINDOW_ID" or get "KONSOLE_VERSION" then return "kitty" end
  for _, name in ipairs { "sixel", "mlterm", "foot", "yaft", "contour" } do
    if term:find(name, 1, true) then return "sixel" end
  end
  return (program == "mintty" or program == "iterm.app") and "sixel" or "blocks"
end

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- RFC 4648.
local function base64(bytes)
  local parts = {}
  for at = 1, #bytes, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    local value = a * 65536 + (b or 0) * 256 + (c or 0)
    local text = ""
    for shift = 3, 0, -1 do
      local digit = math.floor(value / 64 ^ shift) % 64 + 1
      text = text .. DIGITS:sub(digit, digit)
    end
    parts[#parts + 1] = not b and text:sub(1, 2) .. "==" or not c and text:sub(1, 3) .. "=" or text
  end
  return table.concat(parts)
end
terminal.base64 = base64

local CHUNK = 4096 -- of what the protocol takes at a time

---A uint8 picture [rows, columns, 3 or 4] for kitty, across `cells` characters at most.
function terminal.kitty(t, cells)
  local rows, columns, channels = t:size(1), t:size(2), t:size(3)
  local text, parts = base64(native.host.bytes(t:contiguous())), {}
  local head = ("a=T,q=2,f=%d,s=%d,v=%d,"):format(8 * channels, columns, rows)
  if cells then head = head .. ("c=%d,"):format(cells) end
  for at = 1, #text, CHUNK do
    parts[#parts + 1] = ("\27_G%sm=%d;%s\27\\"):format(at == 1 and head or "", at + CHUNK <= #text and 1 or 0,
                                                     text:sub(at, at + CHUNK - 1))
  end
  return table.concat(parts) .. "\n"
end

local LEVELS = 6 -- of each colour: steps of 20 %
local COLOURS = LEVELS ^ 3

local function zeros(n)
  local list = {}
  for i = 1, n do list[i] = 0 end
  return list
end

-- The colour of each pixel by number; what that is off by goes to the pixels beside and below it (Floyd and Steinberg,
-- 1976).
local function chosen(bytes, rows, columns)
  local numbers, row = {}, zeros(3 * (columns + 2)) -- with a pixel more at each side
  for y = 0, rows - 1 do
    local below = zeros(3 * (columns + 2))
    for x = 0, columns - 1 do
      local number = 0
      for c = 1, 3 do
        local at = 3 * (x + 1) + c
        local wanted = bytes:byte(3 * (y * columns + x) + c) + row[at]
        local level = math.min(math.max(math.floor(wanted / 51 + 0.5), 0), LEVELS - 1)
        local off = wanted - 51 * level
        number = number * LEVELS + level
        row[at + 3] = row[at + 3] + off * 7 / 16
        below[at - 3], below[at] = below[at - 3] + off * 3 / 16, below[at] + off * 5 / 16
        below[at + 3] = below[at + 3] + off / 16
      end
      numbers[y * columns + x + 1] = number
    end
    row = below
  end
  return numbers
end

-- Six rows of one colour: a character a column, repeated ones counted.
local function line(masks, columns)
  local parts, x = {}, 1
  while x <= columns do
    local last, mask = x, masks[x] or 0
    while last < columns and (masks[last + 1] or 0) == mask do last = last + 1 end
    local char, count = string.char(63 + mask), last - x + 1
    if mask > 0 or last < columns then -- nothing at the end of a line is left out
      parts[#parts + 1] = count > 3 and ("!%d%s"):format(count, char) or char:rep(count)
    end
    x = last + 1
  end
  return table.concat(parts)
end

---A uint8 picture [rows, columns, 3] as sixels.
function terminal.sixel(t)
  local rows, columns = t:size(1), t:size(2)
  local numbers = chosen(native.host.bytes(t:contiguous()), rows, columns)
  local parts, defined = { ('\27Pq"1;1;%d;%d'):format(columns, rows) }, {}
  for top = 0, rows - 1, 6 do
    local masks = {} -- by colour: of six pixels of each column where there are some
    for k = 0, math.min(6, rows - top) - 1 do
      for x = 1, columns do
        local number = numbers[(top + k) * columns + x]
        local own = masks[number] or {}
        masks[number], own[x] = own, (own[x] or 0) + 2 ^ k
      end
    end
    for number = 0, COLOURS - 1 do
      if masks[number] then
        parts[#parts + 1] = "#" .. number
        if not defined[number] then
          local r, g, b = math.floor(number / LEVELS ^ 2), math.floor(number / LEVELS) % LEVELS, number % LEVELS
          parts[#parts + 1] = (";2;%d;%d;%d#%d"):format(20 * r, 20 * g, 20 * b, number)
          defined[number] = true
        end
        parts[#parts + 1] = line(masks[number], columns) .. "$"
      end
    end
    parts[#parts + 1] = "-"
  end
  return table.concat(parts) .. "\27\\\n"
end

return terminal
