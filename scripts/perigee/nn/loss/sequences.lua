-- SPDX-License-Identifier: Apache-2.0
-- Losses of label sequences.

local native = require "perigee.native"
local common = require "perigee.nn.loss.common"

local losses = {}
local function pg() return require "perigee" end

local function refuse(message, ...) native.raise("invalid_argument", "ctc", message:format(...)) end

-- Lengths as an int64 tensor [N]; a number or a list of them will do.
local function lengths(name, v, count, device)
  if type(v) == "number" then v = { v } end
  if type(v) == "table" and not native.is_tensor(v) then v = pg().tensor(v, { dtype = "int64", device = device }) end
  if not native.is_tensor(v) then refuse("%s must be lengths, got %s", name, native.describe(v)) end
  if v:dim() == 0 then v = v:reshape(1) end
  if v:dim() ~= 1 or native.tensor.sizes_differ(v:size(1), count) then
    refuse("%s is %s; expected one for each of %s sequences", name, tostring(v.shape), tostring(count))
  end
  return v
end

-- Labels one after the other, [sum of the lengths], as rows [N, longest].
local function as_rows(targets, sizes)
  native.host.need_contents("ctc", sizes, "give targets as rows, [N, S]")
  local count, longest = sizes:size(1), math.max(1, sizes:max():item())
  local total = sizes:sum():item()
  if total ~= targets:size(1) then refuse("%d labels, but target_lengths add up to %d", targets:size(1), total) end
  if total == 0 then return pg().zeros { count, longest, dtype = "int64", device = targets.device } end
  local first = (sizes:cumsum(1) - sizes):unsqueeze(2)
  local places = (first + pg().arange(0, longest, 1, { device = targets.device })):clamp { max = total - 1 }
  return targets:index_select(places:reshape(-1), 1):reshape(count, longest)
end

common.declare("ctc", { blank = 0, zero_infinity = false }, {
  blank = "label of no label, from 0", zero_infinity = "whether a target that cannot be aligned costs 0",
  reduction = "what is made of the values; mean: each over its target's length first" })
---Connectionist temporal classification (Graves et al. 2006): the negative log likelihood of label sequences, over all
---ways to align them with the steps. The gradient is that of what log_softmax was taken of; there is no second
---derivative.
---@param log_probs perigee.Tensor [T, N, C], log_softmax along C; or [T, C], one sequence
---@param targets perigee.Tensor int64 from 0, [N, S], or all labels one after the other
---@param input_lengths perigee.Tensor|integer[] steps of each sequence, [N]
---@param target_lengths perigee.Tensor|integer[] labels of each sequence, [N]
---@param options? {blank?: integer, reduction?: perigee.Reduction, zero_infinity?: boolean}
---@return perigee.Tensor
function losses.ctc(log_probs, targets, input_lengths, target_lengths, options)
  local o = common.options("ctc", options)
  common.check_tensors("ctc", log_probs, targets)
  local single = log_probs:dim() == 2
  if single then log_probs = log_probs:unsqueeze(2) end
  if log_probs:dim() ~= 3 then refuse("log_probs is %s; expected [T, N, C] or [T, C]", tostring(log_probs.shape)) end
  local count = log_probs:size(2)
  local steps = lengths("input_lengths", input_lengths, count, log_probs.device)
  local sizes = lengths("target_lengths", target_lengths, count, log_probs.device)
  if single and targets:dim() == 1 then targets = targets:unsqueeze(1) end
  if targets:dim() == 1 then targets = as_rows(targets, sizes) end
  local values = native.call("ctc_loss", { log_probs, targets, steps, sizes },
                             { blank = o.blank, zero_infinity = o.zero_infinity })
  if o.reduction == "mean" then return (values / sizes:clamp { min = 1 }:to(values.dtype)):mean() end
  if single and o.reduction == "none" then values = values:squeeze(1) end
  return common.reduce("ctc", values, o.reduction)
end

return losses
