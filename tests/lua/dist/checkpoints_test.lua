-- SPDX-License-Identifier: Apache-2.0
-- Checkpoints of spread models: written by some number of processes at one level, read by another at another, a
-- training goes on as if nothing had happened.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local launched = require "launched"
local process = require "process"

local BODY = [[
local nn, optim = pg.nn, pg.optim
local level, folder, steps = tonumber(arg[1]), arg[2], tonumber(arg[3])
local strategy = d.multi_worker()
local model, optimizer, average
strategy:scope(function()
  pg.manual_seed(1)
  model = nn.Sequential { nn.Linear { 5, 7 }, nn.Tanh {}, nn.Linear { 7, 3 } }:to "float64"
  if level > 0 then d.shard(model, { level = level }) end
  optimizer = optim.Adam { model:parameters(), lr = 0.01 }
  average = optim.EMA { model, decay = 0.9 }
end)
local checkpoints = d.Checkpoints { folder, model = model, optimizer = optimizer, average = average, keep = 2 }
local saved = checkpoints:restore()
local first = saved and saved.step or 0
if first > 0 then same(saved.note, "of step " .. first) end
pg.manual_seed(7)
local xs = pg.randn({ 8, 6, 5 }, { dtype = "float64" })
for step = first + 1, steps do
  local ds = pg.data.from_slices { x = xs[step], y = xs[step][{ {}, { 1, 3 } }]:contiguous() }:batch(6)
  for _, b in strategy:distribute(ds):each() do
    strategy:run(function(b)
      optimizer:zero_grad()
      nn.mse(model(b.x), b.y):backward()
      optimizer:step()
      average:update()
    end, b)
  end
end
local path = checkpoints:save { step = steps, note = "of step " .. steps }
if rank == 0 then
  local plain = nn.Sequential { nn.Linear { 5, 7 }, nn.Tanh {}, nn.Linear { 7, 3 } }:to "float64"
  pg.load(path .. "/model.safetensors.index.json", plain)
  local total = 0
  for _, p in ipairs(plain:parameters()) do total = total + p:pow(2):sum():item() end
  for _, t in pairs(pg.load(path .. "/average.safetensors.index.json")) do total = total + t:pow(2):sum():item() end
  print(("RESULT %d %.15g"):format(first, total))
end
d.barrier()
]]

test("2, 3 and 1 processes at levels 3, 2, 1 and none go on with each other's checkpoints", function(t)
  local perigee = launched.need(t)
  local folder = os.tmpname()
  os.remove(folder)
  local function step(n, level, where, steps)
    local text = launched.well(t, n, BODY, nil, nil, ("%d %s %d"):format(level, where, steps))
    return text:match "RESULT (%d+) (%S+)"
  end
  local _, expected = step(1, 0, folder .. ".alone", 8)
  t.equal(step(2, 3, folder, 2), "0")
  t.equal(step(3, 2, folder, 4), "2")
  t.equal(step(2, 1, folder, 6), "4")
  local first, got = step(1, 0, folder, 8)
  t.equal(first, "6")
  t.ok(math.abs(tonumber(got) - tonumber(expected)) < 1e-12 * tonumber(expected), got .. " is not " .. expected)
  local listed = process.run("ls " .. folder)
  t.equal(listed, "step-00000006\nstep-00000008\n") -- two are kept
  -- a damaged file, and what a killed run has left
  process.run(("printf x >> $(ls %s/step-00000008/model-00001*)"):format(folder))
  process.run(("mkdir %s/step-00000009.unfinished"):format(folder))
  local text, status = launched.run(t, 2, BODY, nil, nil, ("2 %s 9"):format(folder))
  t.ok(status ~= 0 and text:find "is damaged: its checksum differs", text)
  process.run(("rm -r %s/step-00000008"):format(folder))
  t.equal(step(2, 2, folder, 8), "6")
  process.run(("rm -r %s %s.alone"):format(folder, folder))
  t.ok(perigee)
end)

test("what is refused", function(t)
  local pg = require "perigee"
  t.raises(function() pg.dist.Checkpoints { model = pg.nn.Linear { 2, 2 } } end, "needs a folder and objects")
  local folder = os.tmpname()
  os.remove(folder)
  t.raises(function() pg.dist.Checkpoints { folder, x = 3 } end, "x must be an object with state%(%)")
  t.raises(function() pg.dist.Checkpoints { folder, keep = 0 } end, "keep must be a whole number of at least 1")
  local checkpoints = pg.dist.Checkpoints { folder, model = pg.nn.Linear { 2, 2 } }
  t.equal(checkpoints:restore(), nil)
  t.raises(function() checkpoints:save {} end, "step must be a count")
  t.raises(function() checkpoints:restore(4) end, "there is no checkpoint of step 4")
  checkpoints:save { step = 1 }
  t.equal(checkpoints:steps(), { 1 })
  local other = pg.dist.Checkpoints { folder, model = pg.nn.Linear { 2, 3 } }
  t.raises(function() other:restore() end, "is {2}; the model's")
  process.run("rm -r " .. folder)
end)
