-- SPDX-License-Identifier: Apache-2.0
-- Convolutions, pooling, interpolation, and images resampled or taken apart.

local pg = require "perigee"

local rows = {}

local function row(name, params, call, outputs, needs)
  rows["nn.functional." .. name] = { needs = needs or name, params = params, call = call, outputs = outputs }
end

-- PyTorch takes one image without a batch; Perigee wants the batch axis. f may answer several.
local function batched(x, rank, f)
  if x:dim() == rank then return f(x) end
  local results = { f(x:unsqueeze(1)) }
  for i, y in ipairs(results) do results[i] = y:squeeze(1) end
  return unpack(results)
end

-- A list of n numbers; PyTorch's lists of one stand for all.
local function many(v, n)
  if type(v) ~= "table" then return v end
  if #v == 1 and n > 1 then return v[1] end
  return #v > 0 and v or nil
end

local shared = { "stride", "padding", "dilation", "groups", "kernel", "ceil_mode", "count_include_pad",
                 "divisor_override", "output_padding" }
local function options(a, n)
  local o = {}
  for _, key in ipairs(shared) do o[key] = many(a[key], n) end
  o.kernel = many(a.kernel_size, n)
  return o
end

for n = 1, 3 do
  row(("conv%dd"):format(n), { "weight", "bias", "stride", "padding", "dilation", "groups" }, function(x, a)
    return batched(x, n + 2, function(y)
      return pg[("conv%dd"):format(n)](y, a.weight, a.bias or false, options(a, n))
    end)
  end)
  row(("conv_transpose%dd"):format(n), { "weight", "bias", "stride", "padding", "output_padding", "groups",
                                         "dilation" }, function(x, a)
    return batched(x, n + 2, function(y)
      return pg[("conv_transpose%dd"):format(n)](y, a.weight, a.bias or false, options(a, n))
    end)
  end)
  row(("max_pool%dd"):format(n), { "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices" },
      function(x, a)
    return batched(x, n + 2, function(y)
      local o = options(a, n)
      o.return_indices = a.return_indices
      return pg[("max_pool%dd"):format(n)](y, o)
    end)
  end)
  row(("avg_pool%dd"):format(n), { "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
                                   "divisor_override" }, function(x, a)
    return batched(x, n + 2, function(y) return pg[("avg_pool%dd"):format(n)](y, options(a, n)) end)
  end)
  for _, kind in ipairs { "avg", "max" } do
    local name = ("adaptive_%s_pool%dd"):format(kind, n)
    row(name, { "output_size", "return_indices" }, function(x, a)
      local size = a.output_size
      if type(size) == "table" then
        local list = {}
        for i = 1, n do list[i] = size[i] or -1 end
        size = list
      end
      return batched(x, n + 2, function(y)
        return pg[name](y, { size = size, return_indices = kind == "max" and a.return_indices or nil })
      end)
    end)
  end
end

row("interpolate", { "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor" }, function(x, a)
  return x:interpolate { size = a.size, scale_factor = a.scale_factor, mode = a.mode, align_corners = a.align_corners,
                         recompute_scale_factor = a.recompute_scale_factor }
end)

row("local_response_norm", { "size", "alpha", "beta", "k" }, function(x, a)
  return batched(x, math.max(x:dim(), 3), function(y)
    return y:local_response_norm { a.size, alpha = a.alpha, beta = a.beta, k = a.k }
  end)
end)

row("unfold", { "kernel_size", "dilation", "padding", "stride" }, function(x, a)
  return batched(x, 4, function(y)
    return y:im2col { kernel = many(a.kernel_size, 2), dilation = many(a.dilation, 2), padding = many(a.padding, 2),
                      stride = many(a.stride, 2) }
  end)
end, nil, "im2col")

row("grid_sample", { "grid", "mode", "padding_mode", "align_corners" }, function(x, a)
  return x:grid_sample(a.grid, { mode = a.mode, padding_mode = a.padding_mode, align_corners = a.align_corners })
end)

return rows
