-- SPDX-License-Identifier: Apache-2.0
-- Where operators run: what is said about it, which devices there are to run on. Each script in a process of its own.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"

-- What a script prints and writes to standard error, where there are three simulated devices and no others.
local DEVICES = "CUDA_VISIBLE_DEVICES=-1 PERIGEE_STANDIN_DEVICES=0 PERIGEE_SIM_DEVICES=3 PERIGEE_SIM_GPU=1"
local function output(t, script, environment)
  local path = process.file('local pg = require "perigee"\n' .. script)
  local command = ("%s %s '%s' %s"):format(DEVICES, environment or "", process.need_perigee(t), path)
  local text, status = process.run(command)
  os.remove(path)
  if status ~= 0 then error(text, 0) end
  -- A build with a CUDA plugin says why that one has no device.
  return (text:gsub("; 'cuda' is unavailable: [^\n]-(; sim:1 is)", "%1"):gsub("; 'cuda' is unavailable: [^\n]*", ""))
end

test("log_device_placement: a line an operator, copies and compositions included", function(t)
  t.equal(output(t, [[
    local x = pg.ones { 2 }
    pg.config.set { log_device_placement = true }
    local y = pg.device("sim:1", function() return x + x end)
    pg.relu(x)
    pg.relu(x)
    pg.config.set { log_device_placement = false }
    pg.relu(y)
  ]]), "transfer: (Transfer): /gpu:1\nadd: (Add): /gpu:1\nrelu: (Relu): /cpu:0\nrelu: (Relu): /cpu:0\n")
end)

test("backward names what it has no kernel for; a device's own fill makes ones and zeros", function(t)
  local script = [[
    local w = pg.ones({ 2, 2 }, { device = "sim:0", requires_grad = true })
    local y = w * 2
    local z = y * 1
    z[1]:copy_(w[2] * 3) -- its gradient needs zeros
    local ok, problem = pcall(function() %s:backward() end)
    print(ok and tostring(w.grad:cpu():totable()[1][2]) .. " " .. w.grad[2][1]:item() or problem)
  ]]
  local bare = "PERIGEE_SIM_MISSING=ones_like,zeros_like"
  t.equal(output(t, script:format("z:sum()"), bare), "0 5\n")
  local refused = output(t, script:format("(y + y):sum()"), bare .. ",add")
  t.ok(refused:find("no kernel", 1, true), refused)
  refused = output(t, script:format("((y * w) * y):sum()"), bare .. ",add")
  t.ok(refused:find("backward: add: no kernel for float32 [2, 2], float32 [2, 2] on sim:0 (it is switched off by " ..
                    "PERIGEE_SIM_MISSING); there are kernels on cpu", 1, true), refused)
end)

test("visible_devices: the others are not there, and gpu:0 is the first one named", function(t)
  t.equal(output(t, [[
    local function names()
      local list = {}
      for i, d in ipairs(pg.devices()) do list[i] = d.name end
      return table.concat(list, " ")
    end
    pg.config.visible_devices { "sim:2", "sim:0" }
    print(names(), table.concat(pg.config.get().visible_devices, " "))
    print(pg.device("gpu:0", function() return pg.ones { 1 } end).device, pg.ones({ 1 }, { device = "sim:0" }).device)
    print(select(2, pcall(pg.ones, { 1 }, { device = "sim:1" })))
    pg.config.set { visible_devices = { "sim:0", "sim:2", "sim:1" } }
    print(names())
    print(select(2, pcall(pg.config.visible_devices, { "sim:1" })))
    print(select(2, pcall(pg.config.visible_devices, { "sim:0", "gpu:0", "sim:2" })))
    print(select(2, pcall(pg.config.visible_devices, { "sim:7" })))
    print(names())
    pg.config.visible_devices()
    print(names(), pg.config.get().visible_devices)
  ]]):gsub("/tmp/%S-:(%d+): ", "%1: "):gsub("; a graph may name it: [^\n]*", ""), ([[
cpu sim:2 sim:0	sim:2 sim:0
sim:2	sim:0
10: ones: device: there is no device 'sim:1'; there are cpu:0, sim:2, sim:0; sim:1 is not among the visible devices
cpu sim:0 sim:2 sim:1
13: visible_devices: sim:0 has been used and cannot be hidden any more
14: visible_devices: sim:0 is named twice
15: visible_devices: there is no device 'sim:7'; there are cpu:0, sim:0, sim:1, sim:2
cpu sim:0 sim:2 sim:1
cpu sim:0 sim:1 sim:2	nil
]]))
end)

test("visible_devices: the processor stays, and pg.reset shows all again", function(t)
  t.equal(output(t, [[
    pg.config.visible_devices {}
    print(#pg.devices(), pg.ones({ 2 }):sum():item(), (pcall(pg.device, "gpu")))
    pg.reset()
    print(#pg.devices(), pg.config.get().visible_devices)
    pg.config.visible_devices { "cpu" }
    print(#pg.devices())
  ]]), "1\t2\tfalse\n4\tnil\n1\n")
end)

test("bad settings", function(t)
  t.raises(function() pg.config.visible_devices("gpu:0") end, "config.visible_devices: needs a list of names")
  t.raises(function() pg.config.visible_devices { 1 } end, "config.visible_devices: name 1 is number 1")
  t.raises(function() pg.config.set { log_device_placement = 1 } end, "log_device_placement")
  t.equal(pg.config.get().deterministic, false)
  pg.config.set { deterministic = true }
  t.equal(pg.config.get().deterministic, true)
  pg.config.set { deterministic = false }
  t.equal(pg.config.get().deterministic, false)
  t.equal(pg.config.get().log_device_placement, false)
end)

test("the device in force is the processor, whichever device was used first", function(t)
  local text, status = process.run(process.need_perigee(t) .. [[ -e 'local pg = require "perigee"
    local x = pg.ones({ 2 }, { device = "sim:0" })
    print(pg.device(), pg.ones { 1 }.device, pg.memory.stats().live == pg.memory.stats("cpu").live)']])
  t.equal({ text:match("^%S+%s+%S+%s+%S+"), status }, { "cpu\tcpu\ttrue", 0 })
end)

test("names of devices as TensorFlow writes them in full", function(t)
  t.equal(output(t, [[
    local function on(name) return pg.device(name, function() return pg.ones { 1 } end).device end
    print(on "/job:localhost/replica:0/task:0/device:GPU:1", on "/job:localhost/replica:0/task:0/device:CPU:0")
    print(pg.ones({ 1 }, { device = "/job:localhost/device:gpu:2" }).device, on "/device:GPU:0")
    print((pcall(on, "/job:worker/device:GPU:0")), (pcall(on, "/job:localhost/replica:0/task:0")))
  ]]), "sim:1\tcpu\nsim:2\tsim:0\nfalse\tfalse\n")
end)
