-- SPDX-License-Identifier: Apache-2.0
-- data.records of archives and of compressed files: those that tensorflow and webdataset wrote
-- (records/make_packed.py), what we write, and damaged ones.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"
local native = require "perigee.native"
local framing = require "perigee.events.records"
local tar = require "perigee.data.records.tar"
local data = pg.data

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local folder = here .. "/records/"
local EXAMPLE = { id = "int64", name = "bytes", weights = { "float32", shape = { 2 } } }
local SHARD = { png = { "image", channels = 3 }, cls = "int64", json = "json", ["w.npy"] = "npy", txt = "bytes" }

local whole, write = process.read, process.write

-- With the path of a file that is not there yet, and is gone behind.
local function with_path(ending, fn)
  local name = os.tmpname()
  local path = name .. ending
  local ok, problem = pcall(fn, path)
  os.remove(path)
  os.remove(name)
  if not ok then error(problem, 0) end
end

local function all(ds)
  local list = {}
  for i, s in ds:each() do list[i] = s end
  return list
end

test("compressed TFRecord files that tensorflow wrote, whatever their names", function(t)
  for _, kind in ipairs { "gzip", "zlib" } do
    local ds = data.records { folder .. kind .. ".tfrecord", spec = EXAMPLE }
    t.equal(ds.size, nil)
    for _ = 1, 2 do -- passes
      local list = all(ds)
      t.equal(#list, 4)
      for i, s in ipairs(list) do
        t.equal({ s.id:item(), s.name, s.weights:totable() }, { i - 1, "number " .. i - 1, { i - 0.5, 1 - i } })
      end
    end
    local both = data.records { folder .. kind .. ".tfrecord", folder .. "examples.tfrecord" }
    t.equal(#all(both), 9)
  end
end)

test("archives that webdataset wrote: by position, compressed ones in order", function(t)
  local ds = data.records { folder .. "shard.tar", spec = SHARD }
  t.equal(#ds, 3)
  local function check(list)
    t.equal(#list, 3)
    for i, s in ipairs(list) do
      t.equal({ s.__key__, s.cls:item(), s.txt, s.json.name, s.json.list[1], s["w.npy"]:totable() },
              { ("deep/%s-%d"):format(i == 3 and ("long"):rep(30) or "short", i - 1), i - 1, "text " .. i - 1,
                "number " .. i - 1, i - 1, { i - 1, 0.5 } })
      t.equal({ s.png.dtype, s.png.shape, s.png[1][1][1]:item() }, { "uint8", { 4, 6, 3 }, 50 * (i - 1) })
    end
  end
  check { ds[1], ds[2], ds[3] }
  check(all(data.records { folder .. "shard.tar.gz", spec = SHARD }))
  local raw = data.records(folder .. "shard.tar")[2]
  t.equal({ raw.cls, raw.txt, raw.png:sub(2, 4) }, { "1", "text 1", "PNG" })
  local other = data.records { folder .. "shard.tar", spec = { x = { "image", from = "jpg;png", size = 2 },
                                                               no = { "int64", default = -1 } } }[2]
  t.equal({ other.x.shape, other.x[1][1][1]:item(), other.no, other.cls }, { { 2, 2, 3 }, 50, -1, nil })
end)

local SAMPLES = {
  { __key__ = "a/one", txt = "", cls = 7, ["x.npy"] = pg.tensor { { 1, 2 }, { 3, 4.5 } },
    png = pg.full({ 2, 3, 3 }, 9, { dtype = "uint8" }), json = { list = { 1, 2 } } },
  { txt = ("long "):rep(1000), cls = pg.tensor({ -3 }, { dtype = "int64" }), ["x.npy"] = pg.zeros { 0 },
    png = pg.zeros { 1, 1, 3, dtype = "uint8" }, json = {} },
  { __key__ = ("deep/"):rep(40) .. "three", txt = "b\0c", cls = 0, ["x.npy"] = pg.tensor(1):double(),
    png = pg.ones { 1, 2, 3, dtype = "uint8" }, json = { t = true } } }

test("archives that are written are read, compressed or not", function(t)
  for _, ending in ipairs { ".tar", ".tar.gz", ".tgz" } do
    with_path(ending, function(path)
      t.equal(data.write_records(path, SAMPLES), { path })
      t.equal(whole(path):sub(1, 2) == "\31\139", ending ~= ".tar")
      local spec = { txt = "bytes", cls = "int64", ["x.npy"] = "npy", png = "image", json = "json" }
      local list = all(data.records { path, spec = spec })
      t.equal(#list, 3)
      for i, s in ipairs(list) do
        local from = SAMPLES[i]
        t.equal({ s.__key__, s.txt }, { from.__key__ or "00000001", from.txt })
        t.equal(s.cls:item(), type(from.cls) == "number" and from.cls or from.cls:item())
        t.ok(s["x.npy"]:equal(from["x.npy"]) and s.png:equal(from.png))
      end
      t.equal({ list[1].json.list[2], list[3].json.t }, { 2, true })
    end)
  end
end)

test("compressed records and shards by a pattern", function(t)
  with_path("", function(path)
    local set = data.range(5):map(function(s) return { v = pg.tensor({ s.value }, { dtype = "int64" }) } end)
    local files = data.write_records { path .. "-{0..3}.gz", set, per_file = 2 }
    t.equal(#files, 3)
    for _, file in ipairs(files) do t.equal(whole(file):sub(1, 2), "\31\139") end
    local seen = {}
    for i, b in data.records { path .. "-{0..2}.gz", spec = { v = "int64" } }:batch(2):each() do
      seen[i] = b.v:totable()
    end
    t.equal(seen, { { 0, 1 }, { 2, 3 }, { 4 } })
    local named = data.write_records { path .. "-x", { "one" }, compression = "gzip" }
    t.equal(all(data.records(named[1]))[1].data, "one")
    local tars = data.write_records { path .. "-{0..9}.tar", { { txt = "a" }, { txt = "b" } }, per_file = 1 }
    t.equal(data.records(tars)[2].txt, "b")
    for _, list in ipairs { files, named, tars } do
      for _, file in ipairs(list) do os.remove(file) end
    end
  end)
end)

test("samples of shards are the same whatever threads read them, in batches and where passes go on", function(t)
  local rows = {}
  for i = 1, 40 do
    rows[i] = { png = pg.full({ 3, 4, 3 }, i, { dtype = "uint8" }), cls = i, txt = ("t"):rep(i), json = { n = { i } } }
  end
  for _, ending in ipairs { ".tar", ".tgz" } do
    with_path(ending, function(path)
      data.write_records(path, rows)
      for _, spec in ipairs { { png = "image", cls = "int64", txt = "bytes" },
                              { png = { "image", channels = 1, size = 2 }, cls = "int64", json = "json" } } do
        local expected
        for threads = 0, 3 do
          local ds = data.records { path, spec = spec, workers = threads > 0 and threads or nil }
          ds = ds:shuffle { 8, seed = 2 }
          local seen = {}
          for i, s in ds:each() do
            local n = s.cls:item()
            seen[i] = n
            t.equal({ s.png[1][1][1]:item(), s.txt or rows[n].txt, s.json and s.json.n[1] or n, s.__place__ },
                    { n, rows[n].txt, n })
          end
          t.equal(#seen, 40)
          expected = expected or seen
          t.equal(seen, expected)
          local pass = ds:each()
          for _ = 1, 11 do pass() end
          local state, rest = pass:state(), {}
          pass:close()
          for i, s in ds:each { from = state } do rest[i - 11] = s.cls:item() end
          ds:epoch(state.epoch - 1)
          local once = {}
          for i, s in ds:each() do once[i] = s.cls:item() end
          t.equal(#once, 40)
          for i = 1, 29 do t.equal(rest[i], once[i + 11]) end
          for _, b in ds:batch(16):prefetch(2):each() do t.equal(b.png:dim(), 4) end
        end
      end
    end)
  end
end)

test("skipping: samples, JSON and whole files that are damaged, plain and compressed", function(t)
  local good, bad = { json = "[1]", txt = "good" }, { json = "[1", txt = "bad" }
  for _, ending in ipairs { ".tar", ".tar.gz" } do
    with_path(ending, function(path)
      data.write_records(path, { good, bad, good, bad })
      local spec = { json = "json", txt = "bytes" }
      local e = t.raises(function() all(data.records { path, spec = spec }) end)
      local place = path .. ": sample 2 (00000001) at byte 2048: field \"json\": "
      t.ok(e.code == "data_loss" and e.message:find(place, 1, true), e.message)
      for _, workers in ipairs { 0, 2 } do
        local ds, skipped = data.records { path, spec = spec, on_error = "skip",
                                           workers = workers > 0 and workers or nil }
        t.equal({ #all(ds), #skipped }, { 2, 2 })
        t.equal(skipped[2]:find(path .. ": sample 4 (00000003) at byte 6144: field \"json\": ", 1, true), 1)
        for _, s in ds:each() do t.equal({ s.txt, s.json[1] }, { "good", 1 }) end
      end
    end)
  end
  with_path(".gz", function(path) -- damage in a compressed file of frames
    local frames = framing.frame "one" .. framing.frame "two" .. framing.frame "three"
    local function packed(text)
      native.write(path, { "data" }, { native.host.from_bytes("test", text, native.dtypes.by_name.uint8, { #text }) })
    end
    packed(frames:sub(1, 19 + 13) .. "T" .. frames:sub(19 + 15) .. "torn")
    local ds, skipped = data.records { path, folder .. "gzip.tfrecord", on_error = "skip" }
    t.equal({ ds.size, #skipped }, { nil, 2 })
    t.ok(skipped[1]:find(path .. ": record 4 at byte 59: the file ends inside of it", 1, true), skipped[1])
    t.ok(skipped[2]:find(path .. ": record 2 at byte 19: wrong checksum of its content", 1, true), skipped[2])
    local seen = all(ds)
    t.equal({ seen[1].data, seen[2].data, #seen }, { "one", "three", 6 })
  end)
end)

test("what cannot be in an archive is refused, and so is a mixture", function(t)
  local function refused(sample, text)
    with_path(".tar", function(path)
      local e = t.raises(function() data.write_records(path, { sample }) end)
      t.ok(tostring(e):find(text, 1, true), tostring(e))
      t.equal(io.open(path), nil)
    end)
  end
  refused("text", "sample 1 must be a table of fields for an archive")
  refused({}, "sample 1 has no fields")
  refused({ __key__ = "a.b", txt = "" }, "__key__ of sample 1 must be a name without dots")
  refused({ Txt = "" }, "names of files' endings in small letters")
  refused({ txt = pg.ones { 2 } }, "txt of sample 1 cannot be a file")
  refused({ txt = {} }, "txt of sample 1 cannot be a file")
  t.raises(function() data.records { folder .. "shard.tar", folder .. "gzip.tfrecord" } end, "are of different kinds")
  local function mistaken(spec, text)
    t.raises(function() data.records { folder .. "shard.tar", spec = spec } end, text)
  end
  mistaken({ x = "float32" }, "spec.x must be bytes, int64, json, npy or image")
  mistaken({ x = { "int64", shape = {} } }, 'spec.x has an unknown option "shape"')
  mistaken({ x = { "bytes", from = 3 } }, "spec.x: from must be a string")
  local e = t.raises(function() return data.records { folder .. "shard.tar", spec = { no = "bytes" } }[2] end)
  t.ok(e.code == "data_loss" and e.message:find("shard.tar: sample 2 (deep/short-1) at byte", 1, true), e.message)
  e = t.raises(function() return data.records { folder .. "shard.tar", spec = { txt = "int64" } }[1] end)
  t.ok(e.message:find('field "txt": no whole number', 1, true), e.message)
end)

test("damaged archives: the place is named, or what is whole is kept", function(t)
  local sound = tar.member("a.txt", "first") .. tar.member("b.txt", "second") .. tar.member("c.txt", ("x"):rep(600)) ..
                tar.FINISH
  for length = 0, #sound, 128 do
    with_path(".tar", function(path)
      write(path, sound:sub(1, length))
      local kept, skipped = data.records { path, on_error = "skip" }
      local found, lost = 0, 0 -- of headers at these bytes, whose data end there
      for _, member in ipairs { { 0, 512 + 5 }, { 1024, 1536 + 6 }, { 2048, 2560 + 600 } } do
        if length >= member[2] then found = found + 1 elseif length > member[1] then lost = 1 end
      end
      if length > 3584 and length < 4096 then lost = 1 end -- in what the archive ends with
      found = math.max(found - lost, 0) -- the sample before may lack fields
      t.equal({ length, #kept, #skipped }, { length, found, lost })
      for i, s in ipairs(all(kept)) do t.equal(s.txt, i == 1 and "first" or i == 2 and "second" or ("x"):rep(600)) end
    end)
  end
  with_path(".tar", function(path)
    write(path, sound:sub(1, 1024 + 20) .. "y" .. sound:sub(1024 + 22))
    local e = t.raises(function() data.records(path) end)
    t.ok(e.code == "data_loss" and e.message:find("at byte 1024: wrong checksum of its header", 1, true), e.message)
  end)
  local packed = whole(folder .. "shard.tar.gz")
  with_path(".tar.gz", function(path)
    write(path, packed:sub(1, -20))
    local e = t.raises(function() all(data.records(path)) end)
    t.ok(e.code == "data_loss" and e.message:find("inside its compressed data", 1, true), e.message)
    local ds, skipped = data.records { path, folder .. "shard.tar.gz", on_error = "skip" }
    t.equal({ #all(ds), #skipped }, { 3, 1 })
    write(path, packed:sub(1, 200) .. "\255\255\255" .. packed:sub(204))
    t.equal(t.raises(function() all(data.records(path)) end).code, "data_loss")
  end)
end)

test("mutated archives: samples, or an error with a code", function(t)
  local sound = whole(folder .. "shard.tar"):gsub("%z+$", "")
  local seed = 7
  local function random(n)
    seed = (seed * 16807) % 2147483647
    return seed % n
  end
  local good, bad = 0, 0
  with_path(".tar", function(path)
    for _ = 1, 300 do
      local text = sound
      for _ = 0, random(3) do
        local at = random(#text) + 1
        if random(2) == 0 then at = at - (at - 1) % 512 + random(300) end -- of a header
        text = text:sub(1, at - 1) .. string.char(random(256)) .. text:sub(at + 1)
      end
      write(path, text)
      local ok, e = pcall(function() return all(data.records { path, spec = SHARD }) end)
      if ok then good = good + 1 else
        bad = bad + 1
        t.equal(e.code, "data_loss")
      end
    end
  end)
  t.ok(good > 0 and bad > 0)
end)
