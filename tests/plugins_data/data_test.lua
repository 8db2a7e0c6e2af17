-- SPDX-License-Identifier: Apache-2.0
-- Sources, transforms and codecs of plugins: the same elements whatever threads make them, resumed passes, mistakes.

local pg = require "perigee"
local data = pg.data
local NAME = os.tmpname()

local function write(ending, text)
  local file = assert(io.open(NAME .. ending, "wb"))
  file:write(text)
  file:close()
  return NAME .. ending
end

local function records(count)
  local list = {}
  for i = 0, count - 1 do list[#list + 1] = string.char(i % 10, i % 256, i * 7 % 256) end
  return write(".bin", table.concat(list))
end

local function lines(count)
  local list = {}
  for i = 1, count do list[i] = ("line %d\n"):format(i) end
  return write(".txt", table.concat(list))
end

-- The elements of a pass as plain values.
local function plain(v)
  if type(v) ~= "table" then return type(v) == "userdata" and v:totable() or pg.is_tensor(v) and v:totable() or v end
  local copy = {}
  for key, field in pairs(v) do copy[key] = plain(field) end
  return copy
end
local function all(ds, from)
  local list = {}
  for _, element in ds:each(from) do list[#list + 1] = plain(element) end
  return list
end

local function raises(t, code, text, fn)
  local e = t.raises(fn)
  t.ok(tostring(e):find(text, 1, true), text .. "\n" .. tostring(e))
  t.equal(e.code, code)
end

test("a source by position has its fields, and any element at any time", function(t)
  local ds = data.source("my_rows", { path = records(30), bytes = 2 })
  t.equal(#ds, 30)
  t.equal(plain(ds[8]), { x = { 7, 49 }, y = 7 })
  t.equal(ds[-1].x.dtype, "uint8")
  local elements = all(ds)
  t.equal(#elements, 30)
  t.equal(elements[20], { x = { 19, 133 }, y = 9 })
  t.equal(all(data.source { "my_rows", path = records(30), bytes = 2 }), elements)
  t.equal(all(data.source("my_rows", { path = write(".bin", ""), bytes = 2 })), {})
  local sums = {}
  for _, batch in data.source("my_rows", { path = records(30), bytes = 2 }):batch(8):each() do
    t.equal(batch.x.dtype, "uint8")
    sums[#sums + 1] = batch.y:sum():item()
  end
  t.equal(#sums, 4)
end)

test("a source in order ends where its file ends, and begins anew for each pass", function(t)
  local ds = data.source("my_lines", { path = lines(25), numbered = true })
  t.equal(ds.size, nil)
  for _ = 1, 2 do
    local elements = all(ds)
    t.equal(#elements, 25)
    t.equal(elements[25], { text = "line 25", line = 25 })
  end
  t.raises(function() return ds:at(1) end, "come one after the other")
  local kept = ds:filter(function(sample) return sample.line % 5 == 0 end)
  t.equal(#all(kept), 5)
  t.equal(#all(ds:repeated(3)), 75)
  t.equal(all(data.source("my_lines", { path = write(".txt", "") })), {})
end)

-- Pipelines over both, as many threads as given: 0 is none.
local function pipelines(threads)
  local function threaded(ds) return threads > 0 and ds:prefetch(3) or ds end
  local function noise(options)
    if threads > 0 then options.workers = threads end
    return options
  end
  local rows = data.source("my_rows", { path = NAME .. ".bin", bytes = 2 })
  local function add(sample) return { text = sample.text, x = pg.tensor({ #sample.text }, { dtype = "uint8" }) } end
  return {
    rows:shuffle(100):transform("my_noise", noise { by = 0.25 }):batch(7),
    threaded(data.source("my_lines", { path = NAME .. ".txt", numbered = true })),
    threaded(rows:transform("my_noise", noise {}):take(13)),
    rows:transform("my_noise", noise {}):transform("my_noise", noise { field = "z" }),
    -- Behind what the script's thread makes.
    data.source("my_lines", { path = NAME .. ".txt" }):map(add):transform("my_noise", noise { by = 1 }),
    data.source("my_lines", { path = NAME .. ".txt" }):map { add, workers = math.max(threads, 1) }
      :transform("my_noise", noise { by = 1 }),
  }
end

test("elements are the same with 0 to 4 threads, and where a pass goes on", function(t)
  records(60)
  lines(40)
  local expected
  for threads = 0, 4 do
    local list = pipelines(threads)
    local found = {}
    for k, ds in ipairs(list) do
      if k == 4 then
        raises(t, "invalid_argument", "there is no field 'z'; the sample has x, y", function() all(ds) end)
      else
        pg.manual_seed(11)
        ds:epoch(0)
        found[k] = { all(ds), all(ds) }
        t.equal(#found[k][1], #found[k][2])
        local iterator = ds:each()
        for _ = 1, 4 do iterator() end
        local state = iterator:state()
        iterator:close()
        local rest = all(ds, { from = state })
        ds:epoch(state.epoch - 1)
        local whole = all(ds)
        t.equal(#rest, #whole - 4)
        for i, element in ipairs(rest) do t.equal(element, whole[i + 4]) end
      end
    end
    expected = expected or found
    for k = 1, #list do t.equal(found[k], expected[k], ("pipeline %d with %d threads"):format(k, threads)) end
  end
  local noisy = expected[1]
  t.ok(pg.tensor(noisy[1][1].x):ne(pg.tensor(noisy[2][1].x)):any():item(), "epochs differ")
end)

test("a transform gives, replaces, drops and keeps fields", function(t)
  local ds = data.source "faulty_source"
  local first = plain(ds[2])
  t.equal(first, { x = { 1, 1 }, n = 2.5, b = false, s = "t1", empty = "", x2 = "replaced" })
  local function nested(sample)
    sample.deep = { 1, { pg.tensor { 4 } } }
    return sample
  end
  for _, under in ipairs { ds, ds:map(nested), ds:map { nested, workers = 2 } } do
    local element = all(under:transform("faulty_dropper", {}))[2]
    element.deep = nil
    t.equal(element, { x = { 1, 1 }, n = 2.5, b = false, empty = "", x2 = "replaced", was = 3.5 })
  end
  t.equal(all(ds:map(nested):transform "faulty_dropper")[1].deep, { 1, { { 4 } } })
  t.equal(plain(data.source("faulty_source", { fault = "empty" })[1]).x, {})
  t.equal(all(data.source("faulty_source", { fault = "nothing" }))[1], {})
end)

test("a source takes lists and tensors, and decodes by codecs of others", function(t)
  local pictures, paths = {}, {}
  for i, ending in ipairs { ".png", ".webp", ".ppm" } do
    pictures[i] = (pg.arange(2 * 3 * 3) * i):reshape(2, 3, 3):to "uint8"
    paths[i] = NAME .. ending
    pg.image.save(paths[i], pictures[i])
  end
  local targets = pg.arange(12):reshape(4, 3):transpose(1, 2) -- not dense, and copied once
  local ds = data.source("my_pictures", { files = paths, targets = targets })
  for i = 1, 3 do
    t.ok(ds[i].x:equal(pictures[i]))
    t.equal(ds[i].tags, { paths[i], "2 rows" })
    t.equal(ds[i].y:totable(), { i - 1, i + 2, i + 5, i + 8 })
  end
  for _, threads in ipairs { 0, 2 } do
    local batches = threads > 0 and ds:batch(2):prefetch(2) or ds:batch(2)
    local seen = 0
    for _, batch in batches:each() do
      for k = 1, batch.x:size(1) do
        t.ok(batch.x[k]:equal(pictures[seen + k]))
        t.equal(batch.tags[k][1], paths[seen + k])
      end
      seen = seen + batch.x:size(1)
    end
    t.equal(seen, 3)
  end
  t.equal(#data.source("my_pictures", { files = {} }), 0)
  t.equal(data.source("my_pictures", { files = paths })[1].y, nil)
  -- Through a map in Lua, a transform of another plugin, and a file.
  local function joined(pipeline)
    return pipeline:transform("faulty_joiner", { weights = pg.tensor { 2, 3 }, words = { "a", "b" } })
  end
  local kept = NAME .. ".cache"
  for _, form in ipairs { ds, ds:map(function(s) return s end), ds:prefetch(2), ds:cache(kept) } do
    local element = all(joined(form))[2]
    t.equal(element.joined, paths[2] .. " 2 rows a b 5")
    t.equal(element.tags, { "replaced" })
  end
  t.equal(all(ds:map(function(s)
    s.tags = {}
    return s
  end):transform("faulty_joiner"))[1].joined, " 0")
  os.remove(kept)
  -- What is damaged is named, with the source's line and the element.
  write(".webp", "damaged")
  local line = debug.getinfo(1, "l").currentline + 1
  local failing = data.source("my_pictures", { files = paths })
  raises(t, "data_loss", ("data_test.lua:%d, element 2: %s: "):format(line, paths[2]), function()
    all(failing:prefetch(2))
  end)
  for _, path in ipairs(paths) do os.remove(path) end
  raises(t, "not_found", paths[1] .. ": cannot open: No such file", function() return ds[1] end)
end)

test("slices of a tensor are its memory, and wrong ones are errors", function(t)
  local x = pg.arange(6):reshape(3, 2)
  local ds = data.source("faulty_slices", { tensors = { x = x, y = pg.arange(3) } })
  t.equal(plain(ds[2]), { x = { 2, 3 }, y = 1 })
  ds[2].x:fill_(7)
  t.equal(x:totable(), { { 0, 1 }, { 7, 7 }, { 4, 5 } })
  x:copy_(pg.arange(6):reshape(3, 2))
  local batch = all(ds:batch(2))[1]
  t.equal(batch, { x = { { 0, 1 }, { 2, 3 } }, y = { 0, 1 } })
  for fault, text in pairs {
    index = "'x' has 3 slices; there is none at 3", negative = "'x' has 3 slices; there is none at -1",
    foreign = "field 'x' is to be of no tensor among the options", name = "a field has no name",
    coded = "neither a path nor bytes are given", codec = "there is no codec 'nobody'",
    bytes = "they begin like nothing that a codec is there for", texts = "field 'x' is no list of texts",
  } do
    local e = t.raises(function()
      return data.source("faulty_slices", { tensors = { x = x, y = pg.arange(3) }, fault = fault })[1]
    end)
    t.ok(tostring(e):find(text, 1, true), fault .. ": " .. tostring(e))
  end
  local e = t.raises(function()
    return data.source("faulty_slices", { tensors = { x = pg.tensor(1), y = pg.tensor(2) } })[1]
  end)
  t.ok(tostring(e):find("'x' has no axes to slice", 1, true), tostring(e))
  raises(t, "internal", "it gathers 2 elements into a field 'x' that has another first axis", function()
    all(data.source("faulty_slices", { tensors = { x = x, y = pg.arange(3) }, fault = "gather" }):batch(2))
  end)
  local wrong = {
    ["tensors must be a table of tensors, got number 3"] = { tensors = 3 },
    ["tensors must be a table of tensors, got tensor int64 {3, 2}"] = { tensors = x },
    ["1 of tensors must be a tensor under a name"] = { tensors = { x } },
    ["x of tensors must be a tensor under a name, got number 1"] = { tensors = { x = 1 } },
    ['option "tensors" of faulty_slices is missing'] = {},
  }
  for text, options in pairs(wrong) do
    raises(t, "invalid_argument", text, function() data.source("faulty_slices", options) end)
  end
  wrong = {
    ["files must be a list of strings, got number 3"] = { files = 3 },
    ["entry 2 of files must be a string, got number 1"] = { files = { "a", 1 } },
    ["files must be a list, it has the key x"] = { files = { "a", x = 1 } },
    ["entry 1 of files has a byte 0 in it"] = { files = { "a\0" } },
    ["targets must be a tensor, got"] = { files = {}, targets = { 1 } },
    ["targets must have a row for each of 1 files"] = { files = { "a" }, targets = pg.arange(2) },
  }
  for text, options in pairs(wrong) do
    raises(t, "invalid_argument", text, function() data.source("my_pictures", options) end)
  end
end)

test("codecs serve pg.image, pg.load, pg.save and bytes", function(t)
  local picture = pg.arange(5 * 7 * 3):reshape(5, 7, 3):to "uint8"
  local path = NAME .. ".ppm"
  pg.image.save(path, picture)
  t.ok(pg.image.load(path):equal(picture))
  t.ok(pg.load(path).data:equal(picture))
  t.equal({ pg.image.sides(path) }, { 5, 7 })
  t.ok(pg.image.load { path, crop = { 1, 2, 3, 4 } }:equal(pg.image.crop(picture, 1, 2, 3, 4)))
  local resized = pg.image.resize(pg.image.crop(picture, 1, 2, 3, 4), 2)
  t.ok(pg.image.load { path, crop = { 1, 2, 3, 4 }, size = 2, draft = true }:equal(resized))
  t.ok(pg.image.load { path, channels = 1 }:equal(pg.image.load { data.encode(picture, "png"), channels = 1 }))
  local grey = picture:narrow(3, 1, 1):squeeze(3)
  local bytes = data.encode(grey, "ppm", { comment = "a word" })
  t.equal(bytes:sub(1, 12), "P5\n# a word\n")
  t.ok(data.decode(bytes, { codec = "ppm" }):squeeze(3):equal(grey))
  t.ok(data.decode(bytes, { codec = "ppm", top = 1, left = 3, height = 2 })
         :equal(pg.image.crop(grey:unsqueeze(3), 1, 3, 2, 4)))
  for _, name in ipairs { "png", "webp", "ppm" } do
    t.ok(data.decode(data.encode(picture, name), { codec = name }):equal(picture), name)
  end
  t.equal(data.decode(data.encode(picture, "jpeg", { quality = 40 }), { scale = 2 }).shape, { 3, 4, 3 })
  t.equal(data.decode("\1\2\3\4\5\6\7\8", { times = 2 }):totable(), { 2, 4, 6, 8, 10, 12, 14, 16 })
  -- A folder of them, which threads decode.
  os.execute(("mkdir -p %s.d/a %s.d/b"):format(NAME, NAME))
  for i, class in ipairs { "a", "b" } do
    pg.image.save(("%s.d/%s/%d.ppm"):format(NAME, class, i), picture)
    pg.image.save(("%s.d/%s/%d.png"):format(NAME, class, i), picture)
  end
  local ds = data.image_folder { NAME .. ".d", workers = 2 }
  t.equal(#ds, 4)
  for _, sample in ds:each() do t.ok(sample.x:equal(picture)) end
  os.execute(("rm -r %s.d"):format(NAME))
  os.remove(path)
end)

test("damaged files name the file and where", function(t)
  local whole = data.encode(pg.ones { 4, 5, 3, dtype = "uint8" }, "ppm")
  for length = 0, #whole - 1 do
    local path = write(".ppm", whole:sub(1, length))
    raises(t, "data_loss", path .. ": ", function() pg.image.load(path) end)
  end
  for text, header in pairs { ["a number is missing at byte 3"] = "P6\nx", ["is not inside of"] = false,
                              ["its largest value is 65535"] = "P6 3 4 65535 ",
                              ["a number is too large at byte 12"] = "P6 9999999999 3 255 ",
                              ["60000 x 60000 pixels are more than max_pixels"] = "P6 60000 60000 255 " } do
    if header then raises(t, "data_loss", text, function() data.decode(header, { codec = "ppm" }) end) end
  end
  raises(t, "invalid_argument", "is not inside of the picture", function()
    data.decode(whole, { codec = "ppm", top = 9 })
  end)
  local path = write(".bin", "1234567")
  raises(t, "data_loss", path .. ": its 7 bytes are no records of 3", function()
    data.source("my_rows", { path = path, bytes = 2 })
  end)
  records(9)
  local ds = data.source("my_rows", { path = path, bytes = 2 })
  write(".bin", "123")
  for _, threads in ipairs { false, true } do
    raises(t, "data_loss", "element 2: " .. path .. ": cannot read at byte 3", function()
      all(threads and ds:prefetch(2) or ds)
    end)
  end
  path = write(".txt", "one\ntw\0o\n")
  raises(t, "data_loss", path .. ": the line that begins at byte 4 is no text", function()
    all(data.source("my_lines", { path = path }):prefetch(2))
  end)
end)

test("mistakes are named, with what there is", function(t)
  local ds = data.source("my_rows", { path = records(9), bytes = 2 })
  local said = {
    ['data.source: there is no source "my_row"'] = function() data.source "my_row" end,
    ['did you mean "my_rows"?'] = function() data.source "my_row" end,
    ['there is no transform "noise"; there are faulty_dropper, faulty_joiner, my_noise'] = function()
      ds:transform "noise"
    end,
    ['there is no codec "pgn"; there are jpeg, png, ppm, strange, webp (did you mean "png"?)'] = function()
      data.encode(pg.ones { 2 }, "pgn")
    end,
    ["there is no file"] = function() pg.load "/nowhere/a.ppm" end,
    ["/nowhere/a.bin: No such file or directory"] = function() data.source("my_rows", { path = "/nowhere/a.bin" }) end,
  }
  for text, fn in pairs(said) do raises(t, "not_found", text, fn) end
  said = {
    ['my_rows has no option "pat"; it has path, bytes (did you mean "path"?)'] = function()
      data.source("my_rows", { pat = "a" })
    end,
    ['option "path" of my_rows is missing'] = function() data.source "my_rows" end,
    ["path must be a string, got number 3"] = function() data.source("my_rows", { path = 3 }) end,
    ["path has a byte 0 in it"] = function() data.source("my_rows", { path = "a\0b" }) end,
    ["bytes must be a whole number, got number 1.5"] = function()
      data.source("my_rows", { path = NAME, bytes = 1.5 })
    end,
    ["bytes must be 1 or more"] = function() data.source("my_rows", { path = NAME, bytes = 0 }) end,
    ["by must be 0 or more"] = function() ds:transform("my_noise", { by = -1 }) end,
    ["numbered must be true or false, got number 1"] = function()
      data.source("my_lines", { path = NAME, numbered = 1 })
    end,
    ['unknown option "scale"; known: max_pixels, top, left, height, width'] = function()
      data.decode("P5\n1 1\n255\na", { codec = "ppm", scale = 2 })
    end,
    ['option times: expected a whole number, got "x"'] = function()
      data.decode("\1\2\3\4\5\6\7\8", { times = "x" })
    end,
    ["workers must be a count of 1 or more"] = function() ds:transform("my_noise", { workers = 0 }) end,
    ["needs the name of a transform and a table of options, got a function"] = function() ds:transform(print) end,
    ["a PPM picture has no notes; got author"] = function()
      data.encode(pg.ones { 2, 2, dtype = "uint8" }, "ppm", { author = "me" })
    end,
    ["field 'x' must be uint8, got float32"] = function()
      all(data.source("faulty_source"):transform "my_noise")
    end,
    ["field 's' must be a tensor, got a string"] = function()
      all(data.source("faulty_source"):transform("my_noise", { field = "s" }):prefetch(2))
    end,
    ["there is no field 'y'; the sample has b, empty, n, s, x, x2"] = function()
      return data.source("faulty_source"):transform("my_noise", { field = "y" })[1]
    end,
    ["takes samples whose fields all have names"] = function()
      all(ds:map(function(sample) return sample.x end):transform "my_noise")
    end,
  }
  for text, fn in pairs(said) do raises(t, "invalid_argument", text, fn) end
  -- Where it was made, and which element.
  local line = debug.getinfo(1, "l").currentline + 1
  local failing = data.source("faulty_source"):transform("faulty_dropper", { fails_at = 2 })
  raises(t, "invalid_argument", ("data_test.lua:%d, element 3: this is the one"):format(line), function()
    all(failing:prefetch(2))
  end)
  raises(t, "not_found", "there is no field 'nobody' to drop", function()
    all(data.source("faulty_source"):transform("faulty_dropper", { drops = "nobody" }))
  end)
  raises(t, "not_supported", "no picture: a float32 tensor", function() pg.image.load "\1\2\3\4\5\6\7\8" end)
  raises(t, "not_supported", "strange files can only be read", function() data.encode(pg.ones { 2 }, "strange") end)
  raises(t, "data_loss", "the bytes begin like nothing", function() data.decode "hello" end)
end)

test("parts that break their promises are errors", function(t)
  for fault, text in pairs { count = "a count that there cannot be", unknown = "a count that there cannot be" } do
    raises(t, "internal", text, function() data.source("faulty_source", { fault = fault }) end)
  end
  for fault, text in pairs { name = "a field has no name", negative = "has a side of -1", drop = "nothing to drop" } do
    raises(t, "invalid_argument", text, function() all(data.source("faulty_source", { fault = fault })) end)
  end
  t.raises(function() all(data.source("faulty_source", { fault = "dtype" })) end)
  t.raises(function() all(data.source("faulty_source", { fault = "throws" })) end)
  raises(t, "invalid_argument", 'fault must be', function() data.source("faulty_source", { fault = "other" }) end)
  for _, threads in ipairs { 0, 2 } do
    raises(t, "data_loss", "ends behind 2 elements of 3", function()
      local ds = data.source "faulty_short"
      all(threads > 0 and ds:prefetch(threads) or ds)
    end)
  end
  t.equal(#all(data.source("faulty_short", { says = 2 })), 2)
  t.equal(#all(data.source("faulty_short", { says = 1 })), 1)
  t.equal(#all(data.source("faulty_short", { says = 0 })), 0)
  raises(t, "internal", "answers a shape that there cannot be", function() pg.image.sides "\1\2\3\4\5\6\7\8" end)
  for _, ending in ipairs { "", ".bin", ".txt", ".ppm" } do os.remove(NAME .. ending) end
end)
