-- SPDX-License-Identifier: Apache-2.0
-- data.mnist and data.cifar10: two sets of pictures from the files in which they are given away.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"

local sets = {}

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- The first of `names` that is in one of `folders` of a folder, or nil.
local function find(root, folders, names)
  for _, folder in ipairs(folders) do
    for _, name in ipairs(names) do
      local path = root .. folder .. name
      if exists(path) then return path end
    end
  end
end

local function source(where, name, options, classes)
  return pipeline.named(require("perigee.data.plugins").parts.dataset_of(where, name, options, name), classes)
end

local function split_parameter(doc)
  return { "split", "string", default = "train", choices = { "train", "test" }, named = true, doc = doc }
end

local MNIST = "data.mnist"
local read_mnist = native.signature(MNIST, {
  { "path", "string", required = true, doc = "the folder of the files" },
  split_parameter "60,000 pictures, or 10,000 others" })
---Handwritten digits (LeCun et al., 1998) from the files train-images-idx3-ubyte, train-labels-idx1-ubyte,
---t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, as they are or .gz, in the folder or its raw or MNIST/raw: samples
---{ x = uint8 [28, 28, 1], y = int64 }. Sets that have MNIST's form (Fashion-MNIST) are read too. Nothing is fetched.
---@return perigee.Dataset
function sets.mnist(...)
  local o = read_mnist(...)
  local folders = { "/", "/raw/", "/MNIST/raw/", "/FashionMNIST/raw/" }
  local prefix, paths = o.split == "train" and "train" or "t10k", {}
  for i, what in ipairs { "images-idx3", "labels-idx1" } do
    local name = ("%s-%s-ubyte"):format(prefix, what)
    local dotted = name:gsub("%-idx", ".idx") -- as some programs unpack them
    paths[i] = find(o.path, folders, { name, name .. ".gz", dotted, dotted .. ".gz" })
    if not paths[i] then
      native.raise("not_found", MNIST, ("there is no %s or %s.gz in %q"):format(name, name, o.path),
                   "four files, at https://storage.googleapis.com/cvdf-datasets/mnist/ among other places")
    end
  end
  local names = {}
  for i = 0, 9 do names[i + 1] = tostring(i) end
  return source(MNIST, "mnist", { pictures = paths[1], labels = paths[2] }, names)
end

local CIFAR = "data.cifar10"
local FOLDER, ARCHIVE = "cifar-10-batches-bin", "cifar-10-binary.tar.gz"
local NAMES = { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck" }

local read_cifar = native.signature(CIFAR, {
  { "path", "string", required = true, doc = "the folder of the files" },
  split_parameter "50,000 pictures, or 10,000 others" })
---Small photographs of ten classes (Krizhevsky, 2009) from the binary version: data_batch_1.bin to data_batch_5.bin and
---test_batch.bin in the folder or its cifar-10-batches-bin, or the archive cifar-10-binary.tar.gz as it is: samples
---{ x = uint8 [32, 32, 3], y = int64 }. Nothing is fetched.
---@return perigee.Dataset
function sets.cifar10(...)
  local o = read_cifar(...)
  local names = { "test_batch.bin" }
  if o.split == "train" then
    for i = 1, 5 do names[i] = ("data_batch_%d.bin"):format(i) end
  end
  local packed, paths = find(o.path, { "/" }, { ARCHIVE, "cifar-10-binary.tar" }), {}
  for i, name in ipairs(names) do paths[i] = find(o.path, { "/", "/" .. FOLDER .. "/" }, { name }) end
  if not next(paths) and packed then
    return source(CIFAR, "cifar10", { batches = names, archive = packed }, NAMES)
  end
  for i, name in ipairs(names) do
    if not paths[i] then
      native.raise("not_found", CIFAR, ("there is no %s in %q, nor %s"):format(name, o.path, packed or ARCHIVE),
                   "the binary version, at https://www.cs.toronto.edu/~kriz/cifar.html")
    end
  end
  return source(CIFAR, "cifar10", { batches = paths }, NAMES)
end

return sets
