-- SPDX-License-Identifier: Apache-2.0
-- What the tutorial quotes stands in the plugins that it walks through.

local here = debug.getinfo(1, "S").source:match("^@(.*)tests/lua/[^/]*/[^/]*$")

local function read(path)
  local file = here and io.open(here .. path)
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

test("the plugin tutorial quotes its plugins as they are", function(t)
  local page = read "core/docs/plugin_tutorial.md"
  if not page then t.skip("the tutorial is not beside the tests") end
  local sources = ""
  for _, path in ipairs { "tiny_device/tiny_device.cpp", "my_layer/CMakeLists.txt", "my_layer/plugin.cpp",
                          "my_layer/snake_op.cpp", "my_layer/snake_kernel.cpp", "my_layer/softcap_op.cpp",
                          "my_layer/snake_layer.cpp", "my_layer/signum.cpp", "my_data/plugin.cpp",
                          "my_data/rows.cpp", "my_data/lines.cpp", "my_data/noise.cpp", "my_data/pictures.cpp",
                          "my_data/ppm.cpp" } do
    sources = sources .. t.ok(read("examples/plugins/" .. path), path)
  end
  local blocks = 0
  for block in page:gmatch("```c[%a]+\n(.-)```") do
    blocks = blocks + 1
    t.ok(sources:find(block, 1, true), "in no file of the plugins:\n" .. block)
  end
  t.ok(blocks > 15)
end)

-- The lines that say something to the compiler, a line each, but the end of the unnamed namespace.
local function bare(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do
    if line:find "%S" and not line:find "^%s*//" and not line:find "^#%s" and line ~= "}  // namespace" then
      lines[#lines + 1] = line
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

test("what the plugin tutorial quotes of my_layer is all of it", function(t)
  local page = read "core/docs/plugin_tutorial.md"
  if not page then t.skip("the tutorial is not beside the tests") end
  local quoted = ""
  for block in page:gmatch("```c[%a]+\n(.-)```") do quoted = quoted .. bare(block) end
  for _, name in ipairs { "CMakeLists.txt", "plugin.cpp", "snake_op.cpp", "snake_kernel.cpp", "softcap_op.cpp",
                          "snake_layer.cpp", "signum.cpp" } do
    local whole = bare(t.ok(read("examples/plugins/my_layer/" .. name), name))
    t.ok(quoted:find(whole, 1, true), name .. " is not all in the tutorial")
  end
end)
