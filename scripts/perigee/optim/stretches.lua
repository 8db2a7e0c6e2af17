-- SPDX-License-Identifier: Apache-2.0
-- Steps of parameters of whose states each process of a group has its stretch (pg.dist.shard{level=1}): the optimizer
-- sees that stretch alone, and what the processes have made of theirs is brought together behind it.

local native = require "perigee.native"
local partial = require "perigee.nn.partial"

local M = {}

local function of(optimizer)
  local list = {}
  for _, group in ipairs(optimizer.groups) do
    for _, p in ipairs(group.params) do
      local stretch = partial.stretch_of(p)
      if stretch then list[#list + 1] = { p = p, stretch = stretch } end
    end
  end
  return list
end

local function check(optimizer, list)
  for _, entry in ipairs(list) do
    if entry.p.grad and not entry.stretch.summed then
      native.raise("failed_precondition", optimizer.name, "its parameters are spread by pg.dist.shard, and their " ..
                   "gradients have not been summed over the processes",
                   "step() is for strategy:run or fit{strategy=} of pg.dist.multi_worker()")
    end
  end
end

local function show(list)
  for _, entry in ipairs(list) do
    local gradient, own = entry.p.grad, entry.stretch.own
    native.set_grad(own, gradient and partial.cut(gradient, entry.stretch.part) or nil)
    native.handles.exchange(entry.p, own)
  end
  return list
end

local function hide(list)
  for _, entry in ipairs(list) do
    native.handles.exchange(entry.p, entry.stretch.own)
    native.set_grad(entry.stretch.own, nil)
  end
end

local function gather(list)
  for _, entry in ipairs(list) do
    local stretch = entry.stretch
    stretch.summed = nil
    if entry.p.grad and stretch.flat:numel() > 0 then
      local own = stretch.own:detach():clone() -- it is part of what is written
      native.dist.gather(stretch.part.group.number, own, stretch.flat, false, false)
      native.handles.close(own)
    end
  end
end

---fn(optimizer), which steps.
function M.around(optimizer, fn)
  local list = of(optimizer)
  if #list == 0 then return fn(optimizer) end
  check(optimizer, list)
  local no_grad = require("perigee").no_grad
  native.with(function() return no_grad(show, list) end, hide, fn, optimizer)
  no_grad(gather, list)
end

return M
