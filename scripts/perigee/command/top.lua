-- SPDX-License-Identifier: Apache-2.0
-- perigee top: devices, memory, and the processes that have Perigee loaded; main.lua says with which options.

local native = require "perigee.native"
local live = require "perigee.command.live"

local TICKS, PAGE = 100, 4096 -- of /proc: units a second, bytes

local function refuse(message)
  io.stderr:write("perigee top: ", message, "\n")
  return 2
end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then file:close() end
  return text or ""
end

local function size_text(bytes)
  for _, unit in ipairs { { 2 ^ 30, "GB" }, { 2 ^ 20, "MB" } } do
    if bytes >= unit[1] then return ("%.1f %s"):format(bytes / unit[1], unit[2]) end
  end
  return ("%.0f KB"):format(bytes / 1024)
end

-- Processes whose memory holds libperigee, among those that the user may look at.
local function find()
  local found = {}
  for _, id in ipairs(native.folder "/proc") do
    if id:find "^%d+$" and read("/proc/" .. id .. "/maps"):find("/libperigee.so", 1, true) then
      found[#found + 1] = id
    end
  end
  table.sort(found, function(a, b) return tonumber(a) < tonumber(b) end)
  return found
end

-- Seconds of the processor that a process has had; nil where it has gone.
local function processor_seconds(id)
  local fields = read("/proc/" .. id .. "/stat"):match "%) (.*)$"
  if not fields then return nil end
  local list = {}
  for word in fields:gmatch "%S+" do list[#list + 1] = word end
  return (tonumber(list[12]) + tonumber(list[13])) / TICKS
end

local function resident(id) return (tonumber(read("/proc/" .. id .. "/statm"):match "^%d+ (%d+)") or 0) * PAGE end

-- Which accelerators a process holds open, by the names of their files.
local function open_devices()
  local by_process = {}
  local pipe = io.popen "find /proc/[0-9]*/fd -lname '/dev/nvidia[0-9]*' -printf '%p %l\\n' 2>/dev/null"
  for line in pipe and pipe:lines() or function() end do
    local id, number = line:match "^/proc/(%d+)/fd/%d+ /dev/nvidia(%d+)$"
    if id then
      by_process[id] = by_process[id] or {}
      by_process[id]["cuda:" .. number] = true
    end
  end
  if pipe then pipe:close() end
  return by_process
end

local function names_of(set)
  local names = { "cpu" }
  for name in pairs(set or {}) do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, ",")
end

local function device_rows()
  local rows = { { "DEVICE", "MEMORY", "FREE", "USE", "DESCRIPTION" } }
  for _, d in ipairs(require("perigee").devices()) do
    local function size(n) return n and n > 0 and size_text(n) or "" end
    rows[#rows + 1] = { d.name, size(d.memory_total), size(d.memory_free), "", d.description or "" }
  end
  for _, d in ipairs(native.nvml.look()) do -- in the driver's order, which need not be that of cuda:n
    local use = d.use and ("%.0f %%"):format(100 * d.use) or "?"
    rows[#rows + 1] = { "nvidia " .. d.number, "", "", use, "of the driver" }
  end
  return rows
end

local function draw(before)
  local now, rows = native.clock(), { { "PROCESS", "PROCESSOR", "MEMORY", "DEVICES", "COMMAND" } }
  local open = open_devices()
  for _, id in ipairs(find()) do
    local seconds, old = processor_seconds(id), before[id]
    if seconds then
      local share = old and ("%.0f %%"):format(100 * (seconds - old.seconds) / math.max(now - old.clock, 1e-3)) or "?"
      before[id] = { seconds = seconds, clock = now }
      local words = read("/proc/" .. id .. "/cmdline"):gsub("%z", " "):sub(1, 60)
      rows[#rows + 1] = { id, share, size_text(resident(id)), names_of(open[id]), words }
    end
  end
  return live.columns(device_rows()) .. "\n\n" .. live.columns(rows)
end

return function(...)
  local options, rest = live.words({ ["--every"] = true }, { ["--once"] = true }, ...)
  if not options then return refuse(rest) end
  local seconds, wrong = live.seconds(options["--every"])
  if not seconds then return refuse(wrong) end
  if #rest > 0 then return refuse("takes no words, got " .. rest[1]) end
  local before = {}
  draw(before) -- shares are those of the time between two looks
  os.execute "sleep 0.2"
  return live.show(function() return draw(before) end, options["--once"], seconds)
end
