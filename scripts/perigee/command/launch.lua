-- SPDX-License-Identifier: Apache-2.0
-- perigee launch: a script in several processes, by mpirun; main.lua says with which options.

local function refuse(message)
  io.stderr:write("perigee launch: ", message, "\n")
  return 2
end

local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

local function output(command)
  local pipe = io.popen(command .. " 2>/dev/null")
  local text = pipe and pipe:read("*a") or ""
  if pipe then pipe:close() end
  return (text:gsub("%s+$", ""))
end

local VALUES = { ["-n"] = "count", ["--hosts"] = "hosts", ["--mpirun"] = "mpirun", ["--max-restarts"] = "restarts" }

-- The words as options, or nil and what is wrong. What follows the script is the script's.
local function read_words(...)
  local o, words, at = { words = {} }, { ... }, 1
  while at <= #words do
    local word = words[at]
    if VALUES[word] then
      o[VALUES[word]] = words[at + 1]
      if not words[at + 1] or words[at + 1] == "" then return nil, word .. " needs a value" end
      at = at + 2
    elseif word == "--allow-root" then
      o.allow_root, at = true, at + 1
    elseif word == "--no-prefix" then
      o.no_prefix, at = true, at + 1
    elseif word:sub(1, 1) == "-" and word ~= "-e" then
      return nil, "unknown option " .. word
    else
      for i = at, #words do o.words[#o.words + 1] = words[i] end
      break
    end
  end
  if not o.words[1] then return nil, "which script? perigee launch -n N script.lua" end
  o.count = o.count or os.getenv("SLURM_NTASKS")
  local n = tonumber(o.count)
  if not n or n < 1 or n ~= math.floor(n) then
    return nil, o.count and "-n needs a whole number of at least 1, got " .. o.count or
      "how many processes? perigee launch -n N script.lua"
  end
  o.count = n
  local restarts = tonumber(o.restarts or 0)
  if not restarts or restarts < 0 or restarts ~= math.floor(restarts) then
    return nil, "--max-restarts needs a whole number of at least 0, got " .. o.restarts
  end
  o.restarts = restarts
  return o
end

-- Variables that processes on other machines need; those of this one inherit all.
local function exported()
  local list = {}
  local file = io.open("/proc/self/environ", "rb")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  for name in text:gmatch "([%w_]+)=[^%z]*" do
    if name:find "^PERIGEE_" or name:find "^OMP_" or name:find "^LUA_" then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

-- Environment that this machine's processes get where the user has not set it: processors are shared out, and mpirun
-- does not warn of networks that it does not use.
local function prefix_of(o, run)
  local parts = { "PERIGEE_RESTARTS=" .. run }
  local function default(name, value)
    if not os.getenv(name) then parts[#parts + 1] = name .. "=" .. value end
  end
  if not o.hosts then
    local cores = tonumber(output "nproc") or 1
    default("OMP_NUM_THREADS", math.max(1, math.floor(cores / o.count)))
  end
  default("OMPI_MCA_btl_base_warn_component_unused", 0)
  return "env " .. table.concat(parts, " ") .. " "
end

-- `run` counts from 0; scripts see it as PERIGEE_RESTARTS.
local function command_of(o, mpirun, perigee, run)
  local words = { quote(mpirun), "-n", tostring(o.count), "--bind-to", "none", "--tag-output" }
  local function add(...)
    for _, word in ipairs { ... } do words[#words + 1] = word end
  end
  if o.hosts then
    add("--host", quote(o.hosts))
    for _, name in ipairs(exported()) do add("-x", name) end
    if not os.getenv "PERIGEE_RESTARTS" then add("-x", "PERIGEE_RESTARTS") end -- else it is in the list
  elseif not os.getenv("SLURM_JOB_ID") and not os.getenv("PBS_NODEFILE") then
    add("--oversubscribe") -- this machine alone: as many as were asked for
  end
  if o.allow_root then add("--allow-run-as-root") end
  add(quote(perigee))
  for _, word in ipairs(o.words) do add(quote(word)) end
  return prefix_of(o, run) .. table.concat(words, " ") .. " 2>&1; printf '\\001status %d\\n' $?"
end

local function show(o, rank, stream, text)
  local file = stream == "out" and io.stdout or io.stderr
  file:write(rank and not o.no_prefix and ("[%s] "):format(rank) or "", text, "\n")
  file:flush()
end

local TAG = "%[%d+,(%d+)%]<std(%a+)>:?"

-- Passes on what a line of mpirun holds, with ranks in place of its tags. It tags what it reads at once: that may be
-- the beginning of a line, whose rest stands behind another tag, there or further on. `open`: such beginnings.
local function take(o, open, line)
  local _, last, rank, stream = line:find("^" .. TAG)
  if not rank then show(o, nil, "err", line) end -- mpirun's own
  while rank do
    local first, next_last, next_rank, next_stream = line:find(TAG, last + 1)
    local key = stream .. rank
    local text = (open[key] or "") .. line:sub(last + 1, first and first - 1)
    open[key] = first and text or nil
    if not first then show(o, rank, stream, text) end
    last, rank, stream = next_last, next_rank, next_stream
  end
end

-- Beginnings of lines that no end came for.
local function finish(o, open)
  local keys = {}
  for key in pairs(open) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    if open[key] ~= "" then show(o, key:match "%d+", key:match "%a+", open[key]) end
  end
end

-- Who stops a run from outside (SIGINT, SIGTERM) does not want it again.
local STOPPED = { [128 + 2] = true, [128 + 15] = true }

local function run_once(o, command)
  local status, open = 1, {}
  local pipe = assert(io.popen(command))
  for line in pipe:lines() do
    local last, code = line:match "^(.-)\1status (%d+)$" -- last: what a script has printed without an end of line
    status = tonumber(code) or status
    if not code or last ~= "" then take(o, open, last or line) end
  end
  finish(o, open)
  pipe:close()
  return status
end

return function(...)
  local o, problem = read_words(...)
  if not o then return refuse(problem) end
  local mpirun = o.mpirun or output "command -v mpirun"
  if mpirun == "" or output("command -v " .. quote(mpirun)) == "" then
    return refuse((o.mpirun or "mpirun") ..
                  " was not found; Debian: apt-get install openmpi-bin libopenmpi-dev, and build Perigee again")
  end
  local allowed = o.allow_root or os.getenv("OMPI_ALLOW_RUN_AS_ROOT") == "1"
  if output "id -u" == "0" and not allowed then
    return refuse("mpirun does not run as root, where a mistake can damage the system; --allow-root lets it")
  end
  local perigee = require("perigee.native").home .. "/bin/perigee"
  for run = 0, math.huge do
    local status = run_once(o, command_of(o, mpirun, perigee, run))
    if status == 0 or STOPPED[status] or run == o.restarts then return status end
    io.stderr:write(("perigee launch: status %d; restart %d of %d\n"):format(status, run + 1, o.restarts))
  end
end
