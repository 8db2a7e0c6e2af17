-- SPDX-License-Identifier: Apache-2.0
-- map{fn, on_error="skip"}: what fails is left out, counted and logged, the same on threads and on the script's.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"
local pg = require "perigee"
local data = pg.data

local function picky(s)
  if s.value % 3 == 0 then error("no multiples of three: " .. s.value) end
  return { v = s.value }
end

local function all(ds)
  local list = {}
  for _, s in ds:each() do list[#list + 1] = s.v or s end
  return list
end

test("elements whose function fails are left out and counted", function(t)
  for _, workers in ipairs { 0, 1, 3, "auto" } do
    local ds = data.range(10):map { picky, on_error = "skip", workers = workers ~= 0 and workers or nil }
    t.equal({ ds.size or "unknown", (ds:skipped()) }, { "unknown", 0 })
    for pass = 1, 2 do
      t.equal(all(ds), { 1, 2, 4, 5, 7, 8 })
      local count, messages = ds:skipped()
      t.equal({ count, #messages }, { 4 * pass, 4 * pass })
      local text = "\n" .. table.concat(messages, "\n")
      t.ok(text:find("\nelement 1: [^\n]*skip_test.lua:%d+: no multiples of three: 0"), text)
    end
    local behind = ds:batch(4):prefetch(2)
    local sizes = {}
    for i, b in behind:each() do sizes[i] = #b.v end
    t.equal({ sizes, (behind:skipped()) }, { { 4, 2 }, 12 })
  end
end)

test("nil is a failure, errors of earlier stages are not skipped, other pipelines count none", function(t)
  local ds = data.range(4):map { function(s) if s.value > 1 then return s end end, on_error = "skip" }
  t.equal({ #all(ds), (ds:skipped()), (data.range(3):skipped()) }, { 2, 2, 0 })
  for _, workers in ipairs { 0, 2 } do
    local n = workers > 0 and workers or nil
    local failing = data.range(4):map { picky, workers = n }:map { function(s) return s end, on_error = "skip",
                                                                   workers = n }
    t.raises(function() all(failing) end, "no multiples of three")
  end
  t.raises(function() data.range(3):map { picky, on_error = "stop" } end, "on_error must be one of raise, skip")
end)

test("image_folder leaves damaged files out", function(t)
  local root = os.tmpname() .. ".d"
  os.execute(("mkdir -p '%s/a'"):format(root))
  for i = 1, 3 do pg.image.save(("%s/a/%d.png"):format(root, i), pg.full({ 2, 2, 3 }, i, { dtype = "uint8" })) end
  local file = io.open(root .. "/a/2.png", "wb")
  file:write "damaged"
  file:close()
  for _, workers in ipairs { 0, 2 } do
    local ds = data.image_folder { root, on_error = "skip", workers = workers > 0 and workers or nil }
    local seen = {}
    for i, s in ds:each() do seen[i] = s.x[1][1][1]:item() end
    local count, messages = ds:skipped()
    t.equal({ seen, count }, { { 1, 3 }, 1 })
    t.ok(messages[1]:find("2.png", 1, true), messages[1])
  end
  os.execute(("rm -r '%s'"):format(root))
end)

test("the log has the first ten and says that there are more", function(t)
  local perigee = process.need_perigee(t)
  local script = process.file [[
local pg = require "perigee"
local ds = pg.data.range(30):map { function(s) error("bad " .. s.value) end, on_error = "skip", workers = 1 }
for _ in ds:each() do end
io.stderr:write("count ", ds:skipped(), "\n")
]]
  local text = process.run(("%s %s"):format(perigee, script))
  local lines = 0
  for _ in text:gmatch "perigee: warning: map at [^\n]* left out element %d+: [^\n]*bad %d+" do lines = lines + 1 end
  t.equal(lines, 10)
  t.ok(text:find("what else is left out is counted", 1, true) and text:find("count 30", 1, true), text)
  os.remove(script)
end)
