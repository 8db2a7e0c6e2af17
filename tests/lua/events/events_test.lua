-- SPDX-License-Identifier: Apache-2.0
-- Event files: pg.SummaryWriter, and what reads them.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../../?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local process = require "process"
local protobuf = require "perigee.events.protobuf"
local records = require "perigee.events.records"
local runs = require "perigee.events.runs"
local words = native.words

local function folder()
  local name = os.tmpname()
  os.remove(name)
  return name .. ".run"
end

-- A run's folder with a writer; both are gone when fn returns.
local function with_writer(fn, options)
  local dir = folder()
  local o = { dir }
  for key, value in pairs(options or {}) do o[key] = value end
  local writer = pg.SummaryWriter(o)
  local ok, problem = pcall(fn, writer, dir)
  writer:close()
  os.execute("rm -r '" .. dir .. "'")
  if not ok then error(problem, 0) end
end

local function whole(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function bytes_of(hexadecimal)
  return (hexadecimal:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end))
end

-- Messages of a file as tables by field number; of repeated fields the last.
local function message(text)
  local t = {}
  for _, field in ipairs(assert(protobuf.fields(text))) do t[field[1]] = field[2] end
  return t
end

local function events_of(path)
  local reader, list = assert(records.open(path)), {}
  while true do
    local data, damage = reader:next()
    if damage then error(damage) end
    if not data then break end
    list[#list + 1] = message(data)
  end
  reader:close()
  return list
end

test("CRC-32C has the check values of its definition", function(t)
  t.equal(words.crc32c "123456789", 0xe3069283) -- Rocksoft's model
  t.equal(words.crc32c(("\0"):rep(32)), 0x8a9136aa) -- RFC 3720, B.4
  t.equal(words.crc32c(("\255"):rep(32)), 0x62a8ab43)
  t.equal(words.crc32c "", 0)
end)

test("numbers as bytes, there and back", function(t)
  t.equal(words.float64(1), bytes_of "000000000000f03f")
  t.equal(words.float32(-2.5), bytes_of "000020c0")
  t.equal(words.uint32(0xfffefdfc), bytes_of "fcfdfeff")
  t.equal(words.to_uint32(words.uint32(0xfffefdfc), 1), 0xfffefdfc)
  for _, v in ipairs { 0, -1.5, 1 / 0, -1 / 0, 1e-300 } do t.equal(words.to_float64("x" .. words.float64(v), 2), v) end
  for _, bad in ipairs { "0000000000000000f8ff", "0000010000000000f0ff", "0000ffffffffffffffff" } do
    local v = words.to_float64(bytes_of(bad), 3)
    t.ok(type(v) == "number" and v ~= v)
  end
  local v = words.to_float32(bytes_of "ffffffff", 1)
  t.ok(type(v) == "number" and v ~= v)
end)

test("a record and an event are the bytes that TensorBoard's own writer makes", function(t)
  t.equal(records.frame "abc", bytes_of "0300000000000000b099490e6162636e57f121")
  -- Event(wall_time=1.5, step=300, summary=...) in a record
  local event = protobuf.double(1, 1.5) .. protobuf.int(2, 300) ..
                protobuf.bytes(5, protobuf.bytes(1, require("perigee.events.summary").scalar("loss", 0.5)))
  t.equal(records.frame(event), bytes_of("1b000000000000001a0d9e1309000000000000f83f10ac022a0d0a0b0a046c6f7373" ..
                                         "150000003f69f9315b"))
  local summary = require "perigee.events.summary"
  -- Summary.Value(tag="loss", simple_value=0.5).SerializeToString()
  t.equal(summary.scalar("loss", 0.5), bytes_of "0a046c6f7373150000003f")
  t.equal(protobuf.int(2, 300), bytes_of "10ac02")
  t.equal(protobuf.int(2, 2 ^ 40), bytes_of "10808080808020")
end)

test("SummaryWriter: a file per writer, named after the moment, with its version in front", function(t)
  with_writer(function(writer, dir)
    local name = writer.path:match "([^/]+)$"
    t.ok(name:find "^events%.out%.tfevents%.%d%d%d%d%d%d%d%d%d%d%.", name)
    local other = pg.SummaryWriter { dir }
    t.ok(other.path ~= writer.path)
    other:close()
    t.equal(events_of(writer.path)[1][3], "brain.Event:2")
    t.ok(math.abs(events_of(writer.path)[1][1] - os.time()) < 60)
    t.equal(tostring(writer), "SummaryWriter(" .. writer.path .. ")")
  end)
end)

test("SummaryWriter: a record is in the file when the call returns", function(t)
  with_writer(function(writer)
    for step = 1, 3 do
      writer:add_scalar("loss", step, step)
      t.equal(#events_of(writer.path), step + 1)
    end
  end)
end)

test("SummaryWriter: a training that goes on again says from where", function(t)
  with_writer(function(writer)
    local event = events_of(writer.path)[2]
    t.equal({ event[2], message(event[7])[1] }, { 120, 1 })
  end, { purge_step = 120 })
end)

-- One of everything.
local function fill(writer)
  for step = 0, 2 do writer:add_scalar("loss", 1 / (step + 1), step) end
  writer:add_scalar { "named", value = pg.tensor { 4 }, step = 2 ^ 33 }
  writer:add_scalars("acc", { train = 0.5, test = pg.tensor { 0.25 } })
  writer:add_scalar("odd", 0 / 0, 1):add_scalar("odd", 1 / 0, 2)
  writer:add_histogram("h", pg.tensor { 1, 2, 3, 4, 0 / 0, 1 / 0 }, 2, { bins = 3 })
  writer:add_histogram("list", { 3, 3, 3 })
  writer:add_histogram("none", pg.zeros { 0 })
  writer:add_histogram("whole", pg.tensor({ 1, 5 }, { dtype = "int32" }))
  writer:add_image("chw", pg.rand { 3, 8, 10 }, 1)
  writer:add_image("hw", pg.ones { 4, 5, dtype = "bool" })
  writer:add_image("batch", pg.rand { 2, 1, 8, 10 })
  writer:add_image("hwc", pg.zeros { 6, 7, 3, dtype = "uint8" }, { layout = "HWC" })
  writer:add_text("note", "a **first** try", 7)
  writer:add_pr_curve("spam", { 1, 0, 1, 1, 0 }, pg.tensor { 1, 0.8, 0.7, 0.2, 0.1 }, { thresholds = 3 })
  writer:add_graph(pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "batch", 3 } }
    local w = g:variable { "w", shape = { 3, 2 }, init = "zeros" }
    return { y = pg.name_scope("enc", function() return x:matmul(w):sum { axis = 1 } end) }
  end))
  writer:add_hparams({ lr = 0.1, model = "small", deep = true }, { final = 0.5 })
end

local EXPECTED = [[
scalar acc/test 0=0.25
scalar acc/train 0=0.5
scalar final 0=0.5
scalar loss 0=1 1=0.5 2=0.333333
scalar named 8589934592=4
scalar odd 1=nan 2=inf
histogram h 2 1 4 4 10 30 4 4 4
histogram list 0 3 3 3 9 27 2 2 3
histogram none 0 0 0 0 0 0 1 1 0
histogram whole 0 1 5 2 6 26 65 65 2
images batch 0 10 8 png,png
images chw 1 10 8 png
images hw 0 5 4 png
images hwc 0 7 6 png
text note 7 a **first** try
curve spam 0 3 3 2 1 2 1 0 0 1 2 0 1 2 0.6 0.666667 1 1 0.666667 0.333333
node x Placeholder  /device:cpu:0 - -1x3
node w VariableV2  /device:cpu:0 - 3x2
node enc/matmul matmul x,w /device:cpu:0 LINE -1x2
node y sum enc/matmul /device:cpu:0 LINE 2
hparams end 1
hparams deep:2 lr:3 model:1 final
hparams values deep=True lr=0.1 model=small
]]

-- Sorted, as the order of plugins' tags is no one's business.
local function lines_of(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do list[#list + 1] = (line:gsub("events_test%.lua:%d+", "LINE")) end
  table.sort(list)
  return list
end

test("SummaryWriter: TensorBoard reads all of it", function(t)
  local python = os.getenv "PERIGEE_TENSORBOARD_PYTHON" or "python3"
  local _, status = process.run(python .. " -c 'import tensorboard.backend.event_processing.event_accumulator'")
  if status ~= 0 then t.skip("no tensorboard in " .. python .. " (PERIGEE_TENSORBOARD_PYTHON names another)") end
  with_writer(function(writer, dir)
    fill(writer)
    writer:close()
    local text
    text, status = process.run(("%s '%s/read_back.py' '%s' 2>/dev/null"):format(python, here, dir))
    t.equal(status, 0, text)
    t.equal(lines_of(text), lines_of(EXPECTED))
  end)
end)

test("SummaryWriter: the same, decoded here", function(t)
  with_writer(function(writer)
    fill(writer)
    local tags, plugins = {}, {}
    for _, event in ipairs(events_of(writer.path)) do
      for _, field in ipairs(event[5] and protobuf.fields(event[5]) or {}) do
        local value = message(field[2])
        tags[value[1]] = (tags[value[1]] or 0) + 1
        if value[9] then plugins[value[1]] = message(message(value[9])[1])[1] end
        if value[1] == "h" then
          local h = message(value[5])
          t.equal({ h[1], h[2], h[3], h[4], h[5] }, { 1, 4, 4, 10, 30 })
          t.equal(h[6], words.float64s { 1, 2, 3, 4 })
          t.equal(h[7], words.float64s { 0, 1, 1, 2 })
        end
      end
    end
    t.equal({ tags.loss, tags.odd, tags["acc/train"] }, { 3, 2, 1 })
    t.equal(plugins, { chw = "images", hw = "images", batch = "images", hwc = "images", note = "text",
                       spam = "pr_curves", ["_hparams_/experiment"] = "hparams",
                       ["_hparams_/session_start_info"] = "hparams", ["_hparams_/session_end_info"] = "hparams" })
  end)
end)

test("SummaryWriter: a picture's pixels come back", function(t)
  with_writer(function(writer)
    writer:add_image("p", pg.tensor { { { 0, 1 }, { 0.5, 7 } } })
    local value = message(message(events_of(writer.path)[2][5])[1])
    local strings = {}
    for _, field in ipairs(protobuf.fields(value[8])) do
      if field[1] == 8 then strings[#strings + 1] = field[2] end
    end
    local path = os.tmpname() .. ".png"
    process.write(path, strings[3])
    t.equal(pg.load(path).data:reshape { -1 }:totable(), { 0, 255, 128, 255 })
    os.remove(path)
  end)
end)

test("SummaryWriter: what is wrong is said", function(t)
  with_writer(function(writer)
    local function raises(fn, text) t.raises(fn, (text:gsub("%W", "%%%0"))) end
    raises(function() pg.SummaryWriter {} end, "dir")
    raises(function() pg.SummaryWriter { "" } end, "SummaryWriter: needs a folder, got an empty name")
    raises(function() pg.SummaryWriter { writer.path } end, "Not a directory")
    raises(function() writer:add_scalar("", 1) end, "add_scalar: tag must not be empty")
    raises(function() writer:add_scalar("a", "b") end,
           "add_scalar: value must be a number or a tensor of one element, got")
    raises(function() writer:add_scalar("a", 1, -1) end, "add_scalar: step must be at least 0, got -1")
    raises(function() writer:add_scalar("a", pg.zeros { 2 }) end, "one element")
    raises(function() writer:add_scalar("a", 1, 2, 3) end, "add_scalar: takes 3 arguments and options, got 4")
    raises(function() writer:add_scalars("a", { 1, 2 }) end, "add_scalars: values must have names, got number 1")
    raises(function() writer:add_histogram("a", pg.zeros { 2 }, { bins = 0 }) end, "bins must be at least 1, got 0")
    raises(function() writer:add_image("a", pg.zeros { 5, 4, 3 }) end,
           "add_image: an image has 1, 3 or 4 channels, got 5 in CHW")
    raises(function() writer:add_image("a", pg.zeros { 3 }) end, "an image has 2 to 4 axes, got {3}")
    raises(function() writer:add_image("a", pg.zeros { 3, 4 }, { layout = "CHW" }) end,
           "layout CHW has 3 axes, got {3, 4}")
    raises(function() writer:add_image("a", pg.zeros { 3, 0, 4 }) end, "the image has no pixels: {3, 0, 4}")
    raises(function() writer:add_image("a", pg.zeros { 3, 4, dtype = "int64" }) end, "got int64")
    raises(function() writer:add_pr_curve("a", { 1, 0 }, { 0.5 }) end, "2 labels, but 1 predictions")
    raises(function() writer:add_pr_curve("a", { 1, 0 }, { 0.5, 2 }) end, "predictions must lie between 0 and 1")
    raises(function() writer:add_graph(3) end, "add_graph: needs what pg.graph or pg.Session returned, got number 3")
    raises(function() writer:add_hparams({ a = {} }) end,
           "add_hparams: a must be a number, a string or a boolean, got")
    raises(function() writer:add_hparams(1) end, "add_hparams: params must be a table of names, got number 1")
    writer:close()
    raises(function() writer:add_scalar("a", 1) end, "was closed")
  end)
end)

test("the reader bears a torn end, and goes on when the rest comes", function(t)
  with_writer(function(writer, dir)
    writer:add_scalar("loss", 1, 1):add_scalar("loss", 2, 2)
    local text = whole(writer.path)
    local path = dir .. "/torn.tfevents"
    local before = #text - #records.frame(string.rep("x", 9 + 2 + 2 + 2 + 11))
    for _, length in ipairs { before + 1, before + 11, before + 12, before + 20, #text - 1 } do
      process.write(path, text:sub(1, length))
      local run = runs.open(path)
      run:update()
      t.equal({ run.curves.loss.y, run.damage }, { { 1 }, {} })
      process.write(path, text)
      run:update()
      t.equal({ run.curves.loss.x, run.curves.loss.y }, { { 1, 2 }, { 1, 2 } })
      run:close()
    end
  end)
end)

test("the reader tells of damage and never trusts what is behind it", function(t)
  with_writer(function(writer, dir)
    writer:add_scalar("loss", 1, 1):add_scalar("loss", 2, 2)
    local text = whole(writer.path)
    local path = dir .. "/damaged.tfevents"
    for at = 1, #text do
      local wrong = text:sub(1, at - 1) .. string.char((text:byte(at) + 1) % 256) .. text:sub(at + 1)
      process.write(path, wrong)
      local run = runs.open(path)
      run:update()
      t.equal(#run.damage, 1, "byte " .. at)
      t.ok(run.damage[1]:find("damaged.tfevents: the record at byte %d+ is damaged: wrong checksum of its "))
      run:update()
      t.equal(#run.damage, 1)
      run:close()
    end
  end)
end)

test("fields of anything are read without an error", function(t)
  pg.manual_seed(3)
  for _ = 1, 2000 do
    local list = {}
    for i = 1, pg.randint { 0, 12, shape = { 1 } }:item() do
      list[i] = string.char(pg.randint { 0, 256, shape = { 1 } }:item())
    end
    local fields = protobuf.fields(table.concat(list))
    t.ok(fields == nil or type(fields) == "table")
  end
end)

test("runs: what was taken up again has each step once", function(t)
  with_writer(function(writer, dir)
    for step = 1, 4 do writer:add_scalar("loss", step, step) end
    for _ = 1, 10 do pg.SummaryWriter({ dir }):close() end -- names of ten in one second are in order, too
    local again = pg.SummaryWriter { dir, purge_step = 3 }
    again:add_scalar("loss", 30, 3)
    again:close()
    local run = runs.open(dir)
    run:update()
    t.equal({ run.curves.loss.x, run.curves.loss.y }, { { 1, 2, 3 }, { 1, 2, 30 } })
    run:close()
  end)
end)
