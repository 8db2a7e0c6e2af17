-- SPDX-License-Identifier: Apache-2.0
-- perigee.amp: mixed precision. README.md in this folder is its guide.

local native = require "perigee.native"
local policy = require "perigee.nn.policy"

---@class perigee.amp
local amp = { GradScaler = require("perigee.amp.scaler").new }

local read_options = native.signature("amp.autocast", {
  { "device", "string", named = true, doc = "a type such as cuda; all if not given" },
  { "dtype", "string", named = true, default = "bfloat16", type = '"bfloat16"|"float16"', doc = "of products" },
  { "enabled", "boolean", named = true, default = true, doc = "false: off inside" } })

local types = {} -- by name; a type that there was stays one

-- "cuda", "cuda:0", "/gpu:1", "/device:GPU:0" -> the type of the device, which need not be there.
local function device_type(name)
  if name == nil then return nil end
  if types[name] then return types[name] end
  local kind = name:lower():match("^/?device:(%a+)") or name:lower():match("^/?(%a+)")
  local known = { gpu = true, cuda = true } -- a script may name what this machine does not have
  for _, d in ipairs(native.devices().devices) do known[d.type] = true end
  for _, d in ipairs(native.devices().unavailable) do known[d.type] = true end
  if known[kind] then
    types[name] = kind
    return kind
  end
  local names = {}
  for each in pairs(known) do names[#names + 1] = each end
  table.sort(names)
  native.raise("not_found", "amp.autocast", ("there are no devices of type %q"):format(tostring(name)),
               "there are: " .. table.concat(names, ", "))
end

-- The dtype of { dtype = "bfloat16" } or "float16" and nothing more, as most calls have it; nil of other options.
local function plain_dtype(options)
  if type(options) ~= "table" or getmetatable(options) ~= nil then return nil end
  local key, name = next(options)
  if key ~= "dtype" or next(options, key) ~= nil or name ~= "bfloat16" and name ~= "float16" then return nil end
  return name
end

-- bfloat16, float16 or a short form of theirs.
local function low_dtype(where, name)
  local dtype = native.dtypes.find(name, where)
  if dtype.name ~= "bfloat16" and dtype.name ~= "float16" then
    native.raise("invalid_argument", where, ("dtype must be bfloat16 or float16, got %s"):format(dtype.name))
  end
  return dtype.name
end

---Runs fn(...) in mixed precision and returns what it returns. Products, convolutions and attention get their float32
---inputs in `dtype`, what loses by 16 bits (losses, exponentials, sums) in float32, the rest runs in what it is given.
---Scopes nest; `enabled = false` switches it off inside. Parameters are cast once, until they change or the outermost
---scope ends; gradients come back in their dtype, and backward runs in the dtypes of the forward pass.
---@param options {device?: string, dtype?: "bfloat16"|"float16", enabled?: boolean}
---@param fn function what runs in mixed precision
---@param ... any arguments of fn
---@return any ... what fn returns
function amp.autocast(options, fn, ...)
  local plain = type(fn) == "function" and plain_dtype(options)
  if plain then return policy.autocast(plain, nil, fn, ...) end
  if type(options) == "string" then
    local is_device = not native.dtypes.by_name[options] and options:find("^[a-z]+:?%d*$") and not options:find("float")
    if is_device and pcall(device_type, options) then
      native.raise("invalid_argument", "amp.autocast", ("a name alone is the dtype, got %q"):format(options),
                   ("amp.autocast({device=%q, dtype=\"bfloat16\"}, fn)"):format(options))
    end
    options = { dtype = options }
  end
  if type(options) ~= "table" or native.is_tensor(options) then
    native.raise("invalid_argument", "amp.autocast", "options must be a table, got " .. native.describe(options))
  end
  native.checked.need_function("amp.autocast", fn)
  local o = read_options(options)
  local dtype = low_dtype("amp.autocast", o.dtype)
  return policy.autocast(o.enabled and dtype or nil, device_type(o.device), fn, ...)
end

---The dtype that autocast uses on a device now, or nil where it is off.
---@param device? string the ambient device by default
---@return string?
function amp.get_autocast_dtype(device)
  local number = device and native.find_device(device, "amp.get_autocast_dtype") or native.ambient_device()
  return native.autocast_dtype(number)
end

---Whether autocast is on for a device now.
---@param device? string
---@return boolean
function amp.is_autocast_enabled(device) return amp.get_autocast_dtype(device) ~= nil end

---What layers compute in: "mixed_bfloat16", "mixed_float16", or "float32", the default: in the dtype of their
---parameters. Parameters stay float32. Without an argument answers the policy's name; with a function the policy holds
---while that runs.
---@param name? string
---@param fn? function
---@return string old the policy before, or what fn returns
function amp.policy(name, fn, ...)
  if name == nil then return policy.name end
  if fn == nil then return policy.set(name) end
  if type(fn) ~= "function" then
    native.raise("invalid_argument", "amp.policy", "the second argument must be a function, got " ..
                 native.describe(fn))
  end
  policy.find("amp.policy", name)
  return native.with(function() return policy.set(name) end, policy.set, fn, ...)
end

return amp
