-- SPDX-License-Identifier: Apache-2.0
-- What functions of pictures share. A picture is [rows, columns, channels], a batch of them has one axis more.

local native = require "perigee.native"

local common = {}

function common.refuse(where, message, hint) native.raise("invalid_argument", where, message, hint) end
local refuse = common.refuse

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

return common
