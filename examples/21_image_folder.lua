-- SPDX-License-Identifier: Apache-2.0
-- A folder of JPEGs, a folder in it a class: parts of two photographs, and shapes that are drawn here. Threads read,
-- decode and augment them while the model trains; at the end a profile says what holds the training back.
--   perigee examples/21_image_folder.lua [--short] [--device cpu] [--epochs 12] [--pictures 160] [--workers 2]
--     [--seed 1] [--folder DIR]    where the pictures are written and kept; else they are gone at the end

local pg = require "perigee"
local nn, optim, data, image = pg.nn, pg.optim, pg.data, pg.image

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local options = require "options"({ device = "cpu", epochs = 12, pictures = 160, workers = 2, seed = 1, folder = "" },
                                  { epochs = 4, pictures = 48 })
pg.manual_seed(options.seed)

-- ---- the pictures: [64, 64, 3], uint8 ----

local SIDE = 64
local random = math.random
math.randomseed(options.seed)
local places = pg.arange(SIDE):to "float32"
local rows, columns = places:reshape(SIDE, 1, 1), places:reshape(1, SIDE, 1)

local photographs = {}
local function part_of(name)
  photographs[name] = photographs[name] or image.load(folder .. "data/" .. name .. ".jpg")
  local whole = photographs[name]
  local side = random(96, 224)
  local top, left = random(0, whole:size(1) - side), random(0, whole:size(2) - side)
  return image.resize { image.crop(whole, top, left, side, side), SIDE, filter = "area" }
end

-- A shape in one colour on another; a mask of [64, 64, 1] says where.
local function drawn(mask)
  local function colour() return pg.tensor { random(0, 255), random(0, 255), random(0, 255) } end
  local noise = pg.randn { SIDE, SIDE, 3 } * 8
  return (pg.where(mask, colour(), colour()):to "float32" + noise):clamp(0, 255):to "uint8"
end

local KINDS = {
  china = function() return part_of "china" end,
  flower = function() return part_of "flower" end,
  disc = function()
    local y, x, r = random(20, 44), random(20, 44), random(10, 18)
    return drawn(((rows - y):square() + (columns - x):square()):lt(r * r))
  end,
  stripes = function()
    local angle, width = random() * math.pi, random(5, 10)
    return drawn((((rows * math.sin(angle) + columns * math.cos(angle)) / width):sin()):gt(0))
  end,
}

local home = options.folder ~= "" and options.folder or os.tmpname() .. ".pictures"
local function write(part, count)
  for name, make in pairs(KINDS) do
    local where = ("%s/%s/%s"):format(home, part, name)
    assert(os.execute("mkdir -p '" .. where .. "'"))
    for i = 1, count do image.save(("%s/%04d.jpg"):format(where, i), make(), { quality = 90 }) end
  end
end
write("train", options.pictures)
write("test", math.ceil(options.pictures / 4))

-- ---- pipelines: random draws depend on (seed, epoch, sample) alone, however many threads there are ----

local seed = options.seed
local function label(y) return pg.tensor(y, { dtype = "int64" }) end
local function augmented(s)
  local t = { seed = seed, sample = s.sample }
  local x = image.random_resized_crop { s.x, 48, scale = { 0.5, 1 }, seed = t.seed, sample = t.sample }
  x = image.random_flip { x, seed = t.seed, sample = t.sample }
  x = image.color_jitter { x, brightness = 0.2, contrast = 0.2, seed = t.seed, sample = t.sample }
  return { x = image.to_float { x, mean = { 0.5 }, std = { 0.25 }, channels_first = true }, y = label(s.y) }
end
local function plain(s)
  local x = image.resize(s.x, 48)
  return { x = image.to_float { x, mean = { 0.5 }, std = { 0.25 }, channels_first = true }, y = label(s.y) }
end

local train = data.image_folder { home .. "/train", numbered = true, workers = options.workers }
  :shuffle { seed = seed }
  :map { augmented, workers = options.workers }
  :batch { 16 }
  :prefetch { 2, device = options.device }
local test = data.image_folder { home .. "/test", workers = options.workers }
  :map { plain, workers = options.workers }:batch { 32 }
print(("%d pictures of 4 classes"):format(4 * options.pictures))
print(train:benchmark())

-- ---- the model ----

local function block(from, to)
  return nn.Conv2d { from, to, 3, padding = 1, bias = false }, nn.BatchNorm2d { to }, nn.ReLU {}, nn.MaxPool2d { 2 }
end
local layers = {}
for _, pair in ipairs { { 3, 16 }, { 16, 32 }, { 32, 64 } } do
  for _, layer in ipairs { block(pair[1], pair[2]) } do layers[#layers + 1] = layer end
end
layers[#layers + 1], layers[#layers + 2] = nn.AdaptiveAvgPool2d { 1 }, nn.Flatten {}
layers[#layers + 1] = nn.Linear { 64, 4 }
local model = nn.Sequential(layers):to(options.device)

local optimizer = optim.Adam { model:parameters(), lr = 3e-3 }
local history = model:fit { data = train, validation = test, loss = "cross_entropy", optimizer = optimizer,
                            metrics = { "accuracy" }, epochs = options.epochs, verbose = options.is_short and 0 or 2 }
local accuracy = history[#history].val_accuracy
print(("test accuracy %.1f %%"):format(100 * accuracy))

-- ---- what holds it back ----

print(pg.profile(function()
  model:fit { data = train, loss = "cross_entropy", optimizer = optimizer, epochs = 1, verbose = 0 }
end))
if options.folder == "" then os.execute("rm -r '" .. home .. "'") end
if accuracy < 0.7 then error("too little was learnt", 0) end
