-- SPDX-License-Identifier: Apache-2.0
-- perigee tests/vectors.lua [FOLDER [DEVICE]]: operators against reference vectors in float64 (their format:
-- tests/vectors/data/README.md; without a folder, those). A case is skipped when Perigee has no such operator,
-- or the device no kernel for it and tests/cases/absent.lua says so.

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path

local runner = require "vectors.runner"

local folder = arg[1] or here .. "/vectors/data"
local files = runner.files_of(folder)
if #files == 0 then
  io.stderr:write(("vectors: there are no .jsonl files in %s\n"):format(folder))
  print("0 passed, 1 failed, 0 skipped")
  os.exit(1)
end

local total = { passed = 0, failed = 0, skipped = 0 }
local missing, names = {}, {}
for _, path in ipairs(files) do
  for _, result in ipairs(runner.run_file(path, arg[2])) do
    total[result.state] = total[result.state] + 1
    if result.state == "failed" then
      print(("FAIL %s: %s"):format(result.title, result.message))
    elseif result.state == "skipped" then
      if not missing[result.name] then names[#names + 1] = result.name end
      missing[result.name] = (missing[result.name] or 0) + 1
    end
  end
end

for _, name in ipairs(names) do
  local why = name:find " has no kernel on " and name or name .. ": no such operator yet"
  print(("SKIP %d: %s"):format(missing[name], why))
end
print(("%d passed, %d failed, %d skipped"):format(total.passed, total.failed, total.skipped))
os.exit(total.failed == 0 and 0 or 1)
