-- SPDX-License-Identifier: Apache-2.0
-- Where sessions run what graphs place: devices that are not here, defaults, colocation, copies, and what is said of
-- it. Each script in a process of its own, with simulated devices and no others.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local process = require "process"

local NONE = "CUDA_VISIBLE_DEVICES=-1 PERIGEE_STANDIN_DEVICES=0 PERIGEE_SIM_DEVICES=2"
local GPU = NONE .. " PERIGEE_SIM_GPU=1"

-- What a script prints and writes to standard error, lines of its own being "script:N".
local function output(t, environment, script)
  local path = process.file('local pg = require "perigee"\n' .. script)
  local text, status = process.run(("%s '%s' %s"):format(environment, process.need_perigee(t), path))
  os.remove(path)
  if status ~= 0 then error(text, 0) end
  text = text:gsub("cpu, cuda", "cpu") -- where its plugin was built, it has kernels, and no device all the same
  text = text:gsub("; 'cuda' is unavailable: [^\n]-(; a graph may)", "%1")
  return (text:gsub(path:gsub("%p", "%%%0"), "script"))
end

local function has(t, text, ...)
  for _, part in ipairs { ... } do t.ok(text:find(part, 1, true), ("%q is not in\n%s"):format(part, text)) end
end
local function has_not(t, text, part) t.ok(not text:find(part, 1, true), ("%q is in\n%s"):format(part, text)) end

local CLASSIC = [[
  local g = pg.graph(function(g)
    local a = pg.device("/cpu:0", function() return g:constant({ 1, 2, 3 }, { name = "a" }) end)
    local x = g:placeholder { "x", shape = { "batch", 3 } }
    local w = pg.device("/gpu:0", function() return g:variable { "w", shape = { 3, 2 }, init = "ones" } end)
    local y = pg.device("/gpu:0", function() return (x + a):matmul(w) end)
    return { y = y, loss = y:pow(2):mean() }
  end)
]]

test("a graph for an absent device is built; without soft placement one error lists all that is impossible", function(t)
  local text = output(t, NONE, CLASSIC .. [[
    local ok, problem = pcall(pg.Session, { g })
    print(ok, problem.code)
    print(problem)
  ]])
  has(t, text, "false\tfailed_precondition\n", "script:9: Session: 3 nodes cannot be where they were placed:\n",
      "  w: (Variable) of float32 on /gpu:0: the device is not here; at script:5\n",
      "  add: (Add) of float32 on /gpu:0: the device is not here; there are kernels on cpu, sim; at script:6\n",
      "  y: (Matmul) of float32 on /gpu:0: the device is not here; there are kernels on cpu, sim; at script:6\n",
      "there are /cpu:0 /sim:0 /sim:1; allow_soft_placement=true runs on another")
end)

test("the list of what is impossible is whole, however long", function(t)
  local text = output(t, NONE, [[
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { 2 } }
      return pg.device("tpu:3", function()
        for _ = 1, 40 do x = x:tanh() end
        return x
      end)
    end)
    print(select(2, pcall(pg.Session, { g })))
  ]])
  has(t, text, "40 nodes cannot be", "tanh: (Tanh) of float32 on /tpu:3", "tanh_38: (Tanh)", "output: (Tanh)",
      "allow_soft_placement=true")
end)

test("with soft placement only the impossible goes to the default device, and each is told once", function(t)
  local text = output(t, NONE, CLASSIC .. [[
    local s = pg.Session { g, allow_soft_placement = true }
    for _ = 1, 2 do print(s:run("y", { x = pg.ones { 1, 3 } }):totable()[1][2]) end
    print(s:run(g:gradients("loss", { "w" })[1], { x = pg.ones { 1, 3 } }):totable()[3][1])
    print(s:placement())
  ]])
  has(t, text, "warning: w: (Variable): /cpu:0, since /gpu:0 is not here\n",
      "warning: add: (Add): /cpu:0, since /gpu:0 is not here\n",
      "warning: y: (Matmul): /cpu:0, since /gpu:0 is not here\n", "9\n9\n36\n", "w: (Variable): /cpu:0\n")
  t.equal(select(2, text:gsub("warning", "")), 3)
  has_not(t, text, "copy of")
  -- What can be where it was placed stays.
  text = output(t, NONE, [[
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { 2 } }
      local y = pg.device("sim:1", function() return x * 2 end)
      return pg.device("/gpu:0", function() return y:exp() end)
    end)
    local s = pg.Session { g, allow_soft_placement = true }
    print(s:placement(), s:run("output", { x = { 0, 0 } }):totable()[2])
  ]])
  has(t, text, "mul: (Mul): /sim:1\n", "output: (Exp): /cpu:0\n", "copy of mul: /sim:1 -> /cpu:0, 8 bytes\n", "\t1\n")
end)

test("a device that is there without a kernel is the other reason", function(t)
  local script = [[
    local g = pg.graph(function(g)
      return pg.device("gpu:1", function()
        local x = g:placeholder { "x", shape = { "batch" } }
        local y = (x * 2):sin():exp() * pg.ones({ 1 })
        return { y = y, loss = y:sum(), z = pg.device("/gpu:7", function() return y:to("float64"):cos() end) }
      end)
    end)
    local ok, s = pcall(pg.Session, { g, allow_soft_placement = %s })
    if not ok then return print(s) end
    local dx = g:gradients("loss", { "x" })[1]
    for size = 1, 2 do
      local x = pg.ones { size } * 0.5
      local got = s:run({ "y", "loss", dx }, { x = x })
      x.requires_grad = true
      local y = (x * 2):sin():exp()
      y:sum():backward()
      print(got.y.device, pg.allclose(got.y:cpu(), y), pg.allclose(got[3]:cpu(), x.grad))
    end
    io.write(s:placement():match("sin: [^\n]*"), s:placement():match("exp: [^\n]*"), "\n")
  ]]
  local missing = GPU .. " PERIGEE_SIM_MISSING=sin"
  local refused = output(t, missing, script:format("false"))
  has(t, refused, "Session: 3 nodes cannot",
      "sin: (Sin) of float32 on /gpu:1: the device has no kernel for it; there are kernels on cpu; at script:5\n",
      "z: (Cos) of float64 on /gpu:7: the device is not here; there are kernels on cpu, sim; at script:6\n")
  local soft = output(t, missing, script:format("true"))
  has(t, soft, "warning: sin: (Sin): /cpu:0, since /gpu:1 has no kernel for it\n",
      "warning: z: (Cos): /gpu:0, since /gpu:7 is not here\n",
      "sim:1\ttrue\ttrue\nsim:1\ttrue\ttrue\nsin: (Sin): /cpu:0exp: (Exp): /gpu:1\n")
end)

test("updates move too, and variables stay where they are held", function(t)
  local script = [[
    local g = pg.graph(function(g)
      local w = pg.device("sim:0", function() return g:variable { "w", shape = { 2 }, init = "ones" } end)
      local d = pg.grad((w * w):sum(), { w })
      pg.no_grad(function() pg.sgd({ w }, { d }, {}, { lr = 0.25 }) end)
      return { y = w * 1 }
    end)
    local ok, s = pcall(pg.Session, { g, allow_soft_placement = %s })
    if not ok then return print(s) end
    for _ = 1, 2 do
      local r = s:run { "y", "w" }
      print(r.w.device, r.y[1]:item(), r.w[2]:item())
    end
  ]]
  local missing = NONE .. " PERIGEE_SIM_MISSING=sgd"
  has(t, output(t, missing, script:format("true")), "sgd: (Sgd): /cpu:0, since /sim:0 has no kernel for it",
      "sim:0\t0.5\t0.5\nsim:0\t0.25\t0.25\n")
  has(t, output(t, missing, script:format("false")), "sgd: (Sgd) of float32 on /sim:0: the device has no kernel for it")
end)

test("the log comes before the first run: devices, nodes, copies with sizes as they are known", function(t)
  local script = [[
    local g = pg.graph(function(g)
      local a = pg.device("/cpu:0", function() return g:constant({ 1, 2, 3 }, { name = "a" }) end)
      local x = pg.device("/cpu:0", function() return g:placeholder { "x", shape = { "batch", 3 } } end)
      return { y = pg.device("/gpu:1", function() return (x + a):relu() + x end) }
    end)
    local s = pg.Session { g%s }
    local y = s:run("y", { x = pg.ones { 1, 3 } })
    io.write(%s, y.device, "\n")
  ]]
  local logged = output(t, GPU, script:format(", log_device_placement = true", '""'))
  local asked = output(t, GPU, script:format("", "s:placement()"))
  t.equal(logged, asked)
  has(t, asked, "Device mapping:\n/cpu:0 -> cpu:0, ", "/gpu:0 -> sim:0, ", "/gpu:1 -> sim:1, ",
      "a: (Constant): /cpu:0\nx: (Placeholder): /cpu:0\nadd: (Add): /gpu:1\nrelu: (Relu): /gpu:1\ny: (Add): /gpu:1\n" ..
      "copy of x: /cpu:0 -> /gpu:1, 12*batch bytes\nsim:1\n")
  has_not(t, asked, "copy of a")
end)

test("constants lie where they are read, once for all runs; what was written into them is seen", function(t)
  local text = output(t, NONE, [[
    local eager, held = pg.ones { 1000 }, pg.ones { 1000 }
    local g = pg.graph(function(g)
      local c = g:constant(held, { name = "c" })
      local x = pg.device("sim:1", function() return g:placeholder { "x", shape = { 1000 } } end)
      return { y = pg.device("sim:1", function() return x * c + eager end) }
    end)
    local s = pg.Session { g }
    local x = pg.full({ 1000 }, 2, { device = "sim:1" })
    local function run()
      local y = s:run("y", { x = x })[1]:item()
      pg.memory.collect()
      return y
    end
    io.write(run(), " ", run(), " ")
    local before = pg.memory.stats("sim:1").live
    eager:add_(1)
    io.write(run(), " ", run(), " ", pg.memory.stats("sim:1").live - before, "\n")
    print(s:placement())
  ]])
  has(t, text, "3 3 4 4 0\n", "c: (Constant): /sim:1\n", "captured: (Constant): /sim:1\n")
  has_not(t, text, "copy of")
end)

test("variables lie beside their readers and updates, unless a scope says where", function(t)
  local script = [[
    local g = pg.graph(function(g)
      local function variable() return g:variable { "w", shape = { 2 }, init = "ones" } end
      local w = %s
      local x = g:placeholder { "x", shape = { 2 } }
      local loss = pg.device("sim:0", function() return (x * w):pow(2):sum() end)
      local d = pg.grad(loss, { w })
      pg.no_grad(function() pg.sgd({ w }, { d }, {}, { lr = 0.25 }) end)
      return { loss = loss, train = w }
    end)
    local s = pg.Session { g }
    for _ = 1, 2 do s:run("train", { x = { 1, 1 } }) end
    io.write(s:placement(), s:run("w")[1]:item(), " ", s:run("w").device, "\n")
  ]]
  local free = output(t, NONE, script:format("variable()"))
  has(t, free, "w: (Variable): /sim:0\n", "x: (Placeholder): /sim:0\n", "sgd: (Sgd): /sim:0\n", "\n0.25 sim:0\n")
  has_not(t, free, "copy of")
  local told = output(t, NONE, script:format("pg.device('/cpu:0', variable)"))
  has(t, told, "w: (Variable): /cpu:0\n", "sgd: (Sgd): /cpu:0\n", "copy of w: /cpu:0 -> /sim:0, 8 bytes\n",
      "\n0.25 cpu\n")
end)

test("with an accelerator graphs go there by themselves, eager code does not", function(t)
  local script = [[
    local function graph()
      return pg.graph(function(g)
        local x = g:placeholder { "x", shape = { 2, 2 } }
        local fixed = pg.device("/cpu:0", function() return x * 2 end)
        return { y = fixed:matmul(g:variable { "w", shape = { 2, 2 }, init = "ones" }) + pg.ones { 2 } }
      end)
    end
    local s = pg.Session { graph() }
    print(s:run("y", { x = { { 1, 1 }, { 1, 1 } } }).device, pg.ones({ 2 }).device, pg.device())
    print(s:placement())
  ]]
  local there = output(t, GPU, script)
  has(t, there, "sim:0\tcpu\tcpu\n", "w: (Variable): /gpu:0\n", "matmul: (Matmul): /gpu:0\n", "fill: (Fill): /gpu:0\n",
      "mul: (Mul): /cpu:0\n", "copy of mul: /cpu:0 -> /gpu:0, 16 bytes\n")
  has(t, output(t, NONE, script), "cpu\tcpu\tcpu\n", "w: (Variable): /cpu:0\n") -- sim is a test instrument
end)

test("pg.set_default_device: eager code follows it, graphs too, pg.reset takes it back", function(t)
  t.equal(output(t, NONE, [[
    local here = pg.ones { 2 }
    pg.set_default_device "sim:1"
    print(pg.device(), pg.ones({ 2 }).device, pg.tensor({ 1 }).device, pg.rand({ 2 }).device, pg.arange(3).device)
    print((here * 2).device, pg.zeros_like(here).device, pg.ones({ 1 }, { device = "cpu" }).device,
          pg.device("sim:0", function() return pg.ones { 1 } end).device)
    local g = pg.graph(function(g) return g:placeholder { "x", shape = { 2 } } * 2 end)
    print(pg.Session { g }:run("output", { x = { 1, 2 } }).device, pg.nn.Linear { 2, 2 }.weight.device)
    pg.reset()
    print(pg.device(), pg.ones({ 2 }).device)
    pg.set_default_device "sim:1"
    pg.set_default_device(nil)
    print(pg.ones({ 2 }).device, (pcall(pg.set_default_device, "gpu:0")), (pcall(pg.set_default_device, 1)))
  ]]), "sim:1\tsim:1\tsim:1\tsim:1\tsim:1\ncpu\tcpu\tcpu\tsim:0\nsim:1\tsim:1\ncpu\tcpu\ncpu\tfalse\tfalse\n")
end)

test("eager code that names an absent device is refused at once, and told of soft placement", function(t)
  local text = output(t, NONE, [[
    print(select(2, pcall(pg.device, "/gpu:0", function() return pg.ones { 2 } end)))
    print(select(2, pcall(pg.ones, { 2 }, { device = "gpu:0" })))
    local x = pg.ones { 2 }
    print(select(2, pcall(x.to, x, "gpu:0")))
  ]])
  for _, line in ipairs { "script:2: device: there is no device '/gpu:0'; there are cpu:0, sim:0, sim:1",
                          "script:3: ones: device: there is no device 'gpu:0'",
                          "script:5: to: device: there is no device 'gpu:0'" } do has(t, text, line) end
  t.equal(select(2, text:gsub("pg%.Session{g, allow_soft_placement=true} then runs", "")), 3)
end)

test("bodies are placed with their graph; absent devices are named by what is in them, too", function(t)
  local script = [[
    local g = pg.graph(function(g)
      local x = g:placeholder { "x", shape = { 2 } }
      return pg.cond(x:sum():gt(0), function() return pg.device("%s", function() return x:exp() end) end,
                     function() return x * 2 end)
    end)
    local ok, s = pcall(pg.Session, { g, allow_soft_placement = %s })
    if not ok then return print(s) end
    for _, x in ipairs { 0, -1, 1 } do io.write(("%%.2f "):format(s:run(1, { x = { x, x } })[1]:item())) end
  ]]
  script = script:gsub("s:run%(1,", 's:run("output",')
  has(t, output(t, NONE, script:format("gpu:0", "false")), "(Exp) of float32 on /gpu:0: the device is not here")
  has(t, output(t, NONE, script:format("gpu:0", "true")), "0.00 -2.00 2.72")
  has(t, output(t, NONE, script:format("sim:1", "false")), "0.00 -2.00 2.72")
end)

test("a model for an absent device trains to the bits of the processor's", function(t)
  local script = [[
    local function train(place)
      pg.manual_seed(1)
      local nn = pg.nn
      local model = nn.Sequential { nn.Linear { 3, 8 }, nn.BatchNorm1d { 8 }, nn.ReLU {}, nn.Linear { 8, 1 } }
      local opt = pg.optim.Adam { model:parameters(), lr = 0.01 }
      local g = pg.graph(function(g)
        local x = g:placeholder { "x", shape = { "n", 3 } }
        return pg.device(place, function()
          local loss = model(x):pow(2):mean()
          return { loss = loss, train = opt:minimize(loss) }
        end)
      end)
      local s = pg.Session { g, allow_soft_placement = true }
      local loss, x = nil, pg.arange(12):reshape(4, 3):to "float32"
      for _ = 1, 5 do loss = s:run({ "loss", "train" }, { x = x }).loss:item() end
      return loss
    end
    print(train "cpu" == train "gpu:0")
  ]]
  local text = output(t, NONE, script)
  t.ok(text:find("true\n$"), text)
end)

test("what an optimizer keeps is where its parameters are, whatever accelerator there is", function(t)
  local script = [[
    local nn = pg.nn
    local RULES = { Adam = {}, SGD = { momentum = 0.9 }, Adagrad = {}, RMSprop = { momentum = 0.5, centered = true } }
    local function begin(name)
      pg.manual_seed(1)
      local model = nn.Sequential { nn.Linear { 3, 4 }, nn.Linear { 4, 1 } }
      local o = { model:parameters(), lr = 0.01 }
      for key, value in pairs(RULES[name]) do o[key] = value end
      return model, pg.optim[name](o)
    end
    local x = pg.arange(12):reshape(4, 3):to "float32"
    local function in_session(name, place, accumulate)
      local model, opt = begin(name)
      local g = pg.graph(function(g)
        local function loss_of()
          local loss = model(g:placeholder { "x", shape = { "n", 3 } }):pow(2):mean()
          return { loss = loss, train = opt:minimize(loss, { accumulate = accumulate }) }
        end
        if place then return pg.device(place, loss_of) end
        return loss_of()
      end)
      local s = pg.Session { g }
      for _ = 1, 4 do s:run({ "loss", "train" }, { x = x }) end
      s:commit(model)
      s:commit(opt)
      return model, opt, s
    end
    local function step(model, opt)
      opt:zero_grad()
      model(x):pow(2):mean():backward()
      opt:step()
    end
    for name in pairs(RULES) do
      local plain, by = begin(name)
      for _ = 1, 5 do step(plain, by) end
      for _, place in ipairs { false, "cpu", "gpu:0", "gpu:1" } do
        local model, opt, s = in_session(name, place)
        local at, seen = "/" .. (place == "cpu" and "cpu:0" or place or "gpu:0"), 0
        for line in s:placement():gmatch "[^\n]+" do
          if line:find "%.weight" and line:find "(Variable)" then
            seen = seen + 1
            if not line:find(at, 1, true) then print(name, place, line) end
          end
        end
        if seen < 4 then print(s:placement()) end
        step(model, opt)
        for i, p in ipairs(model:parameters()) do
          if p.device ~= "cpu" or not pg.allclose(p, plain:parameters()[i], { rtol = 1e-5, atol = 1e-7 }) then
            print(name, place, p, plain:parameters()[i])
          end
        end
      end
    end
    in_session("Adam", false, 2)
    in_session("Adam", "cpu", 2)
    print "done"
  ]]
  t.equal(output(t, GPU, script), "done\n")
end)
