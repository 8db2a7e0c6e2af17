-- SPDX-License-Identifier: Apache-2.0
-- Operators against what PyTorch computes (tests/vectors/data), a test a file.

local tests = debug.getinfo(1, "S").source:match("^@(.*)/lua/[^/]*/[^/]*$") or "../.."
package.path = tests .. "/?.lua;" .. package.path

local runner = require "vectors.runner"

for _, path in ipairs(runner.files_of(tests .. "/vectors/data")) do
  test("vectors: " .. path:match("([^/]*)%.jsonl$"), function(t)
    local failures, ran, lacking = {}, 0, nil
    for _, result in ipairs(runner.run_file(path, t.device)) do
      if result.state == "failed" then failures[#failures + 1] = result.title .. ": " .. result.message end
      if result.state == "skipped" then lacking = result.name else ran = ran + 1 end
    end
    t.ok(#failures == 0, table.concat(failures, "\n"))
    if ran == 0 then t.skip("there is no " .. tostring(lacking)) end
  end)
end
