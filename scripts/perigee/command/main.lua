-- SPDX-License-Identifier: Apache-2.0
-- The commands of the `perigee` executable. Each takes its words and answers an exit status.

local commands = {}

local function usage(text)
  io.stderr:write("perigee: ", text, "\n")
  return 2
end

-- Rows of text as aligned columns.
local function columns(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  for _, row in ipairs(rows) do
    local line = {}
    for i, cell in ipairs(row) do line[i] = i < #row and cell .. (" "):rep(widths[i] - #cell) or cell end
    print((table.concat(line, "  "):gsub("%s+$", "")))
  end
end

function commands.plugins(...)
  local native = require "perigee.native"
  local as_json
  for _, word in ipairs { ... } do
    if word ~= "--json" then return usage("plugins: unknown word " .. word) end
    as_json = true
  end
  if as_json then
    print(native.plugins_text(true))
    return 0
  end
  local rows = { { "NAME", "KINDS", "VERSION", "STATE", "PATH", "REASON" } }
  for _, p in ipairs(native.plugins(true)) do
    rows[#rows + 1] = { p.name or "?", p.kinds or "", p.version or "", p.state or "", p.path or "", p.reason or "" }
  end
  columns(rows)
  return 0
end

local function gigabytes(n) return n and n > 0 and ("%.1f GB"):format(n / 2 ^ 30) or "" end

function commands.devices()
  local pg = require "perigee"
  local devices = pg.devices()
  local rows = { { "NAME", "MEMORY", "FREE", "DESCRIPTION" } }
  for _, d in ipairs(devices) do
    rows[#rows + 1] = { d.name, gigabytes(d.memory_total), gigabytes(d.memory_free), d.description or "" }
  end
  columns(rows)
  for _, u in ipairs(devices.unavailable or {}) do print(("%s: not available: %s"):format(u.type, u.reason)) end
  return 0
end

function commands.conform(...) return require("perigee.command.conform")(...) end
function commands.doctor(...) return require("perigee.command.doctor")(...) end
function commands.test(...) return require("perigee.command.test")(...) end
function commands.repl(...) return require("perigee.prompt.repl")(...) end

---@param word string
---@return integer status
return function(word, ...)
  return commands[word](...)
end
