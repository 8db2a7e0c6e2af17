-- SPDX-License-Identifier: Apache-2.0
-- Functions for networks that are a few operators each: attention as scripts call it, distances, normalised vectors.

return function(pg, native)
  local tensor = native.tensor
  local rank, size = tensor.rank, tensor.size

  local function both(name, params, f)
    local read = native.signature(name, params)
    local function call(...) return f(read(...)) end
    pg[name], native.methods[name] = call, call
  end

  -- The shape that the leading axes (all but `keep`) of these tensors broadcast to, or nil where they differ too much.
  local function leading(list, keep)
    local shape, most = {}, 0
    for _, t in ipairs(list) do most = math.max(most, rank(t) - keep) end
    for i = 1, most do shape[i] = 1 end
    for _, t in ipairs(list) do
      local lead = rank(t) - keep
      for i = 1, lead do
        local at, n = most - lead + i, size(t, i)
        if shape[at] == 1 then shape[at] = n elseif n ~= 1 and n ~= shape[at] then return nil end
      end
    end
    return shape
  end

  local function expanded(t, lead, keep)
    local shape = { unpack(lead) }
    for i = rank(t) - keep + 1, rank(t) do shape[#shape + 1] = size(t, i) end
    return t:has_shape(shape) and t or t:expand(shape)
  end

  -- Axis `axis` of t, of h * g, as two: h and g.
  local function split_axis(t, axis, h, g)
    local shape = t.shape
    shape[axis] = h
    table.insert(shape, axis + 1, g)
    return t:reshape(shape)
  end

  local function refuse(message, hint)
    native.raise("invalid_argument", "scaled_dot_product_attention", message, hint)
  end

  local attention -- the operator, once it has been asked for
  local function attend(q, k, v, mask, o)
    local lead = leading({ q, k, v }, 2)
    if not lead then
      refuse(("q %s, k %s and v %s do not go together"):format(tostring(q.shape), tostring(k.shape),
                                                               tostring(v.shape)),
             "fewer heads in k and v than in q need enable_gqa=true")
    end
    local key
    if o.dropout_p > 0 then
      key = pg.device(q.device, pg.randint, 0, 2 ^ 52, { 2 })
    end
    attention = attention or native.op("scaled_dot_product_attention")
    return attention { expanded(q, lead, 2), expanded(k, lead, 2), expanded(v, lead, 2), mask = mask, key = key,
                       is_causal = o.is_causal, scale = o.scale, dropout_p = o.dropout_p }
  end

  ---softmax(q k^T scale + mask) v: what attention is (Vaswani et al. 2017). q is [..., L, E], k [..., S, E], v
  ---[..., S, V]; the result is [..., L, V]. attn_mask broadcasts to [..., L, S]: bool, true where a query may see a
  ---key, or numbers that are added to the scores. is_causal: query i sees keys 1 to i, and what the mask allows.
  ---scale: 1 / sqrt(E) if not given. dropout_p: share of weights dropped, at every call. enable_gqa: q [..., H, L, E]
  ---may have a multiple of the heads of k and v. A query that may see nothing gets zeros.
  ---@param q table
  ---@param k table
  ---@param v table
  ---@param options? {attn_mask: table, dropout_p: number, is_causal: boolean, scale: number, enable_gqa: boolean}
  ---@return table
  both("scaled_dot_product_attention", {
    { "q", "tensor", required = true }, { "k", "tensor", required = true }, { "v", "tensor", required = true },
    { "attn_mask", "tensor", alias = "mask" }, { "dropout_p", "number", default = 0 },
    { "is_causal", "boolean", default = false }, { "scale", "number" }, { "enable_gqa", "boolean", default = false },
  }, function(o)
    local q, k, v, mask = o.q, o.k, o.v, o.attn_mask
    if rank(q) < 2 or rank(k) < 2 or rank(v) < 2 then
      refuse(("q is %s, k %s, v %s; expected 2 axes or more"):format(tostring(q.shape), tostring(k.shape),
                                                                    tostring(v.shape)))
    end
    if o.dropout_p < 0 or o.dropout_p > 1 then
      refuse(("dropout_p is %g; expected 0 to 1"):format(o.dropout_p))
    end
    if not o.enable_gqa then return attend(q, k, v, mask, o) end
    local axis = rank(q) - 2
    local many, few = axis > 0 and size(q, axis), rank(k) > 2 and size(k, rank(k) - 2)
    if type(many) ~= "number" or type(few) ~= "number" or few < 1 or many % few ~= 0 then
      refuse(("q is %s and k %s: the heads of q (third axis from the end) must be a multiple of those of k"):format(
               tostring(q.shape), tostring(k.shape)))
    end
    local groups = many / few
    if mask and rank(mask) > 2 then
      local at = rank(mask) - 2
      mask = size(mask, at) == 1 and mask:unsqueeze(at) or split_axis(mask, at, few, groups)
    end
    local y = attend(split_axis(q, axis, few, groups), k:unsqueeze(rank(k) - 1), v:unsqueeze(rank(v) - 1), mask, o)
    local shape = q.shape
    shape[#shape] = size(v, rank(v))
    return y:reshape(shape)
  end)
end
