-- SPDX-License-Identifier: Apache-2.0
-- perigee tests/bench/pictures.lua PYTHON [ROUNDS] [FOLDER]: JPEGs of 500 x 375 decoded, a random part resized to 224 x
-- 224, flipped at random, as float32 channels first less the mean and divided by the deviation: pictures a second, on
-- one thread, beside pictures_pillow.py in PYTHON (Pillow and NumPy) by turns. FOLDER has JPEGs of one's own; without
-- one they are made: gradients with edges and noise, as large as photographs of that size are.

local pg = require "perigee"
local image = pg.image

local python, rounds, folder = arg[1], tonumber(arg[2]) or 5, arg[3]
local COUNT = 100
pg.config.set { threads = 1 }

local function make()
  folder = os.tmpname() .. ".d"
  os.execute("mkdir -p '" .. folder .. "'")
  pg.manual_seed(1)
  local rows, columns = pg.arange(375):reshape(375, 1, 1):float(), pg.arange(500):reshape(1, 500, 1):float()
  for i = 1, COUNT do
    local tone = pg.tensor { 0.4, 0.7, 1 }
    local waves = ((rows * (0.02 + i / 900)):sin() + (columns * (0.05 - i / 2500)):cos()) * 50 * tone + 120
    local edges = (rows * columns):remainder(60 + i):gt(40):float() * 30
    local all = waves + edges + pg.randn { 375, 500, 1 } * 6
    image.save(("%s/%03d.jpg"):format(folder, i), all:clamp(0, 255):to "uint8")
  end
end

local made = not folder
if made then make() end
local paths, bytes = {}, 0
local list = io.popen("ls '" .. folder .. "'/*.jpg")
for path in list:lines() do
  paths[#paths + 1] = path
  local file = assert(io.open(path, "rb"))
  bytes = bytes + file:seek("end")
  file:close()
end
list:close()

local MEAN, STD = { 0.485, 0.456, 0.406 }, { 0.229, 0.224, 0.225 }
local ways = {}
function ways.decoded(path) return image.load(path) end
function ways.exact(path, i, draft)
  local rows, columns = image.sides(path)
  local box = image.random_rectangle { rows, columns, seed = 1, sample = i }
  local t = image.load { path, crop = box, size = 224, draft = draft }
  return image.to_float { image.random_flip { t, seed = 1, sample = i }, mean = MEAN, std = STD, channels_first = true }
end
function ways.draft(path, i) return ways.exact(path, i, true) end

local function measure(way)
  local from = pg.bench(function()
    for i, path in ipairs(paths) do way(path, i) end
  end, { warmup = 0, iterations = 1 })
  return #paths / from.mean
end

local function peer(way)
  local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
  local pipe = io.popen(("'%s' '%s/pictures_pillow.py' '%s' %s"):format(python, here, folder, way))
  local rate = tonumber(pipe:read "*l")
  pipe:close()
  return assert(rate, "the Python side printed no number")
end

local function median(values)
  table.sort(values)
  return values[math.ceil(#values / 2)]
end

local rates = {}
for round = 0, rounds do
  for _, name in ipairs { "decoded", "exact", "draft" } do
    local own, other = measure(ways[name]), peer(name)
    if round > 0 then -- the first one fetches files and compiles
      rates[name] = rates[name] or { {}, {}, {} }
      table.insert(rates[name][1], own)
      table.insert(rates[name][2], other)
      table.insert(rates[name][3], own / other)
    end
  end
end
print(("%d JPEGs of %.0f KB"):format(#paths, bytes / #paths / 1024))
for _, name in ipairs { "decoded", "exact", "draft" } do
  local r = rates[name]
  print(("%-8s %7.1f a second, Pillow %7.1f, ratio %.2f (%.2f to %.2f)"):format(name, median(r[1]), median(r[2]),
        median(r[3]), r[3][1], r[3][#r[3]]))
end
if made then os.execute("rm -r '" .. folder .. "'") end
