-- SPDX-License-Identifier: Apache-2.0
-- data.mnist and data.cifar10: two sets of pictures from the files in which they are given away.

local native = require "perigee.native"
local reader = require "perigee.data.records.reader"
local tar = require "perigee.data.records.tar"
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

local function open(where, path)
  local file = reader.plain(where, path)
  if not reader.is_gzip(file) then return file end
  file:close()
  return reader.unpacked(where, path)
end

local function damaged(where, path, problem) native.raise("data_loss", where, path .. ": " .. problem) end

local function bytes_tensor(where, text, shape)
  return native.host.from_bytes(where, text, native.dtypes.by_name.uint8, shape)
end

-- An array of bytes in IDX: two zeros, the kind (8), the count of axes, their sizes (the high byte first), elements.
local function read_idx(where, path, axes)
  local file = open(where, path)
  local head = file:read(0, 4 + 4 * axes)
  if head:sub(1, 4) ~= "\0\0\8" .. string.char(axes) or #head < 4 + 4 * axes then
    damaged(where, path, ("it does not begin as an IDX file of bytes with %d ax%s"):format(axes, axes == 1 and "is" or
            "es"))
  end
  local shape, count = {}, 1
  for i = 1, axes do
    local a, b, c, d = head:byte(4 * i + 1, 4 * i + 4)
    shape[i] = ((a * 256 + b) * 256 + c) * 256 + d
    count = count * shape[i]
  end
  if file:size() ~= #head + count then
    damaged(where, path, ("%.0f bytes, but its header says %.0f"):format(file:size(), #head + count))
  end
  local text = file:read(#head, count)
  file:close()
  return bytes_tensor(where, text, shape)
end

local function check_classes(where, path, labels)
  local top = labels:numel() > 0 and labels:max():item() or 0
  if top > 9 then damaged(where, path, ("a label is %d; there are ten classes, 0 to 9"):format(top)) end
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
  local x, y = read_idx(MNIST, paths[1], 3), read_idx(MNIST, paths[2], 1)
  if x:size(1) ~= y:size(1) then
    damaged(MNIST, paths[2], ("%d labels, but there are %d pictures in %s"):format(y:size(1), x:size(1), paths[1]))
  end
  check_classes(MNIST, paths[2], y)
  local names = {}
  for i = 0, 9 do names[i + 1] = tostring(i) end
  return pipeline.named(require("perigee").data.from_slices { x = x:unsqueeze(4), y = y:to "int64" }, names)
end

local CIFAR = "data.cifar10"
local SIDE, RECORD = 32, 1 + 3 * 32 * 32
local FOLDER, ARCHIVE = "cifar-10-batches-bin", "cifar-10-binary.tar.gz"
local NAMES = { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck" }

-- What the archive's files hold, by their names without folders.
local function members_of(path)
  local file, found = open(CIFAR, path), {}
  local at, problem = tar.each(file, function(name, from, size)
    name = name:match "[^/]*$"
    if name:find "%.bin$" then found[name] = file:read(from, size) end
  end)
  file:close()
  if at then damaged(CIFAR, path, ("the archive at byte %d: %s"):format(at, problem)) end
  return found
end

-- The bytes of a batch, and where they are from.
local function batch_bytes(root, name, archive)
  local path = find(root, { "/", "/" .. FOLDER .. "/" }, { name })
  if path then
    local file = reader.plain(CIFAR, path)
    local text = file:read(0, file:size())
    file:close()
    return text, path
  end
  return archive[name], name
end

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
  local packed = find(o.path, { "/" }, { ARCHIVE, "cifar-10-binary.tar" })
  local plain = find(o.path, { "/", "/" .. FOLDER .. "/" }, names)
  local archive = packed and not plain and members_of(packed) or {}
  local pictures, labels = {}, {}
  for i, name in ipairs(names) do
    local text, path = batch_bytes(o.path, name, archive)
    if not text then
      native.raise("not_found", CIFAR, ("there is no %s in %q, nor %s"):format(name, o.path, packed or ARCHIVE),
                   "the binary version, at https://www.cs.toronto.edu/~kriz/cifar.html")
    end
    if #text == 0 or #text % RECORD ~= 0 then
      damaged(CIFAR, path, ("%d bytes are no records of %d"):format(#text, RECORD))
    end
    local all = bytes_tensor(CIFAR, text, { #text / RECORD, RECORD })
    labels[i] = all:narrow(2, 1, 1):flatten()
    check_classes(CIFAR, path, labels[i])
    -- Red, then green, then blue: channels go last.
    pictures[i] = all:narrow(2, 2, RECORD - 1):reshape(-1, 3, SIDE, SIDE):permute(1, 3, 4, 2):contiguous()
  end
  local pg = require "perigee"
  local x, y = pg.cat(pictures, 1), pg.cat(labels, 1):to "int64"
  return pipeline.named(pg.data.from_slices { x = x, y = y }, NAMES)
end

return sets
