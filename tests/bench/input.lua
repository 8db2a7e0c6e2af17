-- SPDX-License-Identifier: Apache-2.0
-- perigee tests/bench/input.lua PYTHON [TENSORFLOW_PYTHON] [ROUNDS]: images a second that a pipeline of two workers
-- makes of a folder of JPEGs (500 x 375): decoded, a random part resized to 224 x 224, flipped at random, less the mean
-- and divided by the deviation, channels first, in batches of 64; beside PyTorch's DataLoader with torchvision's
-- transforms in PYTHON and tf.data in TENSORFLOW_PYTHON ("" for none), each in a process of its own, by turns. Of four
-- passes the last counts: by then memory is what it will be. draft: JPEGs are decoded at the scale that the size wants.
-- libjpeg-turbo alone: two workers that read and decode the whole pictures, and nothing else.
-- perigee tests/bench/input.lua --memory FOLDER [EPOCHS]: resident megabytes along so many passes (100) over a folder.

local pg = require "perigee"
local clock = require "perigee.native".clock
local data, image = pg.data, pg.image
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."

local COUNT, BATCH, WORKERS = 256, 64, 2
local MEAN, STD = { 0.485, 0.456, 0.406 }, { 0.229, 0.224, 0.225 }

local function make(folder)
  pg.manual_seed(1)
  local rows, columns = pg.arange(375):reshape(375, 1, 1):float(), pg.arange(500):reshape(1, 500, 1):float()
  for i = 1, COUNT do
    local tone = pg.tensor { 0.4, 0.7, 1 }
    local waves = ((rows * (0.02 + i / 2300)):sin() + (columns * (0.05 - i / 6400)):cos()) * 50 * tone + 120
    local edges = (rows * columns):remainder(60 + i):gt(40):float() * 30
    local all = waves + edges + pg.randn { 375, 500, 1 } * 6
    image.save(("%s/%d/%03d.jpg"):format(folder, i % 2, i), all:clamp(0, 255):to "uint8")
  end
end

local function paths_of(folder)
  local paths = {}
  for class = 0, 1 do
    local list = io.popen(("ls '%s/%d'/*.jpg"):format(folder, class))
    for path in list:lines() do paths[#paths + 1] = path end
    list:close()
  end
  return paths
end

-- Whole pictures, decoded and dropped.
local function decoded(folder)
  local paths = paths_of(folder)
  local function one(s)
    local picture = require("perigee").image.load(paths[s.value + 1])
    return { x = s.value, rows = picture:size(1) }
  end
  return data.range(#paths):map { one, workers = WORKERS }:batch(BATCH):prefetch(4)
end

-- What a worker makes of sample i.
local function pipeline(folder, draft)
  local paths = paths_of(folder)
  local mean, std, seed = MEAN, STD, 1
  local function one(s)
    local im, i = require("perigee").image, s.value + 1
    local path = paths[i]
    local height, width = im.sides(path)
    local box = im.random_rectangle { height, width, seed = seed, sample = i }
    local t = im.random_flip { im.load { path, crop = box, size = 224, draft = draft }, seed = seed, sample = i }
    return { x = t, y = i % 2 }
  end
  -- Bytes are put together, a quarter of the numbers that they become.
  local function numbers(b)
    local im = require("perigee").image
    return { x = im.to_float { b.x, mean = mean, std = std, channels_first = true }, y = b.y }
  end
  local order = data.range(#paths):shuffle { seed = 1 }
  return order:map { one, workers = WORKERS }:batch(BATCH):map { numbers, workers = WORKERS }:prefetch(4)
end

-- One pass behind some that take memory: images a second, and milliseconds of processor time an image.
local function rate_of(ds)
  local rate, used
  for _ = 1, 4 do
    local begin, before, n = clock(), os.clock(), 0
    for _, b in ds:each() do n = n + b.x:size(1) end
    rate, used = n / (clock() - begin), (os.clock() - before) / n * 1e3
  end
  return rate, used
end

if arg[1] == "--measure" then
  pg.config.set { threads = 1 }
  print(rate_of(arg[3] == "alone" and decoded(arg[2]) or pipeline(arg[2], arg[3] == "draft")))
  return
end

if arg[1] == "--memory" then
  pg.config.set { threads = 1 }
  local ds, epochs = pipeline(arg[2], false), tonumber(arg[3]) or 100
  for epoch = 1, epochs do
    for _ in ds:each() do end
    if epoch <= 5 or epoch % 10 == 0 then
      local status = io.open "/proc/self/status"
      print(("epoch %3d: %4.0f MB resident"):format(epoch, status:read("*a"):match "VmRSS:%s*(%d+)" / 1024))
      status:close()
    end
  end
  return
end

local torch, tensorflow, rounds = arg[1], arg[2] or "", tonumber(arg[3]) or 5

local function numbers_of(command)
  local pipe = io.popen(command)
  local text = pipe:read "*a"
  pipe:close()
  local rate, used = text:match "([%d.e+-]+)%s+([%d.e+-]+)%s*$"
  return assert(tonumber(rate), "no number came of " .. command), tonumber(used)
end

local function median(values)
  table.sort(values)
  return values[math.ceil(#values / 2)]
end

local folder = os.tmpname() .. ".d"
os.execute(("mkdir -p '%s/0' '%s/1'"):format(folder, folder))
make(folder)
local perigee = io.popen "readlink /proc/$PPID/exe"
local exe = perigee:read "*l"
perigee:close()

local ways = {
  { "here", ("'%s' '%s/input.lua' --measure '%s' exact"):format(exe, here, folder) },
  { "here, draft", ("'%s' '%s/input.lua' --measure '%s' draft"):format(exe, here, folder) },
  { "libjpeg-turbo alone", ("'%s' '%s/input.lua' --measure '%s' alone"):format(exe, here, folder) },
  { "DataLoader, torchvision", ("'%s' '%s/input_torch.py' '%s' %d %d"):format(torch, here, folder, BATCH, WORKERS) } }
if tensorflow ~= "" then
  ways[5] = { "tf.data", ("TF_CPP_MIN_LOG_LEVEL=3 '%s' '%s/input_tensorflow.py' '%s' %d %d 2>/dev/null"):format(
                tensorflow, here, folder, BATCH, WORKERS) }
end
local rates, times = {}, {}
for round = 1, rounds do
  for k, way in ipairs(ways) do
    rates[k], times[k] = rates[k] or {}, times[k] or {}
    rates[k][round], times[k][round] = numbers_of(way[2])
  end
end
os.execute(("rm -r '%s'"):format(folder))
-- Of two lists, round by round: the median, the least and the most.
local function ratios_of(a, b)
  local list = {}
  for i = 1, rounds do list[i] = a[i] / b[i] end
  local middle = median(list)
  return ("%.2f (%.2f to %.2f)"):format(middle, list[1], list[rounds])
end
for k, way in ipairs(ways) do
  print(("%-24s %7.1f images a second, %6.2f ms of processor time an image"):format(way[1], median { unpack(rates[k]) },
        median { unpack(times[k]) }))
  for other = 1, k > 2 and 2 or 0 do
    print(("  %-22s %s times as many a second, %s of its processor time"):format(ways[other][1],
          ratios_of(rates[other], rates[k]), ratios_of(times[other], times[k])))
  end
end
