-- SPDX-License-Identifier: Apache-2.0
-- pg.plot: text, SVG and PNG.

local pg = require "perigee"

-- The text of a plot; nothing is printed.
local function text_of(...)
  local plain = _G.print
  _G.print = function() end
  local ok, plot = pcall(pg.plot, ...)
  _G.print = plain
  if not ok then error(plot, 0) end
  return tostring(plot), plot
end

test("plot: a line in braille dots", function(t)
  t.equal(text_of { { 0, 1, 2 }, width = 17, height = 3, color = false, title = "up" }, table.concat({
    "         up", "2 ┤          ⣀⠤⠒⠉", "1 ┤     ⣀⡠⠤⠒⠉", "0 ┤⣀⠤⠔⠒⠉", "  └┬──────┬─────┬",
    "   1      2     3" }, "\n"))
end)

test("plot: several curves are told apart without colours", function(t)
  local text = text_of { { 1, 2, 3 }, { 3, 2, 1 }, labels = { "up", "down" }, width = 20, height = 5, color = false }
  t.ok(text:find("*", 1, true) and text:find("+", 1, true))
  t.ok(text:find("\n   * up   + down", 1, true), text)
  local coloured = text_of { { 1, 2, 3 }, { 3, 2, 1 }, labels = { "up", "down" }, color = true }
  t.ok(coloured:find("\27[34m", 1, true) and coloured:find("\27[33m", 1, true))
end)

test("plot: forms of arguments", function(t)
  local expected = text_of { { 1, 4, 9 }, color = false }
  t.equal(text_of({ 1, 4, 9 }, { color = false }), expected)
  t.equal(text_of { 1, 4, 9, color = false }, expected)
  t.equal(text_of(pg.tensor { 1, 4, 9 }, { color = false }), expected)
  t.equal(text_of { { y = { 1, 4, 9 } }, color = false }, expected)
  t.equal(text_of { { 1, 4, 9 }, x = { 1, 2, 3 }, color = false }, expected)
  local _, rows = text_of(pg.ones { 3, 4 })
  t.equal(#rows.series, 3)
end)

test("plot: a history", function(t)
  local model = pg.nn.Linear { 2, 1 }
  local x = pg.rand { 16, 2 }
  local history = model:fit { x = x, y = x:sum { axis = 2, keepdim = true }, loss = "mse",
                              optimizer = pg.optim.SGD { lr = 0.1 }, epochs = 3, verbose = 0, validation_split = 0.25 }
  local text, plot = text_of(history)
  t.ok(text:find("loss", 1, true) and text:find("val_loss", 1, true))
  t.equal({ #plot.series, plot.series[1].x }, { 2, { 1, 2, 3 } })
  t.equal(plot.series[1].y[2], history[2].loss)
  local _, one = text_of { history, keys = { "val_loss" } }
  t.equal(#one.series, 1)
end)

test("plot: gaps, constants and logarithms", function(t)
  local _, plot = text_of { 1, 0 / 0, 1 / 0, 3 }
  t.equal({ plot.y_low, plot.y_high }, { 1, 3 })
  _, plot = text_of { 5, 5 }
  t.equal({ plot.y_low, plot.y_high }, { 4.5, 5.5 })
  text_of { 0 / 0 }
  text_of { 1e308, -1e308 }
  text_of { 1.7e308, 1.7e308 }
  t.ok(text_of({ 1e15, 1e15 + 1 }):find("1.000000000000001e15", 1, true))
  t.ok(text_of({ 1e15, 1e15 + 2048 }):find("1.000000000001e15", 1, true))
  text_of { 7 }
  local text = text_of { { 1e-3, 1, 1e3, -1 }, logy = true, color = false }
  t.ok(text:find("1e3 ┤", 1, true) and text:find("1e-3 ┤", 1, true), text)
  t.ok(text_of({ -1, 1 }):find("\n *0 ┤") or text_of({ -1, 1 }):find("0.0 ┤", 1, true))
end)

test("plot: what is wrong is said", function(t)
  t.raises(function() pg.plot(pg.zeros { 0 }) end, "y has no elements")
  t.raises(function() pg.plot() end, "plot: needs something to draw")
  t.raises(function() pg.plot { titel = "x" } end, "unknown option \"titel\".*did you mean \"title\"")
  t.raises(function() pg.plot { { 1, 2 }, x = { 1 } } end, "x has 1 values, but y 2")
  t.raises(function() pg.plot("loss") end, "must be a list of numbers or a tensor, got string \"loss\"")
  t.raises(function() pg.plot(pg.zeros { 2, 2, 2 }) end, "one axis")
  t.raises(function() pg.plot { { 1, 2 }, file = "x.jpeg" } end, "neither in .svg nor in .png")
  t.raises(function() pg.plot { { 1 }, style = "dots" } end, "style must be")
  t.raises(function() pg.plot { { 1 }, width = -1 } end, "width must be a whole number from 1, got number %-1")
end)

local function bytes_of(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

test("plot: SVG", function(t)
  local path = os.tmpname() .. ".svg"
  pg.plot { { 1, 2, 0 / 0, 3 }, { 3, 2, 2, 1 }, labels = { "a < b", "c" }, title = "R & D", xlabel = "x", ylabel = "y",
            file = path }
  local svg = bytes_of(path)
  t.ok(svg:find('^<svg xmlns="http://www.w3.org/2000/svg" width="720" height="440"'))
  t.ok(svg:find("R &amp; D", 1, true) and svg:find("a &lt; b", 1, true) and svg:find("rotate(-90", 1, true))
  local _, lines = svg:gsub('stroke%-width="2"', "")
  t.equal(lines, 3) -- the first curve has a gap
  t.ok(svg:find("</svg>\n$"))
end)

-- The texts of an SVG file, with where they stand, and the points of its curves.
local function parts_of(svg)
  local texts, points = {}, {}
  for x, y, text in svg:gmatch('<text x="([%d.]+)" y="([%d.]+)"[^>]*>([^<]*)<') do
    texts[text] = { x = tonumber(x), y = tonumber(y) }
  end
  for list in svg:gmatch('stroke%-width="2"[^>]*points="([^"]*)"') do
    for x, y in list:gmatch("([%d.]+),([%d.]+)") do points[#points + 1] = { x = tonumber(x), y = tonumber(y) } end
  end
  return texts, points
end

test("plot: a legend covers no curve, however many rows it takes", function(t)
  local curves, labels = {}, {}
  for i = 1, 12 do curves[i], labels[i] = { i, 12, 12, 12 }, ("the curve with number %d"):format(i) end
  local path = os.tmpname() .. ".svg"
  pg.plot { curves, labels = labels, title = "twelve", file = path }
  local texts, points = parts_of(bytes_of(path))
  local highest = math.huge
  for _, point in ipairs(points) do highest = math.min(highest, point.y) end
  for i, label in ipairs(labels) do
    t.ok(texts[label].y < highest - 3, label)
    t.ok(texts[label].x + 7 * #label < 720, label)
    t.ok(i == 1 or texts[label].y > texts[labels[1]].y or texts[label].x > texts[labels[i - 1]].x + 7 * #label, label)
  end
  t.ok(texts.twelve.y < texts[labels[1]].y - 12)
  pg.plot { { 1, 2 }, labels = { ("long "):rep(100) }, file = path }
  t.ok(bytes_of(path):find("long long[ long]*…<"))
end)

test("plot: whole numbers have whole ticks", function(t)
  local path = os.tmpname() .. ".svg"
  for count = 1, 4 do
    local y = {}
    for i = 1, count do y[i] = 7 * i + 0.25 end
    pg.plot { y, file = path }
    local texts = parts_of(bytes_of(path))
    for i = 1, count do t.ok(texts[tostring(i)], count .. ": " .. i) end
    t.ok(not texts["1.5"] and not texts["1.0"])
  end
  pg.plot { { 1, 2, 3 }, x = { 0, 0.5, 1 }, file = path }
  t.ok(parts_of(bytes_of(path))["0.2"])
end)

test("plot: letters with accents are drawn, not boxes", function(t)
  local letters = require "perigee.plot.letters"
  local function lines_of(text)
    local list = {}
    letters.strokes(text, function(...) list[#list + 1] = table.concat({ ... }, " ") end)
    return list
  end
  local box = table.concat(lines_of("\226\152\131"), ",") -- a snowman, of which there is no drawing
  for letter in ("ÀÉÎÕÜåçğőűøæœßžŠčşŁıÿŷ×°…"):gmatch("[\194-\244][\128-\191]+") do
    t.ok(table.concat(lines_of(letter), ",") ~= box and #lines_of(letter) > 0, letter)
    t.equal(letters.width(letter), letters.width("a"))
  end
  t.equal(#lines_of("é"), #lines_of("e") + 1)
  t.equal(lines_of("e\204\129"), lines_of("é")) -- as one code point, and as a letter and a mark
  t.equal(letters.width("e\204\129"), letters.width("e"))
  t.equal(lines_of("É")[#lines_of("É")], "3 -2 2 -1") -- above the capital
end)

local function number_at(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

test("plot: PNG", function(t)
  local path = os.tmpname() .. ".png"
  pg.plot { { 1, 2, 3 }, width = 200, height = 100, title = "t", file = path }
  local png = bytes_of(path)
  t.equal(png:sub(1, 8), "\137PNG\r\n\26\n")
  t.equal({ png:sub(13, 16), number_at(png, 17), number_at(png, 21), png:byte(25), png:byte(26) },
          { "IHDR", 200, 100, 8, 2 })
  t.equal(png:sub(-12), "\0\0\0\0IEND\174\66\96\130")
  t.ok(png:find("tEXtTitle\0t", 1, true))
end)

test("PNG images of tensors", function(t)
  local path = os.tmpname() .. ".png"
  pg.save(path, { image = pg.tensor({ { 0, 255 }, { 128, 7 } }, { dtype = "uint8" }) })
  local png = bytes_of(path)
  t.equal({ number_at(png, 17), number_at(png, 21), png:byte(25), png:byte(26) }, { 2, 2, 8, 0 })
  t.raises(function() pg.save(path, { image = pg.zeros { 2, 2 } }) end, "uint8 tensor %[rows, columns%]")
  t.raises(function() pg.save(path, { image = pg.zeros { 0, 2, dtype = "uint8" } }) end, "0 x 2 pixels")
  t.raises(function()
    pg.save(path, { a = pg.zeros { 2, 2, dtype = "uint8" }, b = pg.zeros { 2, 2, dtype = "uint8" } })
  end, "one tensor, got 2")
  t.equal(pg.load(path).data:totable(), { { 0, 255 }, { 128, 7 } })
end)

-- The pixels that another program's decoder sees, where there is one.
local DECODER = [[
import sys, zlib, struct
data, at, idat = open(sys.argv[1], "rb").read(), 8, b""
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
    if kind == b"IHDR": width, height, depth, colour = struct.unpack(">IIBB", body[:10])
    if kind == b"IDAT": idat += body
    at += 12 + size
raw, step = zlib.decompress(idat), width * {0: 1, 4: 2, 2: 3, 6: 4}[colour] * depth // 8
rows, above = [], bytes(step)
for y in range(height):
    kind, line = raw[y * (step + 1)], bytearray(raw[y * (step + 1) + 1:(y + 1) * (step + 1)])
    pixel = step // width
    for i in range(step):
        left, up, corner = (line[i - pixel], above[i], above[i - pixel]) if i >= pixel else (0, above[i], 0)
        paeth = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
        line[i] = (line[i] + (0, left, up, (left + up) // 2, paeth)[kind]) % 256
    above = line
    rows += above
print(*rows)
]]

test("PNG images as others read them", function(t)
  if os.execute("python3 -c 'import zlib' 2>/dev/null") ~= 0 then t.skip("no Python") end
  local script, path = os.tmpname(), os.tmpname() .. ".png"
  local file = assert(io.open(script, "w"))
  file:write(DECODER)
  file:close()
  for _, shape in ipairs { { 3, 4 }, { 3, 4, 1 }, { 3, 4, 2 }, { 2, 3, 3 }, { 5, 2, 4 }, { 20, 30, 3 } } do
    local image = pg.randint(0, 256, shape):to("uint8")
    pg.save(path, { image = image })
    local pipe = assert(io.popen(("python3 %s %s 2>&1"):format(script, path)))
    local expected = table.concat(image:flatten():totable(), " ")
    t.equal(pipe:read("*l"), expected)
    pipe:close()
  end
  os.remove(script)
  os.remove(path)
end)
