-- SPDX-License-Identifier: Apache-2.0
-- Perigee's half of the benchmark of whole models: `perigee model_step.lua ITEM [DTYPE]` prints nanoseconds a step or a
-- call, wall and processor time. DTYPE bfloat16 runs the model under autocast. The items are in models.lua and
-- vision.lua; model_step_torch.py has the same for PyTorch.

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local item, dtype = arg[1] or "", arg[2] or "float32"
local seconds = 1.5 -- a measurement's length, unless one step takes longer

-- fn in the precision that was asked for.
local function in_precision(fn)
  if dtype == "float32" then return fn end
  return function() return pg.amp.autocast({ dtype = dtype }, fn) end
end

local function train(model, x, y, optimizer)
  local function loss()
    local logits = model(x)
    if logits:dim() == 3 then logits = logits:reshape(-1, logits:size(3)) end
    return nn.cross_entropy(logits, y)
  end
  local run = in_precision(loss)
  return function()
    optimizer:zero_grad()
    run():backward()
    optimizer:step()
  end
end

local function infer(model, x)
  model:eval()
  local run = in_precision(function() return model(x) end)
  return function() pg.inference_mode(run) end
end

local function timed(step, count)
  collectgarbage("collect")
  local wall, cpu = native.clock(), os.clock()
  for _ = 1, count do step() end
  pg.synchronize()
  collectgarbage("collect") -- what the loop left over is paid for by the loop
  return native.clock() - wall, os.clock() - cpu
end

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local make
for _, file in ipairs { "models", "vision" } do
  make = make or dofile(("%s/%s.lua"):format(here, file))(train, infer)[item]
end
if not make then error("model_step.lua needs the name of an item; see models.lua and vision.lua", 0) end

local step, count = make(), 1
local begin, warm = native.clock(), 0 -- caches, thread pools, the memory that steps take: new pages are found for a while
while warm < 3 or native.clock() - begin < seconds / 2 do
  step()
  warm = warm + 1
end
local wall, cpu = timed(step, 1)
if math.min(wall, cpu) < seconds then
  count = math.max(2, math.floor(seconds / math.min(wall, cpu)))
  wall, cpu = timed(step, count)
end
print(("%.1f %.1f"):format(wall / count * 1e9, cpu / count * 1e9))
