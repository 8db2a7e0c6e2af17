-- SPDX-License-Identifier: Apache-2.0
-- perigee test: runs *_test.lua files; main.lua says with which options. In them:
--   test("name", function(t) t.equal(got, expected) t.close(a, b, tolerance) t.raises(fn, "pattern") t.skip("why") end)
--   t.uncompiled()
-- t.device is the device of --device, which is also in force. --verbose keeps nothing in buffers: for tests that may
-- end the process. --times counts seconds of the clock and of the processor.

local report = require "perigee.printing.report"
local files_of = require "perigee.command.files"

local SKIP = {} -- what t.skip throws

local function fail(message, level) error(message, (level or 1) + 2) end

local function show(v)
  if type(v) == "string" then return ("%q"):format(v) end
  if type(v) == "table" and getmetatable(v) == nil then
    local parts = {}
    for i, x in ipairs(v) do parts[i] = show(x) end
    for k, x in pairs(v) do
      if type(k) ~= "number" or k > #v or k < 1 then parts[#parts + 1] = tostring(k) .. "=" .. show(x) end
    end
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  return tostring(v)
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b or (a ~= a and b ~= b and type(a) == "number" and type(b) == "number")
  end
  for k, v in pairs(a) do
    if not same(v, b[k]) then return false end
  end
  for k in pairs(b) do
    if a[k] == nil then return false end
  end
  return true
end

-- Where nested lists of numbers differ by more than the tolerance, as text; nil: nowhere.
local function difference(a, b, tolerance, path)
  if type(a) == "table" and type(b) == "table" then
    if #a ~= #b then return ("%s has %d entries, expected %d"):format(path, #a, #b) end
    for i = 1, #a do
      local d = difference(a[i], b[i], tolerance, path .. "[" .. i .. "]")
      if d then return d end
    end
    return nil
  end
  if type(a) == "number" and type(b) == "number" then
    if a == b or (a ~= a and b ~= b) or math.abs(a - b) <= tolerance * math.max(1, math.abs(b)) then return nil end
  elseif a == b then
    return nil
  end
  return ("%s is %s, expected %s"):format(path, show(a), show(b))
end

local function plain(v)
  local pg = require "perigee"
  if type(v) == "cdata" and pg.is_tensor(v) then return v:totable() end
  return v
end

local t = {}

---Equal by value; tables and tensors by their entries.
function t.equal(got, expected)
  local a, b = plain(got), plain(expected)
  if not same(a, b) then fail(("got %s, expected %s"):format(show(a), show(b))) end
end

---Numbers, nested lists or tensors equal but for `tolerance` (relative above 1, else absolute).
function t.close(got, expected, tolerance)
  local d = difference(plain(got), plain(expected), tolerance or 1e-5, "value")
  if d then fail(d) end
end

---fn raises, and the message fits the pattern. Answers the error.
function t.raises(fn, pattern)
  local ok, err = pcall(fn)
  if ok then fail("nothing was raised") end
  if pattern and not tostring(err):find(pattern) then
    fail(("the error does not fit %q: %s"):format(pattern, tostring(err)))
  end
  return err
end

function t.ok(value, message)
  if not value then fail(message or ("got %s, expected something true"):format(show(value))) end
  return value
end

function t.skip(reason) error({ skip = SKIP, reason = reason or "" }, 0) end

---Said by a test that looks at what a compiled function is free to do in another way, such as the memory in use:
-----compiled leaves it alone.
function t.uncompiled() end

-- ---- running ----

local function read_words(...)
  local o, words, i = { paths = {} }, { ... }, 1
  while i <= #words do
    local word = words[i]
    if word == "--filter" or word == "--device" or word == "--absent" then
      o[word:sub(3)], i = words[i + 1], i + 1
      if not words[i] then return nil, word .. " needs a value" end
    elseif word == "--shard" then
      local shard, shards = (words[i + 1] or ""):match("^(%d+)/(%d+)$")
      o.shard, o.shards, i = tonumber(shard), tonumber(shards), i + 1
      if not o.shard or o.shard < 1 or o.shard > o.shards then return nil, "--shard needs I/N with I from 1 to N" end
    elseif word == "--verbose" or word == "--times" or word == "--compiled" then
      o[word:sub(3)] = true
    elseif word:sub(1, 2) == "--" then
      return nil, "unknown option " .. word
    else
      o.paths[#o.paths + 1] = word
    end
    i = i + 1
  end
  if #o.paths == 0 then o.paths[1] = "." end
  return o
end

-- The operator that a failure is for want of, where that is known; of the form that writes in place, too. A session
-- names it as TensorFlow does, and devices by what they are.
local function known_hole(absent, message)
  local name, kind = message:match "([%w_]+): no kernel for [^\n]* on (%a+):%d+"
  name = name and name:gsub("_$", "")
  if not name then
    name, kind = message:match "%((%u%w*)%) of [^\n]* on /(%a+):%d+: the device has no kernel for it"
    name = name and name:gsub("(.)(%u)", "%1_%2"):lower()
    kind = kind == "gpu" and "cuda" or kind
  end
  return name and absent[kind] and absent[kind][name] and ("%s has no kernel on %s"):format(name, kind)
end

-- Calls fn(...) and notes under `name` what it took.
local function timed(times, name, fn, ...)
  local clock = require("perigee.native").clock
  local from, cpu = clock(), os.clock()
  local ok, err = fn(...)
  times[#times + 1] = { name = name, clock = clock() - from, cpu = os.clock() - cpu }
  return ok, err
end

local SLOWEST = 10

local function print_slowest(what, times)
  table.sort(times, function(a, b) return a.clock > b.clock end)
  print(("The slowest %s; seconds of the clock, of the processor:"):format(what))
  for i = 1, math.min(SLOWEST, #times) do
    print(("%8.2f %8.2f  %s"):format(times[i].clock, times[i].cpu, times[i].name))
  end
end

local function run_one(state, file, name, fn)
  if state.verbose then io.stderr:write("RUN ", name, "\n") end
  local ok, err = timed(state.tests, name, xpcall, fn, function(e)
    if type(e) == "table" and rawget(e, "skip") == SKIP then return e end
    return report(e)
  end, t)
  local hole = type(err) == "string" and known_hole(state.absent, err)
  if ok and state.compiled then
    local problem, hits = require("perigee.command.test_compiled")(fn, t)
    local c = state.compiled
    if problem == "apart" then
      c.apart = c.apart + 1
    else
      c.compared, c.hits = c.compared + 1, c.hits + hits
      ok, err = problem == nil, problem
    end
  end
  if ok then
    state.passed = state.passed + 1
  elseif type(err) == "table" or hole then
    state.skipped = state.skipped + 1
    print(("SKIP %s: %s: %s"):format(file, name, hole or tostring(err.reason)))
  else
    state.failed = state.failed + 1
    print(("FAIL %s: %s\n  %s"):format(file, name, (err:gsub("\n", "\n  "))))
  end
end

-- Whether a name fits the filter. A pattern that is none is found out when it is used.
local function fits(state, text)
  local ok, at = pcall(string.find, text, state.filter)
  if not ok then state.problem = at end
  return ok and at
end

local function run_file(state, file)
  local chunk, message = loadfile(file, "t")
  if not chunk then
    state.failed = state.failed + 1
    print("FAIL " .. message)
    return
  end
  local env = setmetatable({ test = function(name, fn)
    if state.filter and not fits(state, name) and not fits(state, file) then return end
    state.seen = state.seen + 1
    if state.seen % state.shards == state.shard - 1 then run_one(state, file, name, fn) end
  end }, { __index = _G, __newindex = _G })
  setfenv(chunk, env)
  local ok, err = timed(state.files, file, xpcall, chunk, report)
  if not ok then
    state.failed = state.failed + 1
    print(("FAIL %s: outside of its tests\n  %s"):format(file, (err:gsub("\n", "\n  "))))
  end
end

local function refuse(message)
  io.stderr:write("perigee test: ", message, "\n")
  return 2
end

return function(...)
  local o, message = read_words(...)
  if not o then return refuse(message) end
  local state = { passed = 0, failed = 0, skipped = 0, verbose = o.verbose, filter = o.filter,
                  absent = o.absent and dofile(o.absent) or {},
                  compiled = o.compiled and { compared = 0, apart = 0, hits = 0 },
                  tests = {}, files = {}, seen = -1, shard = o.shard or 1, shards = o.shards or 1 }
  if o.verbose then io.stdout:setvbuf("line") end
  local function run_all()
    for _, path in ipairs(o.paths) do
      local files = files_of(path, "*_test.lua")
      if not files then
        io.stderr:write("perigee test: there is no ", path, "\n")
        state.failed = state.failed + 1
      end
      for _, file in ipairs(files or {}) do run_file(state, file) end
    end
  end
  t.device = o.device
  if o.device then require("perigee").device(o.device, run_all) else run_all() end
  if o.times then
    print_slowest("files", state.files)
    print_slowest("tests", state.tests)
  end
  if o.compiled then
    local c, text = state.compiled, "compiled: %d tests the same, or failed above; %d stretches launched as plans; " ..
                                    "%d tests not compared"
    print(text:format(c.compared, c.hits, c.apart))
  end
  print(("%d passed, %d failed, %d skipped"):format(state.passed, state.failed, state.skipped))
  if state.problem then return refuse(("--filter %s: %s"):format(o.filter, state.problem)) end
  if state.seen < 0 and state.failed == 0 then
    return refuse("there is no test" .. (o.filter and " whose name or file fits " .. o.filter or ""))
  end
  return state.failed == 0 and 0 or 1
end
