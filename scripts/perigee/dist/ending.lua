-- SPDX-License-Identifier: Apache-2.0
-- The end of a process that has failed: the others, which may wait for it, are told why. `perigee` calls `failed` with
-- the message when a script raises (bindings/lua/src/main.cpp); a script that ends itself comes here by os.exit.

local native = require "perigee.native"

local M = {}
local watching = false

function M.failed(message)
  if not watching then return end
  watching = false
  native.dist.abandon((message:match("^[^\n]*") or message):sub(1, 300))
end

---From now on the end of this process matters to others.
function M.watch()
  if watching then return end
  watching = true
  local exit = os.exit
  os.exit = function(code, ...) -- luacheck: ignore 122
    if code ~= nil and code ~= true and code ~= 0 then M.failed(("os.exit(%s)"):format(tostring(code))) end
    return exit(code, ...)
  end
end

return M
