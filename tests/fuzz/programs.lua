-- SPDX-License-Identifier: Apache-2.0
-- Whole scripts around drawn calls: a call in its surroundings, and what is done with its results. The text is the
-- script: what is run is what is shown.

local R = require "fuzz.random"
local V = require "fuzz.values"

local P = {}

P.PREAMBLE = "local pg = require \"perigee\"\nlocal nn, optim, data, amp = pg.nn, pg.optim, pg.data, pg.amp\n"

local sources = {
  calls = require "fuzz.calls",
  cases = require "fuzz.cases",
  examples = require "fuzz.examples",
}

-- What a call is made within.
local WITHIN = {
  { 66, "%s" },
  { 14, "pg.device(\"sim:0\", function() return %s end)" },
  { 3, "pg.no_grad(function() return %s end)" },
  { 2, "pg.inference_mode(function() return %s end)" },
  { 3, "amp.autocast({dtype=\"bfloat16\"}, function() return %s end)" },
  { 4, "pg.compile(function() return %s end)()" },
  { 3, "pg.scope(function() return %s end)" },
  { 2, "pg.recompute(function() return %s end)" },
  { 3, "pg.graph(function() return { y = %s } end)" },
}
local RUN_GRAPH = "if results[1] then results[2] = pg.Session{results[1]}:run(\"y\") end"

-- Results are looked at, so that what is computed late is computed; gradients are taken.
local LOOK = [[
for _, r in pairs(results) do
  if pg.is_tensor(r) then
    if r:numel() < 10000 then tostring(r) end
    if r.requires_grad and r:numel() < 2^24 then r:sum():backward() end
  end
end]]
local SECOND = [[
for _, r in pairs(results) do
  if pg.is_tensor(r) and r.requires_grad and r:numel() < 2^24 then
    local w = pg.ones(r.shape, {dtype=r.dtype, requires_grad=true})
    local first = pg.grad((r * w):sum(), {w}, {create_graph=true})
    first[1]:sum():backward()
  end
end]]

-- What the tests of these tests make: the second call ends the process.
local function ending(number) return number == 2 and "os.exit(134)" or "pg.ones{2}:relu()", "end" end

---The script of a call.
---@param seed integer
---@param number integer of the call
---@param only? string a name to draw instead of any
---@return string text
---@return string name what is called
function P.script(seed, number, only)
  if only == "end" then return ending(number) end
  R.start(seed, number)
  V.start()
  local source = R.weighted { { 55, "calls" }, { 37, "cases" }, { 8, "examples" } }
  if only then
    source = only:find "^cases/" and "cases" or only:find "^examples/" and "examples" or "calls"
    only = only:gsub("^%a+/", "")
  end
  local expression, before, name = sources[source].draw(only)
  local lines = { before }
  if expression then
    local within = R.weighted(WITHIN)
    lines[#lines + 1] = ("local results = { %s }"):format((within:gsub("%%s", function() return expression end)))
    if within:find "pg.graph" then lines[#lines + 1] = RUN_GRAPH end
    lines[#lines + 1] = R.percent(92) and LOOK or SECOND
  end
  return table.concat(lines, "\n"), name
end

return P
