-- SPDX-License-Identifier: Apache-2.0
-- Progress of an epoch: a bar that is drawn over itself on a terminal, as wide as fits, one plain line at the epoch's
-- end elsewhere.

local native = require "perigee.native"
local columns = require "perigee.printing.columns"

local Progress = {}
Progress.__index = Progress

local WIDTH, LEAST, INTERVAL = 24, 8, 0.1 -- columns of the bar, at least; seconds between redraws

---@param total integer? batches in the epoch; nil where nobody knows before its end
---@param verbose integer 0 nothing, 1 a bar on a terminal, 2 lines only
local function new(epoch, epochs, total, verbose)
  local live = verbose == 1 and native.is_terminal(1)
  return setmetatable({ label = ("epoch %d/%d"):format(epoch, epochs), total = total, verbose = verbose, live = live,
                        start = native.clock(), next_draw = 0, samples = 0, length = 0 }, Progress)
end

local function duration(seconds)
  if seconds < 60 then return ("%.0fs"):format(seconds) end
  return ("%d:%02d"):format(math.floor(seconds / 60), math.floor(seconds % 60))
end

local function rate_text(rate)
  if rate >= 1e4 then return ("%.0fk"):format(rate / 1e3) end
  return ("%.0f"):format(rate)
end

local function values_text(values)
  local parts = {}
  for _, pair in ipairs(values) do parts[#parts + 1] = ("%s %.4f"):format(pair[1], pair[2]) end
  return table.concat(parts, "  ")
end

-- A line that is longer than the terminal is wide would go on in the next one, and stay there.
local function overwrite(self, text)
  local length = columns.count(text)
  io.stdout:write("\r", text, (" "):rep(math.max(self.length - length, 0)))
  io.stdout:flush()
  self.length = length
end

local function bar_text(share, width)
  local filled = math.floor(share * width)
  return "[" .. ("="):rep(filled) .. (filled < width and ">" or "") .. ("."):rep(width - filled - 1) .. "]"
end

-- The line that fits into `width` columns: what is told last gives way first, then the bar; values stay.
local function line_text(self, share, parts, values, width)
  local function joined(bar, count)
    local list = { bar and self.label .. " " .. bar_text(share, bar) or self.label }
    for i = 1, count do list[#list + 1] = parts[i] end
    list[#list + 1] = values ~= "" and values or nil
    return table.concat(list, "  ")
  end
  if not share then return columns.cut(joined(nil, #parts), width) end
  local room = width - columns.count(joined(0, #parts)) -- of "[]"
  if room >= LEAST then return joined(math.min(WIDTH, room), #parts) end
  for count = #parts - 1, 1, -1 do
    room = width - columns.count(joined(0, count))
    if room >= LEAST then return joined(math.min(WIDTH, room), count) end
  end
  return columns.cut(joined(nil, 1), width)
end

---Counts a batch. `values` is asked for { name, number } pairs only when the bar is drawn: it waits for the device.
function Progress:update(done, samples, values)
  self.samples = self.samples + samples
  if not self.live then return end
  local now = native.clock()
  if now < self.next_draw then return end
  local elapsed = now - self.start
  if self.total and done > self.total then self.total = nil end -- it was that of the epoch before
  local total, rate = self.total, rate_text(self.samples / elapsed) .. "/s"
  local parts = { ("batch %d"):format(done), rate, duration(elapsed) }
  if total then
    parts = { ("%d/%d"):format(done, total), rate, duration(elapsed / done * (total - done)) .. " left" }
  end
  overwrite(self, line_text(self, total and done / total, parts, values_text(values()), native.terminal_width() - 1))
  local after = native.clock()
  self.next_draw = after + math.max(INTERVAL, 9 * (after - now)) -- values that are slow to read are read less often
end

---The epoch's line, with its means.
function Progress:finish(values)
  self.elapsed = native.clock() - self.start
  if self.verbose == 0 then return end
  local text = ("%s  %s  %s/s  %s"):format(self.label, duration(self.elapsed),
                                           rate_text(self.samples / math.max(self.elapsed, 1e-9)), values_text(values))
  if self.live then
    overwrite(self, text)
    io.stdout:write("\n")
  else
    io.stdout:write(text, "\n")
  end
  io.stdout:flush()
end

---Something went wrong: what is printed next begins on a line of its own.
function Progress:abort()
  if self.live and self.length > 0 then io.stdout:write("\n") end
end

return new
