-- SPDX-License-Identifier: Apache-2.0
-- What optimizers of both kinds do with their parameters: look at what they are given, and clear gradients.

local native = require "perigee.native"
local partial = require "perigee.nn.partial"

local parameters = {}

-- Those whose steps depend on all elements of a parameter together.
local WHOLE = { LAMB = true, LARS = true, Adafactor = true, Muon = true, LBFGS = true }

---Refuses what no optimizer can change, and what is in `seen` already.
function parameters.check(where, seen, p, i)
  if not native.is_tensor(p) then
    native.raise("invalid_argument", where, ("parameter %d must be a tensor, got %s"):format(i, native.describe(p)))
  end
  if not p.is_leaf then
    native.raise("invalid_argument", where, ("parameter %d is the result of an operation"):format(i),
                 "optimizers change leaves: tensors made with requires_grad")
  end
  if partial.of(p) and WHOLE[where] then
    native.raise("not_supported", where, ("parameter %d is the part of one that this process holds, and %s looks at " ..
                 "whole ones"):format(i, where), "SGD, Adam, AdamW and others that go element by element")
  end
  if seen[p] then native.raise("invalid_argument", where, ("parameter %d is there twice"):format(i)) end
  seen[p] = true
end

local read = native.signature("zero_grad", {
  { "set_to_none", "boolean", default = true, doc = "false: gradients become zeros instead" } })

local function fill(params)
  for _, p in ipairs(params) do
    local gradient = p.grad
    if gradient and gradient.requires_grad then
      p.grad = gradient:zeros_like() -- has a history
    elseif gradient then
      gradient:zero_()
    end
  end
end

---What zero_grad(...) does: forget(self), or with set_to_none=false zeros in the gradients of lists(self).
function parameters.clear(self, forget, lists, ...)
  if read(...).set_to_none then return forget(self) end
  for _, params in ipairs(lists(self)) do require("perigee").no_grad(fill, params) end
end

return parameters
