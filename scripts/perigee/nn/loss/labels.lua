-- SPDX-License-Identifier: Apache-2.0
-- Labels: whether they fit predictions x [N, C], [N, C, ...] or [C], what x holds at them, means over those that count.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"

local labels_of = {}

---The axis of the classes.
function labels_of.axis(x) return x:dim() == 1 and 1 or 2 end

local function refuse(where, message, hint) native.raise("invalid_argument", where, message, hint) end

---Raises where integers stand in the shape of x. `or_else`: what else they could be made of.
function labels_of.check_one_hot(where, x, labels, or_else)
  if labels.shape ~= x.shape then return end
  refuse(where, ("the labels %s are one-hot and %s"):format(tostring(labels.shape), labels.dtype),
         "labels:argmax{axis=2} gives classes" .. (or_else and "; " .. or_else or ""))
end

---Raises unless a weight, where there is one, is a number for each class.
function labels_of.check_weight(where, x, weight)
  if not weight then return end
  if not native.is_tensor(weight) then
    refuse(where, "weight must be a tensor, got " .. native.describe(weight),
           type(weight) == "table" and "pg.tensor makes one of a table" or nil)
  end
  local own, classes = weight.shape, x:size(labels_of.axis(x))
  if #own ~= 1 or native.tensor.sizes_differ(own[1], classes) then
    refuse(where, ("weight %s does not fit; expected {%s}, a factor of each class"):format(tostring(own), classes))
  end
end

---Raises unless these are labels of x, and the weight one of its classes.
function labels_of.check(where, x, labels, weight, or_else)
  local dtype, shape = labels.dtype, labels.shape
  if x:dim() == 0 then refuse(where, "the prediction {} has no classes; expected [N, C], [N, C, ...] or [C]") end
  if native.dtypes.by_name[dtype].floating then
    refuse(where, ("the labels are %s; classes are integers, counted from 0"):format(dtype), "labels:to(\"int64\")")
  end
  if dtype ~= "int64" and dtype ~= "int32" then
    refuse(where, ("the labels are %s; expected int64 or int32"):format(dtype), "labels:to(\"int64\")")
  end
  if x:dim() > 1 then labels_of.check_one_hot(where, x, labels, or_else) end
  local expected = x.shape
  table.remove(expected, labels_of.axis(x))
  local fits = #shape == #expected
  for i = 1, fits and #shape or 0 do fits = fits and not native.tensor.sizes_differ(shape[i], expected[i]) end
  if not fits then
    refuse(where, ("the labels %s do not fit the prediction %s; expected %s, one class for each position"):format(
             tostring(shape), tostring(x.shape), tostring(expected)))
  end
  labels_of.check_weight(where, x, weight)
end

---x at each label, in the labels' shape. A label out of range is told as cross_entropy tells it.
function labels_of.gather(where, x, labels)
  local axis = labels_of.axis(x)
  local ok, picked = pcall(native.call, "gather", { x, labels:unsqueeze(axis) }, { axis = axis }, false, where)
  if ok then return picked:squeeze(axis) end
  if native.errors.is_error(picked) then
    picked.message = picked.message:gsub("index (%-?%d+) at position %[(.-)%] is out of range for axis %d+;",
      function(label, position)
        local at = {}
        for n in position:gmatch "%d+" do at[#at + 1] = n end
        table.remove(at, axis)
        return ("target %s at position [%s] is out of range;"):format(label, table.concat(at, ", "))
      end)
  end
  error(picked, 0)
end

---What x holds at the labels: `values`; `counts` tells which labels count, and `labels` has 0 in place of the others.
function labels_of.pick(where, x, labels, ignore_index)
  local index = labels:masked_fill(labels:eq(ignore_index), 0)
  return { counts = labels:ne(ignore_index), labels = index, values = labels_of.gather(where, x, index) }
end

---Values at labels, reduced: 0 where they do not count, times their classes' weights. "mean" divides by the sum of the
---weights; of nothing it is NaN, with gradients of 0.
function labels_of.reduce(where, values, at, weight, reduction)
  local counts = at.counts
  local weights = weight and weight:index_select(at.labels:flatten(), { axis = 1 }):reshape(at.labels.shape)
  if weights then values = values * weights end
  values = require("perigee").where(counts, values, 0)
  if reduction ~= "mean" then return common.reduce(where, values, reduction) end
  return values:sum() / (weights and weights * counts or counts:to(values.dtype)):sum()
end

return labels_of
