-- SPDX-License-Identifier: Apache-2.0
-- Loss scaling in a graph: the scale and how often it held are variables, which each run that trains adapts as
-- scaler:update() does.

local native = require "perigee.native"
local graphs = native.graphs

local LARGEST = 3.4028234663852886e38 -- of float32

local function where(...) return native.op "where"(...) end

local function unscale(state, gradients)
  local limits = require "perigee.optim.limits"
  local inverse, first, found = 1 / state.scale, nil, nil
  for _, list in ipairs(limits.by_device(gradients)) do
    for _, gradient in ipairs(list) do
      if gradient.dtype == "float16" then
        native.raise("invalid_argument", "minimize", "a parameter is float16",
                     "keep parameters in float32 and compute in float16 with amp.autocast or amp.policy")
      end
    end
    first = first or graphs.node_count()
    local flag = native.call("unscale_all", { list }, { inv_scale = 1 })
    found = found and found:logical_or(flag:to(found.device)) or flag
  end
  graphs.bind(first, "inv_scale", inverse)
  return found:to("cpu")
end

-- `due` (nil: always): whether this run is one that steps.
local function update(state, scaler, found, due)
  local scale, tracker = state.scale, state.tracker
  local held = tracker + 1
  local ripe, grown = held:ge(scaler.growth_interval), scale * scaler.growth_factor
  local new_scale = where(found, scale * scaler.backoff_factor,
                          where(ripe:logical_and(grown:le(LARGEST)), grown, scale))
  local new_tracker = where(found:logical_or(ripe), held:zeros_like(), held)
  if due then new_scale, new_tracker = where(due, new_scale, scale), where(due, new_tracker, tracker) end
  native.call("copy", { scale:detach(), new_scale })
  native.call("copy", { tracker:detach(), new_tracker })
end

---What minimize asks of a scaler in a graph, whose variables `number(name, value, dtype)` makes.
return function(graph, scaler, number)
  local state = graph.scalers[scaler]
  if not state then
    local pg, prefix, count = require "perigee", "grad_scaler", 0
    for _ in pairs(graph.scalers) do count = count + 1 end
    if count > 0 then prefix = prefix .. "_" .. count end
    state = pg.name_scope(prefix, function()
      return { scale = number("scale", scaler:get_scale(), "float64"),
               tracker = number("growth_tracker", scaler.growth_tracker, "int64") }
    end)
    graph.scalers[scaler] = state
  end
  return {
    scaled = function(loss) return loss * state.scale:to(loss.dtype) end,
    unscale = function(gradients) return unscale(state, gradients) end,
    update = function(found, due) update(state, scaler, found, due) end,
  }
end
