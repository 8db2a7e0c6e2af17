-- SPDX-License-Identifier: Apache-2.0
-- perigee watch: curves of trainings from their event files; main.lua says with which options.

local native = require "perigee.native"
local live = require "perigee.command.live"
local runs = require "perigee.events.runs"
local scale = require "perigee.plot.scale"
local terminal = require "perigee.plot.terminal"

local WIDTH, HEIGHT, LEAST = 100, 12, 6

local function refuse(message)
  io.stderr:write("perigee watch: ", message, "\n")
  return 2
end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- The folders of event files in a path, or the file that it is; nil where there is nothing.
local function folders_of(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local is_file = file:read(0) ~= nil
  file:close()
  if is_file then return { path } end
  local list, seen = {}, {}
  local pipe = assert(io.popen(("find %s -name '*tfevents*' -type f | LC_ALL=C sort"):format(quoted(path))))
  for line in pipe:lines() do
    local folder = line:match "^(.*)/[^/]*$"
    if not seen[folder] then list[#list + 1], seen[folder] = folder, true end
  end
  pipe:close()
  return list
end

-- What tells runs apart: their paths without the folders that all begin with.
local function name_runs(list)
  local first, common = list[1].path, 0
  for at in first:gmatch "()/" do
    for _, run in ipairs(list) do
      if run.path:sub(1, at) ~= first:sub(1, at) then at = nil break end
    end
    if not at then break end
    common = at
  end
  for _, run in ipairs(list) do run.label = #list > 1 and run.path:sub(common + 1) or run.name end
end

-- Tags of all runs that fit, in order.
local function tags_of(list, pattern)
  local seen, tags = {}, {}
  for _, run in ipairs(list) do
    for tag in pairs(run.curves) do
      if not seen[tag] and (not pattern or tag:find(pattern)) then seen[tag], tags[#tags + 1] = true, tag end
    end
  end
  table.sort(tags)
  return tags
end

local function lists(series, key)
  local all = {}
  for i, s in ipairs(series) do all[i] = s[key] end
  return all
end

local function curve_text(list, tag, width, height)
  local series, last = {}, {}
  for _, run in ipairs(list) do
    local curve = run.curves[tag]
    if curve then
      series[#series + 1] = { x = curve.x, y = curve.y, label = #list > 1 and run.label or nil }
      last[#last + 1] = ("%.6g"):format(curve.y[#curve.y])
    end
  end
  local plot = { series = series, title = ("%s  (%s)"):format(tag, table.concat(last, ", ")) }
  plot.x_low, plot.x_high = scale.range(lists(series, "x"))
  plot.y_low, plot.y_high = scale.range(lists(series, "y"))
  local colour = native.is_terminal(1)
  return terminal(plot, { width = width, height = height, colour = colour,
                          style = #series > 1 and not colour and "marks" or "braille" })
end

local function draw(list, pattern, width)
  local parts = {}
  for _, run in ipairs(list) do
    run:update()
    for _, text in ipairs(run.damage) do parts[#parts + 1] = text end
  end
  local tags = tags_of(list, pattern)
  if #tags == 0 then parts[#parts + 1] = "there are no scalars yet" end
  for _, tag in ipairs(tags) do
    parts[#parts + 1] = curve_text(list, tag, width, #tags > 3 and LEAST or HEIGHT)
  end
  return table.concat(parts, "\n\n")
end

return function(...)
  local options, paths = live.words({ ["--tag"] = true, ["--every"] = true }, { ["--once"] = true }, ...)
  if not options then return refuse(paths) end
  local seconds, wrong = live.seconds(options["--every"])
  if not seconds then return refuse(wrong) end
  if options["--tag"] and not pcall(string.find, "", options["--tag"]) then
    return refuse(("--tag: %s is no Lua pattern"):format(options["--tag"]))
  end
  if #paths == 0 then return refuse "needs a folder of event files" end
  local list = {}
  for _, path in ipairs(paths) do
    local folders = folders_of(path)
    if not folders then return refuse("there is no " .. path) end
    for _, folder in ipairs(folders) do list[#list + 1] = runs.open(folder) end
  end
  if #list == 0 then return refuse("no event files in " .. table.concat(paths, ", ")) end
  name_runs(list)
  local width = math.min(WIDTH, (native.terminal_width() or 81) - 1)
  return live.show(function() return draw(list, options["--tag"], width) end, options["--once"], seconds)
end
