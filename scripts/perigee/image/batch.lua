-- SPDX-License-Identifier: Apache-2.0
-- pg.image: batches of which each picture is mixed with the one before it, and its label likewise. Drawn from (seed,
-- epoch, sample) alone, once a batch.

local native = require "perigee.native"
local common = require "perigee.image.common"
local draws = require "perigee.image.draws"

local refuse = common.refuse
local image = {}
local MIXUP, CUTMIX = 7, 8

local IMAGES = { "images", "tensor", required = true, doc = "a batch [n, ...]" }
local LABELS = { "labels", "tensor", required = true, doc = "classes [n], from 0, or probabilities [n, classes]" }
local ALPHA = { "alpha", "number", named = true, doc = "of the beta distribution of shares" }
local CLASSES = { "classes", "integer", named = true, doc = "how many there are, where labels are classes" }
local SAMPLE = { "sample", "integer", default = 1, named = true, doc = "the batch's number, from 1" }

local function probabilities(where, o)
  local y = o.labels
  if y:dim() < 1 or y:size(1) ~= o.images:size(1) then
    refuse(where, ("labels must be one a picture, got %s of %s"):format(tostring(y.shape), tostring(o.images.shape)))
  end
  if y:dim() == 2 and native.dtypes.by_name[y.dtype].floating then return y end
  if y:dim() ~= 1 or native.dtypes.by_name[y.dtype].floating then
    refuse(where, ("labels must be integers [n] or probabilities [n, classes], got %s %s"):format(y.dtype,
           tostring(y.shape)))
  end
  if not o.classes then refuse(where, "needs classes where labels are integers") end
  return y:to("int64"):one_hot(o.classes):to "float32"
end

local function check(where, o, default)
  local alpha = o.alpha or default
  if alpha <= 0 or alpha ~= alpha then refuse(where, "alpha must be above 0, got " .. alpha) end
  draws.check(where, o)
  return alpha
end

local function mixed(t, other, share) return t * share + other * (1 - share) end

local read_mixup = native.signature("image.mixup", { IMAGES, LABELS, ALPHA, CLASSES, draws.SEED, draws.EPOCH,
                                                     SAMPLE })
---Pictures and labels mixed with those before them in the batch, by a share that is drawn (Zhang et al., 2017). Images
---are floating ones; `alpha` is 0.2 if not given. Answers images and probabilities [n, classes].
---@return perigee.Tensor
---@return perigee.Tensor
function image.mixup(...)
  local where, o = "image.mixup", read_mixup(...)
  local alpha, x = check(where, o, 0.2), o.images
  if x:dim() < 1 or not native.dtypes.by_name[x.dtype].floating then
    refuse(where, ("images must be a floating batch, got %s %s"):format(x.dtype, tostring(x.shape)),
           "image.to_float makes one of uint8")
  end
  local y, share = probabilities(where, o), draws.new(MIXUP, o):beta(alpha)
  return mixed(x, x:roll(1, 1), share), mixed(y, y:roll(1, 1), share)
end

local read_cutmix = native.signature("image.cutmix", { IMAGES, LABELS, ALPHA, CLASSES,
  { "channels_first", "boolean", default = false, named = true, doc = "images are [n, channels, rows, columns]" },
  draws.SEED, draws.EPOCH, SAMPLE })
---Pictures with a rectangle of the picture before them in the batch, and labels by the areas (Yun et al., 2019).
---`alpha` is 1 if not given. Answers images, of their dtype, and probabilities [n, classes].
---@return perigee.Tensor
---@return perigee.Tensor
function image.cutmix(...)
  local where, o = "image.cutmix", read_cutmix(...)
  local alpha, x = check(where, o, 1), o.images
  if x:dim() ~= 4 then refuse(where, "images must have 4 axes, got " .. tostring(x.shape)) end
  local y, draw = probabilities(where, o), draws.new(CUTMIX, o)
  local axis = o.channels_first and 3 or 2
  local rows, columns = x:size(axis), x:size(axis + 1)
  local side = math.sqrt(1 - draw:beta(alpha)) / 2
  local row, column = draw:below(rows), draw:below(columns)
  local function ends(at, n)
    local reach = math.floor(side * n)
    return math.max(at - reach, 0), math.min(at + reach, n)
  end
  local top, bottom = ends(row, rows)
  local left, right = ends(column, columns)
  local out, other = x:clone(), x:roll(1, 1)
  if bottom > top and right > left then
    local function part(t) return t:narrow(axis, top + 1, bottom - top):narrow(axis + 1, left + 1, right - left) end
    part(out):copy_(part(other))
  end
  return out, mixed(y, y:roll(1, 1), 1 - (bottom - top) * (right - left) / (rows * columns))
end

return image
