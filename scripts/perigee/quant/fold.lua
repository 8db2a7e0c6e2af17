-- SPDX-License-Identifier: Apache-2.0
-- What stands behind a layer in an nn.Sequential and can be computed with it: a batch norm in evaluation is another
-- filter and bias, a ReLU comes in the same pass.

local walk = require "perigee.nn.walk"
local hooks = require "perigee.nn.hooks"
local places = require "perigee.nn.places"

local fold = {}

local META = walk.META

local function pg() return require "perigee" end

-- Whether a layer is one of Perigee's own class of this name, which computes what it says, and stands nowhere else.
local function is_plain(layer, name, times)
  return getmetatable(layer).__name == name and layer.forward == pg().nn[name].forward and not layer[META].hooks and
         (times[layer] or 0) <= 1
end

local function usable_norm(layer, times)
  if not is_plain(layer, "BatchNorm2d", times) or layer[META].lazy then return false end
  if not layer[META].attributes:get "track_running_stats" then return false end
  return not (hooks.computed(layer, "weight") or hooks.computed(layer, "bias"))
end

-- Puts into a convolution's weight what a batch norm does to its result; answers the bias that goes with it.
local function take_in(layer, norm)
  local wide = layer.weight.dtype == "float64" and "float64" or "float32"
  local function number(name) return norm[name] and norm[name]:detach():to(wide) end
  local factor = (number "running_var" + norm[META].attributes:get "eps"):rsqrt()
  if norm.weight then factor = factor * number "weight" end
  local shift = (layer.bias and layer.bias:detach():to(wide) or 0) - number "running_mean"
  local bias = shift * factor + (norm.bias and number "bias" or 0)
  local weight = layer.weight:detach():to(wide) * factor:reshape(-1, 1, 1, 1)
  layer.weight:copy_(weight:to(layer.weight.dtype))
  return pg().nn.Parameter(bias:to(layer.weight.dtype))
end

---Takes into a layer of a model, and the options that another is made of it by, what stands behind it, which becomes
---nn.Identity. Answers the bias that goes with it, nil: the layer's own.
function fold.behind(model, place, o, report)
  local parent, position = place.parent, place.key
  if not parent or getmetatable(parent).__name ~= "Sequential" or type(position) ~= "number" or
    parent.forward ~= pg().nn.Sequential.forward or o.activation ~= "none" then
    return nil
  end
  local times = {}
  for _, other in ipairs(places.of(model)) do times[other.layer] = (times[other.layer] or 0) + 1 end
  if times[place.layer] > 1 then return nil end
  local nn = pg().nn
  local function take(layer, at)
    parent[at] = nn.Identity {}
    local prefix = place.path:match "^(.*%.)[^.]*$" or ""
    report.folded[#report.folded + 1] = { name = prefix .. (at - 1), class = getmetatable(layer).__name,
                                          into = place.path }
  end
  local at, bias = position + 1, nil
  local behind = parent[at]
  if behind and getmetatable(place.layer).__name == "Conv2d" and usable_norm(behind, times) then
    bias, o.activation = take_in(place.layer, behind), behind[META].attributes:get "activation"
    take(behind, at)
    at = at + 1
    behind = parent[at]
  end
  if o.activation == "none" and behind and is_plain(behind, "ReLU", times) then
    take(behind, at)
    o.activation = "relu"
  end
  return bias
end

return fold
