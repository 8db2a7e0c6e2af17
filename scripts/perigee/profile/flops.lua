-- SPDX-License-Identifier: Apache-2.0
-- Floating-point operations of a kernel, estimated from its shapes: products, convolutions and attention count two for
-- each pair of numbers that is multiplied and added, others one for each element of their largest tensor.

-- Sizes of the tensors in "float32 [64, 128], none, [128, 10] -> [64, 10]", before and behind the arrow; false: none.
local function shapes_of(text)
  local before, behind = text:match "^(.-)%->(.*)$"
  local function read(part)
    local list = {}
    for inner in (part or ""):gsub("none", "[-]"):gmatch "%[([^%]]*)%]" do
      local shape = inner ~= "-" and {}
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

-- Weights are [out, in / groups, kernel...], those of transposed ones [in, out / groups, kernel...].
local function convolution(name, inputs, outputs)
  local function pairs_of(x, weight) return x and weight and #weight >= 3 and 2 * numel(x) * numel(weight, 2) end
  if name:find "grad_input" then return pairs_of(inputs[1], inputs[2]) end
  if name:find "grad_weight" then return pairs_of(inputs[1], inputs[3]) end
  if name:find "grad" then
    local one, count = pairs_of(inputs[1], inputs[3]), 0
    for i = 1, 2 do count = count + (outputs[i] and 1 or 0) end
    return one and one * math.max(count, 1)
  end
  return pairs_of(name:find "transpose" and inputs[1] or outputs[1], inputs[2])
end

-- Queries [..., L, E], keys [..., S, E], values [..., S, V]: two products; backward five.
local function attention(name, inputs)
  local first = name:find "grad" and 2 or 1
  local q, k, v = inputs[first], inputs[first + 1], inputs[first + 2]
  if not (q and k and v and #q >= 2 and #k >= 2 and #v >= 2) then return nil end
  local scores = numel(q, 1, #q - 1) * k[#k - 1]
  local e, f = q[#q], v[#v]
  return first == 1 and 2 * scores * (e + f) or 2 * scores * (3 * e + 2 * f)
end

local function largest(...)
  local most = 0
  for _, list in ipairs { ... } do
    for _, shape in ipairs(list) do most = math.max(most, shape and numel(shape) or 0) end
  end
  return most
end

local known = {}
local function estimate(name, text)
  local inputs, outputs = shapes_of(text)
  local y, counted = outputs[1], nil
  if y and (name:find "matmul" or name:find "linear" or name == "addmm") and inputs[1] and inputs[2] then
    counted = product(inputs[1], inputs[2], y)
  elseif name:find "^conv" then
    counted = convolution(name, inputs, outputs)
  elseif name:find "attention" then
    counted = attention(name, inputs)
  end
  return counted or largest(inputs, outputs)
end

---@param name string of the operator
---@param text string? its shapes, as records have them
---@return number
return function(name, text)
  if not text then return 0 end
  local key = name .. " " .. text
  if not known[key] then known[key] = estimate(name, text) end
  return known[key]
end
