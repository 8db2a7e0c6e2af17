-- SPDX-License-Identifier: Apache-2.0
-- Command-line options of the examples: `--name value` pairs over defaults, whose types they take. `--short` is for
-- those who only want to see that it runs: it takes the values of the second table.

return function(defaults, short)
  local i = 1
  if arg[1] == "--short" then
    for name, value in pairs(short or {}) do defaults[name] = value end
    defaults.is_short = true
    i = 2
  end
  while arg[i] do
    local name = arg[i]:match("^%-%-(.+)$")
    if not name or defaults[name] == nil or not arg[i + 1] then
      error(("cannot understand %q"):format(arg[i]), 0)
    end
    local value = arg[i + 1]
    if type(defaults[name]) == "number" then
      value = tonumber(value) or error(("--%s needs a number, got %q"):format(name, value), 0)
    end
    defaults[name] = value
    i = i + 2
  end
  return defaults
end
