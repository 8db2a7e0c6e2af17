-- SPDX-License-Identifier: Apache-2.0
-- Bad input, each with an error that says what is wrong, and a process that goes on; odd lifetimes; ways to end.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"

local x = pg.arange(12):reshape(3, 4)
local one = pg.ones { 1, 3, 5, 5 }
local kernel = pg.ones { 4, 3, 3, 3 }
local function ints(data) return pg.tensor(data, { dtype = "int64" }) end

-- What is done, and what the message must say.
local refused = {
  { function() return pg.zeros { -1, 2 } end, "size %-1 of axis 1 is negative" },
  { function() return pg.zeros { 2 ^ 31, 2 ^ 31, 4 } end, "overflow" },
  { function() return pg.zeros { 2 ^ 62 } end },
  { function() return pg.zeros { 0 / 0 } end, "nan" },
  { function() return pg.zeros { 1 / 0 } end, "inf" },
  { function() return pg.zeros { "a" } end, "string \"a\"" },
  { function() return pg.zeros { 1, 1, 1, 1, 1, 1, 1, 1, 1 } end, "8 dimensions" },
  { function() return pg.tensor { { { { { { { { { 1 } } } } } } } } } end, "deeper than 8" },
  { function() return pg.zeros { 1, 1, 1, 1, 1, 1, 1, 1 }:unsqueeze(1) end, "8 axes" },
  { function() return pg.stack { pg.zeros { 1, 1, 1, 1, 1, 1, 1, 1 } } end, "8 axes" },
  { function() return x[{ pg.newaxis, pg.newaxis, pg.newaxis, pg.newaxis, pg.newaxis, pg.newaxis, pg.newaxis }] end,
    "8 axes" },
  { function() return x:sum { axis = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 } } end, "at most 8" },
  { function() return x:sum { axis = { 1, 1 } } end, "listed twice" },
  { function() return x:permute(1, 1) end, "listed twice" },
  { function() return x:permute(1) end, "each of its 2 axes" },
  { function() return x:reshape(-1, -1) end, "more than one %-1" },
  { function() return x:reshape(-2, 6) end, "negative" },
  { function() return x:reshape(5, 3) end, "reshape" },
  { function() return pg.zeros { 0, 3 }:reshape(-1, 0) end, "any size would do" },
  { function() return pg.ones { 1 }:expand(-2) end, "negative" },
  { function() return pg.ones { 2 }:expand(3) end, "does not broadcast" },
  { function() return x:transpose(1, 3) end, "axis 3 is out of range.*1%.%.2 or %-2%.%.%-1" },
  { function() return x:narrow(1, 3, 5) end, "do not fit axis 1" },
  { function() return x:split(0) end, "from 1" },
  { function() return x:split { 1, 1 } end, "sum to 2, but axis 1.*has 3" },
  { function() return x:chunk(0) end, "at least 1" },
  { function() return pg.arange(0, 10, 0) end, "step is 0" },
  { function() return pg.arange(0 / 0) end, "nan" },
  { function() return pg.linspace(0, 1, -1) end, "negative" },
  { function() return pg.load_plugin("nowhere/nothing.so") end, "/nowhere/nothing.so%): the file cannot be read" },
  { function() return pg.randint(5, 5, { 3 }):sum():item() end, "5" },
  { function() return pg.randperm(-1) end, "at least 0" },
  { function() return pg.full({ 2 }, "a") end, "value must be a number" },
  { function() return x[0] end, "positions count from 1" }, -- lint: ignore
  { function() return x[4] end, "4 is out of range.*1%.%.3 or %-3%.%.%-1" },
  { function() return x[-4] end, "%-4 is out of range" },
  { function() return x[1.5] end, "not whole" },
  { function() return x[{ 1, 1, 1 }] end, "3 entries" },
  { function() return x[{ { 0, 2 } }] end, "position 0" }, -- lint: ignore
  { function() return x[{ { 1, 3, -1 } }] end, "step.*at least 1.*flip" },
  { function() return x[{ { 2 } }] end, "two or three numbers" },
  { function() return x[{ "...", "..." }] end, "more than once" },
  { function() return x[true] end, "boolean true" },
  { function() return x[pg.tensor { true, false }] end, "mask {2} does not fit" },
  { function() return x[ints { 3 }]:sum():item() end, "3 at.*%[1%].*out of range" },
  { function() return x[ints { -1 }]:sum():item() end, "%-1 at.*%[1%].*out of range" },
  { function() return x[pg.tensor { 1.0 }] end, "integer or bool.*float32" },
  { function() x[5] = 1 end, "5 is out of range" },
  { function() x[1] = pg.zeros { 5 } end, "broadcast" },
  { function() x[1] = "a" end, "number or a tensor" },
  { function() x[1] = nil end, "got nil" },
  { function() return pg.matmul(pg.ones { 2, 3 }, pg.ones { 2, 3 }) end, "3 columns against 2 rows" },
  { function() return pg.matmul(pg.tensor(1), x) end, "at least 1 axis" },
  { function() return pg.conv2d(one, pg.ones { 4, 2, 3, 3 }) end, "3 channels; expected 2" },
  { function() return pg.conv2d(one, kernel, pg.ones { 3 }) end, "bias.*expected 4" },
  { function() return pg.conv2d(one, kernel, { stride = 0 }) end, "stride.*at least 1" },
  { function() return pg.conv2d(one, kernel, { padding = -1 }) end, "padding.*at least 0" },
  { function() return pg.conv2d(one, kernel, { padding = 2 ^ 40, stride = { 1, 2, 3 } }) end, "stride has 3 numbers" },
  { function() return pg.conv2d(pg.ones { 1, 3, 2, 2 }, kernel) end, "smaller than the window" },
  { function() return pg.conv2d(one, kernel, { groups = 0 }) end, "groups is 0" },
  { function() return pg.conv2d(pg.ones { 5, 5 }, kernel) end, "expected 4 axes" },
  { function() return pg.max_pool2d(one, 0) end, "kernel.*at least 1" },
  { function() return pg.max_pool2d(one, 2, { padding = 2 }) end, "half of the kernel" },
  { function() return pg.max_pool2d(one, 9) end, "smaller than the window" },
  { function() return pg.batch_norm(pg.ones { 2, 3 }, pg.ones { 2 }, { training = true }) end, "expected 3" },
  { function() return pg.batch_norm(pg.ones { 1, 3 }, { training = true }) end, "no variance" },
  { function() return pg.batch_norm(pg.ones { 2, 3 }, { training = false }) end, "running_mean" },
  { function() return pg.cross_entropy(pg.ones { 2, 3 }, ints { 0, 3 }):item() end, "3 at.*%[2%]" },
  { function() return pg.cross_entropy(pg.ones { 2, 3 }, ints { 0, 1, 2 }) end, "does not fit logits" },
  { function() return pg.cross_entropy(pg.ones { 2, 3 }, ints { 0, 1 }, { reduction = "avg" }) end, "mean, sum, none" },
  { function() return pg.embedding(pg.ones { 3, 2 }, pg.tensor { 1.0 }) end, "float32; expected integers" },
  { function() return pg.one_hot(ints { 3 }, 3):sum():item() end, "3 at.*%[1%]" },
  { function() return pg.cat {} end, "at least one" },
  { function() return pg.cat { pg.ones { 2, 3 }, pg.ones { 2, 2 } } end, "only axis 1 may differ" },
  { function() return x:to("flaot32") end, "flaot32" },
  { function() return x:relu { slope = 1 } end, "slope" },
  { function() return pg.leaky_relu(pg.ones { 1 }, { negative_slpoe = 1 }) end, "did you mean \"negative_slope\"" },
  { function() return pg.ones { 2 } + nil end, "y.*missing" },
  { function() return pg.ones { 2 } * "2" end, "string \"2\"" },
  { function() return pg.ones { 2 } < 1 end, "a:lt" }, -- lint: ignore
  { function() return pg.ones { 2 }() end, "cannot be called" },
}

for i, row in ipairs(refused) do
  local line = debug.getinfo(row[1], "S").linedefined
  test(("bad input %d (line %d)"):format(i, line), function(t)
    local err = t.raises(row[1], row[2])
    t.ok(type(err) == "table" and type(err.code) == "string" and err.code ~= "internal", tostring(err.code))
    t.ok(err.message:find("robustness_test.lua:%d+"), err.message)
    t.equal(pg.ones { 2 } + 1, { 2, 2 })
  end)
end

test("no bad input has changed anything", function(t)
  t.equal(x, { { 0, 1, 2, 3 }, { 4, 5, 6, 7 }, { 8, 9, 10, 11 } })
end)

test("sizes that no memory holds", function(t)
  for _, fn in ipairs { function() return pg.zeros { 2 ^ 45 } end,
                        function() return pg.ones { 1 }:expand(2 ^ 45) + 1 end,
                        function() return pg.arange(1e17) end } do
    local err = t.raises(fn, "tried to allocate")
    t.equal(err.code, "out_of_memory")
  end
  t.equal(pg.ones { 1 }:expand(2 ^ 45).shape, { 2 ^ 45 }, "a view needs no memory")
end)

test("views and histories outlive what they came from", function(t)
  local view
  do
    local base = pg.arange(1000)
    view = base[{ { 998, 1000 } }]
    base:free()
  end
  pg.memory.collect()
  t.equal(view, { 997, 998, 999 })
  local w = pg.ones { 2 }:requires_grad_()
  local a = w * 2
  local loss = (a * a):sum()
  a:free()
  loss:backward()
  t.equal(w.grad, { 8, 8 })
  w.grad:free()
  t.equal(w.grad, { 8, 8 })
end)

test("what a pg.scope closes may still be needed by a history", function(t)
  local w = pg.ones { 2 }:requires_grad_()
  local loss = pg.scope(function()
    local a = w * 2
    return (a * a):sum()
  end)
  pg.memory.collect()
  loss:backward()
  t.equal(w.grad, { 8, 8 })
end)

test("abandoned coroutines leave no state behind", function(t)
  for _, enter in ipairs {
    function(fn) pg.no_grad(fn) end, function(fn) pg.scope(fn) end, function(fn) pg.device("cpu", fn) end,
    function(fn) pg.graph(fn) end } do
    coroutine.wrap(function() enter(function() coroutine.yield() end) end)()
    t.ok(pg.is_grad_enabled())
    t.equal(pg.ones { 1 } + 1, { 2 })
  end
  collectgarbage()
end)

test("a coroutine that fails inside of a scope", function(t)
  local co = coroutine.create(function() pg.no_grad(function() error("inside") end) end)
  local ok, err = coroutine.resume(co)
  t.ok(not ok and tostring(err):find("inside"))
  t.ok(pg.is_grad_enabled())
end)

test("tracebacks and messages of nested functions name the script", function(t)
  local function deep(n) if n == 0 then return (x + pg.ones { 7 }) end return (deep(n - 1)) end
  local err = t.raises(function() return (deep(5)) end, "robustness_test.lua:%d+: add: ")
  t.ok(err.traceback:find("robustness_test.lua:%d+: in function 'deep'"), err.traceback)
end)

-- ---- other processes ----

-- Runs a script in a process of its own: its output and exit status.
local function run(script, environment)
  local path = process.file(script)
  local text, status = process.run(("%s '%s' %s"):format(environment or "", process.perigee(), path))
  os.remove(path)
  return text, status
end

local function process_test(name, fn)
  test(name, function(t)
    process.need_perigee(t)
    fn(t)
  end)
end

local busy = [[
  local pg = require "perigee"
  local device = pg.devices("sim")[1] and "sim:0" or "cpu"
  kept = pg.device(device, function()
    local w = pg.ones { 64 }:requires_grad_()
    local model = pg.nn.Linear { 2, 3 }:to(device)
    local s = pg.Session { pg.graph(function(g) return { y = g:placeholder { "x", shape = { 2 } } * 2 } end) }
    return { w, (w * w):sum(), model, model(pg.ones { 1, 2 }), s, s:run("y", { x = { 1, 2 } }), pg.rand { 1000 } }
  end)
]]

process_test("ways to end with live tensors on an asynchronous device", function(t)
  local endings = { [""] = 0, ["os.exit(3)"] = 3, ["os.exit(0, true)"] = 0, ["error('over', 0)"] = 1 }
  for ending, status in pairs(endings) do
    local text, got = run(busy .. ending, "PERIGEE_SIM_JITTER=200")
    t.equal({ ending, got }, { ending, status })
    if ending:find("error") then t.ok(text:find("^perigee: over\n"), text)
    else t.equal(text, "") end -- nothing is said about what was alive
    t.ok(not text:find("warning"), text)
  end
end)

process_test("a script may begin by asking where it runs", function(t)
  t.equal({ run('print(require("perigee").device())') }, { "cpu\n", 0 })
end)

process_test("a failure that nobody waited for is a warning at the end", function(t)
  local text, status = run([[
    local pg = require "perigee"
    pg.embedding(pg.ones { 2, 2, device = "sim:0" }, pg.tensor({ 5 }, { dtype = "int64", device = "sim:0" }))]])
  t.equal(status, 0)
  t.ok(text:find("warning.*embedding.*5"), text)
end)

local steps = [[
  local pg = require "perigee"
  local failed = 0
  for i = 1, 12 do
    local ok, err = pcall(function()
      local a = pg.ones { 4, device = "sim:0" }
      return ((a + i) * 2):sum():item() == 8 * (i + 1) or error("wrong")
    end)
    if not ok then failed = failed + 1 assert(err.code ~= nil, err) end
  end
  assert((pg.ones { 2 } + 1):sum():item() == 4)
  print("failed " .. failed)
]]

process_test("a launch, copy or allocation that fails once costs one result", function(t)
  for _, fault in ipairs { "launch:9", "copy:5", "copy:1", "launch:1" } do
    local text, status = run(steps, "PERIGEE_SIM_FAIL=" .. fault)
    t.equal({ fault, status, text }, { fault, 0, "failed 1\n" })
  end
  local text, status = run(steps, "PERIGEE_SIM_FAIL=alloc:1")
  t.equal({ status, text }, { 0, "failed 0\n" }, "an allocation is tried again")
end)

process_test("where there is no memory for a private layout, a kernel works without", function(t)
  local text, status = run([[
    local pg = require "perigee"
    local x, w = pg.full({ 1, 256, 4, 4 }, 0.5), pg.full({ 512, 256, 3, 3 }, 0.25)
    local weight = w:numel() * 4
    pg.config.memory_limit("cpu", pg.memory.stats("cpu").reserved + math.floor(1.5 * weight))
    pg.no_grad(function()
      for _ = 1, 6 do
        assert(pg.scope(function() return pg.conv2d(x, w, { padding = 1 }):amax():item() end) == 256 * 9 / 8)
      end
    end)
    pg.memory.collect()
    local live = pg.memory.stats("cpu").live
    print(live < weight * 1.5, pg.memory.stats("cpu").peak > live + weight / 2)]], "PERIGEE_MEMORY=exact")
  t.equal({ status, text }, { 0, "true\ttrue\n" })
end)

process_test("a lost device is lost for good, and the others go on", function(t)
  local text, status = run(steps, "PERIGEE_SIM_FAIL=lost:9")
  t.equal(status, 0)
  t.ok(tonumber(text:match("failed (%d+)\n")) >= 9, text)
end)

process_test("resident memory stays flat over dropped tensors", function(t)
  local text, status = run([[
    local pg = require "perigee"
    local function resident()
      for line in io.lines("/proc/self/status") do
        local kb = line:match("^VmRSS:%s+(%d+)")
        if kb then return tonumber(kb) end
      end
    end
    for _ = 1, 2000 do local _ = pg.zeros { 262144 } end
    local before = resident()
    for _ = 1, 8000 do local _ = pg.zeros { 262144 } end
    print(resident() - before < 300 * 1024)]])
  t.equal({ status, text }, { 0, "true\n" })
end)
