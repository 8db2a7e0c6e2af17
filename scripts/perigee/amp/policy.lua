-- SPDX-License-Identifier: Apache-2.0
-- In which dtype layers compute. The outermost layer that is called runs under autocast, so that everything inside of
-- it shares the casts of its parameters; loss functions do so too.

local native = require "perigee.native"

local policy = {
  name = "float32",
  dtype = nil, -- of the arithmetic in layers; nil: that of the parameters
}
local dtypes = { float32 = false, mixed_bfloat16 = "bfloat16", mixed_float16 = "float16" }

---Runs fn(...) under autocast on all devices.
---@param dtype string|nil nil: autocast is off inside
---@param device_type string|nil
function policy.autocast(dtype, device_type, fn, ...)
  local scope = native.new_autocast(device_type, dtype)
  local function finish(ok, ...)
    native.release_autocast(scope)
    if not ok then error((...), 0) end
    return ...
  end
  return finish(pcall(native.with, function() return native.set_autocast(scope) end, native.set_autocast, fn, ...))
end

---Runs fn(...) as the policy says. A scope of the user's own goes before the policy.
function policy.run(fn, ...)
  if not policy.dtype or native.in_autocast() then return fn(...) end
  return policy.autocast(policy.dtype, nil, fn, ...)
end

---fn, run as the policy says whenever it is called.
function policy.wrap(fn)
  return function(...)
    if policy.dtype then return policy.run(fn, ...) end
    return fn(...)
  end
end

---The dtype of a policy's name, false for "float32"; raises for other names.
function policy.find(where, name)
  local dtype = dtypes[name]
  if dtype == nil then
    local names = {}
    for known in pairs(dtypes) do names[#names + 1] = known end
    local near = type(name) == "string" and native.suggest(name, names)
    native.raise("invalid_argument", where, ("the policy must be float32, mixed_bfloat16 or mixed_float16, got %s"):format(
                   native.describe(name)), near and ("did you mean %q?"):format(near))
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
