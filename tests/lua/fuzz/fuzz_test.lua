-- SPDX-License-Identifier: Apache-2.0
-- Calls drawn at random, the same ones at every run, for a minute at most: none ends the process, none raises what is
-- no error of Perigee's. What fails says how to run it again. PERIGEE_FUZZ_SEED and PERIGEE_FUZZ_SECONDS choose others,
-- and more of them.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. tests .. "/?/init.lua;" .. package.path

local process = require "process"
local fuzz = require "fuzz.run"

local ASKED = tonumber(os.getenv "PERIGEE_FUZZ_SECONDS")
local SECONDS, CALLS = ASKED or 60, ASKED and 2 ^ 40 or 20000
local SEED = tonumber(os.getenv "PERIGEE_FUZZ_SEED") or 1

test("fuzz: random calls give results or errors with a code", function(t)
  local o = { perigee = process.need_perigee(t), seed = SEED, calls = CALLS, seconds = SECONDS }
  local sum = fuzz.run(o)
  local failures = fuzz.failures(o, sum)
  t.ok(failures == "", failures)
  t.ok(sum.calls > 0 and sum.results > sum.calls / 4, "too few calls come to something: " .. fuzz.summary(sum))
  print("fuzz, seed " .. SEED .. ": " .. fuzz.summary(sum))
end)

-- What it would report if there were something.
test("fuzz: a call that ends the process is reported with its script, and others follow", function(t)
  local o = { perigee = process.need_perigee(t), seed = 1, calls = 3, seconds = 60, only = "end" }
  local sum = fuzz.run(o)
  t.equal(sum.calls, 3)
  t.equal(#sum.crashes, 1)
  t.equal(sum.crashes[1].number, 2)
  local text = fuzz.failures(o, sum)
  for _, part in ipairs { "call 2: abort", "os.exit(134)", "--seed 1 --from 2" } do
    t.ok(text:find(part, 1, true), text)
  end
end)
