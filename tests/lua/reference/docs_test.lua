-- SPDX-License-Identifier: Apache-2.0
-- The snippets of docs/*.md run and show something; what pages say of the header is so.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../../.."

local examples = require "perigee.reference.examples"

local function read(path)
  local file = io.open(path, "r")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

for _, page in ipairs { "README", "lint", "coming_from_pytorch", "coming_from_keras", "coming_from_torch7",
                        "graphs_and_sessions", "smaller_models", "compile",
                        "profiling", "many_machines", "input_pipelines", "from_tf_data_and_dataloader" } do
  local number = 0
  for code in (read(root .. "/docs/" .. page .. ".md") or ""):gmatch("\n```lua\n(.-)\n```") do
    number = number + 1
    test(("docs/%s, snippet %d"):format(page, number), function(t)
      if t.device and t.device ~= "cpu" then t.skip("runs once") end
      local output, problem = examples.run(code)
      t.ok(output, tostring(problem))
      t.ok(#output > 0 or code:find("pg.save", 1, true), "a snippet that shows nothing")
    end)
  end
  local least = (page == "README" or page == "lint") and 1 or 3
  test("docs/" .. page .. " has snippets", function(t) t.ok(number >= least) end)
end

test("cmake/README names the header's version in its manifest", function(t)
  local header, page = read(root .. "/core/include/perigee/plugin.h"), read(root .. "/cmake/README.md")
  if not header or not page then t.skip("runs in the source tree") end
  t.equal(page:match('"abi_minor": (%d+)'), header:match("#define PG_ABI_MINOR (%d+)u"))
  t.equal(page:match('"abi": (%d+)'), header:match("pg_plugin_v(%d+)"))
end)
