-- SPDX-License-Identifier: Apache-2.0
-- Functions whose window slides over images: named padding of convolutions, indices of pooling, and what is made of
-- both.

local grammar_parse

return function(pg, native)
  local rank, size, differ = native.tensor.rank, native.tensor.size, native.tensor.sizes_differ

  local check_divisor = require "perigee.neural.divisor"

  local function refuse(where, message, hint) native.raise("invalid_argument", where, message, hint) end

  -- A whole number an axis. `others`: what else may stand there.
  local function whole(where, name, list, axes, least, others)
    if type(list) == "number" or others and others(list) then
      local n = list
      list = {}
      for i = 1, axes do list[i] = n end
    end
    if type(list) ~= "table" or #list ~= axes then
      refuse(where, ("%s must be one number or %d, got %s"):format(name, axes, native.describe(list)))
    end
    for i = 1, axes do
      local v = list[i] -- nil in a list with a hole
      if not (others and others(v)) and (type(v) ~= "number" or v ~= math.floor(v) or v < least) then
        refuse(where, ("%s must be whole numbers from %d, got %s"):format(name, least, native.describe(v)))
      end
    end
    return list
  end

  -- ---- one example alone ----

  -- A function of batches [N, C, ...] with `axes` axes behind the channels, which takes [C, ...] as a batch of one.
  local function of_examples(axes, f)
    local function alone(y, ...)
      if native.is_tensor(y) then return y:squeeze(1), alone(...) end
    end
    return function(x, ...)
      if native.is_tensor(x) then
        if x.ptr ~= nil and rank(x) == axes + 1 then return alone(f(x:unsqueeze(1), ...)) end
      elseif native.is_plain(x) then
        local first = x[1] or x.x
        if native.is_tensor(first) and first.ptr ~= nil and rank(first) == axes + 1 then
          local options = {}
          for key, v in pairs(x) do options[key] = v end
          options[x[1] and 1 or "x"] = first:unsqueeze(1)
          return alone(f(options, ...))
        end
      end
      return f(x, ...)
    end
  end

  -- ---- convolutions: the operators, and "same" and "valid" in place of numbers ----

  local function has_text(n, ...)
    for i = 1, n do
      local v = select(i, ...)
      if type(v) == "string" or (native.is_plain(v) and type(v.padding) == "string") then return true end
    end
    return false
  end

  local function named_padding(name, axes, ...)
    local op = native.operators.get(name)
    grammar_parse = grammar_parse or require("perigee.native.grammar").parse
    local o = grammar_parse(name, op.params, select("#", ...), ...)
    if o.padding ~= "same" and o.padding ~= "valid" then
      local near = type(o.padding) == "string" and native.suggest(o.padding, { "same", "valid" })
      refuse(name, ("padding must be numbers, \"same\" or \"valid\", got %s"):format(native.describe(o.padding)),
             near and ("did you mean %q?"):format(near))
    end
    if not native.is_tensor(o.weight) or rank(o.weight) ~= axes + 2 then
      refuse(name, ("weight must be a tensor of %d axes, got %s"):format(axes + 2, native.describe(o.weight)))
    end
    local kernel = {}
    for i = 1, axes do kernel[i] = size(o.weight, i + 2) end
    o.padding = o.padding == "valid" and 0 or
                require("perigee.neural.conv_padding").same(name, kernel,
                                                            whole(name, "dilation", o.dilation or 1, axes, 1),
                                                            whole(name, "stride", o.stride or 1, axes, 1))
    local attrs = {}
    for _, key in ipairs { "stride", "padding", "dilation", "groups", "activation" } do attrs[key] = o[key] end
    return native.call(name, { o.x, o.weight, o.bias or false }, attrs)
  end

  for axes = 1, 3 do
    for _, name in ipairs { ("conv%dd"):format(axes), ("conv%dd_activation"):format(axes) } do
      local run
      local function call(...)
        if has_text(select("#", ...), ...) then return named_padding(name, axes, ...) end
        run = run or native.op(name)
        return run(...)
      end
      pg[name] = of_examples(axes, call)
      native.methods[name] = pg[name]
    end
  end

  for axes = 1, 3 do
    for _, name in ipairs { ("conv_transpose%dd"):format(axes), ("avg_pool%dd"):format(axes),
                            ("adaptive_avg_pool%dd"):format(axes) } do
      local run
      local averages = name:find "^avg"
      pg[name] = of_examples(axes, function(...)
        run = run or native.op(name)
        if averages then check_divisor(name, 7, ...) end
        return run(...)
      end)
      native.methods[name] = pg[name]
    end
  end

  -- ---- pooling ----

  local function both(name, params, f)
    table.insert(params, 1, { "x", "tensor", required = true })
    local read = native.signature(name, params)
    local function call(...) return f(read(...)) end
    pg[name], native.methods[name] = call, call
  end

  -- Pooling by maxima that also gives where they stand: `return_indices=true`.
  for axes = 1, 3 do
    for _, name in ipairs { ("max_pool%dd"):format(axes), ("adaptive_max_pool%dd"):format(axes) } do
      local run
      local function call(...)
        run = run or native.op(name)
        local n = select("#", ...)
        local last = select(n, ...)
        if not native.is_plain(last) or last.return_indices == nil then return run(...) end
        local options, list = {}, { ... }
        for key, v in pairs(last) do options[key] = v end
        options.return_indices = nil
        list[n] = options
        if type(last.return_indices) ~= "boolean" then
          refuse(name, "return_indices must be true or false, got " .. native.describe(last.return_indices))
        end
        if not last.return_indices then return run(unpack(list, 1, n)) end
        grammar_parse = grammar_parse or require("perigee.native.grammar").parse
        local o = grammar_parse(name, native.operators.get(name).params, n, unpack(list, 1, n))
        return native.operators.call_all(name, { o.x }, o)
      end
      pg[name] = of_examples(axes, call)
      native.methods[name] = pg[name]
    end
  end

  local function lp_pool(name, axes)
    both(name, { { "norm", "number", required = true }, { "kernel", "pair", required = true }, { "stride", "pair" },
                 { "ceil_mode", "boolean", default = false } }, function(o)
      local kernel, count = whole(name, "kernel", o.kernel, axes, 1), 1
      for _, k in ipairs(kernel) do count = count * k end
      local mean = native.call(("avg_pool%dd"):format(axes), { o.x:pow(o.norm) },
                               { kernel = kernel, stride = o.stride and whole(name, "stride", o.stride, axes, 1),
                                 ceil_mode = o.ceil_mode })
      return (mean:sign() * mean:abs():relu() * count):pow(1 / o.norm)
    end)
    pg[name] = of_examples(axes, pg[name])
    native.methods[name] = pg[name]
  end
  ---The norm of each window of [N, C, L] or [C, L]: (sum of x^norm)^(1 / norm), as PyTorch defines it.
  ---@return perigee.Tensor
  lp_pool("lp_pool1d", 1)
  ---The norm of each window of [N, C, H, W] or [C, H, W]: (sum of x^norm)^(1 / norm), as PyTorch defines it.
  ---@return perigee.Tensor
  lp_pool("lp_pool2d", 2)

  ---Each element divided by (k + alpha * the mean of the squares over `size` neighbouring channels)^beta (Krizhevsky
  ---and others, 2012). x is [N, C, ...].
  ---@return perigee.Tensor
  both("local_response_norm", { { "size", "integer", required = true }, { "alpha", "number", default = 1e-4 },
                                { "beta", "number", default = 0.75 }, { "k", "number", default = 1 } }, function(o)
    local x, n = o.x, o.size
    if rank(x) < 3 then
      refuse("local_response_norm", ("x is %s; expected [N, C, ...]"):format(tostring(x.shape)))
    end
    if n < 1 then refuse("local_response_norm", "size must be at least 1, got " .. n) end
    local squares = (x * x):flatten(3):unsqueeze(2)
    squares = squares:pad { 0, 0, math.floor(n / 2), math.floor((n - 1) / 2) }
    local means = native.call("avg_pool2d", { squares }, { kernel = { n, 1 }, stride = { 1, 1 } })
    return x / (means:reshape(x.shape) * o.alpha + o.k):pow(o.beta)
  end)

  -- ---- windows as columns ----

  local column_params = function()
    return { { "kernel", "pair", required = true }, { "dilation", "pair", default = 1 },
             { "padding", "pair", default = 0 }, { "stride", "pair", default = 1 } }
  end

  -- How windows lie over an image of height and width.
  local function windows_of(where, o, image)
    local g = { kernel = whole(where, "kernel", o.kernel, 2, 1), dilation = whole(where, "dilation", o.dilation, 2, 1),
                padding = whole(where, "padding", o.padding, 2, 0), stride = whole(where, "stride", o.stride, 2, 1),
                count = {} }
    for i = 1, 2 do
      local room = image[i] + 2 * g.padding[i] - g.dilation[i] * (g.kernel[i] - 1) - 1
      if type(room) == "number" and room < 0 then
        refuse(where, ("the window of %d is larger than axis %d, %d elements with padding %d"):format(
                 g.kernel[i], i + 2, image[i], g.padding[i]))
      end
      g.count[i] = (room - room % g.stride[i]) / g.stride[i] + 1
    end
    return g
  end

  -- The attributes of the slice of the padded image that tap (i, j) of all windows sees: the taps behind it leave as
  -- much of the end.
  local function slice_of(g, i, j)
    local function behind(axis, tap)
      local left = (g.kernel[axis] - 1 - tap) * g.dilation[axis]
      return left > 0 and -left or 2 ^ 62
    end
    return { starts = { 0, 0, i * g.dilation[1], j * g.dilation[2] }, steps = { 1, 1, g.stride[1], g.stride[2] },
             stops = { 2 ^ 62, 2 ^ 62, behind(1, i), behind(2, j) } }
  end

  ---The windows of images x [N, C, H, W] as columns: [N, C * kh * kw, L], L windows in row-major order.
  ---PyTorch's nn.functional.unfold.
  ---@return perigee.Tensor
  both("im2col", column_params(), function(o)
    local x = o.x
    if rank(x) ~= 4 then refuse("im2col", ("x is %s; expected [N, C, H, W]"):format(tostring(x.shape))) end
    local g = windows_of("im2col", o, { size(x, 3), size(x, 4) })
    local p = g.padding
    local padded = (p[1] > 0 or p[2] > 0) and x:pad { p[2], p[2], p[1], p[1] } or x
    local taps = {}
    for i = 0, g.kernel[1] - 1 do
      for j = 0, g.kernel[2] - 1 do taps[#taps + 1] = native.call("slice", { padded }, slice_of(g, i, j)) end
    end
    return pg.stack(taps, 3):reshape(size(x, 1), size(x, 2) * #taps, g.count[1] * g.count[2])
  end)

  local fold_params = column_params()
  table.insert(fold_params, 1, { "size", "pair", required = true })

  ---The transpose of im2col: columns x [N, C * kh * kw, L] added up where they came from in images of `size`
  ---[N, C, H, W]. PyTorch's nn.functional.fold.
  ---@return perigee.Tensor
  both("col2im", fold_params, function(o)
    local x, image = o.x, whole("col2im", "size", o.size, 2, 1, native.size.is)
    if rank(x) ~= 3 then refuse("col2im", ("x is %s; expected [N, C * kh * kw, L]"):format(tostring(x.shape))) end
    local g = windows_of("col2im", o, image)
    local taps = g.kernel[1] * g.kernel[2]
    if differ(size(x, 2) % taps, 0) or differ(size(x, 3), g.count[1] * g.count[2]) then
      refuse("col2im", ("x is %s; expected [N, C * %d, %s]"):format(tostring(x.shape), taps,
                                                                    tostring(g.count[1] * g.count[2])))
    end
    local p = g.padding
    local parts = x:reshape(size(x, 1), size(x, 2) / taps, taps, g.count[1], g.count[2])
    local whole_image = pg.zeros { 1, dtype = x.dtype, device = x.device }:expand {
      size(x, 1), size(x, 2) / taps, image[1] + 2 * p[1], image[2] + 2 * p[2] }
    local sum
    for tap = 0, taps - 1 do
      local at = slice_of(g, math.floor(tap / g.kernel[2]), tap % g.kernel[2])
      local part = native.call("slice_grad", { parts:select(3, tap + 1), whole_image }, at)
      sum = sum and sum + part or part
    end
    if p[1] == 0 and p[2] == 0 then return sum end
    return sum:narrow(3, p[1] + 1, image[1]):narrow(4, p[2] + 1, image[2])
  end)
end
