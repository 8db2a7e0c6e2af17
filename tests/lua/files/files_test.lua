-- SPDX-License-Identifier: Apache-2.0
-- Files: what is written is read back, and damaged or hostile files are errors that say where and why.

local pg = require "perigee"
local nn, data = pg.nn, pg.data

local function temporary(extension, bytes)
  local path = os.tmpname()
  os.remove(path)
  path = path .. extension
  if bytes then
    local file = assert(io.open(path, "wb"))
    file:write(bytes)
    file:close()
  end
  return path
end

local function with_file(extension, bytes, fn)
  local path = temporary(extension, bytes)
  local ok, err = pcall(fn, path)
  os.remove(path)
  if not ok then error(err, 0) end
end

local function little_endian(n, count)
  local text = ""
  for _ = 1, count do
    text = text .. string.char(n % 256)
    n = math.floor(n / 256)
  end
  return text
end

local function safetensors(header, body, length)
  return little_endian(length or #header, 8) .. header .. (body or "")
end
local FLOATS = ("\0"):rep(8) -- two float32
local function entry(dtype, shape, first, last)
  return ('{"dtype":"%s","shape":%s,"data_offsets":[%s,%s]}'):format(dtype, shape, first, last)
end

test("safetensors keeps names, dtypes, shapes, values and notes", function(t)
  local tensors = {
    ["a.weight"] = pg.tensor { { 1, 2, 3 }, { 4, 5, 6.5 } },
    double = pg.tensor({ 1.5, -2 }, { dtype = "float64" }),
    long = pg.tensor({ 2 ^ 40, -1 }, { dtype = "int64" }),
    flags = pg.tensor { true, false, true },
    byte = pg.tensor({ 0, 255 }, { dtype = "uint8" }),
    half = pg.tensor({ 1, 0.5 }, { dtype = "float16" }),
    brain = pg.tensor({ 1, -3 }, { dtype = "bfloat16" }),
    scalar = pg.tensor(7),
    empty = pg.zeros { 0, 3 },
  }
  with_file(".safetensors", nil, function(path)
    pg.save(path, tensors, { notes = { origin = "a test" } })
    local back, note = pg.load(path)
    for name, x in pairs(tensors) do
      t.equal(back[name].dtype, x.dtype)
      t.ok(back[name].shape == x.shape, name)
      t.equal(back[name]:totable(), x:totable())
    end
    t.equal(note("origin"), "a test")
    t.equal(note("nothing"), nil)
  end)
end)

test("views are written as what they show", function(t)
  with_file(".safetensors", nil, function(path)
    local x = pg.arange(6):reshape(2, 3)
    pg.save(path, { x = x:transpose(1, 2) })
    t.equal(pg.load(path).x:totable(), { { 0, 3 }, { 1, 4 }, { 2, 5 } })
  end)
end)

test("a saved layer loads by name into a fresh one", function(t)
  local function build()
    return nn.Sequential { nn.Linear { 3, 4 }, nn.BatchNorm1d { 4 }, nn.ReLU {}, nn.Linear { 4, 2 } }
  end
  local model, x = build(), pg.randn { 5, 3 }
  model(x) -- running statistics move
  with_file(".safetensors", nil, function(path)
    pg.save(path, model)
    local copy, _, missing, unexpected = pg.load(path, build())
    t.equal({ missing, unexpected }, { {}, {} })
    local other = nn.Sequential { nn.Linear { 3, 4 }, nn.ReLU {}, nn.PReLU {} }
    _, _, missing, unexpected = pg.load(path, other, { strict = false })
    t.equal({ missing, #unexpected, unexpected[1] }, { { "2.weight" }, 6, "1.bias" })
    t.equal(copy:predict(x):totable(), model:predict(x):totable())
    local names = {}
    for name in pairs(pg.load(path)) do names[#names + 1] = name end
    table.sort(names)
    t.equal(names, { "0.bias", "0.weight", "1.bias", "1.running_mean", "1.running_var", "1.weight", "3.bias",
                     "3.weight" })
  end)
end)

test("a file's tensors go when they are in the layer", function(t)
  if t.device and t.device ~= "cpu" then t.skip("files are read on the processor") end
  local model, lazy = nn.Linear { 256, 256 }, nn.Linear { 256 }
  with_file(".safetensors", nil, function(path)
    pg.save(path, model, { notes = { origin = "a test" } })
    pg.memory.collect()
    local live = pg.memory.stats("cpu").live
    local _, note = pg.load(path, model)
    t.ok(pg.memory.stats("cpu").live - live < 1024, "while its notes are held")
    t.equal(note("origin"), "a test")
    pg.load(path, lazy)
    t.ok(lazy.weight:equal(model.weight) and lazy(pg.ones { 1, 256 }):equal(model(pg.ones { 1, 256 })))
  end)
end)

test("a class with a load_state of its own is loaded by it", function(t)
  local Net = nn.class "Net"
  function Net:init() self.w = nn.Parameter(pg.zeros { 2 }) end
  function Net:load_state(given, options)
    self.given = given
    return nn.Module.load_state(self, given, options)
  end
  with_file(".safetensors", nil, function(path)
    pg.save(path, { w = pg.ones { 2 } })
    local net = pg.load(path, Net())
    t.equal({ net.w:totable(), net.given.w:totable() }, { { 1, 1 }, { 1, 1 } })
    local index = path .. ".index.json"
    pg.json.save(index, { weight_map = { w = path:match("[^/]*$") } })
    net = pg.load(index, Net())
    os.remove(index)
    t.equal({ net.w:totable(), net.given.w:totable() }, { { 1, 1 }, { 1, 1 } })
  end)
end)

local good = entry("F32", "[2]", 0, 8)
local corrupt = {
  { "an empty file", "", "too few" },
  { "a length cut off", "\1\0\0", "too few" },
  { "a header longer than the file", safetensors("{}", "", 1000), "does not fit" },
  { "a header longer than any", little_endian(2 ^ 52, 8) .. "{}", "does not fit" },
  { "no JSON", safetensors("hello, world"), "expected a JSON object" },
  { "a list for an object", safetensors("[]"), "expected a JSON object" },
  { "JSON cut off", safetensors('{"x":' .. good, FLOATS), "not valid JSON" },
  { "something behind the JSON", safetensors('{"x":' .. good .. "} x", FLOATS), "not valid JSON" },
  { "bytes that are not UTF-8", safetensors('{"\255\254":' .. good .. "}", FLOATS), "not valid JSON" },
  { "a name twice", safetensors('{"x":' .. good .. ',"x":' .. good .. "}", FLOATS), "twice" },
  { "a key twice", safetensors('{"x":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', FLOATS),
    "twice" },
  { "deep nesting", safetensors('{"x":{"y":' .. ("["):rep(5000) .. ("]"):rep(5000) .. "}}"), "nested too deeply" },
  { "an entry that is no object", safetensors('{"x":3}'), "expected an object" },
  { "no dtype", safetensors('{"x":{"shape":[2],"data_offsets":[0,8]}}', FLOATS), "dtype is missing" },
  { "no shape", safetensors('{"x":{"dtype":"F32","data_offsets":[0,8]}}', FLOATS), "shape is missing" },
  { "no offsets", safetensors('{"x":{"dtype":"F32","shape":[2]}}', FLOATS), "data_offsets is missing" },
  { "an unknown dtype", safetensors('{"x":' .. entry("F99", "[2]", 0, 8) .. "}", FLOATS), 'unknown dtype "F99"' },
  { "a dtype that is a number", safetensors('{"x":{"dtype":3,"shape":[2],"data_offsets":[0,8]}}', FLOATS),
    "not a string" },
  { "a negative dimension", safetensors('{"x":' .. entry("F32", "[-2]", 0, 8) .. "}", FLOATS), "dimension" },
  { "a fractional dimension", safetensors('{"x":' .. entry("F32", "[2.0]", 0, 8) .. "}", FLOATS), "dimension" },
  { "a shape that is no list", safetensors('{"x":' .. entry("F32", "2", 0, 8) .. "}", FLOATS), "shape is not a list" },
  { "a shape that overflows", safetensors('{"x":' .. entry("F32", "[4294967296,4294967296]", 0, 8) .. "}", FLOATS),
    "overflows" },
  { "a dimension beyond 64 bits", safetensors('{"x":' .. entry("F32", "[99999999999999999999]", 0, 8) .. "}", FLOATS),
    "dimension" },
  { "a number beyond all", safetensors('{"x":' .. entry("F32", "[1e999]", 0, 8) .. "}", FLOATS), "too large" },
  { "one offset", safetensors('{"x":{"dtype":"F32","shape":[2],"data_offsets":[0]}}', FLOATS), "not a pair" },
  { "a negative offset", safetensors('{"x":' .. entry("F32", "[2]", -8, 0) .. "}", FLOATS), "not a pair" },
  { "offsets reversed", safetensors('{"x":' .. entry("F32", "[2]", 8, 0) .. "}", FLOATS), "end before they begin" },
  { "offsets outside", safetensors('{"x":' .. entry("F32", "[4]", 0, 16) .. "}", FLOATS), "reach byte 16 of 8" },
  { "a size that does not fit", safetensors('{"x":' .. entry("F32", "[1]", 0, 8) .. "}", FLOATS), "need 4 bytes" },
  { "an overlap", safetensors('{"x":' .. good .. ',"y":' .. entry("F32", "[1]", 4, 8) .. "}", FLOATS), "overlap" },
  { "a hole", safetensors('{"x":' .. entry("F32", "[1]", 4, 8) .. "}", FLOATS), "hole" },
  { "bytes left over", safetensors('{"x":' .. entry("F32", "[1]", 0, 4) .. "}", FLOATS), "end at byte 4 of 8" },
  { "metadata that is no object", safetensors('{"__metadata__":[],"x":' .. good .. "}", FLOATS), "__metadata__" },
  { "metadata that is no string", safetensors('{"__metadata__":{"a":1},"x":' .. good .. "}", FLOATS), "__metadata__" },
  { "a bool that is 2", safetensors('{"x":' .. entry("BOOL", "[2]", 0, 2) .. "}", "\1\2"), "BOOL is 2" },
}

for _, case in ipairs(corrupt) do
  test("corrupt safetensors: " .. case[1], function(t)
    with_file(".safetensors", case[2], function(path)
      local err = t.raises(function() pg.load(path) end)
      t.equal(err.code, "data_loss")
      t.ok(tostring(err):find(case[3], 1, true), tostring(err))
      t.ok(tostring(err):find(path, 1, true), "the message names the file")
    end)
  end)
end

test("files that are whole but not for us", function(t)
  local cases = {
    { safetensors('{"x":' .. entry("U64", "[1]", 0, 8) .. "}", FLOATS), "not_supported", "U64" },
    { safetensors('{"x":' .. entry("U8", "[1,1,1,1,1,1,1,1,8]", 0, 8) .. "}", FLOATS), "not_supported", "dimensions" },
  }
  for _, case in ipairs(cases) do
    with_file(".safetensors", case[1], function(path)
      local err = t.raises(function() pg.load(path) end, case[3])
      t.equal(err.code, case[2])
    end)
  end
  t.equal(t.raises(function() pg.load("/nowhere/at/all.safetensors") end).code, "not_found")
  t.raises(function() pg.load("/") end)
  t.raises(function() pg.load("model.unheard") end, "unheard")
end)

test("a header padded with spaces is fine", function(t)
  with_file(".safetensors", safetensors('{"x":' .. good .. "}      ", FLOATS), function(path)
    t.equal(pg.load(path).x:totable(), { 0, 0 })
  end)
end)

test("load hands options to the format", function(t)
  with_file(".csv", "a;b\n1;2\n3;4\n", function(path)
    t.equal(pg.load(path, { skip = 1, delimiter = ";" }).data:totable(), { { 1, 2 }, { 3, 4 } })
    t.equal(pg.load(path, nil, { skip = 2, delimiter = ";" }).data:totable(), { { 3, 4 } })
    t.raises(function() pg.load(path, { skipp = 1 }) end, "skipp")
    t.raises(function() pg.load(path, nil, 7) end, "load: options must be a table, got number 7")
    t.raises(function() pg.load(path, 7) end, "the second argument must be a layer, got number 7")
  end)
  with_file(".safetensors", nil, function(path)
    pg.save(path, { x = pg.ones { 2 } })
    t.equal(t.raises(function() pg.load(path, nil, { strict = false }) end, "strict").code, "invalid_argument")
  end)
end)

test("csv: numbers, headers, delimiters, dtypes", function(t)
  with_file(".csv", "a,b\n1,2.5\r\n-3, +4e1\n\n", function(path)
    local x = data.csv { path, skip = 1 }
    t.equal(x.dtype, "float32")
    t.equal(x:totable(), { { 1, 2.5 }, { -3, 40 } })
  end)
  with_file(".tsv", "1\t2\n3\t9007199254740993", function(path)
    local x = data.csv { path, dtype = "int64" }
    t.equal(x.dtype, "int64")
    t.equal(tostring(x[2][2]:item_int64()), "9007199254740993LL")
  end)
  with_file(".csv", "1;2", function(path)
    t.equal(data.csv { path, delimiter = ";", dtype = "float64" }:totable(), { { 1, 2 } })
  end)
end)

test("csv: errors name line and column", function(t)
  local cases = {
    { "1,2\n3,x\n", 'line 2, column 2: "x" is not a number' },
    { "1,2\n3,\n", "line 2, column 2" },
    { "1,2\n3\n", "line 2: 1 columns, expected 2" },
    { "1,1e999\n", "line 1, column 2" },
    { "1,1" .. ("0"):rep(400) .. "\n", "line 1, column 2" },
    { "1,-0.1e400\n", "line 1, column 2" },
    { "1,1" .. ("0"):rep(400) .. "e-2\n", "line 1, column 2" },
    { "1,1e99999999999999\n", "line 1, column 2" },
  }
  for _, case in ipairs(cases) do
    with_file(".csv", case[1], function(path)
      local err = t.raises(function() data.csv(path) end)
      t.equal(err.code, "data_loss")
      t.ok(tostring(err):find(case[2], 1, true), tostring(err))
    end)
  end
  with_file(".csv.gz", "\31\139\8\0\0\0\0\0\0\3\75\1\2\3", function(path)
    local err = t.raises(function() data.csv(path) end, ": data.csv: ")
    t.equal({ err.code, err:find("load:") }, { "data_loss" })
  end)
  with_file(".csv", "1\n", function(path)
    t.raises(function() data.csv { path, skp = 1 } end, "skip")
  end)
end)

test("csv: compressed files are whole or an error", function(t)
  -- printf '1,2.5\n3,4\n' | gzip -n
  local packed = ("1f8b080000000000000333d431d233e532d631e102009b9a25ce0a000000"):gsub("..", function(digits)
    return string.char(tonumber(digits, 16))
  end)
  with_file(".csv.gz", packed, function(path) t.equal(data.csv(path):totable(), { { 1, 2.5 }, { 3, 4 } }) end)
  for length = 0, #packed - 1 do
    with_file(".csv.gz", packed:sub(1, length), function(path)
      t.equal(t.raises(function() data.csv(path) end).code, "data_loss", ("%d bytes"):format(length))
    end)
  end
  with_file(".csv.gz", "1,2\n", function(path) t.raises(function() data.csv(path) end, "not gzip data") end)
end)

test("what save refuses", function(t)
  t.raises(function() pg.save("x.safetensors", 3) end, "layer or a table")
  t.raises(function() pg.save("x.safetensors", { a = 3 }) end, "must be a tensor")
  t.raises(function() pg.save("x.safetensors", nn.Linear { 3 }) end, "first input")
  t.raises(function() pg.save("/nowhere/at/all.safetensors", { a = pg.ones { 1 } }) end, "nowhere")
end)

test("random damage is an error or harmless, never a crash", function(t)
  local path = temporary(".safetensors")
  pg.save(path, { a = pg.ones { 3, 2 }, b = pg.arange(4), c = pg.tensor { true, false } }, { notes = { k = "v" } })
  local file = assert(io.open(path, "rb"))
  local bytes = file:read("*a")
  file:close()
  os.remove(path)
  local state = 12345
  local function draw(n)
    state = (state * 1103515245 + 12345) % 2 ^ 31
    return math.floor(state / 2 ^ 31 * n)
  end
  for _ = 1, 400 do
    local at, count = draw(#bytes) + 1, draw(4)
    local damaged = bytes:sub(1, at - 1) .. string.char(draw(256)) .. bytes:sub(at + count)
    with_file(".safetensors", damaged, function(name)
      local ok, err = pcall(pg.load, name)
      t.ok(ok or err.code == "data_loss" or err.code == "not_supported", tostring(err))
    end)
  end
end)
