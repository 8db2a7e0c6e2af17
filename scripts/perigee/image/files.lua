-- SPDX-License-Identifier: Apache-2.0
-- pg.image.load and pg.image.save: what codecs of plugins read and write, as uint8 with the channels that are wanted.

local native = require "perigee.native"
local common = require "perigee.image.common"

local refuse = common.refuse
local image = {}

-- ".jpg, .jpeg, .png or .webp", and those of other plugins.
local function ending_names()
  local codecs, names = native.codecs.list(), {}
  table.sort(codecs, function(a, b) return a.name < b.name end)
  for _, codec in ipairs(codecs) do
    for _, ending in ipairs(codec.extensions) do names[#names + 1] = ending end
  end
  local last = table.remove(names)
  return names[1] and table.concat(names, ", ") .. " or " .. last or tostring(last)
end

-- The codec of a path.
local function codec_of(where, path)
  local ending = path:match "%.(%w+)$"
  local codec = ending and native.codecs.of_ending(ending)
  if codec then return codec end
  local shown = #path > 80 and path:sub(1, 80):gsub("%c", "?") .. "..." or path:gsub("%c", "?")
  refuse(where, ("path must end in %s, got %q"):format(ending_names(), shown),
         where == "image.load" and #path > 80 and "bytes of an image begin with its signature" or nil)
end

-- From one, two, three or four channels to another number of them.
local function with_channels(t, wanted)
  local pg = require "perigee"
  local has = t:size(3)
  if has == wanted then return t end
  local colours = has <= 2 and t:narrow(3, 1, 1) or t:narrow(3, 1, 3)
  local opacity = (has == 2 or has == 4) and t:narrow(3, has, 1) or pg.full_like(t:narrow(3, 1, 1), 255)
  if wanted <= 2 and has >= 3 then colours = common.luma("image.load", colours, 3):to "uint8" end
  if wanted >= 3 and has <= 2 then colours = pg.cat({ colours, colours, colours }, 3) end
  if wanted == 1 or wanted == 3 then return colours:contiguous() end
  return pg.cat({ colours, opacity }, 3)
end

-- What is made of a picture that nobody else has: its memory is free at once, for the next one.
local function in_place_of(t, made)
  if made ~= t then t:free() end
  return made
end

local function check_box(where, box)
  for i = 1, 4 do
    local v = box[i]
    if type(v) ~= "number" or v ~= math.floor(v) or v < (i <= 2 and 0 or 1) or #box ~= 4 then
      refuse(where, "crop must be {top, left, height, width} in whole pixels")
    end
  end
end

-- How many times smaller a picture may be decoded so that a part of it is still as large as the size that is wanted.
local function scale_for(box, rows, columns)
  for _, scale in ipairs { 8, 4, 2 } do
    if box[3] / scale >= rows and box[4] / scale >= columns then return scale end
  end
  return 1
end

-- One picture as uint8 [rows, columns, channels]. `coded`: the codec of bytes.
local function decode(where, o, coded, options)
  local t
  if coded then
    t = native.read_bytes(o.from, coded.extensions[1], options, where).data
  else
    t = native.read(o.from, options, where).data
  end
  if t:dim() == 2 then t = t:unsqueeze(3) end
  if t:dim() ~= 3 or (t.dtype ~= "uint8" and t.dtype ~= "int32") then
    native.raise("not_supported", where, ("no picture: a %s tensor %s"):format(t.dtype, tostring(t.shape)),
                 "pg.load reads what is none")
  end
  if t.dtype ~= "uint8" then t = ((t + 128):floor_div(257)):to "uint8" end
  return o.channels and with_channels(t, o.channels) or t
end

local function check_inside(where, box, height, width)
  if box[1] + box[3] > height or box[2] + box[4] > width then
    refuse(where, ("crop {%d, %d, %d, %d} is not inside of %d x %d"):format(box[1], box[2], box[3], box[4], height,
           width), "it is {top, left, height, width}")
  end
end

-- A part as it is, or all: the codec looks at the header, and it is read once.
local function decode_part(where, o, coded)
  local box, options = o.crop, { max_pixels = o.max_pixels }
  if not box then return decode(where, o, coded, options) end
  options.top, options.left, options.height, options.width = unpack(box)
  local ok, t = pcall(decode, where, o, coded, options)
  if ok then return t end
  check_inside(where, box, unpack(native.codecs.probe(where, o.from, coded)))
  error(t, 0)
end

-- A part at the scale that the size wants, and where in what was decoded it lies.
local function decode_scaled(where, o, coded, rows, columns)
  local height, width = unpack(native.codecs.probe(where, o.from, coded))
  local box = o.crop or { 0, 0, height, width }
  check_inside(where, box, height, width)
  local scale = scale_for(box, rows, columns)
  local top, left = math.floor(box[1] / scale), math.floor(box[2] / scale)
  local bottom = math.min(math.ceil((box[1] + box[3]) / scale), math.ceil(height / scale))
  local right = math.min(math.ceil((box[2] + box[4]) / scale), math.ceil(width / scale))
  local t = decode(where, o, coded, { max_pixels = o.max_pixels, scale = scale > 1 and scale or nil,
                                      top = top, left = left, height = bottom - top, width = right - left })
  return t, scale > 1 and { box[1] / scale - top, box[2] / scale - left,
                            math.min(box[3] / scale, bottom - box[1] / scale),
                            math.min(box[4] / scale, right - box[2] / scale) } or nil
end

local function load_part(where, o, coded, codec)
  local operations, rows, columns = require "perigee.image.geometry", nil, nil
  if o.size then rows, columns = common.pair(where, "size", o.size, 1) end
  local t, inner
  if not codec.part then
    t = decode(where, o, coded, { max_pixels = o.max_pixels })
    if o.crop then t = operations.crop(t, unpack(o.crop)) end
  elseif o.draft and rows and codec.scales then
    t, inner = decode_scaled(where, o, coded, rows, columns)
  else
    t = decode_part(where, o, coded)
  end
  if not rows then return t end
  return in_place_of(t, operations.resize(t, { rows, columns }, { filter = o.filter, box = inner }))
end

local FROM = { "from", "string", required = true,
               doc = "the path of a .jpg, .jpeg, .png, .webp or what plugins have codecs for, or such a file's bytes" }

local read_load = native.signature("image.load", { FROM,
  { "channels", "integer", named = true,
    doc = "1 grey, 2 grey and opacity, 3 red green blue, 4 these and opacity; as the file has them if not given" },
  { "scale", "integer", named = true, doc = "of a JPEG: 2, 4 or 8 decodes it that many times smaller, and faster" },
  { "crop", "numbers", named = true, type = "integer[]",
    doc = "{top, left, height, width} of the part that is wanted; of a JPEG little else is decoded" },
  { "size", "counts", named = true, doc = "rows and columns that it is resized to, or one number for both" },
  { "filter", "string", default = "bilinear", choices = common.FILTERS, named = true, doc = "of resizing" },
  { "draft", "boolean", default = false, named = true,
    doc = "with size: a JPEG is decoded smaller where that is still as large; faster, and not quite the same" },
  { "max_pixels", "integer", named = true, doc = "files that claim more are refused; default 2^28" } })
---Reads an image as a uint8 tensor [rows, columns, channels]. Channels are grey; grey and opacity; red, green and blue;
---or these and opacity, as in the file; palettes become colours, inks (CMYK) red, green and blue, 16 bits 8. What a
---camera noted of how it was held is not looked at. A damaged or cut file, and an animation, is an error with the code
---"data_loss" that names the file. With `crop` and `size` it is that part, resized as image.resize does it.
---@return perigee.Tensor
function image.load(...)
  local where, o = "image.load", read_load(...)
  local wanted = o.channels
  if wanted and (wanted < 1 or wanted > 4) then refuse(where, "channels must be 1, 2, 3 or 4, got " .. wanted) end
  local coded = native.codecs.of_bytes(o.from)
  local codec = coded or codec_of(where, o.from)
  if not o.crop and not o.size then
    return decode(where, o, coded, { scale = o.scale, max_pixels = o.max_pixels })
  end
  if o.scale then refuse(where, "scale is chosen by draft where crop or size is given") end
  if o.crop then check_box(where, type(o.crop) == "table" and o.crop or {}) end
  return load_part(where, o, coded, codec)
end

local read_sides = native.signature("image.sides", { FROM })
---Rows and columns of an image's file, from its header alone.
---@return integer rows
---@return integer columns
function image.sides(...)
  local where, o = "image.sides", read_sides(...)
  local coded = native.codecs.of_bytes(o.from)
  if not coded then codec_of(where, o.from) end
  local shape = native.codecs.probe(where, o.from, coded)
  return shape[1], shape[2]
end

local function has_option(codec, name)
  for _, attr in ipairs(codec.encode_attrs) do
    if attr.name == name then return true end
  end
  return false
end

local read_save = native.signature("image.save", {
  { "path", "string", required = true, doc = "its ending says the format: .jpg, .jpeg, .png or .webp" },
  { "image", "tensor", required = true, doc = "uint8 [rows, columns, channels] or [rows, columns]" },
  { "quality", "integer", named = true,
    doc = "1 to 100: of a JPEG, default 90; of a WebP, which is without loss if not given" } })
---Writes a uint8 image. Atomic: the file is the old one or the whole new one. A PNG has 1 to 4 channels and a WebP 3 or
---4; both are read as what was written. A JPEG has 1 or 3 channels and is read as something that looks alike.
function image.save(...)
  local where, o = "image.save", read_save(...)
  local codec = codec_of(where, o.path)
  local t = o.image
  native.host.need_contents(where, t)
  if t.dtype ~= "uint8" then
    refuse(where, "image must be uint8, got " .. t.dtype,
           native.dtypes.by_name[t.dtype].floating and 'of numbers from 0 to 1: (t * 255):round():to("uint8")' or nil)
  end
  if o.quality and not has_option(codec, "quality") then
    refuse(where, ("a %s is written without loss; it has no quality"):format(codec.name:upper()),
           "leave it out, or save a .jpg or .webp")
  end
  native.write(o.path, { "image" }, { t:detach():to "cpu" }, o.quality and { quality = o.quality })
end

return image
