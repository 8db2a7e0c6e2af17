-- SPDX-License-Identifier: Apache-2.0
-- Perigee's half of the benchmark of whole models: `perigee model_step.lua ITEM [DTYPE [MODE]]` prints nanoseconds a
-- step or a call, wall and processor time. DTYPE bfloat16 runs the model under autocast; MODE is eager, compiled (a
-- step by pg.compile, a call frozen besides) or planned (a call that is not frozen). The items are in models.lua and
-- vision.lua; model_step_torch.py has the same for PyTorch.

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local item, dtype, mode = arg[1] or "", arg[2] or "float32", arg[3] or "eager"
local seconds = 1.5 -- a measurement's length, unless one step takes longer

-- fn in the precision that was asked for.
local function in_precision(fn)
  if dtype == "float32" then return fn end
  return function() return pg.amp.autocast({ dtype = dtype }, fn) end
end

local function in_mode(fn, options)
  if mode == "eager" then return fn end
  return pg.compile(fn, options)
end

local function train(model, x, y, optimizer)
  local function loss()
    local logits = model(x)
    if logits:dim() == 3 then logits = logits:reshape(-1, logits:size(3)) end
    return nn.cross_entropy(logits, y)
  end
  local run = in_precision(loss)
  return in_mode(function()
    optimizer:zero_grad()
    run():backward()
    optimizer:step()
  end)
end

local function infer(model, x)
  model:eval()
  local run = in_precision(function() return model(x) end)
  local call = in_mode(function() return pg.inference_mode(run) end, { frozen = mode ~= "planned" })
  return function() call() end
end

-- What a step takes, wall and processor time: the mean over at least so many steps, and seconds.
local function timed(step, least, long)
  collectgarbage("collect")
  local wall, cpu, count = native.clock(), os.clock(), 0
  repeat
    step()
    count = count + 1
  until count >= least and native.clock() - wall >= long
  pg.synchronize()
  collectgarbage("collect") -- what the loop left over is paid for by the loop
  return (native.clock() - wall) / count, (os.clock() - cpu) / count
end

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local make
for _, file in ipairs { "models", "vision" } do
  make = make or dofile(("%s/%s.lua"):format(here, file))(train, infer)[item]
end
if not make then error("model_step.lua needs the name of an item; see models.lua and vision.lua", 0) end

local step = make()
timed(step, 3, seconds / 2) -- caches, thread pools, compiled loops, the memory that steps take
local wall, cpu = timed(step, 2, seconds)
print(("%.1f %.1f"):format(wall * 1e9, cpu * 1e9))
