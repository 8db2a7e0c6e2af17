-- SPDX-License-Identifier: Apache-2.0
-- Bags of embeddings: rows of a table by index, put together a bag at a time.

return function(pg, native)
  local is_tensor, tensor = native.is_tensor, native.tensor
  local rank = tensor.rank

  -- quick(...) answers common calls, and nil where the grammar is to read them.
  local function both(name, params, f, quick)
    local read = native.signature(name, params)
    local function call(...) return quick(...) or f(read(...)) end
    pg[name], native.methods[name] = call, call
  end

  local bag_modes = { sum = 0, mean = 1, max = 2 }
  local prepared = {} -- by whether it is the largest values that are asked for, when they first are

  local function bags(weight, index, offsets, weights, mode, last, padding)
    local largest = mode == "max"
    local p = prepared[largest]
    if not p then
      p = {}
      p.run, p.attrs = native.prepare(largest and "embedding_bag_max" or "embedding_bag", largest and 3 or 4)
      prepared[largest] = p
    end
    local attrs = p.attrs
    attrs.include_last_offset[0], attrs.padding_idx[0] = last and 1 or 0, padding or -1
    if not largest then attrs.mode[0] = bag_modes[mode] end
    return p.run(weight, index, offsets, weights)
  end

  local bag_options = { offsets = is_tensor, per_sample_weights = is_tensor,
                        mode = function(v) return bag_modes[v] ~= nil end,
                        include_last_offset = function(v) return type(v) == "boolean" end,
                        padding_idx = function(v) return type(v) == "number" and v == math.floor(v) and v < 2 ^ 53 end }

  -- The common call, with its options in a table, read without the grammar. nil where it is another, or a mistake.
  local function quick_bags(weight, index, o, surplus)
    if surplus ~= nil or not is_tensor(weight) or not is_tensor(index) then return end
    if type(o) ~= "table" or getmetatable(o) ~= nil then return end
    for key, v in pairs(o) do
      local fits = bag_options[key]
      if not fits or not fits(v) then return end
    end
    local mode, weights = o.mode or "mean", o.per_sample_weights
    if rank(index) ~= (o.offsets and 1 or 2) then return end
    if weights and (mode ~= "sum" or tensor.shapes_differ(weights.shape, index.shape)) then return end
    return bags(weight, index, o.offsets, weights, mode, o.include_last_offset, o.padding_idx)
  end

  ---Rows of weight [V, D] by index, summed, averaged or their largest values taken, a bag at a time. index [B, L] is B
  ---bags; index [N] with offsets [B] (positions from 0) is bags that begin there. Rows of padding_idx do not count. A
  ---bag of none is 0; the gradient of the largest goes to the first of equal ones.
  ---@param weight perigee.Tensor
  ---@param index perigee.Tensor int64 or int32, from 0
  ---@param options? {offsets?: perigee.Tensor, mode?: "mean"|"sum"|"max", per_sample_weights?: perigee.Tensor,
  ---  include_last_offset?: boolean, padding_idx?: integer} mode: "mean" (default), "sum" or "max"
  ---@return perigee.Tensor bags [B, D]
  both("embedding_bag", {
    { "weight", "tensor", required = true }, { "index", "tensor", required = true }, { "offsets", "tensor" },
    { "mode", "string", default = "mean", choices = { "mean", "sum", "max" } }, { "per_sample_weights", "tensor" },
    { "include_last_offset", "boolean", default = false }, { "padding_idx", "integer", default = -1 },
  }, function(o)
    local function bad(text, ...) native.raise("invalid_argument", "embedding_bag", text:format(...)) end
    if o.per_sample_weights and o.mode ~= "sum" then bad("per_sample_weights need mode=\"sum\"") end
    local index, offsets, weights = o.index, o.offsets, o.per_sample_weights
    if rank(index) ~= (offsets and 1 or 2) then
      bad("index is %s; expected [B, L], or [N] with offsets [B]", tostring(index.shape))
    end
    if weights and tensor.shapes_differ(weights.shape, index.shape) then
      bad("per_sample_weights is %s; expected the shape of index %s", tostring(weights.shape), tostring(index.shape))
    end
    return bags(o.weight, index, offsets, weights, o.mode, o.include_last_offset, o.padding_idx)
  end, quick_bags)
end
