-- SPDX-License-Identifier: Apache-2.0
-- NumPy's files: what is written is read back, what NumPy writes is read, what is damaged is refused.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local compressed = require "numpy_archive"

local folder = os.tmpname()
os.remove(folder)
require("perigee.native").make_folder(folder)

local function write(name, bytes)
  local path = folder .. "/" .. name
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
  return path
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes
end

-- A .npy file of version 1 with this header and data.
local function npy(header, data)
  return "\147NUMPY\1\0" .. string.char(#header % 256, math.floor(#header / 256)) .. header .. data
end

test("arrays of every dtype come back", function(t)
  for _, dtype in ipairs { "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool" } do
    for _, shape in ipairs { { 2, 3 }, {}, { 0, 4 }, { 5 } } do
      local x = pg.ones { shape, dtype = dtype }
      x:save_npy(folder .. "/x.npy")
      local back = pg.load_npy(folder .. "/x.npy")
      t.equal({ back.dtype, tostring(back.shape) }, { dtype, tostring(x.shape) })
      if x:numel() > 0 then t.equal(back:totable(), x:totable()) end
    end
  end
  pg.arange(6):reshape(2, 3):transpose(1, 2):save_npy(folder .. "/x.npy")
  t.equal(pg.load_npy(folder .. "/x.npy"):totable(), { { 0, 3 }, { 1, 4 }, { 2, 5 } })
  t.equal(#read(folder .. "/x.npy"), 128 + 48) -- the data begin at a multiple of 64
end)

test("arrays by name come back, and NumPy's compressed ones", function(t)
  local path = folder .. "/a.npz"
  pg.save_npz(path, { w = pg.tensor { 1, 2 }, ["layer/b"] = pg.zeros { { 0, 2 }, dtype = "float16" } })
  local back = pg.load_npz(path)
  t.equal(back.w:totable(), { 1, 2 })
  t.equal({ back["layer/b"].dtype, tostring(back["layer/b"].shape) }, { "float16", "{0, 2}" })
  local theirs = pg.load_npz(write("theirs.npz", compressed))
  t.equal({ theirs.x.dtype, theirs.x:totable() }, { "int32", { 0, 1, 2 } })
  t.equal({ tostring(theirs.y.shape), theirs.y:sum():item() }, { "{8, 8}", 0 })
end)

test("the first axis may be the fastest, and bytes the other way round", function(t)
  local x = write("x.npy", npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}\n",
                               "\0\1\0\2\0\3\0\4\0\5\1\0"))
  t.equal(pg.load_npy(x):totable(), { { 1, 3, 5 }, { 2, 4, 256 } })
end)

test("damaged files and others are refused", function(t)
  local header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
  local function refused(bytes, pattern, name)
    local err = t.raises(function() pg.load(write(name or "x.npy", bytes)) end, pattern)
    t.ok(err.code == "data_loss" or err.code == "not_supported", err.code)
  end
  refused("", "no %.npy file")
  refused(("x"):rep(20), "magic")
  refused("\147NUMPY\9\0\0\0", "version 9")
  refused(npy(header, "1234567"), "7 bytes of data; the header asks for 8")
  refused(npy(header, "123456789"), "9 bytes")
  refused("\147NUMPY\1\0\255\255{", "longer than the file")
  refused(npy("{'descr': '<f4'}", ""), "not all there")
  refused(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", ""), "neither True")
  refused(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (99999999999999999999,)}", ""), "too large")
  refused(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (4294967296, 4294967296, 4)}", ""),
          "more than there are")
  refused(npy("{'descr': '|O', 'fortran_order': True, 'shape': (1,)}", "12345678"), "'|O' is not read")
  refused(npy("{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': (1,)}", "1234"), "structured")
  refused(npy("{'descr': '<f4', 'evil': __import__('os')}", ""), "unexpected entry 'evil'")
  refused("PK", "no end record", "x.npz")
  for at = 1, #compressed, 3 do -- any byte but those of dates and the like: an error or the same arrays, never a crash
    local changed = compressed:sub(1, at - 1) .. string.char((compressed:byte(at) + 85) % 256) .. compressed:sub(at + 1)
    pcall(pg.load_npz, write("x.npz", changed))
    pcall(pg.load_npz, write("x.npz", compressed:sub(1, at)))
  end
  refused(compressed:sub(1, 119) .. string.char((compressed:byte(120) + 1) % 256) .. compressed:sub(121), "x%.npz'?",
          "x.npz") -- a byte of the packed data
end)

test("what these functions refuse", function(t)
  t.raises(function() pg.load_npy(folder .. "/x.npz") end, "must end in %.npy")
  t.raises(function() pg.ones({ 2 }, { dtype = "bfloat16" }):save_npy(folder .. "/x.npy") end, "no bfloat16")
  t.raises(function() pg.save_npz(folder .. "/x.npz", { 3 }) end, "tensor under a name")
  t.raises(function() pg.save_npz(folder .. "/x.npz", pg.ones { 2 }) end, "table of tensors")
  t.raises(function() pg.load_npy(folder .. "/none.npy") end, "there is no file")
  os.execute("rm -rf '" .. folder .. "'")
end)
