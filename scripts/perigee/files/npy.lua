-- SPDX-License-Identifier: Apache-2.0
-- NumPy's files: .npy, an array, and .npz, arrays by name. Written atomically, like all files.

local native = require "perigee.native"

local files = {}

local function check_path(where, path, extension)
  if type(path) ~= "string" or path:sub(-#extension) ~= extension then
    native.raise("invalid_argument", where, ("the path must end in %s, got %s"):format(extension,
                 native.describe(path)))
  end
end

---The array of a .npy file, on the CPU.
---@param path string
---@return perigee.Tensor
function files.load_npy(path)
  check_path("load_npy", path, ".npy")
  return (native.read(path)).data
end

---Writes a tensor as a .npy file: `t:save_npy(path)`. bfloat16 is not NumPy's: t:to("float32").
---@param t perigee.Tensor
---@param path string
function files.save_npy(t, path)
  if not native.is_tensor(t) then
    native.raise("invalid_argument", "save_npy", "needs a tensor and a path, got " .. native.describe(t))
  end
  check_path("save_npy", path, ".npy")
  native.write(path, { "data" }, { t })
end

---The arrays of a .npz file (numpy.savez or savez_compressed) by name.
---@param path string
---@return table<string, perigee.Tensor>
function files.load_npz(path)
  check_path("load_npz", path, ".npz")
  return (native.read(path))
end

---Writes tensors by name as a .npz file, uncompressed, as numpy.savez does.
---@param path string
---@param tensors table<string, perigee.Tensor>
function files.save_npz(path, tensors)
  check_path("save_npz", path, ".npz")
  if type(tensors) ~= "table" then
    native.raise("invalid_argument", "save_npz", "needs a table of tensors, got " .. native.describe(tensors))
  end
  local names, list = {}, {}
  for name, t in pairs(tensors) do
    if type(name) ~= "string" or not native.is_tensor(t) then
      native.raise("invalid_argument", "save_npz", ("%s must be a tensor under a name, got %s"):format(tostring(name),
                   native.describe(t)))
    end
    if name:find("\0", 1, true) then
      native.raise("invalid_argument", "save_npz", ("a NUL byte stands in the name %q of a tensor"):format(name))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = tensors[name] end
  native.write(path, names, list)
end

return files
