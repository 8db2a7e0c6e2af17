-- SPDX-License-Identifier: Apache-2.0
-- Memory formats: names for orders of axes in memory.

local errors = require "perigee.native.errors"
local tensor = require "perigee.native.tensor"
local gradients = require "perigee.native.gradients"

local M = {}

M.ORDERS = { "contiguous", "channels_last", "channels_last_3d" }
M.ALL = { "preserve", "contiguous", "channels_last", "channels_last_3d" }

-- Axes from 0, the innermost first.
local INNERMOST = { channels_last = { 1, 3, 2, 0 }, channels_last_3d = { 1, 4, 3, 2, 0 } }
local AXES = { channels_last = "[n, c, h, w]", channels_last_3d = "[n, c, d, h, w]" }

---Whether a value names a memory format.
function M.is_name(v) return v == "preserve" or v == "contiguous" or INNERMOST[v] ~= nil end

---How many axes a format is for; nil: any number.
function M.rank(format) return INNERMOST[format] and #INNERMOST[format] end

---Raises where a tensor has another number of axes than the format is for.
function M.check(where, t, format)
  local rank = M.rank(format)
  if rank and tensor.rank(t) ~= rank then
    errors.raise("invalid_argument", where, ("%s is an order of %d axes, %s; got %s"):format(format, rank, AXES[format],
                 tostring(t.shape)))
  end
end

---Whether the elements of an eager tensor lie one after the other in the format's order.
function M.lies_in(t, format)
  local innermost = INNERMOST[format]
  if not innermost then return tensor.is_dense(t) end
  return tensor.lies_in(t, innermost)
end

---The tensor itself where it lies in the format, else a copy that does.
function M.arrange(where, t, format)
  if format == "preserve" then return t end
  M.check(where, t, format)
  if gradients.is_graph_tensor(t) then
    if format == "contiguous" then return t end -- values of a graph have no layout of their own
  elseif M.lies_in(t, format) then
    return t
  end
  return require("perigee.native").call("clone", { t }, { memory_format = format }, false, where)
end

return M
