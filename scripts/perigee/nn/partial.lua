-- SPDX-License-Identifier: Apache-2.0
-- Parameters that are parts of whole ones, of which each process of a group holds another.
--
-- A part is cut along an axis ({ axis, blocks }: of each of `blocks` equal stretches of the axis, as where query, key
-- and value lie in one matrix), or is a stretch of all elements in a row ({ flat = true }: the last ones are padded by
-- zeros). `shape` is that of the whole; `within` says where the whole is a part itself.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"

local M = {}

local function pg() return require "perigee" end

-- The same even if a script clears package.loaded and this file is read again.
local registry = debug and debug.getregistry and debug.getregistry() or package.loaded
local parts = registry["perigee.parts"] or setmetatable({}, { __mode = "k" })
registry["perigee.parts"] = parts

---Says that a tensor is a part. Answers it.
function M.mark(t, part)
  parts[t] = part
  return t
end

---What it is a part of, or nil.
function M.of(t) return parts[t] end

-- Whole parameters of whose states each process of a group has its stretch: { own, flat, part }, of which `own` is that
-- stretch of the parameter's own memory, `flat`, for optimizers to write into.
local stretches = registry["perigee.stretches"] or setmetatable({}, { __mode = "k" })
registry["perigee.stretches"] = stretches

function M.set_stretch(t, stretch) stretches[t] = stretch end
function M.stretch_of(t) return stretches[t] end

---The groups that hold other parts of it, the innermost first.
function M.groups(t)
  local list, part = {}, parts[t]
  while part do
    list[#list + 1], part = part.group, part.within
  end
  return list
end

-- Elements before, along and behind an axis.
local function sizes_around(shape, axis)
  local before, behind = 1, 1
  for i = 1, axis - 1 do before = before * shape[i] end
  for i = axis + 1, #shape do behind = behind * shape[i] end
  return before, shape[axis], behind
end

local function elements(shape)
  local n = 1
  for i = 1, #shape do n = n * shape[i] end
  return n
end
M.elements = elements

local function own_shape(part)
  local shape = {}
  for i = 1, #part.shape do shape[i] = part.shape[i] end
  shape[part.axis] = shape[part.axis] / part.group.size
  return shape
end

---Elements of a flat part: as many on every rank.
function M.stretch(n, size) return math.ceil(n / size) end

---The own part of a whole tensor, a new one.
function M.cut(whole, part)
  local group = part.group
  if part.flat then
    local n, each = whole:numel(), M.stretch(whole:numel(), group.size)
    local own = pg().zeros({ each }, { dtype = whole.dtype, device = whole.device })
    local first, last = group.rank * each + 1, math.min((group.rank + 1) * each, n)
    if first <= last then own[{ { 1, last - first + 1 } }]:copy_(whole:reshape(-1)[{ { first, last } }]) end
    return own
  end
  local before, along, behind = sizes_around(part.shape, part.axis)
  local blocks = part.blocks or 1
  local split = whole:reshape(before, blocks, group.size, along / blocks / group.size, behind)
  return split:narrow(3, group.rank + 1, 1):reshape(own_shape(part)):clone()
end

local function gather(t, part)
  local group = part.group
  local all = native.call("all_gather", { t:detach():reshape(-1) }, { group = group.number, ranks = group.size })
  if part.flat then
    local n = elements(part.shape)
    if n < all:numel() then all = all[{ { 1, n } }] end
    return all:reshape(part.shape)
  end
  local before, along, behind = sizes_around(part.shape, part.axis)
  local blocks = part.blocks or 1
  return all:reshape(group.size, before, blocks, along / blocks / group.size, behind):permute(2, 3, 1, 4, 5):reshape(
    part.shape)
end

---The whole that a part is of, which all processes of its groups ask for together; another tensor as it is.
---@param t perigee.Tensor the tensor whose part is known, or, with `part`, one like it (a state of an optimizer)
function M.whole(t, part)
  part = part or parts[t]
  while part do
    t, part = gather(t, part), part.within
  end
  return t
end

---The own part of what M.whole gives.
function M.part_of(whole, part)
  if part.within then whole = M.part_of(whole, part.within) end
  return M.cut(whole, part)
end

---The shape of the whole.
function M.whole_shape(t, part)
  part = part or parts[t]
  if not part then return t.shape end
  while part.within do part = part.within end
  return part.shape
end

---Raises where a layer's parameters are brought together for its calls alone (pg.dist.shard).
function M.refuse_dropped(layer, where)
  for _, entry in ipairs(walk.tensors(layer)) do
    local part = parts[entry.tensor]
    if part and part.flat then
      native.raise("failed_precondition", where, ("%s is spread over processes by pg.dist.shard"):format(entry.name),
                   "do this before pg.dist.shard")
    end
  end
end

return M
