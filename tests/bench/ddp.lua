-- SPDX-License-Identifier: Apache-2.0
-- A training step of two processes that sum their gradients over one of the same processes that do not, beside
-- PyTorch's DistributedDataParallel over gloo: by turns, one thread a process. Ratios of the least times of a round,
-- their medians over rounds.
--
--   perigee tests/bench/ddp.lua PYTHON [ROUNDS]

local pg = require "perigee"
local native = require "perigee.native"
local nn, optim = pg.nn, pg.optim

local MODELS = { { "784-512-256-10", { 784, 512, 256, 10 } }, { "4 x 1024", { 1024, 1024, 1024, 1024, 1024 } },
                 { "20 x 64", {} } }
for i = 1, 21 do MODELS[3][2][i] = 64 end
local BATCHES, REPEATS = { 32, 256 }, 20

local function build(sizes)
  local list = {}
  for i = 2, #sizes do
    list[#list + 1] = nn.Linear { sizes[i - 1], sizes[i] }
    if i < #sizes then list[#list + 1] = nn.ReLU {} end
  end
  return nn.Sequential(list)
end

-- What each of the launched processes does: a line a row, its name, and milliseconds with and without.
local function rank()
  local d = pg.dist
  local function timed(fn)
    for _ = 1, 5 do fn() end
    local least = math.huge
    for _ = 1, REPEATS do
      d.barrier()
      local begin = native.clock()
      fn()
      least = math.min(least, native.clock() - begin)
    end
    return least * 1e3
  end
  for _, case in ipairs(MODELS) do
    for _, batch in ipairs(BATCHES) do
      local sizes, strategy = case[2], d.multi_worker()
      local x, y = pg.randn { batch, sizes[1] }, pg.randn { batch, sizes[#sizes] }
      local function stepper()
        local model = build(sizes)
        local optimizer = optim.SGD { model:parameters(), lr = 0.01 }
        return function()
          optimizer:zero_grad()
          nn.mse(model(x), y):backward()
          optimizer:step()
        end
      end
      local alone = timed(stepper())
      local step = strategy:scope(stepper)
      local together = timed(function() strategy:run(step) end)
      if d.rank() == 0 then print(("%s, %d rows\t%.4f\t%.4f"):format(case[1], batch, together, alone)) end
    end
  end
end

if pg.dist.size() > 1 then return rank() end

local python, rounds = (...), tonumber((select(2, ...))) or 5
if not python then error "perigee tests/bench/ddp.lua PYTHON [ROUNDS]" end
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local COMMANDS = {
  ("OMP_NUM_THREADS=1 '%s/bin/perigee' launch -n 2 --allow-root --no-prefix '%s/ddp.lua'"):format(native.home, here),
  ("OMP_NUM_THREADS=1 '%s' '%s/ddp_torch.py'"):format(python, here),
}

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

local names, times = {}, { {}, {} } -- times[side][name] = { together = {}, alone = {}, ratio = {} }
for _ = 1, rounds do
  for side, command in ipairs(COMMANDS) do
    local pipe = assert(io.popen(command .. " 2>/dev/null"))
    for line in pipe:lines() do
      local name, together, alone = line:match "^(.-)\t([%d.]+)\t([%d.]+)$"
      if name then
        if side == 1 and not times[1][name] then names[#names + 1] = name end
        local row = times[side][name] or { together = {}, alone = {}, ratio = {} }
        times[side][name] = row
        table.insert(row.together, tonumber(together))
        table.insert(row.alone, tonumber(alone))
        table.insert(row.ratio, together / alone)
      end
    end
    pipe:close()
  end
end
print(("%-26s %26s %26s"):format("", "Perigee: with, without, ratio", "PyTorch: with, without, ratio"))
for _, name in ipairs(names) do
  local cells = {}
  for side = 1, 2 do
    local row = times[side][name]
    cells[side] = row and ("%9.3f %9.3f %6.2f"):format(median(row.together), median(row.alone),
                                                       median(row.ratio)) or "-"
  end
  print(("%-26s %26s %26s"):format(name, cells[1], cells[2]))
end
