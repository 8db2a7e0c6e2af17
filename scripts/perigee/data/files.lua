-- SPDX-License-Identifier: Apache-2.0
-- data.files: the files that a pattern stands for, as samples.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"

local WHERE = "data.files"

-- Names of what is in a folder, nil of what is none.
local function names_in(path)
  local ok, names = pcall(native.folder, path)
  if ok then return names end
end

-- A part of a pattern as a Lua pattern; nil where it stands for itself.
local function as_pattern(part)
  if not part:find "[*?%[]" then return nil end
  local text, at = "^", 1
  while at <= #part do
    local c = part:sub(at, at)
    local set = c == "[" and part:match("^%[([^%]]+)%]", at)
    if set then
      text = text .. "[" .. set:gsub("^!", "^"):gsub("%%", "%%%%") .. "]"
      at = at + #set + 1
    elseif c == "*" then text = text .. ".*"
    elseif c == "?" then text = text .. "."
    else text = text .. (c:find "%w" and c or "%" .. c) end
    at = at + 1
  end
  return text .. "$"
end

local function joined(folder, name)
  if folder == "" then return name end
  return folder:sub(-1) == "/" and folder .. name or folder .. "/" .. name
end

local collect

-- Parts from number k on, below `folder`, where `**` stands for any folders or none.
local function collect_below(folder, parts, k, found)
  collect(folder, parts, k + 1, found)
  for _, name in ipairs(names_in(folder == "" and "." or folder) or {}) do
    local path = joined(folder, name)
    if name:sub(1, 1) ~= "." and names_in(path) then collect_below(path, parts, k, found) end
  end
end

function collect(folder, parts, k, found)
  local part = parts[k]
  if not part then
    if not names_in(folder) then found[folder] = true end
    return
  end
  if part == "**" then return collect_below(folder, parts, k, found) end
  local pattern = as_pattern(part)
  if not pattern then
    local path = joined(folder, part)
    local file = io.open(path, "rb")
    if file then
      file:close()
      collect(path, parts, k + 1, found)
    end
    return
  end
  for _, name in ipairs(names_in(folder == "" and "." or folder) or {}) do
    if name:match(pattern) and (name:sub(1, 1) ~= "." or part:sub(1, 1) == ".") then
      collect(joined(folder, name), parts, k + 1, found)
    end
  end
end

local read_files = native.signature(WHERE, {
  { "pattern", "any", required = true, type = "string|string[]",
    doc = "* ? [a-z] in names, ** for folders of any depth; or a list of patterns" } })
---The files that a pattern stands for, as samples { path = name }, in alphabetical order: data.files "set/*.csv".
---Names that begin with a dot are left out unless the pattern has the dot. They are looked up once, now.
---@return perigee.Dataset
local function files(...)
  local first = ...
  local list = select("#", ...) == 1 and native.is_plain(first) and first
  local patterns = list and #list > 1 and list or { read_files(...).pattern }
  local found, paths = {}, {}
  for i, pattern in ipairs(patterns) do
    if type(pattern) ~= "string" or pattern == "" then
      native.raise("invalid_argument", WHERE, ("pattern %d must be a string, got %s"):format(i,
                   native.describe(pattern)))
    end
    local parts = {}
    for part in pattern:gmatch "[^/]+" do parts[#parts + 1] = part end
    local of_this = {}
    collect(pattern:sub(1, 1) == "/" and "/" or "", parts, 1, of_this)
    if next(of_this) == nil then
      native.raise("not_found", WHERE, ("no file fits %q"):format(pattern), "* ? [a-z] and ** have a meaning in it")
    end
    for path in pairs(of_this) do found[path] = true end
  end
  for path in pairs(found) do paths[#paths + 1] = path end
  table.sort(paths)
  local stage = require("perigee.data.plugins").parts.stage_of(WHERE, "files", { paths = paths }, "files")
  return pipeline.source { name = "files", count = #paths, what = pipeline.of_function("files", paths),
                           get = function(i) return { path = paths[i] } end,
                           native = function() return stage end }
end

return files
