-- SPDX-License-Identifier: Apache-2.0
-- Changed files of each kind (tests/fuzz/decoders.lua), a few of them here; CI reads them under sanitizers too.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local decoders = dofile(here .. "/../../fuzz/decoders.lua")

for _, kind in ipairs(decoders.kinds) do
  test("changed files are read or refused: " .. kind[1], function(t)
    if t.device and t.device ~= "cpu" then t.skip("files are read on the processor") end
    local read, refused, wrong = decoders.fuzz(kind, 150, 1)
    t.equal(wrong, {})
    t.ok(read + refused == 150 and refused > 0)
  end)
end
