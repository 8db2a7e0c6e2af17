-- SPDX-License-Identifier: Apache-2.0
-- Functions for networks that are a few operators each: attention as scripts call it, distances, normalised vectors.

return function(pg, native)
  local tensor = native.tensor
  local rank, size, differ = tensor.rank, tensor.size, tensor.sizes_differ

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
        if shape[at] == 1 then shape[at] = n elseif n ~= 1 and differ(n, shape[at]) then return nil end
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
  ---@param q perigee.Tensor
  ---@param k perigee.Tensor
  ---@param v perigee.Tensor
  ---@param options? {attn_mask?: perigee.Tensor, dropout_p?: number, is_causal?: boolean, scale?: number,
  ---  enable_gqa?: boolean}
  ---@return perigee.Tensor
  both("scaled_dot_product_attention", {
    { "q", "tensor", required = true }, { "k", "tensor", required = true }, { "v", "tensor", required = true },
    { "mask", "tensor", alias = "attn_mask" }, { "dropout_p", "number", default = 0 },
    { "is_causal", "boolean", default = false }, { "scale", "number" }, { "enable_gqa", "boolean", default = false },
  }, function(o)
    local q, k, v, mask = o.q, o.k, o.v, o.mask
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
    if not many or not few or few == 0 or differ(many % few, 0) then
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

  -- ---- distances ----

  -- The p-norm along an axis; its gradient at 0 is 0.
  local function length(x, p, axis, keepdim)
    local o = { axis = axis, keepdim = keepdim }
    if p == 2 then
      local squares = x:square():sum(o)
      local none = squares:eq(0)
      return pg.where(none, 0, pg.where(none, 1, squares):sqrt())
    end
    if p == 1 then return x:abs():sum(o) end
    if p == math.huge then return x:abs():amax(o) end
    if p == -math.huge then return x:abs():amin(o) end
    if p == 0 then return x:ne(0):to(x.dtype):sum(o) end
    return x:abs():pow(p):sum(o):pow(1 / p)
  end

  ---x divided by its p-norm along an axis, or by eps where that is larger.
  ---@param x perigee.Tensor
  ---@param options? {p?: number, axis?: integer, eps?: number} defaults 2, 2, 1e-12
  ---@return perigee.Tensor
  both("normalize", {
    { "x", "tensor", required = true }, { "p", "number", default = 2 }, { "axis", "axis", default = 2 },
    { "eps", "number", default = 1e-12 },
  }, function(o) return o.x / length(o.x, o.p, o.axis, true):clamp { min = o.eps } end)

  ---The cosine of the angle between x and y along an axis; norms below eps count as eps. x and y broadcast.
  ---@param x perigee.Tensor
  ---@param y perigee.Tensor
  ---@param options? {axis?: integer, eps?: number} defaults 2, 1e-8
  ---@return perigee.Tensor
  both("cosine_similarity", {
    { "x", "tensor", required = true }, { "y", "tensor", required = true }, { "axis", "axis", default = 2 },
    { "eps", "number", default = 1e-8 },
  }, function(o)
    local x, y = o.x, o.y
    if x.shape ~= y.shape then
      local shape = leading({ x, y }, 0)
      if not shape then
        native.raise("invalid_argument", "cosine_similarity", ("x %s and y %s do not broadcast"):format(
                       tostring(x.shape), tostring(y.shape)))
      end
      x, y = expanded(x, shape, 0), expanded(y, shape, 0)
    end
    local nx, ny = length(x, 2, o.axis, true), length(y, 2, o.axis, true)
    return ((x / nx:clamp { min = o.eps }) * (y / ny:clamp { min = o.eps })):sum(o.axis)
  end)

  ---The p-norm of x - y + eps along the last axis. x and y broadcast.
  ---@param x perigee.Tensor
  ---@param y perigee.Tensor
  ---@param options? {p?: number, eps?: number, keepdim?: boolean} defaults 2, 1e-6, false
  ---@return perigee.Tensor
  both("pairwise_distance", {
    { "x", "tensor", required = true }, { "y", "tensor", required = true }, { "p", "number", default = 2 },
    { "eps", "number", default = 1e-6 }, { "keepdim", "boolean", default = false },
  }, function(o) return length(o.x - o.y + o.eps, o.p, -1, o.keepdim) end)

  ---x[n] W[k] y[n]^T + bias[k] for every k: x [..., I], y [..., J], weight [K, I, J], bias [K] to [..., K].
  ---@param x perigee.Tensor
  ---@param y perigee.Tensor
  ---@param weight perigee.Tensor
  ---@param bias? perigee.Tensor
  ---@return perigee.Tensor
  both("bilinear", {
    { "x", "tensor", required = true }, { "y", "tensor", required = true }, { "weight", "tensor", required = true },
    { "bias", "tensor" },
  }, function(o)
    local x, y, w = o.x, o.y, o.weight
    if rank(w) ~= 3 or rank(x) ~= rank(y) or rank(x) < 1 or differ(size(w, 2), size(x, rank(x)))
      or differ(size(w, 3), size(y, rank(y))) then
      native.raise("invalid_argument", "bilinear", ("x is %s, y %s, weight %s; expected [..., I], [..., J], [K, I, J]")
                   :format(tostring(x.shape), tostring(y.shape), tostring(w.shape)))
    end
    local shape = x.shape
    shape[#shape] = size(w, 1)
    local rows = x:reshape(-1, size(w, 2)):matmul(w:permute(2, 1, 3):reshape(size(w, 2), -1))
    local z = rows:reshape(-1, size(w, 1), size(w, 3)):matmul(y:reshape(-1, size(w, 3), 1)):reshape(shape)
    return o.bias and z + o.bias or z
  end)

  -- ---- normalisation ----

  -- A list of sizes: {3, 4} or 4, but no table of options.
  local function is_sizes(v)
    local is_size = native.size.is
    if type(v) == "number" or is_size(v) then return true end
    if not native.is_plain(v) or v[1] == nil then return false end
    for key, n in pairs(v) do
      if type(key) ~= "number" or type(n) ~= "number" and not is_size(n) then return false end
    end
    return true
  end

  -- Normalisation over the last axes: the operator, which takes their number, and PyTorch's form, in which their sizes
  -- stand behind x or under normalized_shape.
  local function over_last_axes(name)
    local run, params
    local function with_shape(sizes, ...)
      if not params then -- those of the operator, but how many axes: the sizes say that
        params = {}
        for _, param in ipairs(native.operators.get(name).params) do
          if param[1] ~= "dims" then params[#params + 1] = param end
        end
        require("perigee.native.grammar").index(params)
      end
      local o = native.parse(name, params, select("#", ...), ...)
      if type(sizes) ~= "table" then sizes = { sizes } end
      local fits = native.is_tensor(o.x) and rank(o.x) >= #sizes
      for i = 1, fits and #sizes or 0 do fits = fits and not differ(size(o.x, rank(o.x) - #sizes + i), sizes[i]) end
      if not fits then
        native.raise("invalid_argument", name, ("the normalized shape %s is not what x ends in, which is %s"):format(
                       tostring(native.shape { unpack(sizes) }), native.describe(o.x)))
      end
      return native.call(name, { o.x, o.weight, o.bias }, { dims = #sizes, eps = o.eps })
    end
    local function f(x, second, ...)
      if is_sizes(second) then return with_shape(second, x, ...) end
      local options = native.is_plain(x) and x or native.is_plain(second) and second or nil
      local sizes = options and (options.normalized_shape or (options == x and is_sizes(x[2]) and x[2]))
      if not sizes then
        run = run or native.op(name)
        return run(x, second, ...)
      end
      local others = {}
      for key, v in pairs(options) do others[key] = v end
      if not options.normalized_shape then table.remove(others, 2) end
      others.normalized_shape = nil
      if options == x then return with_shape(sizes, others) end
      if next(others) == nil then return with_shape(sizes, x, ...) end
      return with_shape(sizes, x, others, ...)
    end
    pg[name], native.methods[name] = f, f
  end
  over_last_axes("layer_norm")
  over_last_axes("rms_norm")

  -- The operator, and what PyTorch answers for an input [0], which has neither samples nor channels: the like of it.
  local run_batch_norm
  local function batch_norm(x, ...)
    run_batch_norm = run_batch_norm or native.op("batch_norm")
    local input = native.is_plain(x) and (x[1] or x.x) or x
    if native.is_tensor(input) and rank(input) == 1 and size(input, 1) == 0 then
      local params = native.operators.get("batch_norm").params
      return native.parse("batch_norm", params, 1 + select("#", ...), x, ...).x:clone()
    end
    return run_batch_norm(x, ...)
  end
  pg.batch_norm, native.methods.batch_norm = batch_norm, batch_norm

  local function per_channel(v, x)
    local shape = { size(v, 1) }
    for i = 2, rank(x) - 1 do shape[i] = 1 end
    return v:reshape(shape)
  end

  local function check_channels(where, x, named)
    if rank(x) < 2 then
      native.raise("invalid_argument", where, ("x is %s; expected [N, C, ...]"):format(tostring(x.shape)))
    end
    for name, v in pairs(named) do
      if not (rank(v) == 1 and not differ(size(v, 1), size(x, 2))) then
        native.raise("invalid_argument", where, ("%s is %s; expected one number for each channel of x %s"):format(
                       name, tostring(v.shape), tostring(x.shape)))
      end
    end
  end

  -- Sizes that only a run tells are taken not to be 0.
  local function is_empty(x)
    for axis = 1, rank(x) do
      if size(x, axis) == 0 then return true end
    end
    return false
  end

  -- Each stretch of an image's channels by itself, as rows of the fused layer_norm.
  local function in_groups(x, groups, weight, bias, eps)
    local y = is_empty(x) and x:clone() or
      pg.layer_norm { x:reshape(size(x, 1), groups, -1), eps = eps }:reshape(x.shape)
    if weight and bias then return pg.addcmul(per_channel(bias, x), y, per_channel(weight, x)) end
    if weight then y = y * per_channel(weight, x) end
    if bias then y = y + per_channel(bias, x) end
    return y
  end

  ---The channels of x [N, C, ...] in `groups` of equal size, each group of each example shifted and scaled to mean 0
  ---and variance 1; then scaled and shifted by weight [C] and bias [C] (Wu and He 2018).
  ---@param x perigee.Tensor
  ---@param groups integer
  ---@param options? {weight?: perigee.Tensor, bias?: perigee.Tensor, eps?: number}
  ---@return perigee.Tensor
  both("group_norm", {
    { "x", "tensor", required = true }, { "groups", "integer", required = true }, { "weight", "tensor" },
    { "bias", "tensor" }, { "eps", "number", default = 1e-5 },
  }, function(o)
    check_channels("group_norm", o.x, { weight = o.weight, bias = o.bias })
    local channels = size(o.x, 2)
    if o.groups < 1 or differ(channels % o.groups, 0) then
      native.raise("invalid_argument", "group_norm", ("%d groups do not divide the channels of x %s"):format(
                     o.groups, tostring(o.x.shape)))
    end
    return in_groups(o.x, o.groups, o.weight, o.bias, o.eps)
  end)

  -- running = (1 - momentum) running + momentum * the mean of what the examples say, unbiased.
  local function track(x, running_mean, running_var, momentum)
    pg.no_grad(function()
      local axes = {}
      for i = 3, rank(x) do axes[#axes + 1] = i end
      local function move(running, seen)
        running:mul_(1 - momentum):add_(seen:mean(1):to(running.dtype) * momentum)
      end
      if running_mean then move(running_mean, x:mean(axes)) end
      if running_var then move(running_var, x:var(axes)) end
    end)
  end

  ---Each channel of each example of x [N, C, ...] shifted and scaled to mean 0 and variance 1 (Ulyanov et al. 2016);
  ---with use_input_stats=false by running_mean and running_var [C], which otherwise follow the input.
  ---@param x perigee.Tensor
  ---@param options? {running_mean?: perigee.Tensor, running_var?: perigee.Tensor, weight?: perigee.Tensor,
  ---  bias?: perigee.Tensor, use_input_stats?: boolean, momentum?: number, eps?: number}
  ---@return perigee.Tensor
  both("instance_norm", {
    { "x", "tensor", required = true }, { "running_mean", "tensor" }, { "running_var", "tensor" },
    { "weight", "tensor" }, { "bias", "tensor" }, { "use_input_stats", "boolean", default = true },
    { "momentum", "number", default = 0.1 }, { "eps", "number", default = 1e-5 },
  }, function(o)
    local x = o.x
    check_channels("instance_norm", x, { weight = o.weight, bias = o.bias, running_mean = o.running_mean,
                                         running_var = o.running_var })
    if not o.use_input_stats then
      return pg.batch_norm { x, weight = o.weight, bias = o.bias, running_mean = o.running_mean,
                             running_var = o.running_var, training = false, eps = o.eps }
    end
    local single = not is_empty(x)
    for axis = 3, rank(x) do single = single and size(x, axis) == 1 end
    if single then
      native.raise("invalid_argument", "instance_norm", ("x is %s; expected more than one value for each channel")
                   :format(tostring(x.shape)))
    end
    local tracks = o.running_mean or o.running_var
    if tracks and not is_empty(x) then track(x, o.running_mean, o.running_var, o.momentum) end
    return in_groups(x, size(x, 2), o.weight, o.bias, o.eps)
  end)
end
