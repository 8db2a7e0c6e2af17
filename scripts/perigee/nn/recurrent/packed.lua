-- SPDX-License-Identifier: Apache-2.0
-- Sequences of different lengths: padded [N, T, ...], and packed, their steps one after the other without the padding,
-- the longest sequence's first.

local native = require "perigee.native"
local common = require "perigee.nn.layers_common"

local M = {}
local function pg() return require "perigee" end
local refuse = common.refuse

---Sequences of different lengths as what they hold, step by step: nn.utils.pack_padded_sequence makes one, recurrent
---layers take it and give one.
---@class perigee.PackedSequence
---@field data perigee.Tensor [sum of the lengths, ...]: all first steps, the longest sequence's first, then all second
---@field batch_sizes perigee.Tensor int64 [T]: how many sequences have a step t
---@field sorted_indices? perigee.Tensor int64 [N]: the number of the sequence at each place, from 0; nil: as it came
---@field unsorted_indices? perigee.Tensor int64 [N]: the place of each sequence, from 0
local PackedSequence = { __name = "PackedSequence" }
function PackedSequence:__tostring()
  return ("PackedSequence(data %s %s, %d sequences, %d steps)"):format(self.data.dtype, tostring(self.data.shape),
                                                                     self.sizes[1], #self.sizes)
end

---The same sequences on another device, or of another dtype.
---@param target string
---@return perigee.PackedSequence
function PackedSequence:to(target) return M.with_data(self, self.data:to(target)) end

native.checked.class(PackedSequence, { noun = "a packed sequence", call = "packed", fields =
  "sorted_indices unsorted_indices", kinds = { to = { { "target", "string", required = true } } } })

function M.is_packed(v) return type(v) == "table" and getmetatable(v) == PackedSequence end

---A packed sequence of other contents: one row for each of the old.
function M.with_data(packed, data)
  local copy = {}
  for key, v in pairs(packed) do copy[key] = v end
  copy.data = data
  return setmetatable(copy, PackedSequence)
end

---Lengths as a Lua list; raises unless there is one for each of `count` sequences, from 1 to `longest`.
function M.read_lengths(where, lengths, count, longest)
  local list = lengths
  if native.is_tensor(lengths) then
    if native.is_graph_tensor(lengths) then
      refuse(where, "lengths is a tensor of a graph, and the number of steps is recorded",
             "give a list of numbers, or an eager tensor")
    end
    if lengths:dim() ~= 1 or lengths.dtype == "bool" or lengths.dtype:find "^complex" then
      refuse(where, ("lengths must be numbers [N], got %s %s"):format(lengths.dtype, tostring(lengths.shape)))
    end
    list = lengths:totable()
  elseif not native.is_plain(lengths) then
    refuse(where, "lengths must be a list of numbers or an int64 tensor, got " .. native.describe(lengths))
  end
  if type(count) ~= "number" then
    refuse(where, "lengths need a known number of sequences, got " .. tostring(count) .. " of them")
  end
  if #list ~= count then refuse(where, ("got %d lengths for %d sequences"):format(#list, count)) end
  for i, n in ipairs(list) do
    if type(n) ~= "number" or n ~= math.floor(n) then -- pg.tensor{5, 3} is float32
      refuse(where, ("lengths[%d] must be a whole number, got %s"):format(i, native.describe(n)))
    elseif n < 1 or n > longest then
      refuse(where, ("lengths[%d] is %d; expected 1..%d, the number of steps"):format(i, n, longest))
    end
  end
  return list
end

local function index_tensor(list, device) return pg().tensor(list, { dtype = "int64", device = device }) end

-- Positions of the sequences, the longest first, those of one length as they came.
local function order_of(lengths)
  local order, sorted = {}, true
  for i = 1, #lengths do
    order[i] = i
    sorted = sorted and (i == 1 or lengths[i] <= lengths[i - 1])
  end
  if not sorted then
    table.sort(order, function(a, b)
      if lengths[a] ~= lengths[b] then return lengths[a] > lengths[b] end
      return a < b
    end)
  end
  return order, sorted
end

-- How many sequences have each step.
local function sizes_of(lengths)
  local sizes, longest = {}, 0
  for _, n in ipairs(lengths) do longest = math.max(longest, n) end
  for t = 1, longest do sizes[t] = 0 end
  for _, n in ipairs(lengths) do
    for t = 1, n do sizes[t] = sizes[t] + 1 end
  end
  return sizes
end

---Packs x, [N, T, ...] or with batch_first=false [T, N, ...], by lengths that were looked at.
function M.pack(x, lengths, batch_first)
  local order, sorted = order_of(lengths)
  local sizes, rows, device = sizes_of(lengths), {}, x.device
  local count, steps = x:size(batch_first and 1 or 2), x:size(batch_first and 2 or 1)
  for t, size in ipairs(sizes) do
    for k = 1, size do
      local n = order[k] - 1
      rows[#rows + 1] = batch_first and n * steps + t - 1 or (t - 1) * count + n
    end
  end
  local packed = { data = x:flatten(1, 2):index_select(1, index_tensor(rows, device)), sizes = sizes,
                   batch_sizes = index_tensor(sizes, "cpu") }
  if not sorted then
    local places = {}
    for k, n in ipairs(order) do places[n] = k - 1 end
    for k, n in ipairs(order) do order[k] = n - 1 end
    packed.sorted_indices, packed.unsorted_indices = index_tensor(order, device), index_tensor(places, device)
  end
  return setmetatable(packed, PackedSequence)
end

---Lengths of a packed sequence, in the order of the sequences before they were packed.
function M.lengths_of(packed)
  local by_place, list = {}, {}
  for t, size in ipairs(packed.sizes) do
    for k = 1, size do by_place[k] = t end
  end
  if not packed.unsorted_indices then return by_place end
  for n, place in ipairs(packed.unsorted_indices:totable()) do list[n] = by_place[place + 1] end
  return list
end

---The sequences padded with `value`: [N, T, ...], or with batch_first=false [T, N, ...].
function M.pad(packed, batch_first, value, all_steps)
  local lengths, data, places, steps = M.lengths_of(packed), packed.data, nil, #packed.sizes
  local total, count, rows, starts = data:size(1), packed.sizes[1], {}, {}
  if packed.unsorted_indices then places = packed.unsorted_indices:totable() end
  local sum = 0
  for t, size in ipairs(packed.sizes) do starts[t], sum = sum, sum + size end
  local function row(n, t)
    if t > lengths[n] then return total end -- the row of padding behind the others
    return starts[t] + (places and places[n] or n - 1)
  end
  for a = 1, batch_first and count or steps do
    for b = 1, batch_first and steps or count do
      rows[#rows + 1] = row(batch_first and a or b, batch_first and b or a)
    end
  end
  local shape = data.shape
  shape[1] = 1
  local padding = pg().full(shape, value, { dtype = data.dtype, device = data.device })
  local flat = pg().cat { data, padding, axis = 1 }:index_select(1, index_tensor(rows, data.device))
  table.remove(shape, 1)
  local padded = flat:reshape(batch_first and count or steps, batch_first and steps or count, unpack(shape))
  if all_steps == steps then return padded end
  local behind, axis = padded.shape, batch_first and 2 or 1
  behind[axis] = all_steps - steps
  return pg().cat { padded, pg().full(behind, value, { dtype = data.dtype, device = data.device }), axis = axis }
end

-- ---- nn.utils ----

local utils = {}
M.utils = utils

local BATCH_FIRST = { "batch_first", "boolean", default = true, doc = "[N, T, ...], else [T, N, ...]" }

local read_pack = native.signature("nn.utils.pack_padded_sequence", {
  { "x", "tensor", required = true, doc = "[N, T, ...]: sequences with padding behind their ends" },
  { "lengths", "any", required = true, type = "integer[]|perigee.Tensor", doc = "of each sequence, from 1 to T" },
  BATCH_FIRST,
  { "enforce_sorted", "boolean", default = true, doc = "whether lengths must fall; else they are put in order" } })

---Sequences of different lengths without their padding, as recurrent layers take them. A layer does so itself where it
---is given lengths: lstm(x, {lengths={5, 3}}).
---@return perigee.PackedSequence
function utils.pack_padded_sequence(...)
  local where, o = "nn.utils.pack_padded_sequence", read_pack(...)
  if o.x:dim() < 2 then refuse(where, ("x must have two axes or more, got %s"):format(tostring(o.x.shape))) end
  local count, steps = o.x:size(o.batch_first and 1 or 2), o.x:size(o.batch_first and 2 or 1)
  if type(steps) ~= "number" then refuse(where, "x must have a known number of steps, got " .. tostring(steps)) end
  local lengths = M.read_lengths(where, o.lengths, count, steps)
  if #lengths == 0 then refuse(where, "x has no sequences") end
  for i = 2, o.enforce_sorted and #lengths or 0 do
    if lengths[i] > lengths[i - 1] then
      refuse(where, ("lengths must fall: lengths[%d] is %d, behind %d"):format(i, lengths[i], lengths[i - 1]),
             "enforce_sorted=false puts the sequences in order")
    end
  end
  return M.pack(o.x, lengths, o.batch_first)
end

local read_pad_packed = native.signature("nn.utils.pad_packed_sequence", {
  { "packed", "any", required = true, type = "perigee.PackedSequence",
    doc = "what pack_padded_sequence or a layer gave" },
  BATCH_FIRST, { "padding_value", "number", default = 0, doc = "behind the sequences' ends" },
  { "total_length", "integer", doc = "T of the result; the longest sequence's if not given" } })

---The sequences again with padding, [N, T, ...], and their lengths, int64 [N].
---@return perigee.Tensor padded, perigee.Tensor lengths
function utils.pad_packed_sequence(...)
  local where, o = "nn.utils.pad_packed_sequence", read_pad_packed(...)
  if not M.is_packed(o.packed) then
    refuse(where, "packed must be a PackedSequence, got " .. native.describe(o.packed),
           "nn.utils.pack_padded_sequence makes one")
  end
  local steps = o.total_length or #o.packed.sizes
  if steps < #o.packed.sizes then
    refuse(where, ("total_length is %d, but the longest sequence has %d steps"):format(steps, #o.packed.sizes))
  end
  return M.pad(o.packed, o.batch_first, o.padding_value, steps), index_tensor(M.lengths_of(o.packed), "cpu")
end

local SEQUENCES = { "sequences", "tensors", required = true, doc = "[T, ...] each, of any T" }

-- Their lengths, and the longest.
local function check_sequences(where, list)
  local lengths, longest = {}, 0
  if #list == 0 then refuse(where, "sequences is empty; expected at least one tensor") end
  for i, t in ipairs(list) do
    if t:dim() < 1 or type(t:size(1)) ~= "number" then
      refuse(where, ("sequences[%d] is %s; expected [T, ...]"):format(i, tostring(t.shape)))
    end
    lengths[i] = t:size(1)
    longest = math.max(longest, lengths[i])
  end
  return lengths, longest
end

local function stack_padded(list, longest, batch_first, value)
  local padded = {}
  for i, t in ipairs(list) do
    local shape = t.shape
    shape[1] = longest - shape[1]
    padded[i] = t
    if shape[1] > 0 then
      padded[i] = pg().cat { t, pg().full(shape, value, { dtype = t.dtype, device = t.device }), axis = 1 }
    end
  end
  return pg().stack { padded, axis = batch_first and 1 or 2 }
end

local read_pad = native.signature("nn.utils.pad_sequence", {
  SEQUENCES, BATCH_FIRST, { "padding_value", "number", default = 0, doc = "behind the sequences' ends" } })

---Sequences of different lengths as one tensor, [N, longest, ...], with padding behind their ends.
---@return perigee.Tensor
function utils.pad_sequence(...)
  local o = read_pad(...)
  local _, longest = check_sequences("nn.utils.pad_sequence", o.sequences)
  return stack_padded(o.sequences, longest, o.batch_first, o.padding_value)
end

local read_pack_sequence = native.signature("nn.utils.pack_sequence", {
  SEQUENCES,
  { "enforce_sorted", "boolean", default = true, doc = "whether lengths must fall; else they are put in order" } })

---Sequences of different lengths, a list of tensors, packed as pack_padded_sequence does.
---@return perigee.PackedSequence
function utils.pack_sequence(...)
  local o = read_pack_sequence(...)
  local lengths, longest = check_sequences("nn.utils.pack_sequence", o.sequences)
  return utils.pack_padded_sequence { stack_padded(o.sequences, longest, true, 0), lengths,
                                      enforce_sorted = o.enforce_sorted }
end

return M
