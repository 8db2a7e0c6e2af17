-- SPDX-License-Identifier: Apache-2.0
-- Files of which one bit is wrong: an error with a code, or what was written. Where a format keeps nothing twice (a
-- value's bits and the byte order in .npy, values, names, notes and the shapes of empty tensors in
-- .safetensors), what is wrong is that alone.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local bit = require "bit"
local pg = require "perigee"
local native = require "perigee.native"
local zip = require "zip"
local compressed = require "numpy_archive"

local folder = os.tmpname()
os.remove(folder)
native.make_folder(folder)

local function read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes
end

local function write(path, bytes)
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
  return path
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b or (a ~= a and b ~= b) end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

-- Names, dtypes, shapes and values as plain tables.
local function plain(tensors)
  local content = {}
  for name, x in pairs(tensors) do content[name] = { x.dtype, tostring(x.shape), x:flatten():totable() } end
  return content
end

-- One byte of a file, written in its place: a file that is written anew each time waits for the disk.
local function poke(path, at, byte)
  local file = assert(io.open(path, "r+b"))
  file:seek("set", at - 1)
  file:write(string.char(byte))
  file:close()
end

-- Reads the file with each bit wrong. `allowed(at, found)`: whether this other content may come of byte `at`.
local function each_flip(t, path, load, allowed)
  local bytes, expected, errors, equal = read(path), load(path), 0, 0
  for at = 1, #bytes do
    for which = 0, 7 do
      poke(path, at, bit.bxor(bytes:byte(at), bit.lshift(1, which)))
      local ok, found = pcall(load, path)
      local place = ("byte %d, bit %d: "):format(at, which)
      if not ok then
        errors = errors + 1
        t.ok(native.is_error(found) and found.code ~= "internal", place .. tostring(found))
      elseif same(found, expected) then
        equal = equal + 1
      else
        t.ok(allowed and allowed(at, found), place .. "read as something else")
      end
    end
    poke(path, at, bytes:byte(at))
  end
  return errors, equal
end

local function load_plain(path) return plain((pg.load(path))) end

local function entries(content)
  local count = 0
  for _ in pairs(content) do count = count + 1 end
  return count
end

test("a bit of an .npz file", function(t)
  local path = folder .. "/a.npz"
  pg.save_npz(path, { a = pg.tensor({ 1, 2, 3 }, { dtype = "int32" }), b = pg.zeros { 0, 2 },
                      ["layer/weight"] = pg.tensor { { 1, -2 }, { 0.5, 4 } } })
  local errors, equal = each_flip(t, path, load_plain)
  t.ok(errors > 4 * equal, ("%d errors, %d the same"):format(errors, equal))
  write(path, compressed)
  errors, equal = each_flip(t, path, load_plain)
  t.ok(errors > 2 * equal, ("%d errors, %d the same"):format(errors, equal))
end)

test("a bit of an .npy file", function(t)
  local path = folder .. "/a.npy"
  pg.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, { dtype = "int32" }):save_npy(path)
  local bytes = read(path)
  local data, order = #bytes - 24, bytes:find("<", 1, true)
  local whole = load_plain(path).data
  each_flip(t, path, load_plain, function(at, found)
    local other = 0
    for i, value in ipairs(found.data[3]) do
      if value ~= whole[3][i] then other = other + 1 end
    end
    local alike = found.data[1] == whole[1] and found.data[2] == whole[2]
    return alike and (at == order or at > data and other == 1)
  end)
end)

test("a bit of a .safetensors file", function(t)
  local path = folder .. "/a.safetensors"
  pg.save(path, { a = pg.tensor({ 1, 2, 3 }, { dtype = "int32" }), b = pg.zeros { 0 }, c = pg.tensor { true },
                  weight = pg.tensor { { 1, -2 }, { 0.5, 4 } } }, { notes = { of = "a test" } })
  local bytes = read(path)
  local data, whole = #bytes - 29, load_plain(path)
  local names = {}
  for name in pairs(whole) do
    local at = bytes:find('"' .. name .. '":{', 1, true)
    for i = at + 1, at + #name do names[i] = name end
  end
  each_flip(t, path, load_plain, function(at, found)
    if entries(found) ~= entries(whole) then return false end
    local name, other = names[at], 0
    for key, entry in pairs(whole) do
      if key ~= name and not same(found[key], entry) then other = other + 1 end
    end
    return name and other == 0 or at > data and other == 1 -- renamed, or a value
  end)
end)

test("a bit of a checkpoint", function(t)
  local dir = folder .. "/checkpoints"
  local manager = pg.CheckpointManager { dir, weights = { state = function() return { w = pg.tensor { 1, 2 } } end,
                                                           load_state = function() end } }
  local path = manager:save { step = 1, note = "x" }
  local stderr = io.stderr
  io.stderr = { write = function() end } -- luacheck: ignore
  local ok, errors, equal = pcall(each_flip, t, path, function() return manager:restore() end)
  io.stderr = stderr -- luacheck: ignore
  t.ok(ok, tostring(errors))
  t.equal({ equal, errors }, { 0, 8 * #read(path) })
end)

-- ---- archives that somebody made ----

local byte = zip.npy("(1,)", "\7")

local function refused(t, members, options, pattern, code)
  local path = write(folder .. "/made.npz", type(members) == "string" and members or zip.archive(members, options))
  local before = native.memory_stats(0).peak
  local err = t.raises(function() pg.load_npz(path) end, pattern)
  t.equal(err.code, code or "data_loss")
  return native.memory_stats(0).peak - before
end

test("an archive made by hand is read", function(t)
  local path = write(folder .. "/made.npz", zip.archive { { name = "a.npy", data = byte },
                                                          { name = "b.npy", data = byte, extra = "\9\9\1\0x" } })
  t.equal(plain(pg.load_npz(path)), { a = { "uint8", "{1}", { 7 } }, b = { "uint8", "{1}", { 7 } } })
end)

test("archives whose records contradict each other", function(t)
  local a, b = { name = "a.npy", data = byte }, { name = "b.npy", data = byte }
  local function member(changes)
    local m = { name = "a.npy", data = byte }
    for key, value in pairs(changes) do m[key] = value end
    return m
  end
  refused(t, { member { local_name = "c.npy" } }, nil, "named 'c%.npy' where it begins")
  refused(t, { a, { name = "b.npy", data = byte, at = 0 } }, nil, "named 'a%.npy' where it begins")
  refused(t, { a, { name = "a.npy", data = byte, at = 0 } }, nil, "overlap")
  refused(t, { a, b }, { count = 1 }, "hold 1 members, it lists 2")
  refused(t, { a, b }, { count = 3 }, "too short")
  refused(t, { a, member {} }, nil, "two tensors named 'a'")
  refused(t, { a, b }, { behind = "x" }, "no end record")
  refused(t, { a, { name = "readme.txt", data = "hello" } }, nil, "'readme%.txt' is no array", "not_supported")
  refused(t, { member { size = 2 ^ 31 } }, nil, "impossible size")
  refused(t, { member { packed = 2 ^ 31, size = 2 ^ 31 } }, nil, "behind the end")
end)

test("archives that say more than they hold take no memory for it", function(t)
  local shape, size = "(67108864,)", 2 ^ 26
  local header = zip.npy(shape, "")
  -- One block of deflate, stored: the header and no more. The directory says 64 MiB.
  local function block(text) return "\1" .. zip.little(#text, 2) .. zip.little(65535 - #text, 2) .. text end
  local packed = block(header) .. ("\0"):rep(70000)
  local grown = refused(t, { { name = "a.npy", data = packed, method = 8, size = #header + size } }, nil,
                        "cannot be unpacked")
  t.ok(grown < 2 ^ 20, grown)
  -- The same bytes, as often as a directory may name them.
  local members = { { name = "a.npy", data = byte } }
  for i = 1, 2000 do members[i + 1] = { name = ("a%04d.npy"):format(i), data = byte, at = 0 } end
  t.ok(refused(t, members, nil, "named 'a%.npy'") < 2 ^ 20)
  -- What numpy asks of the host is checked against what is there.
  grown = refused(t, { { name = "a.npy", data = header .. "x" } }, nil, "1 bytes of data; the header asks for")
  t.ok(grown < 2 ^ 20, grown)
  os.execute("rm -rf '" .. folder .. "'")
end)
