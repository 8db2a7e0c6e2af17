-- SPDX-License-Identifier: Apache-2.0
-- Samples as one batch: tensors are stacked, numbers and booleans become a tensor, samples and tables with names in
-- them are batched field by field, the rest is a list. Fields that `pad` names may differ in their sizes.

local native = require "perigee.native"
local padding = require "perigee.data.padding"

local collate

local function kind_of(v, path)
  if native.is_tensor(v) then return "tensor" end
  if type(v) ~= "table" then return type(v) end
  return (path == "" or type(next(v)) == "string" and native.is_plain(v)) and "record" or "table"
end

local function refuse(text, hint) native.raise("invalid_argument", "batch", text, hint) end

local function describe(v, path) return kind_of(v, path) == "record" and "a table with names" or native.describe(v) end

-- All must be as the first: `at` says where in the pipeline they stand, `path` is the field ("x.a", or "").
local function check(values, at, path, padded)
  local of = path == "" and "sample" or path .. " of sample"
  local one, kind = values[1], kind_of(values[1], path)
  for i, v in ipairs(values) do
    local same = kind_of(v, path) == kind
    if same and kind == "tensor" then
      if padded then same = v:dim() == one:dim() and v.dtype == one.dtype else same = v.shape == one.shape end
    end
    if not same then
      refuse(("%s %d is %s, but of sample %d it is %s"):format(of, at[i], describe(v, path), at[1],
             describe(one, path)),
             kind == "tensor" and native.is_tensor(v) and
             (padded and "padded tensors need the same number of axes and one dtype" or
              "make them of one shape with ds:map, or pad them") or nil)
    end
  end
  return kind
end

-- The fields of samples, each as a batch.
local function fields(samples, at, path, pad)
  local batch = {}
  for name in pairs(samples[1]) do
    local values, inner = {}, path == "" and tostring(name) or path .. "." .. tostring(name)
    for i, sample in ipairs(samples) do
      values[i] = sample[name]
      if values[i] == nil then refuse(("sample %d has no %q, unlike sample %d"):format(at[i], inner, at[1])) end
    end
    batch[name] = collate(values, at, inner, pad)
  end
  return batch
end

function collate(values, at, path, pad)
  local value = pad and pad.values[path]
  local pg, kind = require "perigee", check(values, at, path, value ~= nil)
  if value ~= nil then
    pad.met[path] = true
    if kind ~= "tensor" then
      refuse(("pad names %s, which is %s in sample %d"):format(path, describe(values[1], path), at[1]),
             "tensors can be padded")
    end
    padding.fill(values, value, path)
  end
  if kind == "tensor" then
    for i, t in ipairs(values) do values[i] = t:unsqueeze(1) end
    return pg.cat(values, { axis = 1 })
  end
  if kind == "number" or kind == "boolean" then return pg.tensor(values) end
  if kind == "record" then return fields(values, at, path, pad) end
  return values
end

---@param samples any[]
---@param at integer[] where they stand in the pipeline, from 1
---@param values? table<string, number|boolean> what fields are padded with, by their paths ("x", "x.a")
return function(samples, at, values)
  local pad = values and { values = values, met = {} }
  local batch = collate(samples, at, "", pad)
  for path in pairs(values or {}) do
    if not pad.met[path] then refuse(("pad names %q, which is no field of sample %d"):format(path, at[1])) end
  end
  return batch
end
