-- SPDX-License-Identifier: Apache-2.0
-- Command-line options of the examples: `--name value` pairs over defaults, whose types they take.

return function(defaults)
  local i = 1
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
