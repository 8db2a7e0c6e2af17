-- SPDX-License-Identifier: Apache-2.0
-- The process that makes calls: perigee child.lua SEED FROM CALLS SECONDS FOLDER [NAME]. Before each call it writes its
-- number into FOLDER/journal, so that whoever started it knows which call ended it; what it counted it writes into
-- FOLDER/counts.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../?.lua;" .. here .. "/../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local programs = require "fuzz.programs"

local seed, from, calls, seconds, folder, only = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3]),
                                                 tonumber(arg[4]), arg[5], arg[6]

local LIMIT = "256MB"           -- of tensors, on each device
local MOST_GROWTH = 700 * 2 ^ 20 -- bytes that a call may fill beyond that, in tables and scratch memory

local function set_limits()
  for _, device in ipairs { "cpu", "sim:0", "sim:1" } do pg.config.memory_limit(device, LIMIT) end
end
set_limits()

-- The most memory that this process has had.
local function peak()
  local file = io.open "/proc/self/status"
  local kilobytes = file and file:read("*a"):match "VmHWM:%s+(%d+) kB"
  if file then file:close() end
  return (tonumber(kilobytes) or 0) * 1024
end

-- What calls may change for those that follow.
local function restore()
  pg.set_default_dtype "float32"
  pg.config.set { threads = 1, deterministic = false, origins = false, matmul_precision = "highest",
                  log_device_placement = false }
  pg.amp.policy "float32"
  set_limits()
end
local CHANGES = { "set_default", "config", "policy" }

local counts = { results = 0, coded = 0, script = 0, memory = 0, raw = {}, problems = {} }

-- The same mistake with other names and numbers is one mistake.
local function kind_of(message)
  local line = message:match "^[^\n]*"
  for _, change in ipairs { { "0x%x+", "0x" }, { "'[^']*'", "''" }, { "%-?%d[%d%.e+]*", "N" },
    { "^.*/perigee/", "perigee/" } } do
    line = line:gsub(change[1], change[2])
  end
  return line:sub(1, 160)
end

local function note(list, message, number)
  local kind = kind_of(message)
  local entry = list[kind] or { count = 0, number = number, message = message }
  entry.count = entry.count + 1
  list[kind] = entry
end

local function judge(err, number)
  if native.is_error(err) then
    counts.coded = counts.coded + 1
    if err.code == "internal" then note(counts.problems, "internal: " .. err.message, number) end
    return
  end
  local message = tostring(err)
  if message:find "not enough memory" then
    counts.memory = counts.memory + 1
  elseif message == "own" or message:find "^call:%d+:" then
    counts.script = counts.script + 1 -- the script's own mistake
  else
    note(counts.raw, message, number)
  end
end

local journal = assert(io.open(folder .. "/journal", "w"))
local function announce(number)
  journal:seek("set", 0)
  journal:write(("%15d\n"):format(number))
  journal:flush()
end

local function run(number)
  local text, name = programs.script(seed, number, only)
  local whole = programs.PREAMBLE .. text
  local chunk, problem = loadstring(whole, "=call")
  if not chunk then return note(counts.problems, "no script: " .. problem .. "\n" .. whole, number) end
  announce(number)
  pg.manual_seed(number)
  local before = peak()
  local ok, err = pcall(chunk)
  if ok then
    counts.results = counts.results + 1
  else
    judge(err, number)
  end
  -- What came late is of this call too.
  ok, err = pcall(pg.synchronize)
  if not ok then judge(err, number) end
  if peak() - before > MOST_GROWTH then
    note(counts.problems, ("%s filled %.0f MB"):format(name, (peak() - before) / 2 ^ 20), number)
  end
  for _, word in ipairs(CHANGES) do
    if text:find(word, 1, true) then return restore() end
  end
end

local function quoted(list)
  local parts = {}
  for kind, e in pairs(list) do
    parts[#parts + 1] = ("[%q] = { count = %d, number = %d, message = %q },"):format(kind, e.count, e.number, e.message)
  end
  return "{" .. table.concat(parts, "\n") .. "}"
end

local function write_counts(done)
  local file = assert(io.open(folder .. "/counts", "w"))
  local form = "return { calls = %d, results = %d, coded = %d, script = %d, memory = %d,\nraw = %s, problems = %s }"
  file:write(form:format(
    done, counts.results, counts.coded, counts.script, counts.memory, quoted(counts.raw), quoted(counts.problems)))
  file:close()
end

restore()
local started, done = os.time(), 0
for number = from, from + calls - 1 do
  if done % 64 == 0 and os.time() - started >= seconds then break end
  run(number)
  done = done + 1
  if done % 512 == 0 then write_counts(done) end -- what a signal would take with it
end
write_counts(done)
