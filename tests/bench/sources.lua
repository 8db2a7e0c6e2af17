-- SPDX-License-Identifier: Apache-2.0
-- perigee tests/bench/sources.lua [ROUNDS]: what sources of pipelines take. Slices of an array of 1 GiB: the time to
-- make the dataset, the memory that it takes, an element, a batch; then elements a second of files: rows of a table,
-- Examples of TFRecord files, samples of shards, MNIST's form. Medians of rounds, and their least and most.

local pg = require "perigee"
local native = require "perigee.native"
local data = pg.data
local rounds = tonumber(arg and arg[1]) or 5

local function resident() -- bytes of this process in memory
  local file = assert(io.open "/proc/self/statm")
  local _, pages = file:read("*n", "*n")
  file:close()
  return pages * 4096
end

local function measured(name, unit, fn)
  local times = {}
  for i = 1, rounds do times[i] = fn() end
  table.sort(times)
  print(("%-34s %12.2f %-8s (%.2f .. %.2f)"):format(name, times[math.ceil(rounds / 2)], unit, times[1], times[rounds]))
end

local function clocked(fn)
  local begin = native.clock()
  fn()
  return native.clock() - begin
end

local function pass(ds)
  local count = 0
  for _ in ds:each() do count = count + 1 end
  return count
end

local ROWS, COLUMNS = 2 ^ 16, 4096
do
  local x = pg.ones { ROWS, COLUMNS }
  collectgarbage()
  local before, ds = resident(), nil
  measured("from_slices of 1 GiB: made", "us", function()
    return clocked(function() ds = data.from_slices { x = x } end) * 1e6
  end)
  measured("an element (16 KiB, not copied)", "us", function() return clocked(function() pass(ds) end) / ROWS * 1e6 end)
  measured("a shuffled element", "us", function()
    return clocked(function() pass(ds:shuffle { seed = 1 }) end) / ROWS * 1e6
  end)
  collectgarbage()
  print(("%-34s %12.2f MiB"):format("resident memory since the array", (resident() - before) / 2 ^ 20))
  measured("a batch of 64 (1 MiB, copied)", "us", function()
    return clocked(function() pass(ds:batch(64)) end) / (ROWS / 64) * 1e6
  end)
  local piece, into = pg.ones { 64, COLUMNS }, pg.zeros { 64, COLUMNS }
  measured("a plain copy of as much", "us", function()
    return clocked(function() for _ = 1, 1024 do into:copy_(piece) end end) / 1024 * 1e6
  end)
  x:free()
end

-- Elements a second of a pipeline, in thousands: on the script's thread, and ahead of it in batches by two.
local function speed(name, open)
  for _, form in ipairs { { "", open() }, { ", 2 workers, batches of 64", open(2):batch(64):prefetch(8) } } do
    measured(name .. form[1], "k/s", function()
      local count
      local seconds = clocked(function() count = pass(form[2]) end)
      return count * (form[1] == "" and 1 or 64) / seconds / 1e3
    end)
  end
end

local root = os.tmpname() .. ".d"
os.execute("mkdir -p " .. root)
local COUNT = 64 * 512

local lines = { "a,b,c,d,label" }
for i = 1, COUNT do lines[i + 1] = ("%.6f,%.6f,%.6f,%.6f,%d"):format(i / 7, i / 11, -i / 13, i * 17.5, i % 10) end
local file = assert(io.open(root .. "/a.csv", "wb"))
file:write(table.concat(lines, "\n"), "\n")
file:close()
speed("csv: rows of 5", function(workers)
  return data.csv { root .. "/a.csv", workers = workers,
                    columns = { x = { "float32", from = { "a", "b", "c", "d" } }, label = "int64" } }
end)

local samples = {}
local pixels = pg.rand { 784 }
for i = 1, COUNT do samples[i] = { x = pixels, label = pg.tensor({ i }, { dtype = "int64" }) } end
data.write_records(root .. "/a.tfrecord", samples)
speed("Examples of 784 numbers", function(workers)
  return data.records { root .. "/a.tfrecord", workers = workers,
                        spec = { x = { "float32", shape = { 784 } }, label = "int64" } }
end)

local files = {}
pixels:save_npy(root .. "/a.npy")
local whole = assert(io.open(root .. "/a.npy", "rb"))
local npy = whole:read "*a"
whole:close()
for i = 1, COUNT do files[i] = { npy = npy, cls = i } end
data.write_records(root .. "/a.tar", files)
speed("shards: an array and a class", function(workers)
  return data.records { root .. "/a.tar", workers = workers, spec = { npy = "npy", cls = "int64" } }
end)

local function high(n) return ("\0\0%c%c"):format(math.floor(n / 256), n % 256) end
for name, text in pairs { ["train-images-idx3-ubyte"] = "\0\0\8\3" .. high(COUNT) .. high(28) .. high(28) ..
                          ("p"):rep(784 * COUNT), ["train-labels-idx1-ubyte"] = "\0\0\8\1" .. high(COUNT) ..
                          ("\7"):rep(COUNT) } do
  local set = assert(io.open(root .. "/" .. name, "wb"))
  set:write(text)
  set:close()
end
speed("mnist", function(workers)
  local ds = data.mnist(root)
  return workers and ds:prefetch(8) or ds
end)
os.execute("rm -r " .. root)
