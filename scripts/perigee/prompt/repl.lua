-- SPDX-License-Identifier: Apache-2.0
-- The prompt: reads chunks, runs them, shows what they give.
--
-- Ctrl-C reaches running code through a hook, which compiled code never looks at. So what the user types or loads here
-- is interpreted, and so is the training loop; everything else of Perigee is compiled as ever.

local editor = package.loaded["perigee.prompt.line_editor"]
local report = require "perigee.printing.report"
local chunk = require "perigee.prompt.chunk"
local history = require "perigee.prompt.history"

local Repl = {}
Repl.__index = Repl

-- ---- reading ----

-- One line, or nil and why: "end", "interrupted". A line that was looked at early comes first.
function Repl:next_line(prompt)
  local line = self.early
  self.early = nil
  if line then return line end
  return editor.read(prompt)
end

-- Whether the next line of a paste (or of a pipe) goes on with the chunk: a chain of calls over several lines.
function Repl:goes_on()
  if not self.early and editor.pending() then self.early = self:next_line("> ") end
  return self.early ~= nil and chunk.continues(self.early)
end

-- One complete chunk over as many lines as it takes: its text, its function or nil, and the locals or the problem.
function Repl:read_chunk()
  local text, why, had_text = self:next_line("> ")
  if not text then return nil, why, had_text end
  if self.commands.is_command(text) then return text end
  while true do
    local fn, rest, unfinished = chunk.compile(text:gsub("^%s*=", "return ", 1), self.env)
    local more
    if fn or not unfinished then
      if not text:find("%S") or not self:goes_on() then return text, fn, rest end
      more = self:next_line("> ")
    else
      more, why = self:next_line(">> ")
      if not more then
        if why == "interrupted" then return nil, why, true end
        return text, nil, rest
      end
    end
    text = text .. "\n" .. more
  end
end

-- ---- running ----

local function interpret(fn)
  jit.off(fn, true)
  return fn
end

-- Files and strings that are loaded from here on are interpreted too.
local function interpret_what_is_loaded()
  local is_own = require("perigee.native.errors").is_own_source
  local function of_user(fn)
    local source = debug.getinfo(fn, "S").source
    return not is_own(source) or source:find("/perigee/fit/", 1, true) ~= nil
  end
  local find = package.loaders[2]
  package.loaders[2] = function(name)
    local fn, extra = find(name)
    if type(fn) == "function" and of_user(fn) then interpret(fn) end
    return fn, extra
  end
  for _, name in ipairs { "load", "loadstring", "loadfile" } do
    local plain = _G[name]
    _G[name] = function(...)
      local fn, problem = plain(...)
      if fn then interpret(fn) end
      return fn, problem
    end
  end
  function _G.dofile(path) return assert(loadfile(path))() end
end

local function pack(...) return { n = select("#", ...), ... } end

-- Shows values; the first becomes _.
local function show(self, results)
  if results.n == 0 then return end
  rawset(self.env, "_", results[1])
  local meta = getmetatable(results[1])
  if results.n == 1 and type(meta) == "table" and rawget(meta, "__perigee_said") then return end
  local inspect = require "perigee.prompt.inspect"
  local parts = {}
  for i = 1, results.n do parts[i] = inspect(results[i]) end
  print(table.concat(parts, "\t"))
end

-- The message without the frame of the prompt itself.
local function explain(err)
  local text = report(err):gsub("\n%s*stdin:%d+: in function 'fn'$", "")
  return (text:gsub("\nstack traceback:$", ""))
end

---Runs a function with Ctrl-C in force, and shows its values or its error.
function Repl:evaluate(fn)
  editor.watch(true)
  local ok, message = xpcall(function() show(self, pack(fn())) end, explain)
  editor.watch(false)
  if ok then return end
  self.interrupts = message:find("interrupted", 1, true) and 1 or 0
  if self.interrupts > 0 then message = message:match("^[^\n]*") .. " (Ctrl-C once more leaves)" end
  io.stderr:write(message, "\n")
end

-- ---- the loop ----

-- Ctrl-C at the prompt: what was typed is dropped; a second time in a row leaves.
function Repl:on_interrupt(had_text)
  io.stdout:write("\n")
  if had_text then
    self.interrupts = 0
    return true
  end
  self.interrupts = self.interrupts + 1
  if self.interrupts > 1 then return false end
  print("(Ctrl-C once more, or Ctrl-D, leaves)")
  return true
end

function Repl:step()
  local text, fn, rest = self:read_chunk()
  if text and editor.interactive then history.add(editor, text) end
  if not text then
    if fn == "interrupted" then return self:on_interrupt(rest) end
    if editor.interactive then io.stdout:write("\n") end
    return false
  end
  self.interrupts = 0
  if self.commands.is_command(text) then return self.commands.run(self, text) end
  if not text:find("%S") then return true end
  if not fn then
    io.stderr:write(rest, "\n")
    return true
  end
  self.declare(rest)
  self:evaluate(interpret(fn))
  return true
end

local function start()
  local self = setmetatable({ interrupts = 0, commands = require "perigee.prompt.commands" }, Repl)
  self.env, self.declare = chunk.environment()
  local pg = require "perigee"
  self.given = { pg = pg, nn = pg.nn, optim = pg.optim, data = pg.data, amp = pg.amp,
                 help = require("perigee.prompt.help").show }
  for name, value in pairs(self.given) do rawset(self.env, name, value) end
  print("Perigee " .. pg.version() .. ", " .. jit.version ..
        ". pg is require \"perigee\"; nn, optim, data, amp too; help(pg.relu), ?name or :help say more.")
  interpret_what_is_loaded()
  local complete = require "perigee.prompt.complete"
  editor.open(function(text) return complete(self.env, text) end)
  if editor.interactive then history.load(editor) end
  return self
end

return function()
  local self = start()
  editor.watch(false)
  while self:step() do end -- luacheck: ignore 542
  editor.close()
  return 0
end
