-- SPDX-License-Identifier: Apache-2.0
-- In which dtype layers compute. The outermost layer that is called runs under autocast, so that everything inside of
-- it shares the casts of its parameters; losses are computed in float32.

local native = require "perigee.native"

if native.precision_policy then return native.precision_policy end -- package.loaded was cleared: the one in use

local policy = {
  name = "float32",
  dtype = nil, -- of the arithmetic in layers; nil: that of the parameters
}
native.precision_policy = policy
local dtypes = { float32 = false, mixed_bfloat16 = "bfloat16", mixed_float16 = "float16" }

-- Puts the old scope back and hands on what pcall answered.
local function leave(scope, old, ok, ...)
  native.set_autocast(old)
  native.release_autocast(scope)
  if not ok then error((...), 0) end
  return ...
end

local function in_coroutine(dtype, device_type, fn, ...)
  local scope = native.new_collected_autocast(device_type, dtype)
  local function finish(ok, ...)
    native.release_collected_autocast(scope)
    if not ok then error((...), 0) end
    return ...
  end
  return finish(pcall(native.with, function() return native.set_autocast(scope) end, native.set_autocast, fn, ...))
end

---Runs fn(...) under autocast.
---@param dtype string|nil nil: autocast is off inside
---@param device_type string|nil nil: all devices
function policy.autocast(dtype, device_type, fn, ...)
  if not native.in_main() then return in_coroutine(dtype, device_type, fn, ...) end
  local scope = native.new_autocast(device_type, dtype)
  return leave(scope, native.set_autocast(scope), pcall(fn, ...))
end

---Runs fn(...) as the policy says. A scope of the user's own goes before the policy.
function policy.run(fn, ...)
  if not policy.dtype or native.in_autocast() then return fn(...) end
  return policy.autocast(policy.dtype, nil, fn, ...)
end

local function widened(v)
  if not native.is_tensor(v) or (v.dtype ~= "bfloat16" and v.dtype ~= "float16") then return v end
  if not policy.dtype and not native.autocast_dtype(v) then return v end
  return v:to("float32")
end

---A loss function as one operator of class float32: where a policy or autocast is in force, it gets 16-bit tensors in
---float32, whatever it is composed of.
function policy.wide(fn)
  return function(x, y, z, ...)
    if policy.dtype or native.in_autocast() then x, y, z = widened(x), widened(y), widened(z) end
    return fn(x, y, z, ...)
  end
end

---The dtype of a policy's name, false for "float32"; raises for other names.
function policy.find(where, name)
  local dtype = dtypes[name]
  if dtype == nil then
    local names = {}
    for known in pairs(dtypes) do names[#names + 1] = known end
    local near = type(name) == "string" and native.suggest(name, names)
    native.raise("invalid_argument", where, "the policy must be float32, mixed_bfloat16 or mixed_float16, got " ..
                 native.describe(name), near and ("did you mean %q?"):format(near))
  end
  return dtype
end

function policy.set(name)
  local old = policy.name
  policy.dtype = policy.find("amp.policy", name) or nil
  policy.name = name
  return old
end

return policy
