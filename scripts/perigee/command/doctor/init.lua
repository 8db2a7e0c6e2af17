-- SPDX-License-Identifier: Apache-2.0
-- perigee doctor: what is here, what is in force, what is wrong and how to mend it. Status 1 when something is wrong.

local function gigabytes(n) return n and ("%.1f GB"):format(n / 2 ^ 30) or "?" end

local function section(title, rows)
  print(title)
  local width = 0
  for _, row in ipairs(rows) do width = math.max(width, #row[1]) end
  for _, row in ipairs(rows) do print(("  %s%s  %s"):format(row[1], (" "):rep(width - #row[1]), row[2])) end
  if #rows == 0 then print("  none") end
end

local function show_machine(f)
  local m = f.machine
  section("Perigee", { { "version", f.version }, { "home", f.home or "not found" }, { "modules", f.module_dir },
                       { "Lua", f.lua .. (f.jit and ", compiler on" or ", compiler off") } })
  section("Machine", {
    { "system", ("%s, %s, %s"):format(m.system, m.kernel or "?", m.arch) }, { "processor", m.cpu or "?" },
    { "features", table.concat(m.features, " ") }, { "cores", ("%d for this process"):format(m.cores) },
    { "threads", tostring(f.threads) },
    { "memory", ("%s, %s free%s"):format(gigabytes(m.memory), gigabytes(m.memory_free),
                m.memory_limit and ", limit " .. gigabytes(m.memory_limit) or "") } })
end

local function show_parts(f)
  local rows = {}
  local told = {} -- reasons that a finding tells
  for _, library in ipairs(f.libraries) do rows[#rows + 1] = { library.name, library.path } end
  section("Libraries", rows)
  rows = {}
  for _, p in ipairs(f.plugins) do
    local fine = p.state == "available"
    rows[#rows + 1] = { p.name ~= "" and p.name or "?", fine and ("%s: %s"):format(p.version, p.kinds) or
                        ("%s, see the findings (%s)"):format(p.state, p.path) }
    if not fine then told[p.reason or ""] = true end
  end
  section("Plugins", rows)
  rows = {}
  for _, d in ipairs(f.devices) do
    rows[#rows + 1] = { d.name, (d.description or "") .. (d.problem and ": fails" or "") }
  end
  for _, u in ipairs(f.devices.unavailable or {}) do
    rows[#rows + 1] = { u.type, told[u.reason] and "not available" or "not available: " .. u.reason }
  end
  section("Devices", rows)
end

local function show_surroundings(f)
  local rows = {}
  for name, value in pairs(f.environment) do rows[#rows + 1] = { name, value } end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  section("Environment", rows)
  rows = {}
  for _, folder in ipairs(f.folders) do
    rows[#rows + 1] = { folder.path, folder.what .. (folder.exists and "" or ", not there yet") }
  end
  section("Folders", rows)
end

return function()
  local f = require("perigee.command.doctor.facts").collect()
  local findings = require("perigee.command.doctor.checks")(f)
  show_machine(f)
  show_parts(f)
  show_surroundings(f)
  local problems = 0
  print("Findings")
  for _, finding in ipairs(findings) do
    if finding.level == "problem" then problems = problems + 1 end
    print(("  %s: %s\n    %s"):format(finding.level, finding.text, finding.remedy))
  end
  if #findings == 0 then print("  nothing is wrong") end
  return problems == 0 and 0 or 1
end
