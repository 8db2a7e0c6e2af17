-- SPDX-License-Identifier: Apache-2.0
-- The parts of batches that replicas compute.

local native = require "perigee.native"

local M = {}
local known = setmetatable({}, { __mode = "k" }) -- { count, total } by batch
local whole = setmetatable({}, { __mode = "k" }) -- batches of all replicas

---What gradients of this process count while a strategy runs; nil: nothing is said.
M.sending = nil

-- The rows of all replicas together: those of the first tensor that is found.
local function rows_of(v)
  if native.is_tensor(v) then return v:dim() > 0 and v.shape[1] or nil end
  if type(v) ~= "table" then return nil end
  local names = {}
  for name in pairs(v) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    local rows = rows_of(v[name])
    if rows then return rows end
  end
end

local function cut(where, v, name, total, first, last)
  if native.is_tensor(v) then
    if v:dim() == 0 or v.shape[1] ~= total then
      native.raise("invalid_argument", where, ("%s is %s; expected %d rows, as the batch has"):format(
                     name, native.describe(v), total))
    end
    return v[{ { first, last } }]
  end
  if type(v) ~= "table" or getmetatable(v) ~= nil then return v end
  local part = {}
  if #v == total and not native.is_tensor(v[1]) then -- what is no tensor comes as a list
    for i = first, last do part[#part + 1] = v[i] end
    return part
  end
  for key, field in pairs(v) do part[key] = cut(where, field, name .. "." .. tostring(key), total, first, last) end
  return part
end

local function need_rows(where, batch)
  local total = rows_of(batch)
  if not total or total == 0 then
    native.raise("invalid_argument", where, "a batch must hold tensors with a first axis of samples, got " ..
                 native.describe(batch))
  end
  return total
end

---Says that a batch is one of all replicas, to be cut where they run. Answers its rows.
function M.mark(where, batch)
  local rows = need_rows(where, batch)
  whole[batch] = true
  return rows
end

---Whether M.mark was told of it.
function M.is_whole(v) return (type(v) == "table" or type(v) == "cdata") and whole[v] == true end

---`copy`, which counts as the part that it is a copy of.
function M.like(part, copy)
  known[copy] = known[part]
  return copy
end

---A batch's rows for one replica. Where there are fewer rows than replicas, some get the first row, which counts for
---nothing, since all must take part in the step.
function M.cut(where, batch, rank, size)
  local total = need_rows(where, batch)
  local first, last = math.floor(total * rank / size) + 1, math.floor(total * (rank + 1) / size)
  local count = last - first + 1
  if count == 0 then first, last = 1, 1 end
  local part = cut(where, batch, "batch", total, first, last)
  known[part] = { count = count, total = total }
  return part
end

---{ count, total } of a batch that M.cut has made; nil of another.
function M.of(batch) return known[batch] end

---{ count, total } of the first such batch among the arguments; nil: none is one.
function M.first(...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    local share = (type(v) == "table" or type(v) == "cdata") and known[v]
    if share then return share end
  end
end

---What its gradients count: its part of all samples.
function M.weight(...)
  local share = M.first(...)
  return share and share.count / share.total
end

return M
