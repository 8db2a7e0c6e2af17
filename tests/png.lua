-- SPDX-License-Identifier: Apache-2.0
-- PNG images, byte by byte, so that tests can write every kind of them, and wrong ones.

local zip = require "zip"

local png = {}

png.SIGNATURE = "\137PNG\r\n\26\n"

local function big(n, count) return (zip.little(n, count):reverse()) end
png.big = big

---@return string a chunk, with its checksum
function png.chunk(kind, data) return big(#data, 4) .. kind .. data .. big(zip.crc(kind .. data), 4) end

local function adler(text)
  local a, b = 1, 0
  for i = 1, #text do
    a = (a + text:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return big(b, 2) .. big(a, 2)
end

---@return string what inflates to this, stored
function png.stored(text)
  local parts = { "\120\1" }
  for at = 1, math.max(#text, 1), 65535 do
    local part = text:sub(at, at + 65534)
    local last = at + 65535 > #text and "\1" or "\0"
    parts[#parts + 1] = last .. zip.little(#part, 2) .. zip.little(65535 - #part, 2) .. part
  end
  return table.concat(parts) .. adler(text)
end

local CHANNELS = { [0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4 }

-- Samples of `depth` bits, the first in the highest ones.
local function pack(samples, depth)
  local bytes, value, filled = {}, 0, 0
  for _, sample in ipairs(samples) do
    value, filled = value * 2 ^ depth + sample, filled + depth
    if filled >= 8 then
      bytes[#bytes + 1] = big(value, filled / 8)
      value, filled = 0, 0
    end
  end
  if filled > 0 then bytes[#bytes + 1] = string.char(value * 2 ^ (8 - filled)) end
  return table.concat(bytes)
end

-- Where each pass of an interlaced image begins, and how far its pixels lie apart: row, column, rows, columns.
local PASSES = { { 0, 0, 8, 8 }, { 0, 4, 8, 8 }, { 4, 0, 8, 4 }, { 0, 2, 4, 4 }, { 2, 0, 4, 2 }, { 0, 1, 2, 2 },
                 { 1, 0, 2, 1 } }

---The lines of an image, each behind filter 0: `sample(row, column, channel)`, all from 0.
function png.lines(image, sample)
  local lines, channels = {}, CHANNELS[image.colour]
  for _, pass in ipairs(image.interlaced and PASSES or { { 0, 0, 1, 1 } }) do
    for row = pass[1], image.rows - 1, pass[3] do
      local samples = {}
      for column = pass[2], image.columns - 1, pass[4] do
        for channel = 0, channels - 1 do samples[#samples + 1] = sample(row, column, channel) end
      end
      if #samples > 0 then lines[#lines + 1] = "\0" .. pack(samples, image.depth) end
    end
  end
  return table.concat(lines)
end

function png.header(image)
  return png.chunk("IHDR", big(image.columns, 4) .. big(image.rows, 4) ..
                     string.char(image.depth, image.colour, 0, 0, image.interlaced and 1 or 0))
end

---A whole file. `image`: rows, columns, depth, colour, interlaced?, before? (chunks in front of the pixels), after?
function png.file(image, sample)
  return png.SIGNATURE .. png.header(image) .. (image.before or "") ..
         png.chunk("IDAT", png.stored(png.lines(image, sample))) .. (image.after or "") .. png.chunk("IEND", "")
end

return png
