-- SPDX-License-Identifier: Apache-2.0
-- data.mnist and data.cifar10 from files of their formats, made here; files that are missing or damaged.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"
local tar = require "perigee.data.records.tar"
local native = require "perigee.native"
local data = pg.data

local root = os.tmpname() .. ".d"
local function folder(name)
  os.execute(("mkdir -p '%s/%s'"):format(root, name))
  return root .. "/" .. name
end

local write = process.write
local function write_gzip(path, text)
  native.write(path, { "data" }, { native.host.from_bytes("test", text, native.dtypes.by_name.uint8, { #text }) })
end

local function idx(axes, text)
  local head = "\0\0\8" .. string.char(#axes)
  for _, n in ipairs(axes) do head = head .. "\0\0" .. string.char(math.floor(n / 256), n % 256) end
  return head .. text
end
local function images(n)
  local parts = {}
  for i = 0, n - 1 do
    for row = 0, 27 do
      for column = 0, 27 do parts[#parts + 1] = string.char((i * 100 + row * 7 + column) % 256) end
    end
  end
  return idx({ n, 28, 28 }, table.concat(parts))
end

test("mnist: the four files, plain or compressed, in the folders where programs put them", function(t)
  for _, kind in ipairs { "", "raw", "MNIST/raw" } do
    local path = folder("mnist" .. #kind .. "/" .. kind)
    local save, ending = write, ""
    if kind == "raw" then save, ending = write_gzip, ".gz" end
    save(path .. "/train-images-idx3-ubyte" .. ending, images(3))
    save(path .. "/train-labels-idx1-ubyte" .. ending, idx({ 3 }, "\5\0\9"))
    save(path .. "/t10k-images-idx3-ubyte" .. ending, images(1))
    save(path .. "/t10k-labels-idx1-ubyte" .. ending, idx({ 1 }, "\7"))
    local ds = data.mnist(root .. "/mnist" .. #kind)
    t.equal({ #ds, ds[2].x.shape, ds[2].x.dtype, ds[2].y.dtype }, { 3, { 28, 28, 1 }, "uint8", "int64" })
    t.equal({ ds[3].y:item(), ds[3].x[2][4][1]:item(), ds:class_name(9) }, { 9, 210, "9" })
    local test_set = data.mnist { root .. "/mnist" .. #kind, split = "test" }
    t.equal({ #test_set, test_set[1].y:item() }, { 1, 7 })
    for _, b in ds:batch(2):prefetch(1):each() do t.equal(b.x:dim(), 4) end
  end
end)

test("mnist: what is missing or damaged is named", function(t)
  local path = folder "bad"
  local e = t.raises(function() data.mnist(path) end)
  t.equal(e.code, "not_found")
  t.ok(tostring(e):find("train-images-idx3-ubyte", 1, true) and tostring(e):find("https://", 1, true), tostring(e))
  write(path .. "/train-labels-idx1-ubyte", idx({ 3 }, "\5\0\9"))
  local function refused(text)
    e = t.raises(function() data.mnist(path) end)
    t.ok(e.code == "data_loss" and e.message:find(text, 1, true), e.message)
  end
  write(path .. "/train-images-idx3-ubyte", images(3):sub(1, -2))
  refused("train-images-idx3-ubyte: 2367 bytes, but its header says 2368")
  write(path .. "/train-images-idx3-ubyte", "\0\0\13\3")
  refused("does not begin as an IDX file of bytes with 3 axes")
  write(path .. "/train-images-idx3-ubyte", images(2))
  refused("3 labels, but there are 2 pictures")
  write(path .. "/train-images-idx3-ubyte", images(3))
  write(path .. "/train-labels-idx1-ubyte", idx({ 3 }, "\5\0\10"))
  refused("a label is 10")
end)

-- n records, picture i of the colours (i, 100 + i, 200 + i), its first pixel of column 2 being 1, 2, 3.
local function batch(n, label)
  local parts = {}
  for i = 1, n do
    parts[#parts + 1] = string.char(label)
    for c = 0, 2 do parts[#parts + 1] = string.char(i) .. string.char(c + 1) .. string.char(i + 100 * c):rep(1022) end
  end
  return table.concat(parts)
end

test("cifar10: five files and one, or the archive as it is", function(t)
  local members = {}
  for _, place in ipairs { "c", "c2/cifar-10-batches-bin" } do
    local path = folder(place)
    for i = 1, 5 do
      write(("%s/data_batch_%d.bin"):format(path, i), batch(2, i))
      if place == "c" then
        members[i] = tar.member(("cifar-10-batches-bin/data_batch_%d.bin"):format(i), batch(2, i))
      end
    end
    write(path .. "/test_batch.bin", batch(1, 9))
  end
  members[6] = tar.member("cifar-10-batches-bin/test_batch.bin", batch(1, 9)) ..
               tar.member("cifar-10-batches-bin/readme.html", "x")
  write_gzip(folder "c3" .. "/cifar-10-binary.tar.gz", table.concat(members) .. tar.FINISH)
  for _, place in ipairs { "c", "c2", "c3" } do
    local ds = data.cifar10(root .. "/" .. place)
    t.equal({ #ds, ds[1].x.shape, ds[1].x.dtype, ds[4].y.dtype }, { 10, { 32, 32, 3 }, "uint8", "int64" })
    t.equal({ ds[4].x[1]:narrow(1, 1, 3):totable(), ds[4].y:item() },
            { { { 2, 2, 2 }, { 1, 2, 3 }, { 2, 102, 202 } }, 2 })
    t.equal(ds:class_name(ds[9].y:item()), "dog")
    local test_set = data.cifar10 { root .. "/" .. place, split = "test" }
    t.equal({ #test_set, test_set:class_name(test_set[1].y:item()) }, { 1, "truck" })
  end
end)

test("cifar10: what is missing or damaged is named", function(t)
  local path = folder "bad_cifar"
  local e = t.raises(function() data.cifar10(path) end)
  t.ok(e.code == "not_found" and tostring(e):find("https://www.cs.toronto.edu", 1, true), tostring(e))
  write(path .. "/test_batch.bin", batch(1, 9) .. "x")
  e = t.raises(function() data.cifar10 { path, split = "test" } end)
  t.equal(e.code, "data_loss")
  t.ok(e.message:find("test_batch.bin: 3074 bytes are no records of 3073", 1, true), e.message)
  write(path .. "/test_batch.bin", batch(1, 10))
  e = t.raises(function() data.cifar10 { path, split = "test" } end)
  t.ok(e.code == "data_loss" and e.message:find("a label is 10", 1, true), e.message)
  os.execute(("rm -r '%s'"):format(root))
end)
