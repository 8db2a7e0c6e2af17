-- SPDX-License-Identifier: Apache-2.0
-- perigee conform PLUGIN.so: asks a plugin for what the interfaces promise: a device, each of its kernels for what
-- the CPU computes, over the operators' case table; sources, transforms and codecs. Prints what failed, and of a
-- device a table of operators and dtypes, and the level reached. Exit status 0: nothing failed (kernels that are not
-- there do not count).

local pg = require "perigee"
local native = require "perigee.native"
local kernels = require "perigee.command.conform.kernels"
local device_checks = require "perigee.command.conform.device"
local training_checks = require "perigee.command.conform.training"
local print_report = require "perigee.command.conform.report"

local function first_line(err) return (tostring(err):match("^[^\n]*")) end

-- The groups that a level needs; 0: loads, 1: memory, 2: streams, 3: core kernels, 4: training, 5: everything.
local LEVELS = { [0] = { "abi", "lifecycle" }, { "memory", "copies" }, { "streams", "threads" },
                 { "kernels", "strides", "orders", "empty", "aliases", "repeated" }, { "training", "gradients" },
                 { "errors", "captured", "random", "profiler", "collectives" } }
-- What is asked of parts of pipelines, which have no levels: they are right, or are not.
local PARTS = { sources = true, transforms = true, codecs = true }
local CORE = { "add", "sub", "mul", "div", "neg", "exp", "sum", "matmul", "zeros_like", "ones_like", "sum_like" }
local level_of = {}
for level = 0, 5 do for _, group in ipairs(LEVELS[level]) do level_of[group] = level end end

local R = {}
R.__index = R

local function new_report(o)
  return setmetatable({ groups = {}, failures = {}, results = {}, unasked = {}, level = -1, limit = o.level,
                        group = o.group }, R)
end

function R:wants(level, group) return level <= self.limit and (not self.group or not group or self.group == group) end

function R:count(group, state, n)
  local counts = self.groups[group] or { passed = 0, failed = 0, absent = 0 }
  self.groups[group] = counts
  counts[state] = counts[state] + (n or 1)
end

function R:add(group, name, problem)
  self:count(group, problem and "failed" or "passed")
  if problem then self.failures[#self.failures + 1] = { group = group, name = name, problem = problem } end
end

function R:add_native(findings)
  for _, f in ipairs(findings) do
    if f.absent then
      self:count(f.group, "absent")
      self.unasked[#self.unasked + 1] = { group = f.group, name = f.name, why = f.problem }
    else
      self:add(f.group, f.name, f.problem)
    end
  end
end

-- Each of { level, group, name, fn }; one that the device has no kernels for counts as absent.
function R:ask(checks, device)
  for _, check in ipairs(checks) do
    local level, group, name, fn = unpack(check)
    if self:wants(level, group) then
      local ok, err = pcall(fn, device)
      collectgarbage()
      if not ok and native.is_error(err) and err.code == "not_supported" then
        self:count(group, "absent")
        self.refused = self.refused or {}
        self.refused[group] = self.refused[group] or first_line(err)
      else
        self:add(group, name, not ok and first_line(err) or nil)
      end
    end
  end
end

local function missing_core(results)
  local there = {}
  for _, row in ipairs(results) do there[row.op] = row.cells.float32 and row.cells.float32.passed > 0 end
  for _, name in ipairs(CORE) do
    if not there[name] then return name end
  end
end

-- The highest level of which, and of those below, everything passes.
function R:judge(whole)
  for level = 0, self.limit do
    for _, group in ipairs(LEVELS[level]) do
      local failed = self.groups[group] and self.groups[group].failed or 0
      if failed > 0 then
        self.why = ("level %d: %d of %s fail"):format(level, failed, group)
        return
      end
    end
    if level == 3 and not self.table_read then self.why = "no case table was found (--cases FOLDER)" return end
    if level == 3 and whole and missing_core(self.results) then
      self.why = ("level 3 needs a kernel for %s in float32"):format(missing_core(self.results))
      return
    end
    for _, group in ipairs(LEVELS[level]) do
      if level >= 4 and self.refused and self.refused[group] then
        self.why = ("level %d: %s: %s"):format(level, group, self.refused[group])
        return
      end
    end
    self.level = level
  end
end

local function new_devices(path)
  local before = {}
  for _, d in ipairs(pg.devices()) do before[d.name] = true end
  local name = path:match("([^/]+)%.so$")
  pg.load_plugin(path)
  local list = {}
  for _, d in ipairs(pg.devices()) do
    if not before[d.name] then list[#list + 1] = d end
  end
  if #list > 0 then return list end
  for _, d in ipairs(pg.devices()) do -- it was on the search path already
    if d.type == name then list[#list + 1] = d end
  end
  return list
end

local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  local pwd = os.getenv("PWD")
  return (pwd and pwd .. "/" or "") .. path
end

local function examine(path, o)
  local report = new_report(o)
  local ok, err = pcall(function() report:add_native(native.conform_library(path)) end)
  if not ok then
    report.why = "it does not load: " .. first_line(err)
    return report
  end
  local fine, devices = pcall(new_devices, path)
  local parts = fine and native.conform_parts(path, table.concat(o.with, "\n")) or {}
  if not o.group or PARTS[o.group] then report:add_native(parts) end
  if #parts > 0 and #devices == 0 then -- nothing to give a level to
    report.parts = true
    return report
  end
  if not fine or #devices == 0 then
    report.why = fine and "it loads, but has no device here" or "it does not load: " .. first_line(devices)
    report.failures[#report.failures + 1] = { group = "abi", name = "loads", problem = report.why }
    return report
  end
  local device = devices[1].name
  report.device, report.description = device, devices[1].description or ""
  if report:wants(1) then report:add_native(native.conform_device(native.find_device(device, "conform"), o.group)) end
  report:ask(device_checks, device)
  local rows, check = kernels.cases_in(o.cases)
  report.table_read = rows ~= nil
  if rows and report:wants(3) then
    local out = kernels.run(device, rows, check, o.only, o.group)
    report.results = out.results
    for group, counts in pairs(out.groups) do
      for state, n in pairs(counts) do report:count(group, state, n) end
    end
    for _, failure in ipairs(out.failures) do report.failures[#report.failures + 1] = failure end
  end
  report:ask(training_checks, device)
  report:judge(not o.only and not o.group)
  return report
end

local function refuse()
  io.stderr:write("perigee: conform takes a plugin (perigee conform --help)\n")
  return 2
end

return function(...)
  local o, path = { level = 5, cases = "tests", with = {} }, nil -- the table of cases is a part of Perigee's tests
  local words, i = { ... }, 1
  while words[i] do
    if words[i] == "--cases" and words[i + 1] then
      o.cases, i = words[i + 1], i + 1
    elseif words[i] == "--level" and tonumber(words[i + 1]) and words[i + 1]:find("^[0-5]$") then
      o.level, i = tonumber(words[i + 1]), i + 1
    elseif words[i] == "--ops" and words[i + 1] then
      o.only = {}
      for name in words[i + 1]:gmatch("[^,]+") do o.only[name] = true end
      i = i + 1
    elseif words[i] == "--with" and words[i + 1] then
      o.with[#o.with + 1], i = words[i + 1], i + 1
    elseif words[i] == "--group" and (level_of[words[i + 1]] or PARTS[words[i + 1]]) then
      o.group, i = words[i + 1], i + 1
    elseif words[i] == "--json" then
      o.json = true
    elseif not path and words[i]:sub(1, 1) ~= "-" then
      path = words[i]
    else
      return refuse()
    end
    i = i + 1
  end
  if not path then return refuse() end
  local report = examine(absolute(path), o)
  print_report(report, o, level_of)
  return #report.failures == 0 and (report.parts or report.level >= 0) and 0 or 1
end
