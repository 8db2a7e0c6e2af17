-- SPDX-License-Identifier: Apache-2.0
-- Reductions, scans, and what works along one axis.

local pg = require "perigee"
local axes = require "vectors.axes"

local rows = {}

local function cast(x, dtype) return dtype and x:to(dtype) or x end

for _, name in ipairs { "sum", "mean", "prod", "amax", "amin", "logsumexp", "any", "all" } do
  rows[name] = { params = { "dim", "keepdim", "dtype" }, call = function(x, a)
    x = cast(x, a.dtype)
    return x[name](x, { axis = axes.axes(x, a.dim), keepdim = a.keepdim })
  end }
end

-- torch.var(x, unbiased) and torch.var(x, dim, unbiased, keepdim, *, correction).
for _, name in ipairs { "var", "std" } do
  rows[name] = { params = { "dim", "unbiased", "keepdim", "correction" }, call = function(x, a)
    local dim, correction = a.dim, a.correction
    if type(dim) == "boolean" then
      dim, a.unbiased = nil, dim
    end
    if a.unbiased == false then correction = 0 end
    return x[name](x, { axis = axes.axes(x, dim), keepdim = a.keepdim, correction = correction })
  end }
end

for _, name in ipairs { "argmax", "argmin" } do
  rows[name] = { params = { "dim", "keepdim" }, call = function(x, a)
    local axis = axes.axes(x, a.dim)
    return x[name](x, { axis = axis and axis[1], keepdim = a.keepdim })
  end }
end

for _, name in ipairs { "cumsum", "cumprod", "softmax", "log_softmax" } do
  rows[name] = { params = { "dim", "dtype" }, call = function(x, a)
    return axes.along(cast(x, a.dtype), a.dim, function(y, axis) return y[name](y, axis) end)
  end }
  rows["nn.functional." .. name] = rows[name]
  rows["nn.functional." .. name].needs = name
end

rows.norm = { params = { "p", "dim", "keepdim", "dtype" }, call = function(x, a)
  if a.p == "nuc" then axes.lacks("nuclear norm") end
  return x:norm { a.p, axis = axes.axes(x, a.dim), keepdim = a.keepdim }
end }

rows["linalg.norm"] = { needs = "norm", params = { "ord", "dim", "keepdim", "dtype" }, call = function(x, a)
  local axis, ord = axes.axes(x, a.dim), a.ord
  local matrix = (axis and #axis or x:dim()) == 2
  if matrix and (ord == "nuc" or ord == 2 or ord == -2) then axes.lacks("matrix norms of singular values") end
  return pg.linalg.norm(x, { ord = ord, axis = axis, keepdim = a.keepdim })
end }

return rows
