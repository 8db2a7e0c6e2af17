-- SPDX-License-Identifier: Apache-2.0
-- What functions of pictures share. A picture is [rows, columns, channels], a batch of them has one axis more.

local native = require "perigee.native"

local common = {}

function common.refuse(where, message, hint) native.raise("invalid_argument", where, message, hint) end
local refuse = common.refuse

common.IMAGE = { "image", "tensor", required = true, doc = "[rows, columns, channels], or a batch of them in front" }
common.FILTERS = { "nearest", "bilinear", "bicubic", "lanczos", "area" }

---Refuses what is no picture and no batch of them; answers its rank.
function common.check(where, t)
  local rank = t:dim()
  if rank ~= 3 and rank ~= 4 then
    refuse(where, ("image must be [rows, columns, channels], or a batch of them, got %s"):format(tostring(t.shape)),
           rank == 2 and "image:unsqueeze(3) has one channel" or nil)
  end
  if t.dtype ~= "uint8" and not native.dtypes.by_name[t.dtype].floating then
    refuse(where, "image must be uint8 or of a floating dtype, got " .. t.dtype)
  end
  return rank
end

---Rows, columns and channels of a picture.
function common.sides(t)
  local rank = t:dim()
  return t:size(rank - 2), t:size(rank - 1), t:size(rank)
end

---One number for both, or two.
function common.pair(where, name, v, least)
  local a, b
  if type(v) == "table" then a, b = v[1], v[2] else a, b = v, v end
  if type(v) == "table" and #v ~= 2 then refuse(where, ("%s must be one number or two, got %d"):format(name, #v)) end
  if least and (a < least or b < least) then
    refuse(where, ("%s must be %d or more, got %s"):format(name, least, a < least and a or b))
  end
  return a, b
end

---Numbers of bytes, whole ones, as the dtype of `like`: of uint8 what follows the comma is cut off, as Pillow does.
function common.narrowed(t, like, top)
  if like.dtype ~= "uint8" then return t:clamp(0, top or 1):to(like.dtype) end
  return t:clamp(0, 255):to "uint8"
end

---As Pillow's mode L: the luma of ITU-R 601 in sixteenths of bits. Of uint8 as float32 numbers, which are whole.
function common.luma(where, t, axis)
  local n = t:size(axis)
  if n ~= 3 then
    refuse(where, ("image must have 3 channels, red, green and blue, got %s in %s"):format(tostring(n),
           tostring(t.shape)))
  end
  local function channel(i) return t:narrow(axis, i, 1) end
  if t.dtype ~= "uint8" then return channel(1) * 0.299 + channel(2) * 0.587 + channel(3) * 0.114 end
  t = t:to "float32" -- all sums are below 2^24
  return ((channel(1) * 19595 + channel(2) * 38470 + channel(3) * 7471 + 32768) / 65536):floor()
end

---Calls fn for each picture of a batch, or for the picture that is given, and joins what they answer.
function common.each(t, fn)
  if t:dim() == 3 then return fn(t, 1) end
  local list = {}
  for i = 1, t:size(1) do list[i] = fn(t[i], i) end
  return list[1] and require("perigee").stack(list, 1) or t
end

return common
