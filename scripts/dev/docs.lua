-- SPDX-License-Identifier: Apache-2.0
-- perigee scripts/dev/docs.lua [ROOT]: writes docs/reference and docs/library.

local root = arg[1] or "."
package.path = root .. "/tests/?.lua;" .. root .. "/tests/?/init.lua;" .. package.path

local cases, specs = require "cases", require "cases.specs"

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local folder = root .. "/docs/reference"
local library = root .. "/docs/library"
os.execute(("mkdir -p '%s' '%s' && rm -f '%s'/*.md '%s'/*.lua"):format(folder, library, folder, library))
local count = 0
for name, text in pairs(require("perigee.reference.pages").make(cases, specs)) do
  write(folder .. "/" .. name, text)
  count = count + 1
end
for name, text in pairs(require "perigee.reference.stubs"()) do write(library .. "/" .. name, text) end
print(("docs: %d pages and docs/library"):format(count))
