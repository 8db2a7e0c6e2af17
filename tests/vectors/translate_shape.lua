-- SPDX-License-Identifier: Apache-2.0
-- Shapes, views, and picking elements by position.

local pg = require "perigee"
local axes = require "vectors.axes"
local axis = axes.axis

local rows = {}

rows.cat = { params = { "dim" }, call = function(list, a) return pg.cat(list, { axis = axis(a.dim or 0) }) end }

rows.chunk = { params = { "chunks", "dim" }, call = function(x, a) return x:chunk(a.chunks, axis(a.dim or 0)) end }

rows.diag = { params = { "diagonal" }, call = function(x, a) return x:diag(a.diagonal or 0) end }

rows.expand = { params = { "size" }, call = function(x, a) return x:expand(a.size) end }

rows.flip = { params = { "dims" }, call = function(x, a) return x:flip(axes.axes(x, a.dims) or {}) end }

-- Of an index without elements PyTorch does not mind the dtype.
rows.gather = { params = { "dim", "index" }, call = function(x, a)
  local index = a.index:numel() == 0 and a.index:to("int64") or a.index
  if x:dim() == 0 then return x:reshape(1):gather(index:reshape(-1), 1):reshape(index.shape) end
  return x:gather(index, axis(a.dim))
end }

rows.index_select = { params = { "dim", "index" }, call = function(x, a)
  if x:dim() == 0 then return x:reshape(1):index_select(a.index:reshape(-1), 1):reshape {} end
  return x:index_select(a.index, axis(a.dim))
end }

rows.movedim = { params = { "source", "destination" }, call = function(x, a)
  return x:movedim(axes.axes(x, a.source), axes.axes(x, a.destination))
end }

rows.narrow = { params = { "dim", "start", "length" }, call = function(x, a)
  local start = type(a.start) == "number" and a.start or a.start:item() -- contents, from 0
  return x:narrow(axis(a.dim), start >= 0 and start + 1 or start, a.length)
end }

rows["nn.functional.one_hot"] = { needs = "one_hot", params = { "num_classes" }, call = function(x, a)
  local classes = a.num_classes or -1
  if classes < 0 then classes = x:max():item() + 1 end
  return x:one_hot(classes)
end }

rows["nn.functional.pad"] = { needs = "pad", params = { "pad", "mode", "value" }, call = function(x, a)
  return x:pad(a.pad, { mode = a.mode, value = a.value })
end }

rows["nn.functional.pixel_shuffle"] = { needs = "pixel_shuffle", params = { "upscale_factor" },
  call = function(x, a) return x:pixel_shuffle(a.upscale_factor) end }

rows["nn.functional.pixel_unshuffle"] = { needs = "pixel_unshuffle", params = { "downscale_factor" },
  call = function(x, a) return x:pixel_unshuffle(a.downscale_factor) end }

-- Windows of images; the method of that name is another.

rows.permute = { params = { "dims" }, call = function(x, a) return x:permute(axes.axes(x, a.dims) or {}) end }

rows["repeat"] = { needs = "tile", params = { "sizes" }, call = function(x, a) return x:tile(a.sizes) end }

rows.repeat_interleave = { params = { "repeats", "dim" }, call = function(x, a)
  return x:repeat_interleave(a.repeats, { axis = axis(a.dim) })
end }

rows.reshape = { params = { "shape" }, call = function(x, a) return x:reshape(a.shape) end }

rows.roll = { params = { "shifts", "dims" }, call = function(x, a)
  return x:roll(a.shifts, { axis = axes.axes(x, a.dims) })
end }

rows.scatter = { params = { "dim", "index", "src" }, call = function(x, a)
  return x:scatter(a.index, a.src, { axis = axis(a.dim) })
end }

rows.scatter_add = { params = { "dim", "index", "src" }, call = function(x, a)
  return x:scatter_add(a.index, a.src, { axis = axis(a.dim) })
end }

rows.split = { params = { "split_size_or_sections", "dim" }, call = function(x, a)
  return x:split(a.split_size_or_sections, { axis = axis(a.dim or 0) })
end }

rows.squeeze = { params = { "dim" }, call = function(x, a) return x:squeeze(axes.axes(x, a.dim) or {}) end }

rows.stack = { params = { "dim" }, call = function(list, a) return pg.stack(list, { axis = axis(a.dim or 0) }) end }

rows.take_along_dim = { needs = "take_along", params = { "indices", "dim" }, call = function(x, a)
  return x:take_along(a.indices, axis(a.dim))
end }

rows.tile = { params = { "dims" }, call = function(x, a) return x:tile(a.dims) end }

rows.transpose = { params = { "dim0", "dim1" }, call = function(x, a)
  if x:dim() == 0 then return x end
  return x:transpose(axis(a.dim0), axis(a.dim1))
end }

rows.tril = { params = { "diagonal" }, call = function(x, a) return x:tril(a.diagonal or 0) end }
rows.triu = { params = { "diagonal" }, call = function(x, a) return x:triu(a.diagonal or 0) end }

rows.unsqueeze = { params = { "dim" }, call = function(x, a) return x:unsqueeze(axis(a.dim)) end }

-- torch.where(condition, x, y); the samples put x first.
rows.where = { params = { "condition", "other" }, call = function(x, a) return pg.where(a.condition, x, a.other) end }

for _, name in ipairs { "sort", "argsort" } do
  rows[name] = { params = { "dim", "descending", "stable" }, call = function(x, a)
    return x[name](x, { axis = axis(a.dim or -1), descending = a.descending, stable = a.stable })
  end }
end

rows.topk = { params = { "k", "dim", "largest", "sorted" }, call = function(x, a)
  return x:topk(a.k, { axis = axis(a.dim or -1), largest = a.largest, sorted = a.sorted })
end }

return rows
