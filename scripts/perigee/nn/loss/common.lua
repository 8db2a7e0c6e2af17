-- SPDX-License-Identifier: Apache-2.0
-- What losses share: options, shapes, reductions.

local native = require "perigee.native"

local common = {}

---Reads a loss's options: `known` holds the defaults (false: none) and is filled in.
function common.options(where, options, known)
  options = options or {}
  if type(options) ~= "table" or native.is_tensor(options) then
    native.raise("invalid_argument", where, "options must be a table, got " .. native.describe(options),
                 type(options) == "string" and ("{reduction=%q}"):format(options) or nil)
  end
  known.reduction = known.reduction or "mean"
  for key, value in pairs(options) do
    if known[key] == nil then
      local names = {}
      for name in pairs(known) do names[#names + 1] = name end
      local near = native.suggest.foreign.option(tostring(key), names) or native.suggest(tostring(key), names)
      native.raise("invalid_argument", where, ("unknown option %q"):format(tostring(key)),
                   near and ("did you mean %q?"):format(near))
    end
    known[key] = value
  end
  return known
end

---A layer's options, which its caller may change afterwards.
function common.copy(where, options)
  if options == nil then return nil end
  if type(options) ~= "table" or native.is_tensor(options) then
    native.raise("invalid_argument", where, "options must be a table, got " .. native.describe(options),
                 native.is_tensor(options) and ("make the layer first: nn.%s{}(x, y)"):format(where) or nil)
  end
  local copy = {}
  for key, value in pairs(options) do copy[key] = value end
  return copy
end

function common.reduce(where, values, reduction)
  if reduction == "mean" then return values:mean() end
  if reduction == "sum" then return values:sum() end
  if reduction == "none" then return values end
  native.raise("invalid_argument", where, "reduction must be mean, sum or none, got " .. native.describe(reduction))
end

---Raises unless all are tensors.
function common.check_tensors(where, ...)
  local list = { n = select("#", ...), ... }
  for i = 1, list.n do
    if not native.is_tensor(list[i]) then
      local told = {}
      for k = 1, list.n do told[k] = native.describe(list[k]) end
      local count = ({ "one tensor", "two tensors", "three tensors" })[list.n]
      native.raise("invalid_argument", where, ("needs %s, got %s"):format(count, table.concat(told, ", ", 1, list.n - 1)
                   .. (list.n > 1 and " and " or "") .. told[list.n]))
    end
  end
end

-- Broadcasting [N, 1] against [N] here is nearly always a mistake, and a silent one.
function common.check_shapes(where, x, y)
  common.check_tensors(where, x, y)
  if x.shape ~= y.shape then
    native.raise("invalid_argument", where, ("the prediction is %s but the target %s"):format(tostring(x.shape),
                 tostring(y.shape)), "reshape one of them")
  end
end

return common
