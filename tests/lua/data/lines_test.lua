-- SPDX-License-Identifier: Apache-2.0
-- The source `lines`, through pg.data's interface for plugins: line ends, blocks, threads, resumed passes, mistakes.

local pg = require "perigee"
local data = pg.data
local PATH = os.tmpname()

local function write(text)
  local file = assert(io.open(PATH, "wb"))
  file:write(text)
  file:close()
  return PATH
end

-- What string functions make of a text.
local function expected(text)
  local list = {}
  if text ~= "" and text:sub(-1) ~= "\n" then text = text .. "\n" end
  for line in text:gmatch "(.-)\n" do list[#list + 1] = line:gsub("\r$", "") end
  return list
end

local function all(ds, from)
  local list = {}
  for _, sample in ds:each(from) do list[#list + 1] = sample.text end
  return list
end

test("lines: with any end, of any length, with and without threads", function(t)
  for _, text in ipairs { "", "\n", "a", "a\n", "a\r\nb", "\r\n\n\r", "no\rend\n\nhere", ("x"):rep(65535) .. "\ny",
                          ("x"):rep(65536) .. "\ny\r\n", ("x"):rep(65536 - 1) .. "\r\nz", ("x"):rep(200000) } do
    local lines = expected(text)
    local ds = data.source("lines", { path = write(text) })
    t.equal(ds.size, nil)
    t.equal(all(ds), lines)
    t.equal(all(ds), lines)
    t.equal(all(ds:prefetch(3)), lines)
  end
end)

test("lines: a pass goes on where another was, stages over it give the same with 0 to 4 threads", function(t)
  local list = {}
  for i = 1, 300 do list[i] = ("line %d%s"):format(i, ("."):rep(i * 7)) end
  write(table.concat(list, "\n"))
  local before
  for threads = 0, 4 do
    local ds = data.source("lines", { path = PATH })
    local function length(sample) return { text = sample.text, n = #sample.text } end
    if threads > 0 then ds = ds:map { length, workers = threads } else ds = ds:map(length) end
    ds = ds:shuffle { 20, seed = 3 }
    local iterator = ds:each()
    for _ = 1, 57 do iterator() end
    local state = iterator:state()
    iterator:close()
    local rest = all(ds, { from = state })
    t.equal(#rest, 300 - 57)
    ds:epoch(state.epoch - 1)
    local whole = all(ds)
    for i, text in ipairs(rest) do t.equal(text, whole[i + 57]) end
    t.equal(whole, before or whole)
    before = whole
  end
end)

test("lines: mistakes", function(t)
  local function raises(code, text, options)
    local e = t.raises(function() all(data.source("lines", options):prefetch(2)) end)
    t.ok(tostring(e):find(text, 1, true), tostring(e))
    t.equal(e.code, code)
  end
  write "abcd\r\nabcdef\n"
  t.equal(all(data.source("lines", { path = PATH, max_bytes = 6 })), { "abcd", "abcdef" })
  raises("data_loss", PATH .. ": the line that begins at byte 6 is longer than max_bytes, 5",
         { path = PATH, max_bytes = 5 })
  raises("not_found", "/nowhere/a.txt: cannot open", { path = "/nowhere/a.txt" })
  raises("invalid_argument", "/: not a regular file", { path = "/" })
  raises("invalid_argument", "max_bytes must be 1 or more", { path = PATH, max_bytes = 0 })
  raises("invalid_argument", "field must be a name", { path = PATH, field = "" })
  raises("invalid_argument", 'lines has no option "file"; it has path, field, max_bytes', { file = PATH })
  os.remove(PATH)
end)
