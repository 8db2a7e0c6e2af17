-- SPDX-License-Identifier: Apache-2.0
-- Functions that make tensors, and those that cut one or ask for positions.

local pg = require "perigee"
local axes = require "vectors.axes"
local axis = axes.axis

local rows = {}

-- torch.arange(end), torch.arange(start, end, step).
rows.arange = { params = { "end", "step", "dtype", "device" }, call = function(first, a)
  if not a["end"] then return pg.arange(first, { dtype = a.dtype }) end
  return pg.arange(first, a["end"], a.step or 1, { dtype = a.dtype })
end }

rows.eye = { params = { "m", "dtype", "device", "requires_grad" }, call = function(n, a)
  return pg.eye { n, a.m, dtype = a.dtype }
end }

rows.linspace = { params = { "end", "steps", "dtype", "device" }, call = function(first, a)
  return pg.linspace(first, a["end"], a.steps, { dtype = a.dtype })
end }

for _, name in ipairs { "ones", "zeros" } do
  rows[name] = { params = { "dtype", "device" }, call = function(size, a)
    return pg[name](size, { dtype = a.dtype })
  end }
  rows[name .. "_like"] = { params = { "dtype", "device" }, call = function(x, a)
    return x[name .. "_like"](x, { dtype = a.dtype })
  end }
end
rows.full_like = { params = { "fill_value", "dtype", "device" }, call = function(x, a)
  if type(a.fill_value) == "boolean" then a.fill_value = a.fill_value and 1 or 0 end
  return x:full_like(a.fill_value, { dtype = a.dtype })
end }

-- torch.fill makes a new tensor. Perigee's operator of that name has no tensor to fill.
rows.fill = { needs = "fill_", params = { "value" }, call = function(x, a)
  if pg.is_tensor(a.value) then return x:clone():copy_(a.value) end
  return x:clone():fill_(a.value)
end }

rows.zero_ = { params = {}, call = function(x) return x:clone():zero_() end }

rows.mT = { params = {}, call = function(x) return x:dim() == 0 and x or x:mT() end }

rows.view = { params = { "size" }, call = function(x, a) return x:view(a.size) end }

rows.flatten = { params = { "start_dim", "end_dim" }, call = function(x, a)
  if x:dim() == 0 then return x:flatten() end
  return x:flatten(axis(a.start_dim or 0), axis(a.end_dim or -1))
end }

for _, name in ipairs { "max", "min" } do
  rows[name] = { params = { "other", "keepdim" }, call = function(x, a)
    if type(a.other) ~= "number" then return x[name](x, a.other) end
    if x:dim() > 0 then return x[name](x, axis(a.other), { keepdim = a.keepdim }) end
    local value, position = x:reshape(1)[name](x:reshape(1), 1)
    return value, position
  end }
end

rows.nonzero = { params = { "as_tuple" }, call = function(x, a)
  if not a.as_tuple then return x:nonzero() end
  if x:dim() == 0 then x = x:reshape(1) end
  return x:nonzero():unbind(2) -- a tensor an axis
end }

rows.select = { params = { "dim", "index" }, call = function(x, a)
  return x:select(axis(a.dim), a.index >= 0 and a.index + 1 or a.index)
end }

-- Half-open, from 0: Perigee's slices have both ends. A step of more than 1 ends at its last position.
rows.slice = { params = { "dim", "start", "end", "step" }, call = function(x, a)
  local d = axis(a.dim or 0)
  local n, step = x:size(d), a.step or 1
  local function clamp(v) return math.min(math.max(v < 0 and v + n or v, 0), n) end
  local first = clamp(a.start or 0)
  local length = math.max(clamp(a["end"] or n) - first, 0)
  local part = x:narrow(d, first + 1, length)
  if step == 1 then return part end
  return part:index_select(pg.arange(0, length, step), d)
end }

rows.unbind = { params = { "dim" }, call = function(x, a) return x:unbind(axis(a.dim or 0)) end }

rows.uniform = { needs = "random draws of PyTorch", params = {} }

return rows
