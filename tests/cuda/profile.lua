-- SPDX-License-Identifier: Apache-2.0
-- What a profile is told by the plugin, here on the emulated device: launches and copies, when they ran, and what asked
-- for them; twice, as its events are taken up and put away each time. perigee tests/cuda/profile.lua cuda:0

local pg = require "perigee"
local device = arg[1]
local host = pg.rand { 16, 16 }
local x = host:to(device)
x:matmul(x)

for round = 1, 2 do
  local p = pg.profile { function()
    local y = host:to(device)
    for _ = 1, 3 do y = y:exp() end
    y:to "cpu"
  end, roofline = false }
  local counts, last = {}, 0
  for _, r in ipairs(p.records) do
    if not r.block and not r.thread then
      counts[r.kind .. " " .. r.name] = (counts[r.kind .. " " .. r.name] or 0) + 1
      assert(r.sequence and r.to >= r.from and r.from > 0 and r.to <= p.seconds + p.noting + 1, r.name)
      if r.name == "exp" then
        assert(r.shapes == "float32 [16, 16] -> [16, 16]" and r.line:find "profile.lua:%d+$", r.line)
        assert(r.from >= last, "kernels of one stream follow each other")
        last = r.from
      end
    end
  end
  local text = ("%s kernels, %s uploads, %s downloads"):format(counts["kernel exp"], counts["upload upload"],
                                                               counts["download download"])
  print(round, text)
  assert(text == "3 kernels, 1 uploads, 1 downloads", text)
  assert(p.devices[device].bytes == 2 * 16 * 16 * 4 and p.devices[device].busy > 0)
end
