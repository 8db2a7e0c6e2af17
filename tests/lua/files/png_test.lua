-- SPDX-License-Identifier: Apache-2.0
-- PNG images: every kind of them is read, what was written is read as the same, hostile ones are errors.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local bit = require "bit"
local pg = require "perigee"
local png = require "png"

local PATH = os.tmpname() .. ".png"

local function write(bytes)
  local file = assert(io.open(PATH, "wb"))
  file:write(bytes)
  file:close()
end

local function read()
  local file = assert(io.open(PATH, "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes
end

local function load(bytes)
  write(bytes)
  local tensors, note = pg.load(PATH)
  return tensors.data, note
end

-- A number for each sample that fits its bits.
local function sample(image)
  return function(row, column, channel) return (row * 7919 + column * 104729 + channel * 31 + 5) % 2 ^ image.depth end
end

-- What the image shows: `pixel(row, column)` answers its channels.
local function expected(image, pixel)
  local rows = {}
  for row = 0, image.rows - 1 do
    rows[row + 1] = {}
    for column = 0, image.columns - 1 do rows[row + 1][column + 1] = pixel(row, column) end
  end
  return rows
end

local KINDS = { { 0, 1, { 1, 2, 4, 8, 16 } }, { 2, 3, { 8, 16 } }, { 4, 2, { 8, 16 } }, { 6, 4, { 8, 16 } } }

for _, interlaced in ipairs { false, true } do
  test("png: grey and colours of all depths" .. (interlaced and ", interlaced" or ""), function(t)
    for _, kind in ipairs(KINDS) do
      for _, depth in ipairs(kind[3]) do
        for _, size in ipairs { { 1, 1 }, { 3, 5 }, { 9, 17 } } do
          local image = { rows = size[1], columns = size[2], colour = kind[1], depth = depth, interlaced = interlaced }
          local value, scale = sample(image), depth < 8 and 255 / (2 ^ depth - 1) or 1
          local x = load(png.file(image, value))
          t.equal(x.dtype, depth == 16 and "int32" or "uint8")
          t.equal(x.shape, { size[1], size[2], kind[2] })
          t.equal(x:totable(), expected(image, function(row, column)
            local pixel = {}
            for channel = 1, kind[2] do pixel[channel] = value(row, column, channel - 1) * scale end
            return pixel
          end))
        end
      end
    end
  end)

  test("png: palettes and transparent colours" .. (interlaced and ", interlaced" or ""), function(t)
    for _, depth in ipairs { 1, 2, 4, 8 } do
      local image = { rows = 3, columns = 6, colour = 3, depth = depth, interlaced = interlaced }
      local value, colours = sample(image), {}
      for i = 0, 2 ^ depth - 1 do colours[i + 1] = { i, 255 - i, i * 3 % 256 } end
      local palette = ""
      for _, colour in ipairs(colours) do palette = palette .. string.char(unpack(colour)) end
      image.before = png.chunk("PLTE", palette)
      t.equal(load(png.file(image, value)):totable(), expected(image, function(row, column)
        return colours[value(row, column, 0) + 1]
      end))
      image.before = image.before .. png.chunk("tRNS", "\0\128") -- the colours behind these two are opaque
      t.equal(load(png.file(image, value)):totable(), expected(image, function(row, column)
        local at = value(row, column, 0) + 1
        local r, g, b = unpack(colours[at])
        return { r, g, b, at == 1 and 0 or at == 2 and 128 or 255 }
      end))
    end
    local grey = { rows = 2, columns = 3, colour = 0, depth = 8, interlaced = interlaced }
    local value = sample(grey)
    grey.before = png.chunk("tRNS", png.big(value(0, 1, 0), 2))
    t.equal(load(png.file(grey, value)):totable(), expected(grey, function(row, column)
      return { value(row, column, 0), row == 0 and column == 1 and 0 or 255 }
    end))
    local wide = { rows = 2, columns = 3, colour = 2, depth = 16, interlaced = interlaced }
    value = sample(wide)
    local clear = ""
    for channel = 0, 2 do clear = clear .. png.big(value(1, 2, channel), 2) end
    wide.before = png.chunk("tRNS", clear)
    t.equal(load(png.file(wide, value)):totable(), expected(wide, function(row, column)
      return { value(row, column, 0), value(row, column, 1), value(row, column, 2),
               row == 1 and column == 2 and 0 or 65535 }
    end))
  end)
end

test("png: what was saved is loaded as the same tensor", function(t)
  for _, shape in ipairs { { 5, 7 }, { 5, 7, 1 }, { 5, 7, 2 }, { 5, 7, 3 }, { 5, 7, 4 }, { 1, 1 }, { 1, 1000, 3 },
                           { 1000, 1 } } do
    for dtype, beyond in pairs { uint8 = 256, int32 = 65536 } do
      local x = pg.randint(0, beyond, shape):to(dtype)
      pg.save(PATH, { image = x })
      local y = pg.load(PATH).data
      t.equal(y.dtype, dtype)
      t.equal(y.shape, shape)
      t.ok(y:equal(x))
    end
  end
  local x = pg.randint(0, 256, { 4, 6, 3 }):to("uint8")
  pg.save(PATH, { x = x:transpose(1, 2) })
  t.ok(pg.load(PATH).data:equal(x:transpose(1, 2)))
end)

test("png: notes", function(t)
  local notes = { Title = "é and 😀", Author = "me", Comment = ("x"):rep(5000), empty = "" }
  pg.save(PATH, { x = pg.zeros { 2, 2, dtype = "uint8" } }, { notes = notes })
  local _, note = pg.load(PATH)
  for key, value in pairs(notes) do t.equal(note(key), value) end
  t.equal(note("other"), nil)
  local image = { rows = 1, columns = 1, colour = 0, depth = 8, after = png.chunk("tEXt", "caf\233\0cr\232me") ..
                  png.chunk("zTXt", "packed\0\0" .. png.stored("text")) .. png.chunk("iTXt", "utf8\0\0\0\0\0é") }
  _, note = load(png.file(image, sample(image)))
  t.equal({ note("café"), note("packed"), note("utf8") }, { "crème", "text", "é" })
  for _, key in ipairs { "", ("x"):rep(80), " x", "x ", "a  b", "é", "a\nb" } do
    t.raises(function() pg.save(PATH, { x = pg.zeros { 1, 1, dtype = "uint8" } }, { notes = { [key] = "x" } }) end,
             "a note's name has 1 to 79 letters of ASCII")
  end
end)

test("png: what cannot be written", function(t)
  local function raises(tensors, text)
    local e = t.raises(function() pg.save(PATH, tensors) end)
    t.ok(e.message:find(text, 1, true), e.message)
    t.equal(e.code, "invalid_argument")
  end
  local x = pg.zeros { 2, 2, 3, dtype = "uint8" }
  raises({ a = x, b = x }, "a png file is one tensor, got 2")
  raises({ a = x:to("float32") }, "an image is a uint8 tensor [rows, columns] or [rows, columns, 1 to 4], or int32")
  raises({ a = x[{ {}, {}, 1 }]:reshape(4) }, "an image is a uint8 tensor")
  raises({ a = pg.zeros { 2, 2, 5, dtype = "uint8" } }, "rows, columns, 1 to 4")
  raises({ a = pg.zeros { 2, 2, 0, dtype = "uint8" } }, "rows, columns, 1 to 4")
  raises({ a = pg.zeros { 0, 2, dtype = "uint8" } }, "an image of 0 x 2 pixels cannot be written")
  for _, value in ipairs { -1, 65536, 2 ^ 31 - 1 } do
    raises({ a = pg.full({ 1, 1 }, value, { dtype = "int32" }) },
           ("a pixel of 16 bits is 0 to 65535, got %d"):format(value))
  end
end)

local image = { rows = 3, columns = 4, colour = 2, depth = 8 }
local function damaged(t, bytes, text, options)
  write(bytes)
  local e = t.raises(function() pg.load(PATH, options) end)
  t.ok(e.message:find(text or "", 1, true), e.message)
  t.ok(e.message:find(PATH, 1, true), "the message names the file: " .. e.message)
  t.equal(e.code, "data_loss")
end

test("png: damaged and hostile files", function(t)
  local good = png.file(image, sample(image))
  for length = 0, #good - 1 do damaged(t, good:sub(1, length)) end
  damaged(t, "hello, world", "it does not begin with PNG's signature")
  damaged(t, "", "too short for a PNG image")
  damaged(t, good:gsub("IDAT", "IDAX", 1), "CRC")
  damaged(t, png.SIGNATURE .. png.chunk("IEND", ""))
  local function with(changes)
    local other = setmetatable(changes, { __index = image })
    return png.SIGNATURE .. png.header(other) .. (changes.before or "") ..
           png.chunk("IDAT", png.stored(changes.data or png.lines(image, sample(image)))) .. png.chunk("IEND", "")
  end
  local live = pg.memory.stats("cpu").peak
  damaged(t, with { rows = 60000, columns = 60000 }, "bytes cannot hold the 60000 x 60000 pixels that it claims")
  damaged(t, with { rows = 2 ^ 31 - 1, columns = 2 ^ 31 - 1 }, "cannot hold")
  damaged(t, with { rows = 2 ^ 31, columns = 1 })
  damaged(t, with { rows = 0, columns = 1 })
  damaged(t, with { depth = 3 })
  damaged(t, with { colour = 5 })
  damaged(t, with { colour = 2, depth = 4 })
  damaged(t, with { rows = 5 })
  damaged(t, with { colour = 3 }) -- without a palette
  damaged(t, with { before = png.chunk("abcd", "x"):sub(1, -2) .. "?" }, "CRC")
  damaged(t, with { data = "\9" .. ("\0"):rep(38) }) -- a filter that there is not
  t.equal(pg.memory.stats("cpu").peak, live)
  -- A file that is long enough for what it claims: the limit of pixels says no.
  local wide = { rows = 40, columns = 50, colour = 0, depth = 8 }
  damaged(t, png.file(wide, sample(wide)), "50 x 40 pixels are more than max_pixels, 1999", { max_pixels = 1999 })
  t.equal(pg.load(PATH, { max_pixels = 2000 }).data.shape, { 40, 50, 1 })
  t.equal(t.raises(function() pg.load(PATH, { max_pixels = 0 }) end, "max_pixels: expected 1 or more, got 0").code,
          "invalid_argument")
  t.equal(t.raises(function() pg.load("/nowhere/at/all.png") end).code, "not_found")
  -- Texts that inflate beyond all measure are left out, colours behind the palette's end black.
  local tensors, note = load(with { before = png.chunk("zTXt", "a\0\0" .. png.stored(("x"):rep(9 * 2 ^ 20))) })
  t.equal({ tensors.shape, note("a") }, { { 3, 4, 3 } })
  local black = with { rows = 1, columns = 2, colour = 3, before = png.chunk("PLTE", "abc"), data = "\0\0\1" }
  t.equal(load(black), { { { 97, 98, 99 }, { 0, 0, 0 } } })
end)

test("png: a wrong bit is an error or is seen by nobody", function(t)
  local small = { rows = 2, columns = 3, colour = 3, depth = 4, before = png.chunk("PLTE", ("abcdef"):rep(8)) ..
                  png.chunk("tRNS", "\1\2\3") .. png.chunk("tEXt", "a\0b") }
  local bytes = png.file(small, sample(small))
  local whole = load(bytes):totable()
  for at = 1, #bytes do
    for which = 0, 7 do
      write(bytes:sub(1, at - 1) .. string.char(bit.bxor(bytes:byte(at), bit.lshift(1, which))) .. bytes:sub(at + 1))
      local ok, found = pcall(pg.load, PATH)
      if ok then
        t.equal(found.data:totable(), whole)
      else
        t.equal(found.code, "data_loss")
      end
    end
  end
end)

test("png: random damage behind right checksums is an error or another picture, never a crash", function(t)
  local state = 4711
  local function draw(n)
    state = (state * 1103515245 + 12345) % 2 ^ 31
    return math.floor(state / 2 ^ 31 * n)
  end
  for _ = 1, 400 do
    local chunks = { png.chunk("PLTE", ("abcdef"):rep(8)), png.chunk("tRNS", "\1\2\3"), png.chunk("tEXt", "key\0value"),
                     png.chunk("iTXt", "key\0\0\0\0\0value"), png.chunk("iCCP", "key\0\0x"), png.chunk("pgNd", "\2") }
    local other = { rows = 1 + draw(5), columns = 1 + draw(20), colour = draw(7), depth = 2 ^ draw(5),
                    interlaced = draw(2) == 1 }
    local data, before = {}, ""
    for i = 1, draw(400) do data[i] = string.char(draw(4) == 0 and draw(256) or 0) end
    for _ = 1, draw(4) do before = before .. chunks[1 + draw(#chunks)] end
    write(png.SIGNATURE .. png.header(other) .. before .. png.chunk("IDAT", png.stored(table.concat(data))) ..
          png.chunk("IEND", ""))
    local ok, err = pcall(pg.load, PATH)
    t.ok(ok or err.code == "data_loss", tostring(err))
  end
  t.ok(#read() > 0)
  os.remove(PATH)
end)
