-- SPDX-License-Identifier: Apache-2.0
-- Bytes replaced by a table of 256 a channel, made from what the channel holds.

local common = require "perigee.image.common"

local tables = {}
local function pg() return require "perigee" end

function tables.need_bytes(where, t)
  local rank = common.check(where, t)
  if t.dtype ~= "uint8" then
    common.refuse(where, "image must be uint8, got " .. t.dtype,
                  "(image * 255):round():to(\"uint8\") of numbers from 0 to 1")
  end
  return rank
end

-- How often each byte is in a channel.
local function histogram(channel) return channel:flatten():to("int64"):bincount { minlength = 256 }:totable() end

-- Each channel by make(counts): a list of 256 numbers, or nil where it stays.
local function replaced(t, make)
  local channels = {}
  for c = 1, t:size(3) do
    local channel = t:narrow(3, c, 1)
    local list = make(histogram(channel))
    if list then
      local bytes = pg().tensor(list, { dtype = "uint8", device = t.device })
      channel = bytes:index_select(channel:flatten():to "int64", 1):reshape(channel.shape)
    end
    channels[c] = channel
  end
  return #channels == 1 and channels[1] or pg().cat(channels, 3)
end

function tables.autocontrast(t)
  return replaced(t, function(counts)
    local low, high = 0, 255
    while low < 255 and counts[low + 1] == 0 do low = low + 1 end
    while high > 0 and counts[high + 1] == 0 do high = high - 1 end
    if high <= low then return nil end
    local scale, list = 255 / (high - low), {}
    local offset = -low * scale
    for i = 0, 255 do
      local v = i * scale + offset
      list[i + 1] = math.min(math.max(v < 0 and math.ceil(v) or math.floor(v), 0), 255)
    end
    return list
  end)
end

function tables.equalize(t)
  return replaced(t, function(counts)
    local total, last, kinds = 0, 0, 0
    for _, n in ipairs(counts) do
      if n > 0 then total, last, kinds = total + n, n, kinds + 1 end
    end
    local step = math.floor((total - last) / 255)
    if kinds <= 1 or step == 0 then return nil end
    local n, list = math.floor(step / 2), {}
    for i = 1, 256 do
      list[i] = math.min(math.floor(n / step), 255)
      n = n + counts[i]
    end
    return list
  end)
end

return tables
