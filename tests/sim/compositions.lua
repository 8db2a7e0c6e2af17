-- SPDX-License-Identifier: Apache-2.0
-- compositions.lua PERIGEE FOLDER: the operators' checks (FOLDER/*_test.lua) on a simulated device that has no kernel
-- for any operator with a decomposition: what a device gets that offers few kernels, gradients of both orders included,
-- eager and recorded.

local native = require "perigee.native"

local perigee, folder = arg[1], arg[2]
local missing = {}
for _, name in ipairs(native.op_names()) do
  if native.operators.get(name).decomposes then missing[#missing + 1] = name end
end
assert(#missing > 40, "operators with a decomposition: " .. #missing)

local failed = false
for _, part in ipairs { "forward", "gradient", "dtype", "recorded" } do
  local command = ("PERIGEE_SIM_MISSING=%s '%s' test --device sim:0 '%s/%s_test.lua'"):format(
                    table.concat(missing, ","), perigee, folder, part)
  local status = os.execute(command)
  failed = failed or not (status == 0 or status == true)
end
os.exit(failed and 1 or 0)
