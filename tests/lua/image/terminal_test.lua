-- SPDX-License-Identifier: Apache-2.0
-- pg.image.show: what terminals that show pixels read, decoded here.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"
local pg = require "perigee"
local native = require "perigee.native"
local terminal = require "perigee.image.terminal"

-- Rows of pixels { r, g, b } in percent, as a terminal reads them.
local function read_sixels(text)
  local columns, rows, body = text:match '^\27Pq"1;1;(%d+);(%d+)(.*)\27\\\n$'
  columns, rows = tonumber(columns), tonumber(rows)
  local colours, colour, x, y, pixels, at = {}, nil, 0, 0, {}, 1
  for i = 1, rows do pixels[i] = {} end
  while at <= #body do
    local c = body:sub(at, at)
    if c == "#" then
      local number, rest = body:match("^#(%d+)(;?)", at)
      at = at + 1 + #number
      if rest == ";" then
        local r, g, b = body:match("^;2;(%d+);(%d+);(%d+)", at)
        colours[number] = { tonumber(r), tonumber(g), tonumber(b) }
        at = at + #(";2;;;") + #r + #g + #b
      end
      colour = colours[number]
    elseif c == "$" or c == "-" then
      x, y, at = 0, c == "-" and y + 6 or y, at + 1
    else
      local count = body:match("^!(%d+)", at)
      if count then at = at + 1 + #count end
      local mask = body:byte(at) - 63
      assert(mask >= 0 and mask < 64, "no sixel")
      for _ = 1, count and tonumber(count) or 1 do
        for k = 0, 5 do
          if math.floor(mask / 2 ^ k) % 2 == 1 then
            assert(pixels[y + k + 1] and not pixels[y + k + 1][x + 1] and x < columns, "a pixel twice or outside")
            pixels[y + k + 1][x + 1] = colour
          end
        end
        x = x + 1
      end
      at = at + 1
    end
  end
  return rows, columns, pixels
end

test("sixels show the picture: exactly what the palette has, the rest on average", function(t)
  pg.manual_seed(1)
  local exact = pg.randint(0, 6, { 13, 37, 3 }) * 51
  local rows, columns, pixels = read_sixels(terminal.sixel(exact:to "uint8"))
  t.equal({ rows, columns }, { 13, 37 })
  local list = exact:totable()
  for r = 1, 13 do
    for c = 1, 37 do
      for k = 1, 3 do t.equal(pixels[r][c][k], list[r][c][k] / 51 * 20) end
    end
  end
  for _, value in ipairs { 0, 10, 77, 128, 200, 255 } do
    rows, columns, pixels = read_sixels(terminal.sixel(pg.full({ 30, 40, 3 }, value, { dtype = "uint8" })))
    local sum = 0
    for r = 1, rows do
      for c = 1, columns do sum = sum + pixels[r][c][1] end
    end
    t.ok(math.abs(sum / rows / columns - value / 2.55) < 0.5)
  end
end)

test("kitty: all bytes, in pieces", function(t)
  for _, n in ipairs { 1, 2, 3, 4, 100 } do
    local bytes = pg.arange(n):remainder(256):to "uint8"
    local digits = terminal.base64(native.host.bytes(bytes))
    t.equal(#digits, math.ceil(n / 3) * 4)
  end
  t.equal({ terminal.base64 "Lua", terminal.base64 "Lu", terminal.base64 "L", terminal.base64 "" },
          { "THVh", "THU=", "TA==", "" })
  local picture = (pg.rand { 60, 50, 3 } * 255):to "uint8"
  local text, parts = terminal.kitty(picture, 10), {}
  for options, part in text:gmatch "\27_G([^;]*);([^\27]*)\27\\" do
    t.ok(#part <= 4096 and #part % 4 == 0)
    if #parts == 0 then t.equal(options, "a=T,q=2,f=24,s=50,v=60,c=10,m=1") end
    parts[#parts + 1] = part
    t.equal(options:match "m=(%d)$", #part == 4096 and "1" or "0")
  end
  t.equal(table.concat(parts), terminal.base64(native.host.bytes(picture)))
  t.equal(terminal.kitty(pg.zeros { 1, 1, 4, dtype = "uint8" }), "\27_Ga=T,q=2,f=32,s=1,v=1,m=0;AAAAAA==\27\\\n")
end)

test("what a terminal understands is told by its environment", function(t)
  local function of(environment) return terminal.protocol(function(name) return environment[name] end) end
  t.equal({ of { TERM = "xterm-256color" }, of {}, of { TERM = "xterm-kitty" }, of { TERM = "foot" } },
          { "blocks", "blocks", "kitty", "sixel" })
  t.equal({ of { TERM_PROGRAM = "WezTerm" }, of { TERM = "xterm-kitty", TMUX = "/tmp/x" }, of { TERM = "screen.kitty" },
            of { TERM_PROGRAM = "iTerm.app" } }, { "kitty", "blocks", "blocks", "sixel" })
end)

test("show writes what is asked for, smaller where it is too wide", function(t)
  local perigee = process.need_perigee(t)
  local script = process.file [[
local pg = require "perigee"
pg.image.show(pg.ones{2, 3, 200, 1}, {protocol=arg[1], width=10})
]]
  local function shown(protocol)
    local pipe = io.popen(("'%s' '%s' %s"):format(perigee, script, protocol))
    local text = pipe:read "*a"
    pipe:close()
    return text
  end
  local _, columns = read_sixels(shown "sixel")
  t.equal(columns, 80)
  t.ok(shown "kitty":find "^\27_Ga=T,q=2,f=24,s=%d+,v=%d+,c=10,")
  t.ok(not shown "blocks":find "\27" and shown "auto" == shown "blocks")
  os.remove(script)
  t.raises(function() pg.image.show { pg.ones { 2, 2, 1 }, protocol = "regis" } end, "protocol must be one of")
  t.raises(function() pg.image.show { pg.ones { 2, 2, 1 }, width = 0 } end, "width must be 1 or more")
end)
