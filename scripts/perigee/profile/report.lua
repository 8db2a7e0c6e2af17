-- SPDX-License-Identifier: Apache-2.0
-- A profile as text.

local TABLE_ROWS, HOLDERS, STAGES = 12, 4, 8
local CURVE = 60 -- columns

local function time_text(seconds)
  if seconds >= 1 then return ("%.3g s"):format(seconds) end
  if seconds >= 1e-3 then return ("%.3g ms"):format(seconds * 1e3) end
  return ("%.3g us"):format(seconds * 1e6)
end

local function size_text(bytes)
  for _, unit in ipairs { { 2 ^ 30, "GB" }, { 2 ^ 20, "MB" }, { 2 ^ 10, "KB" } } do
    if bytes >= unit[1] then return ("%.1f %s"):format(bytes / unit[1], unit[2]) end
  end
  return ("%d bytes"):format(bytes)
end

local function rate_text(amount, seconds, unit)
  if amount <= 0 or seconds <= 0 then return "" end
  return ("%.3g %s"):format(amount / seconds * 1e-9, unit)
end

local function names_of(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local BLOCKS = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
-- The most of each part of the time, in eighths of the peak.
local function curve_text(curve, peak)
  local parts, each = {}, #curve / CURVE
  for i = 1, CURVE do
    local most = 0
    for k = math.floor((i - 1) * each) + 1, math.max(math.floor(i * each), 1) do
      most = math.max(most, curve[k].bytes)
    end
    parts[i] = BLOCKS[math.max(1, math.min(8, math.ceil(8 * most / math.max(peak, 1))))]
  end
  return table.concat(parts)
end

local function add_rows(add, profile)
  add("%-26s %8s %10s %10s %7s %11s %14s %9s", "operator", "calls", "total", "mean", "share", "", "", "roofline")
  for i, row in ipairs(profile.rows) do
    if i > TABLE_ROWS then
      add("... %d more", #profile.rows - TABLE_ROWS)
      break
    end
    add("%-26s %8d %10s %10s %6.1f%% %11s %14s %9s", row.name, row.calls, time_text(row.total), time_text(row.mean),
        100 * row.share, rate_text(row.bytes, row.kernel, "GB/s"), rate_text(row.flops, row.kernel, "GFLOP/s"),
        row.roofline and ("%.0f%% %s"):format(100 * row.roofline, row.bound == "compute" and "c" or "m") or "")
  end
end

local function add_stages(add, profile)
  if #profile.stages == 0 then return end
  add("")
  add("%-26s %8s %10s %10s  %s", "stage of the pipeline", "elements", "total", "mean", "on")
  for i = 1, math.min(STAGES, #profile.stages) do
    local s = profile.stages[i]
    add("%-26s %8d %10s %10s  %s", s.name .. (s.line and " at " .. s.line or ""), s.elements, time_text(s.seconds),
        time_text(s.seconds / math.max(s.elements, 1)), table.concat(s.threads, ", "))
  end
end

local function add_devices(add, profile)
  for _, name in ipairs(names_of(profile.devices)) do
    local d = profile.devices[name]
    add("")
    add("%s: busy %.0f %%, kernels %s%s", name, 100 * d.busy, time_text(d.kernels),
        d.bytes > 0 and (", copies %s of %s"):format(time_text(d.copies), size_text(d.bytes)) or "")
    local gap = d.gaps[1]
    if gap then
      add("  idle for %s at most, after %s%s", time_text(gap.seconds), gap.after or "the beginning",
          gap.origin and " at " .. gap.origin or "")
    end
  end
end

local function add_memory(add, profile)
  for _, name in ipairs(names_of(profile.memory)) do
    local m = profile.memory[name]
    add("")
    add("memory of %s: at most %s, %s after the beginning; %s were there before", name, size_text(m.peak),
        time_text(m.at), size_text(m.before))
    add("  %s", curve_text(m.curve, m.peak))
    for i = 1, math.min(HOLDERS, #m.holders) do
      local h = m.holders[i]
      add("  %10s  %s%s", size_text(h.bytes), h.name, h.count > 1 and (" (%d times)"):format(h.count) or "")
    end
  end
end

---@param profile perigee.Profile
---@return string
return function(profile)
  local lines = { ("%s, %d operators and copies; busy %.0f %%"):format(time_text(profile.seconds), #profile.nested,
                                                                       100 * profile.busy),
                  profile.verdict.text, profile.verdict.advice, "" }
  local function add(...)
    lines[#lines + 1] = select("#", ...) == 1 and (...) or (...):format(select(2, ...)):gsub("%s+$", "")
  end
  if profile.lost > 0 then add("%d earlier records had no room: pg.profile(fn, {capacity=...})", profile.lost) end
  add_rows(add, profile)
  add_stages(add, profile)
  add_devices(add, profile)
  add_memory(add, profile)
  if profile.gaps[1] then
    add("")
    for _, gap in ipairs(profile.gaps) do
      add("%s without an operator, after %s%s", time_text(gap.seconds), gap.after or "the beginning",
          gap.origin and " at " .. gap.origin or "")
    end
  end
  return table.concat(lines, "\n")
end
