-- SPDX-License-Identifier: Apache-2.0
-- Command-line options of the examples: `--name value` pairs over defaults, whose types they take. `--short` is for
-- those who only want to see that it runs: it takes the values of the second table. `--help` lists them all.

local function leave(status, text)
  local out = status == 0 and io.stdout or io.stderr
  out:write(text, "\n")
  os.exit(status)
end

local function usage(defaults)
  local names = {}
  for name in pairs(defaults) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do names[i] = ("[--%s %s]"):format(name, tostring(defaults[name])) end
  return ("usage: perigee %s [--short] %s"):format(arg[0], table.concat(names, " "))
end

return function(defaults, short)
  local i, help = 1, usage(defaults)
  if arg[1] == "--help" then leave(0, help) end
  if arg[1] == "--short" then
    for name, value in pairs(short or {}) do defaults[name] = value end
    defaults.is_short = true
    i = 2
  end
  while arg[i] do
    local name = arg[i]:match("^%-%-(.+)$")
    if not name or defaults[name] == nil or not arg[i + 1] then
      leave(2, ("cannot understand %q\n%s"):format(arg[i], help))
    end
    local value = arg[i + 1]
    if type(defaults[name]) == "number" then
      value = tonumber(value) or leave(2, ("--%s needs a number, got %q"):format(name, value))
    end
    defaults[name] = value
    i = i + 2
  end
  return defaults
end
