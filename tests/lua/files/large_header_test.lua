-- SPDX-License-Identifier: Apache-2.0
-- Headers of .safetensors files as large as the format lets them be: many tensors open at once, and what a stranger
-- writes takes no more memory than the file and 64 MiB.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"
local little = require("zip").little

local folder = os.tmpname()
os.remove(folder)
require("perigee.native").make_folder(folder)
local path = folder .. "/a.safetensors"

-- A file whose header is `head`, `part(i)` for i = 1 .. until about `bytes`, and `tail`; where `hole` is given, zeros
-- up to that size, which take no time to write: nobody should come to them.
local function write(bytes, head, part, tail, hole)
  local parts, length, i = { head }, #head, 0
  while length < bytes do
    i = i + 1
    parts[i + 1] = part(i)
    length = length + #parts[i + 1]
  end
  parts[#parts + 1] = tail
  local file = assert(io.open(path, "wb"))
  file:write(little(math.max(length + #tail, hole or 0), 8))
  for _, text in ipairs(parts) do file:write(text) end
  if hole then
    file:seek("set", hole + 7)
    file:write("\0")
  end
  file:close()
end

-- Loads the file in a process of its own: what came of it, and by how many MiB the process grew.
local function load_apart(t)
  local script = process.file(([[
    local pg = require "perigee"
    local function most() return tonumber(io.open("/proc/self/status"):read("*a"):match("VmHWM:%%s*(%%d+)")) end
    local other = os.tmpname() .. ".safetensors"
    pg.save(other, { x = pg.ones { 2 } })
    pg.load(other)
    os.remove(other)
    local before = most()
    local ok, result = pcall(pg.load, %q)
    print(("grown %%d MiB"):format((most() - before) / 1024))
    print(ok and "loaded" or result.code .. ": " .. tostring(result))
  ]]):format(path))
  local text = process.run(("'%s' '%s'"):format(process.need_perigee(t), script))
  os.remove(script)
  return text, tonumber(text:match("grown (%d+) MiB"))
end

local BYTES = 90 * 2 ^ 20
local function empty(i) return ('"t%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},'):format(i) end
local hostile = {
  { "tensors", "{", empty, '"z":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', "more than 131072 tensors" },
  { "notes", '{"__metadata__":{', function(i) return ('"%d":"",'):format(i) end, '"x":""}}', "more than 65536 notes" },
  { "large notes", '{"__metadata__":{', function(i) return ('"%d":"%s",'):format(i, ("x"):rep(8 * 2 ^ 20 - 2)) end,
    '"x":""}}', "loaded" },
  { "one note", '{"__metadata__":{"x":"', function() return ("x"):rep(2 ^ 20) end, '"}}', "a text of more than" },
  { "large names", "{", function(i) return '"' .. i .. ("x"):rep(2 ^ 16) .. empty(i):sub(10) end, '"z":0}',
    "names of more than" },
  { "a dimension each", '{"x":{"dtype":"F32","shape":[', function() return ("1,"):rep(2 ^ 16) end, "1]}}",
    "more than 8 dimensions" },
  { "what no format names", '{"x":{"other":[', function() return ("0,"):rep(2 ^ 16) end, "1]}}", "dtype is missing" },
  { "one number", '{"x":', function() return ("9"):rep(2 ^ 16) end, "}", "a number of more than" },
  { "brackets", '{"x":{"y":', function() return ("["):rep(2 ^ 16) end, "}}", "nested too deeply" },
  { "blanks", "{", function() return (" "):rep(2 ^ 16) end, "}", "loaded" },
}

for _, case in ipairs(hostile) do
  test("a header of 90 MB: " .. case[1], function(t)
    local loads = case[5] == "loaded"
    write(loads and 80 * 2 ^ 20 or 24 * 2 ^ 20, case[2], case[3], case[4], not loads and BYTES or nil)
    local text, grown = load_apart(t)
    t.ok(text:find(case[5], 1, true), text)
    t.ok(text:find("loaded") or text:find("data_loss: ") or text:find("not_supported: "), text)
    t.ok(process.is_sanitized() or grown <= 90 + 64, text)
  end)
end

-- Processor time of writing and of reading so many tensors; of three runs the least.
local function times_of(t, count)
  local one, tensors, writing, reading = pg.ones { 1 }, {}, math.huge, math.huge
  for i = 1, count do tensors[("model.layers.%d.weight"):format(i)] = one end
  for _ = 1, 3 do
    local started = os.clock()
    pg.save(path, tensors)
    local written = os.clock()
    local back = pg.load(path)
    writing, reading = math.min(writing, written - started), math.min(reading, os.clock() - written)
    t.equal(back[("model.layers.%d.weight"):format(count)]:totable(), { 1 })
  end
  return writing, reading
end

test("ten times as many tensors are no hundred times the work", function(t)
  local few_written, few_read = times_of(t, 4000)
  local written, read = times_of(t, 40000)
  t.ok(written < 40 * few_written, ("written in %.3f s, a tenth in %.3f"):format(written, few_written))
  t.ok(read < 40 * few_read, ("read in %.3f s, a tenth in %.3f"):format(read, few_read))
end)

test("what could not be read is not written", function(t)
  local function refused(tensors, notes, pattern)
    os.remove(path)
    local err = t.raises(function() pg.save(path, tensors, { notes = notes }) end, pattern)
    t.equal({ err.code, (io.open(path)) }, { "not_supported" })
  end
  refused({ [("x"):rep(2 ^ 23)] = pg.ones { 1 } }, nil, "at most 8388608")
  refused({ [("x"):rep(2 ^ 25)] = pg.ones { 1 } }, nil, "names of 33554432 bytes")
  refused({ x = pg.ones { 1 } }, { a = ("\n"):rep(2 ^ 22) }, "a name or note of 8388610 bytes")
  os.execute("rm -rf '" .. folder .. "'")
end)
