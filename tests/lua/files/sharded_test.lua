-- SPDX-License-Identifier: Apache-2.0
-- Checkpoints in several files: their index, what each file lacks, and how much memory loading takes.

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local folder = os.tmpname()
os.remove(folder)
native.make_folder(folder)
local PATH = folder .. "/model.safetensors.index.json"

local function shard(i, count) return ("model-%05d-of-%05d.safetensors"):format(i, count) end

-- Writes tensors as shards of one each, in the order of their names, and an index. Answers the index's value.
local function write(tensors, metadata)
  local names, map = {}, {}
  for name in pairs(tensors) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    map[name] = shard(i, #names)
    local content = { [name] = tensors[name], extra = pg.ones { 1 } }
    pg.save(folder .. "/" .. map[name], content, { notes = { format = "pt" } })
  end
  local index = { metadata = metadata, weight_map = map }
  pg.json.save(PATH, index)
  return index
end

local function build() return nn.Sequential { nn.Linear { 2, 3 }, nn.Linear { 3, 1 } } end

test("an index gives the tensors of all its files", function(t)
  local state = build():state()
  write(state, { total_size = 52, note = "x" })
  local tensors, note = pg.load(PATH)
  local count = 0
  for name, x in pairs(tensors) do
    t.equal(x:totable(), state[name]:totable())
    count = count + 1
  end
  t.equal(count, 4) -- not `extra`, which the index does not name
  t.equal({ note("total_size"), note("note"), note("format"), note("other") }, { "52", "x", "pt" })
  t.raises(function() pg.load(PATH, { skip = 1 }) end, "skip")
end)

test("an index loads into a layer", function(t)
  local from, into = build(), build()
  write(from:state())
  local layer, note, missing, unexpected = pg.load(PATH, into)
  t.ok(layer == into)
  t.equal({ note("format"), missing, unexpected }, { "pt", {}, {} })
  t.equal(into(pg.ones { 1, 2 }):totable(), from(pg.ones { 1, 2 }):totable())
  local lazy = nn.Sequential { nn.Linear { 3 }, nn.Linear { 1 } }
  pg.load(PATH, lazy)
  t.equal(lazy(pg.ones { 1, 2 }):totable(), from(pg.ones { 1, 2 }):totable())
  pg.load(PATH, nn.ModuleDict { model = into }, { add_prefix = "model." })
  t.raises(function() pg.load(PATH, nn.ModuleDict { model = into }) end, 'add_prefix="model."')
  local half = nn.Sequential { nn.Linear { 2, 3 } }
  t.raises(function() pg.load(PATH, half) end, "Unexpected: 1.bias, 1.weight")
  missing, unexpected = select(3, pg.load(PATH, half, { strict = false }))
  t.equal({ missing, unexpected }, { {}, { "1.bias", "1.weight" } })
  t.equal(half[1].weight, from[1].weight)
  t.raises(function() pg.load(PATH, build(), { strip = "x" }) end, 'unknown option "strip"')
end)

test("tied parameters in several files", function(t)
  local Tied = nn.class "Tied"
  function Tied:init()
    self.a, self.b = nn.Linear { 2, 2, bias = false }, nn.Linear { 2, 2, bias = false }
    self.b.weight = self.a.weight
  end
  local x = pg.tensor { { 1, 2 }, { 3, 4 } }
  write { ["b.weight"] = x }
  t.equal(pg.load(PATH, Tied()).a.weight, x)
  write { ["a.weight"] = x, ["b.weight"] = x }
  t.equal(pg.load(PATH, Tied()).a.weight, x)
  write { ["a.weight"] = x, ["b.weight"] = x + 1 }
  t.raises(function() pg.load(PATH, Tied()) end, "a.weight and b.weight are one tensor here but differ")
end)

test("loading into a layer takes the memory of one file", function(t)
  if t.device and t.device ~= "cpu" then t.skip("files are read on the processor") end
  local list, tensors = {}, {}
  for i = 1, 8 do
    list[i] = nn.Linear { 512, 512, bias = false } -- 1 MiB
    tensors[(i - 1) .. ".weight"] = pg.full({ 512, 512 }, i)
  end
  local model = nn.Sequential(list)
  write(tensors)
  for i = 1, 8 do tensors[(i - 1) .. ".weight"]:free() end
  pg.memory.collect()
  local live = pg.memory.stats("cpu").live
  local most, copy = 0, require("perigee.nn.loading").copy
  require("perigee.nn.loading").copy = function(...)
    most = math.max(most, pg.memory.stats("cpu").live - live)
    return copy(...)
  end
  local ok, err = pcall(pg.load, PATH, model)
  require("perigee.nn.loading").copy = copy
  t.ok(ok, tostring(err))
  local mib = 2 ^ 20
  t.ok(most >= mib and most < 1.1 * mib, ("%.2f MiB while one file was copied"):format(most / mib))
  t.ok(pg.memory.stats("cpu").live - live < 0.1 * mib, "nothing stays")
  t.equal(model[8].weight[1][1]:item(), 8)
end)

local function raises(t, code, text, ...)
  local e = t.raises(function(...) pg.load(PATH, ...) end, nil, ...)
  t.ok(e.message:find(text, 1, true), e.message)
  t.ok(e.message:find(PATH, 1, true), "the message names the file")
  t.equal(e.code, code)
end

test("damaged and hostile indices are errors that name what is wrong", function(t)
  write(build():state())
  local function with(map) pg.json.save(PATH, { weight_map = map }) end
  os.remove(folder .. "/" .. shard(2, 4))
  raises(t, "not_found", "1 of its 4 files are not there: model-00002-of-00004.safetensors")
  local index = write(build():state())
  index.weight_map["0.extra"] = shard(3, 4)
  pg.json.save(PATH, index)
  raises(t, "data_loss", '"0.extra" is to be in model-00003-of-00004.safetensors, which lacks it')
  for _, file in ipairs { "../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..", ".", "",
                          "a\\b.safetensors", "a\0.safetensors" } do
    with { x = file }
    raises(t, "data_loss", "which is no name of a file beside it")
  end
  with { x = 3 }
  raises(t, "data_loss", 'weight_map has number 3 as the file of "x", not a text')
  for _, text in ipairs { "[]", "3", "{}", '{"weight_map":[]}', '{"weight_map":null}', '{"weight_map":"x"}' } do
    native.write_text(PATH, text)
    raises(t, "data_loss", 'it has no object "weight_map"')
  end
  native.write_text(PATH, '{"weight_map":')
  raises(t, "data_loss", "line 1, column 15")
  with { x = "pytorch_model-00001-of-00002.bin" }
  t.raises(function() pg.load(PATH) end, '".bin" is a format of other programs that may run code when read')
  os.remove(PATH)
  t.equal(t.raises(function() pg.load(PATH) end, "there is no file").code, "not_found")
  with(pg.json.decode "{}")
  t.equal(pg.load(PATH), {})
end)

test("a wrong shape is an error that names the tensor", function(t)
  local state = build():state()
  state["1.weight"] = pg.ones { 2, 3 }
  write(state)
  t.raises(function() pg.load(PATH, build()) end, "1.weight is {1, 3} here but {2, 3} in what is loaded")
end)

test("other JSON is no file of tensors", function(t)
  t.raises(function() pg.load("config.json") end,
           'load: .json holds no tensors: "config.json" %(pg.json.load%(path%); an')
  t.raises(function() pg.save(PATH, { x = pg.ones { 1 } }) end, "save: .json holds no tensors")
end)
