-- SPDX-License-Identifier: Apache-2.0
-- What the prompt understands besides Lua: `?name`, `name?` and words behind a colon.

local chunk = require "perigee.prompt.chunk"

local commands = {}
local words = {}

local TEXT = [[
  EXPRESSION        runs it and shows its values; _ is the first of the last ones
  STATEMENT         runs it; locals of the top level stay for later lines
  help(pg.relu)     what a function, layer, optimizer or tensor is (also ?pg.relu, pg.relu? and :help pg.relu)
  :time EXPRESSION  shows its values and how long it took
  :names            the locals of the top level
  :quit             leaves (also Ctrl-D)
  Tab completes, Ctrl-R searches earlier lines, Ctrl-C stops what runs.]]

function words.help(repl, rest)
  if rest == "" then
    print(TEXT)
    return true
  end
  repl:evaluate(function() require("perigee.prompt.help").show_text(rest, repl.env) end)
  return true
end

function words.time(repl, rest)
  local fn, problem = chunk.compile(rest, repl.env)
  if not fn then
    io.stderr:write(problem, "\n")
    return true
  end
  local clock = require("perigee.native").clock
  jit.off(fn, true)
  local from = clock()
  repl:evaluate(fn)
  print(("%.6f s"):format(clock() - from))
  return true
end

function words.names(repl)
  local native, list = require "perigee.native", {}
  local is_tensor, describe = native.is_tensor, native.describe
  for name, value in pairs(repl.env) do
    if name ~= "_" and value ~= repl.given[name] then
      list[#list + 1] = ("%s (%s)"):format(name, is_tensor(value) and describe(value) or type(value))
    end
  end
  table.sort(list)
  print(#list > 0 and table.concat(list, ", ") or "none")
  return true
end

function words.quit() return false end
words.q = words.quit

---@param text string
---@return boolean
function commands.is_command(text)
  return text:find("^%s*%?") ~= nil or text:find("^%s*:%a") ~= nil or text:find("^%s*[%a_][%w_.:]*%?%s*$") ~= nil
end

---Runs a command line. False: the prompt ends.
---@return boolean
function commands.run(repl, text)
  local subject = text:match("^%s*%?%s*(.-)%s*$") or text:match("^%s*([%a_][%w_.:]*)%?%s*$")
  if subject then return words.help(repl, subject) end
  local word, rest = text:match("^%s*:(%a+)%s*(.-)%s*$")
  if words[word] then return words[word](repl, rest) end
  local names = {}
  for name in pairs(words) do names[#names + 1] = name end
  local near = require("perigee.native.suggest")(word, names)
  io.stderr:write((":%s is no command%s\n"):format(word, near and (" (did you mean :%s?)"):format(near) or ""))
  return true
end

return commands
