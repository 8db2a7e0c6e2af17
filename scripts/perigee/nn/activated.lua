-- SPDX-License-Identifier: Apache-2.0
-- A layer and the activation layer behind it as one call, where the first one's plugin computes both in one pass: it
-- has an attribute `activation` with that name among its choices, and "none" is what it is set to.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local policy = require "perigee.nn.policy"

local META = walk.META
local activated = {}

-- What layers' attribute calls these. Only where one pass has the bits of two: gelu of rounded sums is another number.
local names = { ReLU = "relu" }

-- By class, with the forward that it came with. Weak: package.loaded may be cleared.
local functions = setmetatable({}, { __mode = "k" }) -- activation layers: { forward, name }
local takers = setmetatable({}, { __mode = "k" })    -- layers with the attribute: { forward, names it takes }

---Notes the class of a plugin's layer.
function activated.add_class(name, class)
  if names[name] then functions[class] = { forward = class.forward, name = names[name] } end
  local attr = native.layer(name).by_name.activation
  if attr and attr.choice_index.none then takers[class] = { forward = class.forward, choices = attr.choice_index } end
end

-- Both calls in one by the first layer's plugin; false where its attribute has a value of its own.
local function compile(meta, name)
  local attributes = meta.attributes
  local calls = attributes.activated or {}
  attributes.activated = calls
  local run, is_plain = native.compile_layer_with(attributes, meta.names, "activation", "none", name)
  calls[name] = { run = run, is_plain = is_plain }
  return calls[name]
end

---The function(layer, ...) that gives what `behind` makes of `layer`'s result, where nobody can tell it from the two
---calls: no hook, no forward of a script's own, no graph that would show other nodes. Asked at every call, since all of
---this may change between two.
---@return function|nil
function activated.find(layer, behind)
  local taker = takers[getmetatable(layer)]
  if not taker then return nil end
  local fn = functions[getmetatable(behind)]
  if not fn or not taker.choices[fn.name] then return nil end
  local meta, other = rawget(layer, META), rawget(behind, META)
  if not meta or not other or meta.hooks or other.hooks or meta.pad or meta.lazy or layer.forward ~= taker.forward or
    behind.forward ~= fn.forward or policy.dtype or native.graphs.recording or native.anomalies.detected then
    return nil
  end
  local calls = meta.attributes.activated
  local call = calls and calls[fn.name] or compile(meta, fn.name)
  return call.is_plain() and call.run or nil
end

return activated
