-- SPDX-License-Identifier: Apache-2.0
-- Inputs that the files hold as they were after the call. PyTorch's samples of batch_norm share their running
-- statistics: case 7 looks at them (without training), case 8 moves them in place, and they were written down then.
-- What case 7 saw follows from what case 8 did: moved = (1 - momentum) seen + momentum batch.

local MOMENTUM = 0.1

-- Mean and unbiased variance of a list of numbers.
local function statistics(list)
  local mean, squares = 0, 0
  for _, v in ipairs(list) do mean = mean + v / #list end
  for _, v in ipairs(list) do squares = squares + (v - mean) ^ 2 end
  return mean, squares / (#list - 1)
end

local function seen(moved, batch) return (moved - MOMENTUM * batch) / (1 - MOMENTUM) end

---The tensors of a case's file; where one of the case's inputs is known to be wrong, with the right one in its place.
return function(case, tensors)
  if case.op ~= "nn.functional.batch_norm" or case.case ~= 7 then return tensors end
  local mean, var = statistics(tensors["c8.in0"]:flatten():totable()) -- [2, 1]: one channel
  local device = tensors["c7.in1"].device
  local function like(key, batch)
    return require("perigee").tensor({ seen(tensors[key]:totable()[1], batch) }, { dtype = "float64", device = device })
  end
  return setmetatable({ ["c7.in1"] = like("c7.in1", mean), ["c7.in2"] = like("c7.in2", var) }, { __index = tensors })
end
