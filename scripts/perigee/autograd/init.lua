-- SPDX-License-Identifier: Apache-2.0
-- Gradients, and the scopes of ambient state: no_grad, device, scope.

return function(pg, native)
  local define, tensor = native.tensor.define, native.tensor

  local check_function = native.checked.need_function

  local read_backward = native.signature("backward", {
    { "gradient", "tensor" }, { "retain_graph", "boolean", named = true },
    { "create_graph", "boolean", named = true } })

  ---Adds the gradients of this tensor into `.grad` of the leaves it came from.
  define("backward", function(t, ...)
    if select("#", ...) == 0 then return native.backward_plain(t) end
    local o = read_backward(...)
    local retain = o.retain_graph
    if retain == nil then retain = o.create_graph end
    native.backward({ t }, o.gradient and { o.gradient } or nil, retain, o.create_graph)
  end)

  local read_grad = native.signature("grad", {
    { "outputs", "tensors", required = true }, { "inputs", "tensors", required = true },
    { "grad_outputs", "tensors", named = true }, { "retain_graph", "boolean", named = true },
    { "create_graph", "boolean", named = true }, { "allow_unused", "boolean", named = true } })

  ---Gradients of outputs with respect to inputs: one value an input. `{create_graph=true}` allows higher orders.
  ---@return perigee.Tensor? ... a gradient an input
  function pg.grad(outputs, ...)
    local args, n = { ... }, select("#", ...)
    if native.is_tensor(outputs) then outputs = { outputs } end
    if native.is_tensor(args[1]) then args[1] = { args[1] } end
    local o = read_grad(outputs, unpack(args, 1, n))
    local retain = o.retain_graph
    if retain == nil then retain = o.create_graph end
    local gradients, count = native.gradients(o.outputs, o.grad_outputs, o.inputs, retain, o.create_graph)
    for i = 1, count do
      if not gradients[i] and not o.allow_unused then
        native.raise("failed_precondition", "grad", ("the outputs do not depend on input %d"):format(i),
                     "allow_unused=true gives nil for it")
      end
    end
    return unpack(gradients, 1, count)
  end

  ---Makes gradients flow to this tensor.
  ---@param on? boolean
  ---@return perigee.Tensor
  define("requires_grad_", function(t, on)
    t.requires_grad = on == nil or on
    return t
  end)
  ---Forgets the gradient.
  define("zero_grad", function(t) native.clear_grads { t } end)

  ---Calls fn(gradient) in every backward pass that uses the gradient of this tensor, once all that flows into it has
  ---been added up: for a leaf before it is added to `.grad`, for a computed tensor before it flows on. A tensor that fn
  ---returns takes its place, nil keeps it; several hooks are called in the order in which they were set. Gradients of
  ---gradients flow through what fn computes; it must not write into the gradient. A hook is of the tensor as it is when
  ---it is set, before later writes into it. It lasts as long as the tensor or something that was computed of it, and
  ---ends with a backward that does not retain what the tensor's own operator saved, with `requires_grad = false`, or
  ---with `handle:remove()`. A function that holds the tensor itself keeps it alive until then.
  ---@param fn fun(gradient: perigee.Tensor): perigee.Tensor?
  ---@return perigee.HookHandle handle
  define("hook", function(t, fn)
    check_function("hook", fn)
    return { remove = native.custom.hook(t, fn) }
  end, { { "fn", "function", required = true } })
  ---Collects the gradient of a computed tensor in `.grad` too, as leaves do, from the next backward on.
  ---@return perigee.Tensor
  define("retain_grad", function(t)
    native.custom.retain_grad(t)
    return t
  end)

  ---Whether operators are recorded for backward now.
  ---@return boolean
  function pg.is_grad_enabled() return native.grad_enabled() end

  local function grad_scope(name, on)
    local function enter() return native.set_grad_enabled(on) end
    pg[name] = function(fn, ...)
      check_function(name, fn)
      local count = select("#", ...) -- see "Code that compiles" in bindings/lua/README.md
      if count == 0 then return native.with(enter, native.set_grad_enabled, fn) end
      if count == 1 then
        local argument = ...
        return native.with(enter, native.set_grad_enabled, fn, argument)
      end
      if count == 2 then
        local a, b = ...
        return native.with(enter, native.set_grad_enabled, fn, a, b)
      end
      return native.with(enter, native.set_grad_enabled, fn, ...)
    end
  end
  ---pg.no_grad(fn, ...): nothing in fn is recorded for gradients.
  ---@param fn function
  ---@param ... any arguments of fn
  ---@return any ... what fn returns
  grad_scope("no_grad", false)
  ---Calls fn(...) with recording on, inside of no_grad too, and returns what it returns.
  ---@param fn function
  ---@param ... any arguments of fn
  ---@return any ... what fn returns
  grad_scope("enable_grad", true)
  ---Calls fn(...) without recording, as no_grad does, and returns what it returns.
  ---@param fn function
  ---@param ... any arguments of fn
  ---@return any ... what fn returns
  grad_scope("inference_mode", false)

  ---pg.detect_anomaly(fn, ...): the first operator of fn that makes NaN of no NaN, or Inf of finite numbers, fails,
  ---named with its layer and the script's line, also in backward. Slow: every result is looked at.
  ---@param fn function
  ---@param ... any arguments of fn
  ---@return any ... what fn returns
  function pg.detect_anomaly(fn, ...)
    check_function("detect_anomaly", fn)
    return native.with(function() return native.set_detect_anomaly(true) end, native.set_detect_anomaly, fn, ...)
  end

  ---pg.device(name, fn, ...): what fn makes is made there. pg.device() names the device in force.
  ---@param name? string
  ---@param fn? function
  ---@param ... any arguments of fn
  ---@return any ... what fn returns, or the name
  function pg.device(name, fn, ...)
    if name == nil and fn == nil then return native.device_name(native.ambient_device()) end
    check_function("device", fn)
    local number = native.place_device(name, "device")
    return native.with(function() return native.set_device(number) end, native.set_device, fn, ...)
  end

  -- ---- pg.scope ----

  ---Runs fn(...) and closes every tensor it made, but for what it returns (also in a table) or gives to pg.keep.
  ---@param fn function
  ---@param ... any arguments of fn
  ---@return any ... what fn returns
  function pg.scope(fn, ...)
    check_function("scope", fn)
    return native.lifetimes.scope("pg.scope at " .. (native.script_line() or "?"), fn, ...)
  end

  ---Keeps a tensor beyond the innermost scope. Answers it.
  ---@param t perigee.Tensor
  ---@return perigee.Tensor
  function pg.keep(t)
    tensor.check_open(t, "keep")
    native.handles.keep(t) -- in all scopes: what is kept may be stored anywhere
    return t
  end

  -- ---- tape ----

  ---@class perigee.Tape
  local Tape = {}

  ---Gradients of a target with respect to a list of tensors, as a list.
  ---@param target perigee.Tensor
  ---@param sources perigee.Tensor[]
  ---@return perigee.Tensor[]
  function Tape.gradient(_, target, sources)
    local gradients, n = native.gradients({ target }, nil, sources, true, false)
    local list = {}
    for i = 1, n do list[i] = gradients[i] end
    return list
  end

  native.checked.class(Tape, { noun = "a tape", call = "tape",
    kinds = { gradient = { { "target", "tensor", required = true }, { "sources", "tensors", required = true } } } })

  ---pg.tape(function(tape) ... return tape:gradient(loss, {w}) end): records whatever the ambient mode.
  ---@param fn fun(tape: perigee.Tape, ...): any
  ---@param ... any arguments of fn
  ---@return any ... what fn returns
  function pg.tape(fn, ...)
    check_function("tape", fn)
    return pg.enable_grad(fn, setmetatable({}, Tape), ...)
  end
end
