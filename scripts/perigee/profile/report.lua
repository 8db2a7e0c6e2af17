-- SPDX-License-Identifier: Apache-2.0
-- A profile as text.

local TABLE_ROWS, HOLDERS = 12, 4

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

local function names_of(memory)
  local names = {}
  for name in pairs(memory) do names[#names + 1] = name end
  table.sort(names)
  return names
end

---@param profile perigee.Profile
---@return string
return function(profile)
  local lines = { ("%s, %d operators and copies; busy %.0f %%"):format(time_text(profile.seconds), #profile.nested,
                                                                       100 * profile.busy),
                  profile.verdict.text, profile.verdict.advice, "" }
  local function add(...) lines[#lines + 1] = (...):format(select(2, ...)):gsub("%s+$", "") end
  if profile.lost > 0 then add("%d earlier records had no room: pg.profile(fn, {capacity=...})", profile.lost) end
  add("%-26s %8s %10s %10s %7s %11s %12s", "operator", "calls", "total", "mean", "share", "", "")
  for i, row in ipairs(profile.rows) do
    if i > TABLE_ROWS then
      add("... %d more", #profile.rows - TABLE_ROWS)
      break
    end
    add("%-26s %8d %10s %10s %6.1f%% %11s %12s", row.name, row.calls, time_text(row.total), time_text(row.mean),
        100 * row.share, rate_text(row.bytes, row.kernel, "GB/s"), rate_text(row.flops, row.kernel, "GFLOP/s"))
  end
  for _, name in ipairs(names_of(profile.memory)) do
    local m = profile.memory[name]
    add("")
    add("memory of %s: at most %s, %s after the beginning; %s were there before", name, size_text(m.peak),
        time_text(m.at), size_text(m.before))
    for i = 1, math.min(HOLDERS, #m.holders) do
      local h = m.holders[i]
      add("  %10s  %s%s", size_text(h.bytes), h.name, h.count > 1 and (" (%d times)"):format(h.count) or "")
    end
  end
  if profile.gaps[1] then
    add("")
    for _, gap in ipairs(profile.gaps) do
      add("%s without an operator, after %s%s", time_text(gap.seconds), gap.after or "the beginning",
          gap.origin and " at " .. gap.origin or "")
    end
  end
  return table.concat(lines, "\n")
end
