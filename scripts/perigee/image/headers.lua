-- SPDX-License-Identifier: Apache-2.0
-- How large a picture is, as the header of its file says: to choose a part of it before anything is decoded.

local native = require "perigee.native"

local headers = {}

local function big(bytes, at) -- 16 bits
  local a, b = bytes:byte(at, at + 1)
  return b and a * 256 + b
end
local function little(bytes, at, count)
  local n = 0
  for i = count - 1, 0, -1 do
    local byte = bytes:byte(at + i)
    if not byte then return nil end
    n = n * 256 + byte
  end
  return n
end

-- Each takes read(at, count), which answers bytes from position `at`, from 1, fewer at the end.
local kinds = {}

function kinds.png(read)
  local head = read(1, 24)
  if head:sub(1, 8) ~= "\137PNG\r\n\26\n" or head:sub(13, 16) ~= "IHDR" or #head < 24 then return nil end
  return big(head, 21) * 65536 + big(head, 23), big(head, 17) * 65536 + big(head, 19)
end

function kinds.jpg(read)
  local at = 3
  if read(1, 2) ~= "\255\216" then return nil end
  while true do
    local head = read(at, 9)
    local first, marker = head:byte(1, 2)
    if not marker or first ~= 255 then return nil end
    if marker == 255 then
      at = at + 1 -- a byte that fills up
    elseif marker == 1 or (marker >= 0xD0 and marker <= 0xD8) then
      at = at + 2 -- nothing belongs to it
    elseif marker >= 0xC0 and marker <= 0xCF and marker ~= 0xC4 and marker ~= 0xC8 and marker ~= 0xCC then
      if #head < 9 then return nil end
      return big(head, 6), big(head, 8)
    else
      local length = big(head, 3)
      if marker == 0xD9 or marker == 0xDA or not length or length < 2 then return nil end
      at = at + 2 + length
    end
  end
end
kinds.jpeg = kinds.jpg

function kinds.webp(read)
  local head = read(1, 30)
  if head:sub(1, 4) ~= "RIFF" or head:sub(9, 12) ~= "WEBP" or #head < 25 then return nil end
  local kind = head:sub(13, 16)
  if kind == "VP8L" then
    local bits = little(head, 22, 4)
    return math.floor(bits / 16384) % 16384 + 1, bits % 16384 + 1
  end
  if #head < 30 then return nil end
  if kind == "VP8X" then return little(head, 28, 3) + 1, little(head, 25, 3) + 1 end
  if kind == "VP8 " then return little(head, 29, 2) % 16384, little(head, 27, 2) % 16384 end
end

---Rows and columns of a file, or, with a kind, of bytes.
function headers.sides(where, from, kind)
  local rows, columns
  if kind then
    rows, columns = kinds[kind](function(at, count) return from:sub(at, at + count - 1) end)
  else
    local file, problem = io.open(from, "rb")
    if not file then native.raise("not_found", where, ("cannot open %s"):format(problem)) end
    rows, columns = kinds[from:match("%.(%w+)$"):lower()](function(at, count)
      file:seek("set", at - 1)
      return file:read(count) or ""
    end)
    file:close()
  end
  if not rows then
    native.raise("data_loss", where, (kind and "the bytes given" or from) ..
                 ": its header does not say how large it is")
  end
  return rows, columns
end

return headers
