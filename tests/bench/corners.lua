-- SPDX-License-Identifier: Apache-2.0
-- Losses, loops that leave garbage, tiny tensors and other corners against PyTorch: perigee tests/bench/corners.lua
-- [PYTHON [ROUNDS [PATTERN...]]]. The two take turns item by item, with one thread each; Perigee has a process for
-- each item, PyTorch, which starts slowly, one for each round. A row is an item whose name has one of the PATTERNs in
-- it, the median processor time of each side in microseconds a call, and the median of the rounds' ratios (below 1:
-- less) with the least and the most. Collections that a loop causes count.
--
-- An item is a row of corners_items.lua and one of the same name in corners_torch.py.

local folder = arg[0]:match("^(.*)/[^/]*$") or "."
local items = dofile(folder .. "/corners_items.lua")

local function measure(pg, make)
  local fn, calls = make(pg), 1
  local function run(n) for _ = 1, n do fn() end end
  collectgarbage()
  local start = os.clock()
  repeat -- until all memory that is needed between two collections has been used before
    local fresh, begin = pg.memory.stats("cpu").device_allocations, os.clock()
    repeat
      run(calls)
      local passed = os.clock() - begin
      if passed < 0.02 then calls = calls * 2 end
    until passed > 0.1
    local passed, grows = os.clock() - start, pg.memory.stats("cpu").device_allocations ~= fresh
  until passed > 3 or (passed > 0.3 and not grows)
  local count, begin = 0, os.clock()
  repeat
    run(calls)
    count = count + calls
  until os.clock() - begin > 0.3
  return (os.clock() - begin) / count * 1e6
end

if arg[1] == "--own" then -- one item
  local pg = require "perigee"
  pg.config.set { threads = 1 }
  pg.manual_seed(1)
  for _, item in ipairs(items) do
    if item[1] == arg[2] then print(("%.4f"):format(measure(pg, item[2]))) end
  end
  return
end

local python, rounds = arg[1] or "python3", tonumber(arg[2] or 5)
local own = arg[-1] or "perigee"

local function wanted(name)
  for i = 3, #arg do
    if name:find(arg[i], 1, true) then return true end
  end
  return #arg < 3
end

local function quantile(list, q)
  table.sort(list)
  return list[math.floor((#list - 1) * q + 1.5)]
end

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- PyTorch's process, which is asked for the time of an item: a number, or nil where it does not have that item.
local function torch()
  local fifo = os.tmpname()
  os.remove(fifo)
  assert(os.execute("mkfifo -m 600 " .. quote(fifo)) == 0, "cannot make a fifo in the folder of temporary files")
  -- Freed memory stays with the process: it is fastest so.
  local answers = assert(io.popen("MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824 " ..
    ("%s %s 2>/dev/null <%s"):format(quote(python), quote(folder .. "/corners_torch.py"), quote(fifo))))
  local questions = assert(io.open(fifo, "w"))
  os.remove(fifo)
  return {
    ask = function(name)
      questions:write(name, "\n")
      questions:flush()
      return tonumber(answers:read("*l") or nil)
    end,
    close = function()
      questions:close()
      answers:close()
    end,
  }
end

local function perigee(name)
  local pipe = assert(io.popen(("%s %s --own %s"):format(quote(own), quote(arg[0]), quote(name))))
  local time = tonumber(pipe:read("*l") or nil)
  pipe:close()
  return time
end

local rows = {}
for _, item in ipairs(items) do
  if wanted(item[1]) then rows[#rows + 1] = { name = item[1], mine = {}, their = {}, ratios = {} } end
end
for _ = 1, rounds do
  local other = torch()
  for _, row in ipairs(rows) do
    local their, mine = other.ask(row.name), perigee(row.name)
    table.insert(row.mine, mine)
    if their and mine then
      table.insert(row.their, their)
      table.insert(row.ratios, mine / their)
    end
  end
  other.close()
end
print(("%-36s %10s %10s  %s"):format("microseconds a call", "Perigee", "PyTorch", "ratio"))
for _, row in ipairs(rows) do
  local a, b, r = row.mine, row.their, row.ratios
  if #a > 0 then
    local their = #b > 0 and ("%.2f"):format(quantile(b, 0.5)) or "-"
    print(("%-36s %10.2f %10s  %s"):format(row.name, quantile(a, 0.5), their,
      #r > 0 and ("%.2f (%.2f to %.2f)"):format(quantile(r, 0.5), quantile(r, 0), quantile(r, 1)) or "-"))
  end
end
