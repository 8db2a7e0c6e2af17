-- SPDX-License-Identifier: Apache-2.0
-- Which of oneDNN's kernels compute in bfloat16, and that they do it to one rounding. run.sh gives PERIGEE_TEST_ISA, a
-- part of the name of those that should.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../?.lua;" .. package.path
local process = require "process"
local pg = require "perigee"

local TRAINING = [[
local pg = require "perigee"
local nn = pg.nn
local function train(model, x)
  local optimizer = pg.optim.SGD(model:parameters(), { lr = 0.01 })
  local y
  pg.amp.autocast("bfloat16", function() y = model(x) end)
  y:to("float32"):square():mean():backward()
  optimizer:step()
  model:eval()
  pg.no_grad(function() pg.amp.autocast("bfloat16", function() model(x) end) end)
end
train(nn.Sequential { nn.Linear { 64, 128 }, nn.ReLU(), nn.Linear { 128, 64 } }, pg.randn { 64, 64 })
train(nn.TransformerEncoderLayer { 64, heads = 4, feedforward = 128 }, pg.randn { 4, 16, 64 })
train(nn.Sequential { nn.Conv2d { 32, 64, kernel = 3, padding = 1 }, nn.BatchNorm2d { 64 }, nn.ReLU(),
  nn.Conv2d { 64, 32, kernel = 3, stride = 2, padding = 1, bias = false } }, pg.randn { 8, 32, 16, 16 })
train(nn.Sequential { nn.Conv2d { 32, 64, kernel = 1 }, nn.ConvTranspose2d { 64, 32, kernel = 2, stride = 2 } },
  pg.randn { 4, 32, 16, 16 })
]]

test("products and convolutions of an autocast training run on it", function(t)
  local perigee, path = process.need_perigee(t), process.file(TRAINING)
  local text, status = process.run("DNNL_VERBOSE=1 " .. perigee .. " " .. path)
  os.remove(path)
  t.equal(status, 0, text)
  local seen = {}
  for kind, kernel, pass in text:gmatch("exec,cpu,(%l+),([^,]*),([%l_]+),[^\n]*bf16") do
    if kind ~= "reorder" then
      seen[kind .. " " .. pass] = (seen[kind .. " " .. pass] or 0) + 1
      t.ok(kernel:find(os.getenv "PERIGEE_TEST_ISA", 1, true), ("%s, %s runs on %s"):format(kind, pass, kernel))
    end
  end
  for _, name in ipairs { "matmul undef", "convolution forward_training", "convolution backward_data",
    "convolution backward_weights" } do
    t.ok((seen[name] or 0) >= 3, ("%s ran %d times"):format(name, seen[name] or 0))
  end
end)

-- The result of fn on bfloat16 inputs is that on the same numbers in float64, rounded once; float32 sums add a little.
local function rounded_once(t, label, inputs, fn)
  local exact, magnitude = {}, {}
  for i, x in ipairs(inputs) do
    inputs[i] = x:to("bfloat16")
    exact[i] = inputs[i]:to("float64")
    magnitude[i] = exact[i]:abs()
  end
  local y, z = fn(unpack(inputs)), fn(unpack(exact))
  t.equal(y.dtype, "bfloat16")
  local bound = z:abs() * 2 ^ -8 + fn(unpack(magnitude)) * 2 ^ -18
  local worst = ((y:to("float64") - z):abs() / bound):max():item()
  t.ok(worst <= 1, ("%s: %g of what one rounding may be off"):format(label, worst))
end

test("their results are rounded once", function(t)
  pg.manual_seed(3)
  for _, s in ipairs { { 1, 1, 1 }, { 16, 32, 16 }, { 17, 33, 19 }, { 64, 10, 128 }, { 5, 300, 70 },
    { 129, 64, 257 } } do
    local a, b = pg.randn { s[1], s[2] }, pg.randn { s[2], s[3] }
    local label = ("product of %d x %d and %d"):format(s[1], s[2], s[3])
    rounded_once(t, label, { a, b }, function(x, y) return x:matmul(y) end)
    rounded_once(t, label .. ", transposed", { a:t(), b:t() }, function(x, y) return x:t():matmul(y:t()) end)
    rounded_once(t, label .. ", batches", { pg.stack { a, a * 2, -a }, b }, function(x, y) return x:matmul(y) end)
  end
  for _, s in ipairs { { 3, 8, 3, {} }, { 16, 24, 3, { padding = 1 } }, { 32, 64, 3, { stride = 2, padding = 1 } },
    { 64, 32, 1, {} }, { 32, 32, 5, { padding = 4, dilation = 2 } }, { 32, 32, 3, { groups = 2 } } } do
    local groups = s[4].groups or 1
    local x, w = pg.randn { 2, s[1], 13, 11 }, pg.randn { s[2], s[1] / groups, s[3], s[3] }
    rounded_once(t, ("convolution of %d channels to %d"):format(s[1], s[2]), { x, w },
      function(a, b) return pg.conv2d(a, b, nil, s[4]) end)
  end
end)
