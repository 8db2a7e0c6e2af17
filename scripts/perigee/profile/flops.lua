-- SPDX-License-Identifier: Apache-2.0
-- Floating-point operations of a kernel, estimated from its shapes: products and convolutions count two for each pair
-- of numbers that is multiplied and added, others one for each element of their result.

-- Sizes of the tensors in "float32 [64, 128], [128, 10] -> [64, 10]": before and behind the arrow.
local function shapes_of(text)
  local before, behind = text:match "^(.-)%->(.*)$"
  local function read(part)
    local list = {}
    for inner in (part or ""):gmatch "%[([^%]]*)%]" do
      local shape = {}
      for size in inner:gmatch "%d+" do shape[#shape + 1] = tonumber(size) end
      list[#list + 1] = shape
    end
    return list
  end
  return read(before), read(behind)
end

local function numel(shape, first, last)
  local n = 1
  for i = first or 1, last or #shape do n = n * shape[i] end
  return n
end

-- [m, k] by [k, n], however they lie, has sqrt(mk * kn / mn) = k. Of batches that both have, one each.
local function product(a, b, y)
  local shared = #a > 2 and #b > 2 and numel(y, 1, #y - 2) or 1
  local out = numel(y)
  if out == 0 then return 0 end
  return 2 * out * math.sqrt(numel(a) * numel(b) / out / shared)
end

local known = {}
local function estimate(name, text)
  local inputs, outputs = shapes_of(text)
  local y = outputs[1]
  if not y then return 0 end
  if (name:find "matmul" or name:find "linear" or name == "addmm") and #inputs >= 2 then
    return product(inputs[1], inputs[2], y)
  end
  if name:find "^conv" and #inputs >= 2 then -- [out, in / groups, kernel...]; its gradients cost the same
    local largest = inputs[2]
    return #largest >= 3 and 2 * numel(y) * numel(largest, 2) or numel(y)
  end
  return numel(y)
end

---@param name string of the operator
---@param text string? its shapes, as records have them
---@return number
return function(name, text)
  if not text then return 0 end
  local key = name .. text
  if not known[key] then known[key] = estimate(name, text) end
  return known[key]
end
