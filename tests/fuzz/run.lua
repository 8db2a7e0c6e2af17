-- SPDX-License-Identifier: Apache-2.0
-- Starts processes that make calls, again where one was ended by a call, and says what came of them.

local process = require "process"
local programs = require "fuzz.programs"

local M = {}

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
if here:sub(1, 1) ~= "/" then here = process.run "pwd":match "[^\n]+" .. "/" .. here end

local ADDRESS_SPACE = 6 * 2 ^ 20 -- kB; sanitizers reserve terabytes, so that they get none of it
local MOST_CRASHES = 40
local CHUNK = 200000 -- calls of one process
local HANG = 120     -- seconds

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "*a"
  if file then file:close() end
  return text
end

-- A command prefix that limits what a process may map, or none where it then does not start.
local function limit(perigee)
  local prefix = ("ulimit -v %d; "):format(ADDRESS_SPACE)
  local _, status = process.run(("(%s%s --version) >/dev/null"):format(prefix, quoted(perigee)))
  return status == 0 and prefix or ""
end

local ENVIRONMENT = "CUDA_VISIBLE_DEVICES=-1 PERIGEE_STANDIN_DEVICES=0 PERIGEE_SIM_DEVICES=2 PERIGEE_SIM_GPU=1"

local function last_lines(text, n)
  local lines = {}
  for line in (text or ""):gmatch "[^\n]+" do lines[#lines + 1] = line end
  return table.concat(lines, "\n", math.max(1, #lines - n + 1))
end

-- What a sanitizer says of the place, or the last lines.
local function report(text)
  local at = text and (text:find("ERROR: %a+Sanitizer") or text:find("runtime error:"))
  if not at then return last_lines(text, 12) end
  local lines = {}
  for line in text:sub(math.max(1, at - 200)):gmatch "[^\n]+" do
    lines[#lines + 1] = line
    if #lines == 26 then break end
  end
  return table.concat(lines, "\n")
end

local function merge(into, from)
  for _, key in ipairs { "calls", "results", "coded", "script", "memory" } do into[key] = into[key] + from[key] end
  for _, key in ipairs { "raw", "problems" } do
    for kind, entry in pairs(from[key]) do
      local known = into[key][kind]
      if known then known.count = known.count + entry.count else into[key][kind] = entry end
    end
  end
end

-- Runs a process, and ends it where it stands at one call for HANG seconds; answers its status.
local WATCHED = [[
cd %s && { %s%s %s %s %d %d %d %d %s %s >/dev/null 2>%s & }
child=$!
(
  same=0 last=
  while kill -0 $child; do
    sleep 1
    now=$(cat %s)
    if [ "$now" = "$last" ]; then same=$((same + 1)); else same=0 last=$now; fi
    [ $same -lt %d ] || kill -ALRM $child
  done
) >/dev/null 2>&1 &
watcher=$!
wait $child
status=$?
kill $watcher
(exit $status)]]
local function one_process(o, folder, prefix, number, calls, seconds)
  local path = quoted(folder)
  local _, status = process.run(WATCHED:format(
    path .. "/work", prefix, ENVIRONMENT, quoted(o.perigee), quoted(here .. "/child.lua"), o.seed, number, calls,
    seconds, path, o.only and quoted(o.only) or "", path .. "/stderr", path .. "/journal", HANG))
  return status
end

---Makes calls. The sum has .calls .results .coded .script .memory; .raw and .problems by kind; .crashes, each with
---.number .status .report.
---@param o {perigee: string, seed: integer, from?: integer, calls: integer, seconds: integer, only?: string}
---@return table sum
function M.run(o)
  local sum = { calls = 0, results = 0, coded = 0, script = 0, memory = 0, raw = {}, problems = {}, crashes = {} }
  local folder = os.tmpname()
  os.remove(folder)
  process.run("mkdir -p " .. quoted(folder .. "/work"))
  local prefix, number, started = limit(o.perigee), o.from or 1, os.time()
  local last = number + o.calls
  while number < last and #sum.crashes < MOST_CRASHES do
    local left = o.seconds - (os.time() - started)
    if left <= 0 then break end
    os.remove(folder .. "/counts")
    local most = math.min(CHUNK, last - number)
    local status = one_process(o, folder, prefix, number, most, left)
    local chunk = loadstring(read(folder .. "/counts") or "")
    local counts = chunk and chunk()
    if status == 0 and counts then
      merge(sum, counts)
      number = number + counts.calls
      if counts.calls < most then break end -- its time was over
    else
      local at = tonumber((read(folder .. "/journal") or ""):match "%d+")
      if not at then error("the process did not begin: " .. last_lines(read(folder .. "/stderr"), 30)) end
      if counts then merge(sum, counts) end
      sum.calls = sum.calls - (counts and counts.calls or 0) + (at - number + 1)
      sum.crashes[#sum.crashes + 1] = { number = at, status = status, report = report(read(folder .. "/stderr")) }
      if o.say then o.say(M.crash_text(o, sum.crashes[#sum.crashes])) end
      number = at + 1
    end
  end
  process.run("rm -rf " .. quoted(folder))
  return sum
end

---The script of a call, whole.
function M.script(o, number)
  return programs.PREAMBLE .. ("pg.manual_seed(%d)\n"):format(number) .. programs.script(o.seed, number, o.only)
end

local SIGNALS = { [134] = "abort", [135] = "bus error", [136] = "arithmetic error", [137] = "killed",
                  [139] = "segmentation fault", [142] = "it did not end" }

local function again(o, number)
  return ("perigee tests/fuzz/main.lua --seed %d --from %d --calls 1%s"):format(o.seed, number,
                                                                             o.only and " --only " .. o.only or "")
end

function M.crash_text(o, crash)
  return ("call %d: %s\n%s\n%s\n-- again: %s\n"):format(
    crash.number, SIGNALS[crash.status] or "status " .. crash.status, crash.report, M.script(o, crash.number),
    again(o, crash.number))
end

---@return string text what failed, with scripts; empty where nothing did
function M.failures(o, sum)
  local parts = {}
  for _, crash in ipairs(sum.crashes) do parts[#parts + 1] = M.crash_text(o, crash) end
  for _, entry in pairs(sum.raw) do
    parts[#parts + 1] = ("call %d (%d times): no error of Perigee's: %s\n%s\n-- again: %s\n"):format(
      entry.number, entry.count, entry.message, M.script(o, entry.number), again(o, entry.number))
  end
  for _, entry in pairs(sum.problems) do
    parts[#parts + 1] = ("call %d (%d times): %s\n%s\n-- again: %s\n"):format(
      entry.number, entry.count, entry.message, M.script(o, entry.number), again(o, entry.number))
  end
  return table.concat(parts, "\n")
end

---@return string line
function M.summary(sum)
  local kinds, raw = 0, 0
  for _, entry in pairs(sum.raw) do kinds, raw = kinds + 1, raw + entry.count end
  local problems = 0
  for _ in pairs(sum.problems) do problems = problems + 1 end
  return ("%d calls: %d with results, %d errors with a code, %d of scripts, %d for want of memory, %d raw errors of " ..
          "%d kinds; %d ended the process, %d other problems"):format(sum.calls, sum.results, sum.coded, sum.script,
                                                                    sum.memory, raw, kinds, #sum.crashes, problems)
end

return M
