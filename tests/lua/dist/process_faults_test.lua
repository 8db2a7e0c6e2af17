-- SPDX-License-Identifier: Apache-2.0
-- Faults of processes, drawn by a seed: whatever happens to one of them, and whenever, the others end with an error
-- that says so, and the run behind it goes on from the checkpoint to the bits of one that nothing happened to.
-- PERIGEE_PROCESS_FAULTS=100: so many (5), from the seed PERIGEE_FAULT_SEED (1) on; PERIGEE_FAULT_KIND=kill: of one
-- kind.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path
local draws, launched, process = require "draws", require "launched", require "process"

-- Trains six steps with a checkpoint a step. In the first run one rank does what the words say.
local TRAINS = [[
local dir, kind, victim, at, place, after, how = ...
victim, at, after = tonumber(victim), tonumber(at), tonumber(after)
local STEPS, LATE = 6, 2
local faulty = os.getenv "PERIGEE_RESTARTS" == "0" and rank == victim
local nan, seconds_late = 0 / 0, LATE + 1.5

local function misbehave()
  if kind == "kill" then os.execute "kill -9 $PPID" end
  if kind == "stop" then os.execute "kill -STOP $PPID" end
  if kind == "raise" then error "no more apples" end
  if kind == "exit" then os.exit(3) end
  if kind == "slow" then os.execute "sleep 0.3" end
  if kind == "late" then os.execute(("sleep %g"):format(seconds_late)) end
  if kind == "memory" then
    pg.config.memory_limit("cpu", "16MB")
    pg.zeros { 2 ^ 23 }
  end
  if kind == "end" then os.exit(0) end
end
local function passes(here)
  if faulty and place == here then misbehave() end
end

if kind == "plugin" then
  pg.load_plugin(how:format(faulty and "2.0.0" or "1.0.0"))
  how = "0"
end
pg.manual_seed(3)
local strategy = d.multi_worker()
local model, optimizer
local odd = faulty and kind == "model"
strategy:scope(function()
  model = pg.nn.Sequential { pg.nn.Linear { 4, odd and 9 or 8 }, pg.nn.Dropout { 0.2 }, pg.nn.Tanh {},
                             pg.nn.Linear { odd and 9 or 8, 1 } }
  if faulty and kind == "dtype" then model:to "float64" end
  if how == "3" then d.shard(model, { level = 3 }) end
  optimizer = pg.optim.Adam { model:parameters(), lr = 0.02 }
end)
local parts = { dir, keep = 2, model = model, optimizer = optimizer }
local manager = how == "3" and d.Checkpoints(parts) or pg.CheckpointManager(parts)
local saved = manager:restore()
local first = (saved and saved.step or 0) + 1
if rank == 0 then print(("run %s begins at step %d"):format(os.getenv "PERIGEE_RESTARTS", first)) end
d.barrier()
if faulty and place == "any" then
  local signal = kind == "kill" and "KILL" or "STOP"
  os.execute(("(sleep %.3f; kill -%s $PPID) </dev/null >/dev/null 2>&1 &"):format(after, signal))
end
for step = first, STEPS do
  local short = os.getenv "PERIGEE_RESTARTS" == "0" and (step >= at or place == "any")
  if kind ~= "slow" then d.deadline(short and LATE or 60) end
  if faulty and kind == "batches" and step > at then return end
  pg.manual_seed(step * size + rank)
  local x = pg.randn { 5, 4 }
  local y = x:sum { axis = 2, keepdim = true }
  if faulty and kind == "nan" and step == at then x[2][3] = nan end
  strategy:run(function()
    optimizer:zero_grad()
    if step == at then passes "forward" end
    local loss = pg.nn.mse(model(x), y)
    if step == at then passes "backward" end
    loss:backward()
    if step == at then passes "step" end
    optimizer:step()
  end)
  if step == at then passes "save" end
  if how == "3" or rank == 0 then manager:save { step = step } end
  d.barrier()
end
d.deadline(60)
local weights, names = {}, {}
local state = how == "3" and d.whole_state(model) or model:state()
for name in pairs(state) do names[#names + 1] = name end
table.sort(names)
for i, name in ipairs(names) do weights[i] = state[name] end
]] .. launched.LEAVES_WEIGHTS

local PROCESSES = 3
local PLUGINS = "/../tests/plugins_versions/%s/versioned.so" -- of the build, behind the folder of perigee

-- What happens to which rank, and when.
local function fault_of(random, only)
  local function pick(list) return list[random(#list)] end
  local f = { kind = pick { "kill", "kill", "stop", "raise", "exit", "slow", "late", "memory", "end", "nan", "model",
                            "dtype", "batches", "plugin" },
              victim = random(0, PROCESSES - 1), at = random(2, 5), level = pick { "0", "0", "3" }, after = 0 }
  if only then f.kind = only end
  f.place = pick { "forward", "backward", "step", "save" }
  local anywhere = random(3) == 1
  if (f.kind == "kill" or f.kind == "stop") and anywhere then f.place, f.after = "any", random(0, 600) / 1000 end
  return f
end

-- What the others say, a %s standing for a list of ranks that the one is in: a rank that another one's end has ended
-- is soon named too, and one that is stopped goes on for a moment when the launcher ends the others.
local ENDED = "cannot be completed: %s ha%a+ ended"
local FAILED = "cannot be completed: %s has failed: "
local ABSENT = "took more than [%d.]+ seconds: %s[^;:]* ha%a+ not come to"
local DIFFER = "ranks have different "
local SAID = {
  kill = { ENDED }, stop = { ABSENT }, raise = { FAILED .. "[^\n]*no more apples" },
  exit = { FAILED .. "os%.exit%(3%)" }, late = { ABSENT }, memory = { FAILED .. "[^\n]*tried to allocate" },
  ["end"] = { ENDED, ABSENT }, batches = { ENDED, ABSENT }, nan = { "%s has NaN in the gradient of parameter" },
  model = { DIFFER .. "models: %s has ", DIFFER .. "models: [^\n]*, %s has " },
  plugin = { DIFFER .. "plugins: %s has ", DIFFER .. "plugins: [^\n]*, %s has " },
}

SAID.dtype = SAID.model

local function is_named(rank, ranks)
  for number in ranks:gmatch "%d+" do
    if tonumber(number) == rank then return true end
  end
  return false
end

-- Whether it is said of this rank.
local function is_said(said, patterns, rank)
  for _, pattern in ipairs(patterns) do
    local ranks = said:match((pattern:gsub("%%s", function() return "ranks? ([%d, and]+)" end, 1)))
    if ranks and is_named(rank, ranks) then return true end
  end
  return false
end

-- What is seen when the first step is made, or before.
local EARLY = { model = true, dtype = true, plugin = true }

-- Where the first to give up ends the others, which may not have waited as long.
local BY_DEADLINE = { stop = true, late = true, batches = true, ["end"] = true }

-- The errors of ranks in the first run.
local function errors_of(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do
    if line:find "restart 1 of 1" then break end
    local rank, message = line:match "^%[(%d)%] perigee: (.*)"
    if rank and not list[tonumber(rank)] then list[tonumber(rank)] = message end
  end
  return list
end

local function run(t, f)
  local dir = os.tmpname()
  os.remove(dir)
  local mark = launched.mark()
  local how = f.kind == "plugin" and process.perigee():match "^(.*)/" .. PLUGINS or f.level
  local words = ("%s %s %d %d %s %g %s %s"):format(dir, f.kind, f.victim, f.at, f.place, f.after, how, mark)
  local debug_mode = f.kind == "nan" and "PERIGEE_DIST_DEBUG=1" or ""
  local text, status = launched.run(t, PROCESSES, TRAINS, debug_mode, "--max-restarts 1", words)
  local left
  for _ = 1, 20 do -- what a launcher has ended is gone a moment later
    left = launched.left_of(mark)
    if left == "" then break end
    process.run "sleep 0.2"
  end
  return text, status, launched.take_weights(dir), left
end

-- What is wrong with how it went, or nil.
local function defect_of(f, text, status, weights, left, expected)
  if left ~= "" then return "stays behind: " .. left end
  if status ~= 0 then return "status " .. status end
  if weights ~= expected then return "other bits: " .. tostring(weights) end
  local begins = {}
  for number in text:gmatch "run %d begins at step (%d+)" do begins[#begins + 1] = tonumber(number) end
  if f.kind == "slow" or f.place == "any" and #begins == 1 then return end
  if EARLY[f.kind] and #begins == 1 then begins[2] = begins[1] end -- seen before it begins
  if #begins ~= 2 or not text:find("restart 1 of 1", 1, true) then return "began " .. #begins .. " times" end
  local last = begins[2] - 1 -- saved
  local whole = EARLY[f.kind] and 0 or f.kind == "batches" and f.at or f.at - 1
  -- A rank that is late may still find what others have sent before they gave up, and make the step.
  if f.place ~= "any" and last ~= whole and last ~= f.at then
    return "went on behind step " .. last
  end
  -- Perhaps before anybody met, or when there was nothing left to do.
  if f.place == "any" and f.kind == "kill" and (begins[2] == 1 or begins[2] == 7) then return end
  local errors, named = errors_of(text), 0
  for rank = 0, PROCESSES - 1 do
    local said = errors[rank]
    if rank ~= f.victim then
      if not said then return ("rank %d says nothing"):format(rank) end
      if is_said(said, SAID[f.kind], f.victim) then
        named = named + 1
      elseif not (BY_DEADLINE[f.kind] and said:find "cannot be completed: ranks? [%d, and]+ ha%a+ ended") then
        return ("rank %d says something else"):format(rank)
      end
      if not said:find "%.lua:%d+: [%w_.]+: " then return ("rank %d does not name a line and a call"):format(rank) end
    end
  end
  if named == 0 then return "nobody names the rank" end
end

test("faults of processes, drawn by a seed", function(t)
  launched.need(t)
  local first, count = tonumber(os.getenv "PERIGEE_FAULT_SEED") or 1, tonumber(os.getenv "PERIGEE_PROCESS_FAULTS") or 5
  local expected, defects = {}, {}
  for seed = first, first + count - 1 do
    local f = fault_of(draws.generator(seed), os.getenv "PERIGEE_FAULT_KIND")
    if f.kind == "plugin" then f.level = "0" end
    if not expected[f.level] then
      local none = { kind = "nothing", victim = 0, at = 9, place = "none", after = 0, level = f.level }
      local text, status, weights = run(t, none, 0)
      t.ok(status == 0 and weights, "the run that nothing happens to:\n" .. text)
      expected[f.level] = weights
    end
    local text, status, weights, left = run(t, f)
    local defect = defect_of(f, text, status, weights, left, expected[f.level])
    local what = ("seed %d, %s of rank %d at step %d, %s %g, level %s: "):format(seed, f.kind, f.victim, f.at, f.place,
                                                                                f.after, f.level)
    if os.getenv "PERIGEE_PROCESS_FAULTS" then print(what .. (defect or "well")) end
    if defect then defects[#defects + 1] = what .. defect .. "\n" .. text end
  end
  t.equal(table.concat(defects, "\n"), "")
end)
