-- SPDX-License-Identifier: Apache-2.0
-- Scripts in several processes, for tests.

local process = require "process"

local launched = {}

---Skips the test where processes cannot be launched.
---@return string perigee
function launched.need(t)
  local perigee = process.need_perigee(t)
  if select(2, process.run "command -v mpirun") ~= 0 then t.skip "mpirun is not here" end
  local text = process.run(perigee .. " plugins")
  if not text:find "\nmpi +collectives +%S+ +available" then t.skip "the plugin mpi is not here" end
  return perigee
end

-- What every script begins with: pg, d, rank and size, and checks that name what differs.
launched.HEAD = [[
local pg = require "perigee"
local d = pg.dist
local rank, size = d.rank(), d.size()
local function same(got, expected, what)
  if pg.is_tensor(got) then
    what = (what or "") .. " got " .. tostring(got)
    got = got:totable()
  end
  local function differs(a, b)
    if type(a) ~= "table" or type(b) ~= "table" then return a ~= b and not (a ~= a and b ~= b) end
    if #a ~= #b then return true end
    for i = 1, #a do if differs(a[i], b[i]) then return true end end
  end
  if differs(got, expected) then error(("rank %d: %s"):format(rank, what or tostring(got)), 2) end
end
local function near(what, a, b)
  local e = (a - b):abs():max():item() / (b:abs():max():item() + 1e-30)
  if not (e < 1e-9) then error(("rank %d: %s differs by %g"):format(rank, what, e), 2) end
end
local function raises(fn, text)
  local ok, err = pcall(fn)
  if ok then error("did not raise: " .. text, 2) end
  if not tostring(err):find(text, 1, true) then error("raised " .. tostring(err) .. ", not " .. text, 2) end
end
]]

-- How a script ends that leaves its numbers behind, the tensors in `weights`, for what take_weights answers: mpirun
-- would tag them in the middle of so long a line.
launched.LEAVES_WEIGHTS = [[
local words = {}
for _, w in ipairs(weights) do
  for _, v in ipairs(w:detach():reshape(-1):totable()) do words[#words + 1] = ("%.9g"):format(v) end
end
if rank == 0 then
  local file = io.open(dir .. ".weights", "w")
  file:write(table.concat(words, " "))
  file:close()
end
]]

---What the last script that was given this folder left behind, which is removed with the folder; nil: nothing.
function launched.take_weights(dir)
  local file = io.open(dir .. ".weights")
  local weights = file and file:read "*a"
  if file then file:close() end
  process.run(("rm -rf %s %s.weights"):format(dir, dir))
  return weights
end

---Runs a script in n processes. `before`: what stands before the command (environment); `options` of perigee launch;
---`words`: the script's.
---@return string text all that they printed, each line behind its rank
---@return integer status
function launched.run(t, n, body, before, options, words)
  local perigee = launched.need(t)
  local path = process.file(launched.HEAD .. "---\n" .. body)
  os.rename(path, path .. ".lua")
  local text, status = process.run(("%s timeout 60 %s launch -n %d --allow-root %s %s.lua %s"):format(
    before or "", perigee, n, options or "", path, words or ""))
  os.remove(path .. ".lua")
  return text, status
end

---The same, of a script that must come to its end in all processes.
---@return string text
function launched.well(t, n, body, before, ...)
  local text, status = launched.run(t, n, body .. "\nprint 'came to its end'\n", before, ...)
  local _, ends = text:gsub("came to its end", "")
  if status ~= 0 or ends ~= n then
    error(("status %d, %d of %d came to the end: %s"):format(status, ends, n, text), 2)
  end
  return text
end

---A word for a script's command line that no other run has, those of suites beside this one included.
---@return string
function launched.mark()
  local path = os.tmpname()
  os.remove(path)
  return "mark_of_" .. path:match "[^/]+$"
end

---The processes that have this word on their command line.
---@return string pids a line each
function launched.left_of(mark) return (process.run(("pgrep -f '[m]%s'"):format(mark:sub(2)))) end

return launched
