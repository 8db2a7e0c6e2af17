-- SPDX-License-Identifier: Apache-2.0
-- perigee tests/fuzz/decoders.lua [COUNT] [SEED] [KIND]: COUNT changed files of each kind are read: pictures, archives,
-- arrays, compressed bytes, records. Each is read, or an error with a code that scripts may meet; never a signal, never
-- more memory than a picture of a million pixels takes.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
package.path = here .. "/../?.lua;" .. package.path
local pg = require "perigee"
local process = require "process"
local native = require "perigee.native"

local FINE = { data_loss = true, not_supported = true, invalid_argument = true }
local MAX_PIXELS = 2 ^ 20

local whole = process.read

-- The bytes that pg.save and its kin write.
local function saved(ending, save)
  local name = os.tmpname()
  local path = name .. ending
  save(path)
  local text = whole(path)
  os.remove(path)
  os.remove(name)
  return text
end

local function pictures(ending, options)
  local list = {}
  for i, channels in ipairs(options.channels) do
    list[i] = saved(ending, function(path)
      local t = (pg.arange(17 * 23 * channels):float():sin() * 127 + 128):to "uint8":reshape(17, 23, channels)
      pg.image.save { path, t, quality = options.quality }
    end)
  end
  for _, name in ipairs(options.files or {}) do list[#list + 1] = whole(here .. "/../lua/image/data/" .. name) end
  return list
end

local function image(ending)
  return function(bytes)
    return native.read_bytes(bytes, ending, { max_pixels = MAX_PIXELS }, "fuzz").data
  end
end
local function format(ending, options)
  return function(bytes) return native.read_bytes(bytes, ending, options, "fuzz") end
end

-- Of sources, which read files.
local function samples(ending, open)
  return function(bytes, path)
    local file = assert(io.open(path .. ending, "wb"))
    file:write(bytes)
    file:close()
    local ok, problem = pcall(function()
      for _ in open(path .. ending):each() do end -- luacheck: ignore 542
    end)
    os.remove(path .. ending)
    if not ok then error(problem, 0) end
  end
end

local function records(ending, spec)
  return samples(ending, function(path) return pg.data.records { path, spec = spec } end)
end

-- Of data.mnist and data.cifar10, which read files under names of their own in a folder: each of `names` in turn is the
-- changed one, and the others are whole.
local function set(read, names, files)
  local folder
  return function(bytes, path, number)
    if not folder then
      folder = path .. ".d"
      os.execute(("mkdir -p '%s'"):format(folder))
    end
    local which = number % #names + 1
    for i, name in ipairs(names) do
      local file = assert(io.open(folder .. "/" .. name, "wb"))
      file:write(i == which and bytes or files[i])
      file:close()
    end
    local ok, problem = pcall(function()
      local ds = read(folder)
      for _ in ds:take(3):each() do end -- luacheck: ignore 542
    end)
    for _, name in ipairs(names) do os.remove(folder .. "/" .. name) end
    if not ok then error(problem, 0) end
  end, function()
    if folder then os.execute(("rmdir '%s'"):format(folder)) end
    folder = nil
  end
end

local function high_first(n) return string.char(math.floor(n / 2 ^ 24), math.floor(n / 2 ^ 16) % 256, 0, n % 256) end
local IDX = {
  "\0\0\8\3" .. high_first(2) .. high_first(3) .. high_first(4) .. ("abcdefghijkl"):rep(2),
  "\0\0\8\1" .. high_first(2) .. "\7\9",
}
local MNIST = { "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" }
local read_mnist, end_mnist = set(function(folder) return pg.data.mnist { folder, split = "test" } end, MNIST, IDX)
local CIFAR = { "test_batch.bin" }
local RECORDS = "\3" .. ("\1\2\3"):rep(1024) .. "\9" .. ("\4\5\6"):rep(1024)
local read_cifar, end_cifar = set(function(folder) return pg.data.cifar10 { folder, split = "test" } end, CIFAR,
                                  { RECORDS })

local function in_records(name) return whole(here .. "/../lua/data/records/" .. name) end

local KINDS = {
  { "jpg", function()
    local files = { "progressive.jpg", "inks.jpg", "grey.jpg" }
    return pictures(".jpg", { channels = { 1, 3 }, quality = 60, files = files })
  end, image ".jpg" },
  { "png", function()
    return pictures(".png", { channels = { 1, 2, 3, 4 }, files = { "inks.jpg.png", "opacity.webp.png" } })
  end, image ".png" },
  { "webp", function()
    return pictures(".webp", { channels = { 3, 4 }, files = { "lossy.webp", "opacity.webp", "moving.webp" } })
  end, image ".webp" },
  { "gzip", function() return { in_records "gzip.tfrecord", in_records "zlib.tfrecord", in_records "shard.tar.gz" } end,
    format(".gz", { max_bytes = 2 ^ 22 }) },
  { "npy", function()
    return { saved(".npy", function(path) pg.rand { 3, 4 }:save_npy(path) end),
             saved(".npy", function(path) pg.arange(5):save_npy(path) end) }
  end, format ".npy" },
  { "npz", function()
    return { saved(".npz", function(path) pg.save_npz(path, { a = pg.rand { 3 }, b = pg.arange(4) }) end) }
  end, format ".npz" },
  { "safetensors", function()
    return { saved(".safetensors", function(path)
      pg.save(path, { a = pg.rand { 3, 2 }, b = pg.arange(4) }, { notes = { x = "y" } })
    end) }
  end, format ".safetensors" },
  { "csv", function() return { "1,2,3\n4,5,6\n", "1e3,-2\n\"3\",+4\n" } end, format ".csv" },
  { "rows", function() return { "a,b,c\n1,\"x\"\"\n\",3\n4,y,6\n", "a,c,b\r\n-1e3,2,\"\"\r\n" } end,
    samples(".csv", function(path)
      return pg.data.csv { path, columns = { x = { "float32", from = { "a", "c" } }, b = "string" } }
    end) },
  { "tar", function() return { (in_records "shard.tar":gsub("%z+$", "")) } end,
    records(".tar", { png = "image", cls = "int64", json = "json", ["w.npy"] = "npy" }) },
  { "tfrecord", function() return { in_records "examples.tfrecord" } end,
    records(".tfrecord", { id = "int64", name = "bytes", tokens = { "int64", shape = "any" } }) },
  { "idx", function() return IDX end, read_mnist, end_mnist },
  { "cifar", function() return { RECORDS } end, read_cifar, end_cifar },
}

-- Random numbers of its own, so that a seed and a number say which file it was.
local function generator(seed)
  local state = seed % 2147483646 + 1
  return function(n)
    state = (state * 16807) % 2147483647
    return state % n
  end
end

local LENGTHS = { "\255\255\255\255", "\0\0\0\0", "\127\255\255\255", "\255\255\255\127", "\0\0\234\96", "\128\0\0\0" }

local change = {
  function(text, random) -- another byte
    local at = random(#text) + 1
    return text:sub(1, at - 1) .. string.char(random(256)) .. text:sub(at + 1)
  end,
  function(text, random) -- another bit near the beginning, where headers are
    local at = random(math.min(#text, 64)) + 1
    return text:sub(1, at - 1) .. string.char((text:byte(at) + 2 ^ random(8)) % 256) .. text:sub(at + 1)
  end,
  function(text, random) return text:sub(1, random(#text)) end,
  function(text, random) -- a number that says much
    local at = random(math.min(#text, 256)) + 1
    return text:sub(1, at - 1) .. LENGTHS[random(#LENGTHS) + 1] .. text:sub(at + 4)
  end,
  function(text, random) -- a piece twice
    local at, count = random(#text) + 1, random(40)
    return text:sub(1, at + count) .. text:sub(at)
  end,
  function(text, random) -- a piece less
    local at, count = random(#text) + 1, random(40)
    return text:sub(1, at - 1) .. text:sub(at + count)
  end,
}

local function changed(text, random)
  for _ = 0, random(3) do
    if #text == 0 then return text end
    text = change[random(#change) + 1](text, random)
  end
  return text
end

---Reads `count` changed files of a kind; answers how many were read, how many refused, and a list of what is wrong.
local function fuzz(kind, count, seed)
  local seeds, read, refused, wrong = kind[2](), 0, 0, {}
  local path = os.tmpname()
  for i = 1, count do
    local random = generator(seed * 1000003 + i)
    for _ = 1, 3 do random(2) end
    local which = random(#seeds)
    local text = changed(seeds[which + 1], random)
    local ok, problem = pcall(kind[3], text, path, which)
    if ok then
      read = read + 1
    else
      refused = refused + 1
      if not native.is_error(problem) or not FINE[problem.code] then
        wrong[#wrong + 1] = ("%s, seed %d, number %d: %s"):format(kind[1], seed, i, tostring(problem))
      end
    end
  end
  os.remove(path)
  if kind[4] then kind[4]() end
  return read, refused, wrong
end

if not (arg and arg[0] and arg[0]:find "decoders.lua$") then return { kinds = KINDS, fuzz = fuzz } end

local failed = false
for _, kind in ipairs(KINDS) do
  if not arg[3] or arg[3] == kind[1] then
    local read, refused, wrong = fuzz(kind, tonumber(arg[1]) or 10000, tonumber(arg[2]) or 1)
    print(("%-12s %6d read, %6d refused, %d wrong"):format(kind[1], read, refused, #wrong))
    for k = 1, math.min(#wrong, 5) do print("  " .. wrong[k]) end
    failed = failed or #wrong > 0
  end
end
os.exit(failed and 1 or 0)
