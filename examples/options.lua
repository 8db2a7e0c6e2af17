-- SPDX-License-Identifier: Apache-2.0
-- Command-line options of the examples: `--name value` pairs over defaults, whose types they take. `--short` is for
-- those who only want to see that it runs: it takes the values of the second table, where no pair says otherwise.

local function complain(text)
  io.stderr:write(arg[0], ": ", text, " (--help lists the options)\n")
  os.exit(1)
end

local function show(defaults)
  local names = {}
  for name in pairs(defaults) do names[#names + 1] = name end
  table.sort(names)
  print(("%s: options and what they are if not given"):format(arg[0]))
  for _, name in ipairs(names) do print(("  --%s %s"):format(name, tostring(defaults[name]))) end
  print("  --short    only to see that it runs")
  os.exit(0)
end

-- A file that cannot be written is better known before the training than behind it.
local function check_writable(path)
  if not path:find("%.safetensors$") then complain(("--save: %q is no .safetensors file"):format(path)) end
  local existed = io.open(path, "rb")
  if existed then existed:close() end
  local file, why = io.open(path, "ab")
  if not file then complain("--save: " .. why) end
  file:close()
  if not existed then os.remove(path) end
end

return function(defaults, short)
  local given, is_short, i = {}, false, 1
  while arg[i] do
    local name = arg[i]:match("^%-%-(.+)$")
    if name == "help" then show(defaults) end
    if name == "short" then
      is_short, i = true, i + 1
    else
      local value = arg[i + 1]
      if not name or defaults[name] == nil then complain(("there is no option %q"):format(arg[i])) end
      if not value then complain(("--%s needs a value"):format(name)) end
      if type(defaults[name]) == "number" then
        value = tonumber(value) or complain(("--%s needs a number, got %q"):format(name, value))
      end
      given[name], i = value, i + 2
    end
  end
  for name, value in pairs(is_short and short or {}) do defaults[name] = value end
  for name, value in pairs(given) do defaults[name] = value end
  defaults.is_short = is_short
  if defaults.save then check_writable(defaults.save) end
  return defaults
end
