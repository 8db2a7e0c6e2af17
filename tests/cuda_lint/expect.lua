-- SPDX-License-Identifier: Apache-2.0
-- luajit expect.lua TOOL SNIPPETS: the tool finds exactly the lines that end in "bad".
local tool, snippets = arg[1], arg[2]

local expected, number = {}, 0
for line in io.lines(snippets) do
  number = number + 1
  if line:find("// bad$") then expected[number] = true end
end

local pipe = assert(io.popen(("luajit '%s' '%s'"):format(tool, snippets)))
local found, wrong = {}, 0
for line in pipe:lines() do
  local at = tonumber(line:match("%.cu:(%d+): ")) or error("no line number: " .. line, 0)
  found[at] = true
  if not expected[at] then
    wrong = wrong + 1
    print("found what is well: " .. line)
  end
end
for at = 1, number do
  if expected[at] and not found[at] then
    wrong = wrong + 1
    print(("line %d was not found"):format(at))
  end
end
os.exit(wrong == 0 and 0 or 1)
