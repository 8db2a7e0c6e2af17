-- SPDX-License-Identifier: Apache-2.0
-- perigee lint: looks through scripts for traps of who comes from PyTorch; main.lua says with which options.

local files_of = require "perigee.command.files"

local function read(path)
  local file, problem = io.open(path, "rb")
  if not file then return nil, problem end
  local text = file:read "*a"
  file:close()
  if not text then return nil, path .. ": cannot be read" end
  return text
end

-- Each rule with what it finds, and how the same is written right.
local function print_rules(lint)
  for _, rule in ipairs(lint.rules()) do
    print(("%s\n  finds  %s\n  not    %s"):format(rule.name, rule.bad[1], rule.good[1]))
  end
  print "syntax\n  finds  x += 1\n  not    x = x + 1"
end

local function refuse(message)
  io.stderr:write("perigee lint: ", message, "\n")
  return 2
end

-- Reads words as paths. An option answers nil and what is wrong, or the option.
local function read_words(...)
  local paths = {}
  for _, word in ipairs { ... } do
    if word == "--rules" then return nil, nil, true end
    if word:sub(1, 2) == "--" then return nil, "unknown option " .. word end
    paths[#paths + 1] = word
  end
  if #paths == 0 then paths[1] = "." end
  return paths
end

-- A word that is given as a script is one, whatever its name ends in.
local function scripts_of(path)
  local list = files_of(path, "*.lua")
  if list and #list == 0 and read(path) then return { path } end
  return list
end

return function(...)
  local lint = require "perigee.lint"
  local paths, message, rules = read_words(...)
  if message then return refuse(message) end
  if rules then
    print_rules(lint)
    return 0
  end
  local scripts, found = 0, 0
  for _, path in ipairs(paths) do
    local list = scripts_of(path)
    if not list then return refuse("there is no " .. path) end
    for _, script in ipairs(list) do
      local text, problem = read(script)
      if not text then return refuse(problem) end
      scripts = scripts + 1
      for _, f in ipairs(lint.check(text)) do
        found = found + 1
        print(("%s:%d:%d: %s (%s)"):format(script, f.line, f.column, f.message, f.rule))
      end
    end
  end
  print(("%d %s in %d %s"):format(found, found == 1 and "finding" or "findings", scripts,
                                  scripts == 1 and "script" or "scripts"))
  return found == 0 and 0 or 1
end
