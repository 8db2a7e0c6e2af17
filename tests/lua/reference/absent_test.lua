-- SPDX-License-Identifier: Apache-2.0
-- What docs/coming_from_pytorch.md says is not there is not, and what it says does the work meanwhile is.

local pg = require "perigee"

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."

-- Rows of the page's table: what is not there, and what is.
local function rows()
  local file = io.open(here .. "/../../../docs/coming_from_pytorch.md", "r")
  if not file then return nil end
  local part = file:read("*a"):match("\n## What is not there\n(.*)$")
  file:close()
  local list = {}
  for absent, meanwhile in part:gmatch("\n|[^|\n]*|([^|\n]*)|([^|\n]*)|") do
    list[#list + 1] = { absent, meanwhile }
  end
  return list
end

local FIRST = { pg = pg, nn = pg.nn, optim = pg.optim, data = pg.data, x = pg.zeros { 1 } }

-- Names in back quotes that begin with what users call Perigee's parts.
local function names(text)
  local list = {}
  for name in text:gmatch("`([^`]+)`") do
    local path = name:match("^[%a]+[.:][%w_.]+")
    if path and FIRST[path:match("^%a+")] then list[#list + 1] = path end
  end
  return list
end

local function exists(path)
  local value
  for part in path:gmatch("[%w_]+") do
    local ok, found = pcall(function() return (value or FIRST)[part] end)
    if not ok or found == nil then return false end
    value = found
  end
  return true
end

test("what the page says is not there is not", function(t)
  local list = rows() or t.skip("the page is not beside the tests")
  local count = 0
  for _, row in ipairs(list) do
    for _, name in ipairs(names(row[1])) do
      count = count + 1
      t.ok(not exists(name), name .. " is there now: take it off docs/coming_from_pytorch.md")
    end
  end
  t.ok(count > 100, count)
end)

test("what the page says does the work meanwhile is there", function(t)
  local list = rows() or t.skip("the page is not beside the tests")
  local count = 0
  for _, row in ipairs(list) do
    for _, name in ipairs(names(row[2])) do
      count = count + 1
      t.ok(exists(name), name)
    end
  end
  t.ok(count > 20, count)
end)
