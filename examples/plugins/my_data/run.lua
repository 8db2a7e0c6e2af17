-- SPDX-License-Identifier: Apache-2.0
-- Reads files through a source, a transform and a codec of the plugin my_data.
--   PERIGEE_PLUGIN_PATH=build/lib/perigee/plugins perigee run.lua

local pg = require "perigee"
local data = pg.data
local NAME = os.tmpname()

local function write(ending, text)
  local file = assert(io.open(NAME .. ending, "wb"))
  file:write(text)
  file:close()
  return NAME .. ending
end

-- A hundred records of a label and three bytes.
local records = {}
for i = 0, 99 do records[#records + 1] = string.char(i % 10, i, 2 * i, 255 - i) end
local path = write(".bin", table.concat(records))
local ds = data.source("my_rows", { path = path, bytes = 3 }):shuffle(100)
  :transform("my_noise", { by = 0.01, workers = 2 }):batch(32)
for step, batch in ds:each() do print(step, batch.x.shape, batch.y:float():mean():item()) end

for _, sample in data.source("my_lines", { path = write(".txt", "one\ntwo\nthree\n"), numbered = true }):each() do
  print(sample.line, sample.text)
end

-- The codec serves pg.image, pg.save and pg.load, and bytes in memory.
local picture = pg.arange(4 * 6 * 3):reshape(4, 6, 3):to "uint8"
pg.image.save(NAME .. ".ppm", picture)
assert(pg.image.load(NAME .. ".ppm"):equal(picture))
assert(pg.image.load { NAME .. ".ppm", crop = { 1, 2, 3, 4 } }:equal(pg.image.crop(picture, 1, 2, 3, 4)))
assert(data.decode(data.encode(picture, "ppm", { comment = "ours" })):equal(picture))
for _, ending in ipairs { "", ".bin", ".txt", ".ppm" } do os.remove(NAME .. ending) end
