-- SPDX-License-Identifier: Apache-2.0
-- Whether a plugin's update, recorded once, is right in every step. Runs give it the number of theirs as the attribute
-- `step` of its operators: nothing else of it may depend on that number.

local native = require "perigee.native"
local graphs = native.graphs

local recordable = {}

-- Tensors of the graph that is being recorded, like these, but all on one device: where the graph will have them is
-- not known yet.
local function stand_ins(handle, name, list)
  local pg, made = require "perigee", {}
  for i, t in ipairs(list) do
    local dtype = native.dtypes.find(t.dtype)
    local input = graphs.placeholder(handle, ("%s_%d"):format(name, i), dtype, t.shape, {})
    made[i] = pg.device("cpu", input.clone, input)
  end
  return made
end

-- The update in that step as the text of a graph of its own, without what runs rewrite.
local function text_of(attributes, batch, step)
  local handle = graphs.create()
  return native.with(function() return graphs.set_current(handle) or false end,
    function(outer) graphs.set_current(outer or nil) end,
    function()
      local state = {}
      for slot, list in pairs(batch.state) do state[slot] = stand_ins(handle, slot, list) end
      local params, gradients = stand_ins(handle, "p", batch.params), stand_ins(handle, "g", batch.gradients)
      attributes:step(step, params, gradients, state)
      return (graphs.text(handle):gsub("[, ]*%f[%w_]step=%d+", ""))
    end)
end

---An update that computes with its step's number when it is emitted is an error.
---@param attributes table a plugin's optimizer with its hyperparameters
---@param batch {params: perigee.Tensor[], gradients: perigee.Tensor[], state: table<string, perigee.Tensor[]>}
function recordable.check(attributes, batch)
  if text_of(attributes, batch, 1) == text_of(attributes, batch, 1000003) then return end
  native.raise("not_supported", attributes.info.name, "the plugin's update depends on the number of the step in " ..
               "another way than by an operator's attribute `step`, and a graph records it once for all steps",
               "loss:backward() optimizer:step() in eager code")
end

return recordable
