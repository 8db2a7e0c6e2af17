-- SPDX-License-Identifier: Apache-2.0
-- What learning-rate schedules ask of their arguments.

local native = require "perigee.native"

local checks = {}

-- Raises unless the condition holds, naming optim.sched.NAME.
function checks.check(name, condition, text, ...)
  if not condition then native.raise("invalid_argument", "optim.sched." .. name, text:format(...)) end
end

-- Raises unless all in a list are whole numbers.
function checks.counts(name, key, list)
  for i, value in ipairs(list) do
    checks.check(name, type(value) == "number" and value % 1 == 0, "%s[%d] must be a whole number, got %s", key, i,
                 native.describe(value))
  end
end

return checks
