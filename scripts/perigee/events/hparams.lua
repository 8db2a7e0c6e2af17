-- SPDX-License-Identifier: Apache-2.0
-- What TensorBoard's HPARAMS page shows: the settings of a run, and which of its scalars tell how good they were.

local native = require "perigee.native"
local protobuf = require "perigee.events.protobuf"
local kinds = require "perigee.events.summary"

local bytes, int, double = protobuf.bytes, protobuf.int, protobuf.double

local TYPES = { string = 1, boolean = 2, number = 3 } -- of hparams.DataType
local TENSOR, SUCCESS = 2, 1

-- google.protobuf.Value
local function value_of(v)
  if type(v) == "number" then return double(2, v) end
  if type(v) == "string" then return bytes(3, v) end
  return protobuf.bool(4, v)
end

local function message(tag, content)
  return bytes(1, tag) .. kinds.metadata("hparams", int(1, 0) .. content, TENSOR)
end

---@param params table<string, number|string|boolean>
---@param names string[] of the params, in the order in which they are written
---@param metrics string[] tags of scalars
---@param now number seconds since 1970
---@return string[] values of summaries
return function(params, names, metrics, now)
  local infos, start = {}, {}
  for _, name in ipairs(names) do
    local v = params[name]
    if not TYPES[type(v)] then
      native.raise("invalid_argument", "add_hparams", ("%s must be a number, a string or a boolean, got %s"):format(
                     name, native.describe(v)))
    end
    infos[#infos + 1] = bytes(4, bytes(1, name) .. int(4, TYPES[type(v)]))
    start[#start + 1] = bytes(1, bytes(1, name) .. bytes(2, value_of(v)))
  end
  for _, tag in ipairs(metrics) do infos[#infos + 1] = bytes(5, bytes(1, bytes(2, tag))) end
  return {
    message("_hparams_/experiment", bytes(2, table.concat(infos))),
    message("_hparams_/session_start_info", bytes(3, table.concat(start) .. double(5, now))),
    message("_hparams_/session_end_info", bytes(4, int(1, SUCCESS) .. double(2, now))),
  }
end
