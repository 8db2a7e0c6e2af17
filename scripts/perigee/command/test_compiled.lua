-- SPDX-License-Identifier: Apache-2.0
-- perigee test --compiled: a test that has passed is called again, plainly and compiled by pg.compile, from the same
-- seed. What it hands to t must be the same, number by number, each time.

local ALONE = {} -- what t.uncompiled throws
local PLAIN, COMPILED = 2, 4 -- calls; of compiled ones the first is eager, the second is noted

local function text_of(v)
  local pg = require "perigee"
  if type(v) == "cdata" and pg.is_tensor(v) then v = v:totable() end
  if type(v) == "number" then return v ~= v and "nan" or ("%.17g"):format(v) end
  if type(v) == "table" and getmetatable(v) == nil then
    local parts = {}
    for key, x in pairs(v) do parts[#parts + 1] = tostring(key) .. "=" .. text_of(x) end
    table.sort(parts)
    return "{" .. table.concat(parts, ", ") .. "}"
  end
  if type(v) == "string" then return ("%q"):format(v) end
  return type(v) == "boolean" and tostring(v) or type(v)
end

-- A `t` that checks as the given one, and appends to `log` what it is given.
local function listening(t, log)
  local l = setmetatable({}, { __index = t })
  for _, name in ipairs { "equal", "close", "ok" } do
    l[name] = function(got, ...)
      log[#log + 1] = text_of(got)
      return t[name](got, ...)
    end
  end
  function l.uncompiled() error(ALONE, 0) end
  -- In a compiled function a kernel's fault is raised where a value is needed: one is asked for.
  function l.raises(fn, ...)
    local pg = require "perigee"
    local function settled()
      fn()
      pg.zeros({ 1 }):item()
    end
    return t.raises(settled, ...)
  end
  return l
end

-- Calls the test by `call`; answers its log, or nil and the error.
local function run(call, fn, t)
  local pg = require "perigee"
  local log = {}
  pg.manual_seed(0)
  local ok, err = pcall(call, fn, listening(t, log))
  if not ok then return nil, tostring(err) end
  return log
end

local function difference(log, expected)
  for i = 1, math.max(#log, #expected) do
    if log[i] ~= expected[i] then
      return ("value %d is %s, plainly %s"):format(i, tostring(log[i]), tostring(expected[i]))
    end
  end
end

---Answers nil and how many stretches were launched as plans where the same came out each time; else what differs.
---"apart" instead: the test does not do the same when it is called again, or says t.uncompiled.
---@param fn function the test
---@param t table what it is called with
---@return string? problem
---@return number hits
return function(fn, t)
  local pg = require "perigee"
  local expected
  for _ = 1, PLAIN do
    local log = run(pg.scope, fn, t)
    if not log or (expected and difference(log, expected)) then return "apart", 0 end
    expected = log
  end
  local compiled = pg.compile(function(test, ...) test(...) end)
  for i = 1, COMPILED do
    local log, err = run(compiled, fn, t)
    local problem = err or difference(log, expected)
    if problem then return ("compiled, call %d: %s"):format(i, problem), 0 end
  end
  return nil, compiled:stats().hits
end
