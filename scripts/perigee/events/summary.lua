-- SPDX-License-Identifier: Apache-2.0
-- Values of summaries: each function answers the message Summary.Value.

local native = require "perigee.native"
local pg = require "perigee"
local protobuf = require "perigee.events.protobuf"

local bytes, int = protobuf.bytes, protobuf.int

local kinds = {}

local FLOAT, STRING = 1, 7 -- of DataType
local TENSOR, BLOBS = 2, 3 -- of DataClass

-- Fields of Summary.Value.
local function tag_of(tag) return bytes(1, tag) end

---Which plugin of TensorBoard shows a value.
function kinds.metadata(plugin, content, class)
  return bytes(9, bytes(1, bytes(1, plugin) .. (content ~= "" and bytes(2, content) or "")) ..
               (class and int(4, class) or ""))
end

local function tensor_of(dtype, shape, content)
  local dims = {}
  for i, size in ipairs(shape) do dims[i] = bytes(2, int(1, size)) end
  return bytes(8, int(1, dtype) .. bytes(2, table.concat(dims)) .. content)
end

-- A tensor of texts.
local function texts_of(list)
  local parts = {}
  for i, text in ipairs(list) do parts[i] = bytes(8, text) end
  return tensor_of(STRING, { #list }, table.concat(parts))
end

function kinds.scalar(tag, value) return tag_of(tag) .. protobuf.float(2, value) end

function kinds.text(tag, text)
  return tag_of(tag) .. kinds.metadata("text", "", TENSOR) .. texts_of { text }
end

-- ---- histograms ----

-- The finite elements of values: tensors, or lists of numbers.
local function finite(where, values)
  local t = values
  if not native.is_tensor(t) then t = pg.tensor(values, { dtype = "float64" }) end
  local kind = native.dtypes.by_name[t.dtype]
  if kind.complex then native.raise("invalid_argument", where, "values must be real, got " .. t.dtype) end
  t = pg.no_grad(function() return t:detach():to { device = "cpu", dtype = "float64" }:reshape { -1 } end)
  if not kind.floating and native.is_tensor(values) then return t end
  return t:masked_select(t:isfinite())
end

---Counts in equal steps from the least to the largest number. What is not finite is left out.
function kinds.histogram(tag, values, bins)
  local t = finite("add_histogram", values)
  local count, limits = t:numel(), {}
  local counts, fields
  if count == 0 then
    limits, counts, fields = { 0 }, { 0 }, protobuf.double(1, 0) .. protobuf.double(2, 0)
  else
    local low, high = t:min():item(), t:max():item()
    if low == high then
      limits, counts = { low, low + math.max(math.abs(low) * 1e-6, 1e-12) }, { 0, count }
    else
      counts = t:histc { bins = bins, min = low, max = high }:totable()
      for i = 1, bins do limits[i] = low + (high - low) * i / bins end
      limits[bins] = high
      -- TensorBoard takes a bucket's lower limit from the one before: an empty one says where the first begins.
      table.insert(limits, 1, low)
      table.insert(counts, 1, 0)
    end
    fields = protobuf.double(1, low) .. protobuf.double(2, high)
  end
  local sum, squares = count > 0 and t:sum():item() or 0, count > 0 and (t * t):sum():item() or 0
  return tag_of(tag) .. bytes(5, fields .. protobuf.double(3, count) .. protobuf.double(4, sum) ..
           protobuf.double(5, squares) .. protobuf.doubles(6, limits) .. protobuf.doubles(7, counts))
end

-- ---- images ----

local function read_whole(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

-- The writer of pictures knows files only.
local function encode(image)
  local name = os.tmpname()
  local path = name .. ".png"
  local ok, problem = pcall(function()
    native.write(path, { "image" }, { image })
    return read_whole(path)
  end)
  os.remove(name)
  os.remove(path)
  if not ok then error(problem, 0) end
  return problem
end

local LAYOUTS = { HW = 2, CHW = 3, HWC = 3, NCHW = 4, NHWC = 4 }
local function refuse(message, hint) native.raise("invalid_argument", "add_image", message, hint) end

-- As [N, H, W, C], numbers from 0 to 255.
local function arrange(t, layout)
  local rank = t:dim()
  layout = layout or ({ [2] = "HW", [3] = "CHW", [4] = "NCHW" })[rank]
  if not LAYOUTS[layout] then
    refuse(layout and ("layout must be HW, CHW, HWC, NCHW or NHWC, got %q"):format(layout) or
           ("an image has 2 to 4 axes, got %s"):format(tostring(t.shape)))
  end
  if LAYOUTS[layout] ~= rank then refuse(("layout %s has %d axes, got %s"):format(layout, LAYOUTS[layout],
                                         tostring(t.shape))) end
  if t:numel() == 0 then refuse("the image has no pixels: " .. tostring(t.shape)) end
  t = t:detach():to "cpu"
  if layout == "HW" then t = t:unsqueeze(3) end
  if rank < 4 then t = t:unsqueeze(1) end
  if layout == "CHW" or layout == "NCHW" then t = t:permute { 1, 3, 4, 2 } end
  local channels = t:size(4)
  if channels ~= 1 and channels ~= 3 and channels ~= 4 then
    refuse(("an image has 1, 3 or 4 channels, got %d in %s"):format(channels, layout), 'layout="HWC"?')
  end
  if t.dtype == "uint8" then return t end
  local kind = native.dtypes.by_name[t.dtype]
  if not kind.floating and not kind.boolean then
    refuse("an image is uint8, bool, or floating from 0 to 1, got " .. t.dtype)
  end
  t = t:to "float32":clamp(0, 1)
  return (t * 255 + 0.5):floor():nan_to_num():to "uint8"
end

---Pictures under one tag, as PNG.
function kinds.images(tag, t, layout)
  if not native.is_tensor(t) then refuse("needs a tensor, got " .. native.describe(t)) end
  local pictures = pg.no_grad(arrange, t, layout)
  local list = { ("%d"):format(pictures:size(3)), ("%d"):format(pictures:size(2)) }
  for i = 1, pictures:size(1) do list[#list + 1] = encode(pictures:select(1, i):contiguous()) end
  return tag_of(tag) .. kinds.metadata("images", "", BLOBS) .. texts_of(list)
end

-- ---- precision and recall ----

---Counts over thresholds from 0 to 1: labels 0 or 1, predictions from 0 to 1.
function kinds.pr_curve(tag, labels, predictions, thresholds)
  local where = "add_pr_curve"
  local truth, guess = finite(where, labels), finite(where, predictions)
  if truth:numel() ~= guess:numel() then
    native.raise("invalid_argument", where, ("%d labels, but %d predictions (that are finite)"):format(truth:numel(),
                 guess:numel()))
  end
  local function outside(t, low, high) return t:numel() > 0 and (t:min():item() < low or t:max():item() > high) end
  if outside(guess, 0, 1) then
    native.raise("invalid_argument", where, "predictions must lie between 0 and 1", "logits:sigmoid()")
  end
  if outside(truth, 0, 1) then native.raise("invalid_argument", where, "labels must be 0 or 1") end
  -- A prediction belongs to the last threshold that it reaches.
  local at = (guess * (thresholds - 1)):floor():to "int64"
  local zeros = pg.zeros { thresholds, dtype = "float64" }
  local positive = guess:numel() == 0 and zeros or zeros:index_add(1, at, truth)
  local negative = guess:numel() == 0 and zeros or zeros:index_add(1, at, 1 - truth)
  local function reached(t) return t:flip { 1 }:cumsum { axis = 1 }:flip { 1 } end
  local tp, fp = reached(positive), reached(negative)
  local tn, fn = negative:sum() - fp, positive:sum() - tp
  local function share(a, b) return a / b:clamp { min = 1e-7 } end
  local numbers = pg.cat({ tp, fp, tn, fn, share(tp, tp + fp), share(tp, tp + fn) }, { axis = 1 }):totable()
  return tag_of(tag) .. kinds.metadata("pr_curves", int(1, 0) .. int(2, thresholds), TENSOR) ..
         tensor_of(FLOAT, { 6, thresholds }, protobuf.floats(5, numbers))
end

return kinds
