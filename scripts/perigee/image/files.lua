-- SPDX-License-Identifier: Apache-2.0
-- pg.image.load and pg.image.save: what the format plugins read and write, as uint8 with the channels that are wanted.

local native = require "perigee.native"
local common = require "perigee.image.common"

local refuse = common.refuse
local image = {}

local ENDINGS = { png = true, jpg = true, jpeg = true, webp = true }
local ENDING_NAMES = ".jpg, .jpeg, .png or .webp"

-- What bytes are by how they begin, as the ending of a file's name; nil of a path.
local function kind_of(bytes)
  if bytes:sub(1, 8) == "\137PNG\r\n\26\n" then return "png" end
  if bytes:sub(1, 3) == "\255\216\255" then return "jpg" end
  if bytes:sub(1, 4) == "RIFF" and bytes:sub(9, 12) == "WEBP" then return "webp" end
end

local function check_path(where, path)
  local ending = path:match "%.(%w+)$"
  if ending and ENDINGS[ending:lower()] then return end
  local shown = #path > 80 and path:sub(1, 80):gsub("%c", "?") .. "..." or path:gsub("%c", "?")
  refuse(where, ("path must end in %s, got %q"):format(ENDING_NAMES, shown),
         where == "image.load" and #path > 80 and "bytes of an image begin with its signature" or nil)
end

-- The format plugins read files.
local function read_bytes(bytes, kind, options)
  local name = os.tmpname()
  local path = name .. "." .. kind
  local ok, result = pcall(function()
    local file = assert(io.open(path, "wb"))
    local written = file:write(bytes)
    assert(file:close() and written, "cannot write " .. path)
    return native.read(path, options, "image.load").data
  end)
  os.remove(path)
  os.remove(name)
  if ok then return result end
  if not native.is_error(result) then error(result, 0) end
  local start, stop = result.message:find(path, 1, true)
  local message = start and result.message:sub(1, start - 1) .. "the bytes given" .. result.message:sub(stop + 1) or
                  result.message
  native.raise(result.code, "image.load", (message:gsub("^image%.load: ", "")))
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

local read_load = native.signature("image.load", {
  { "from", "string", required = true,
    doc = "the path of a .jpg, .jpeg, .png or .webp, or such a file's bytes, told by their signature" },
  { "channels", "integer", named = true,
    doc = "1 grey, 2 grey and opacity, 3 red green blue, 4 these and opacity; as the file has them if not given" },
  { "scale", "integer", named = true, doc = "of a JPEG: 2, 4 or 8 decodes it that many times smaller, and faster" },
  { "max_pixels", "integer", named = true, doc = "files that claim more are refused; default 2^28" } })
---Reads an image as a uint8 tensor [rows, columns, channels]. Channels are grey; grey and opacity; red, green and blue;
---or these and opacity, as in the file; palettes become colours, inks (CMYK) red, green and blue, 16 bits 8. What a
---camera noted of how it was held is not looked at. A damaged or cut file, and an animation, is an error with the code
---"data_loss" that names the file.
---@return perigee.Tensor
function image.load(...)
  local where, o = "image.load", read_load(...)
  local wanted = o.channels
  if wanted and (wanted < 1 or wanted > 4) then refuse(where, "channels must be 1, 2, 3 or 4, got " .. wanted) end
  local options, kind = { scale = o.scale, max_pixels = o.max_pixels }, kind_of(o.from)
  local t
  if kind then
    t = read_bytes(o.from, kind, options)
  else
    check_path(where, o.from)
    t = native.read(o.from, options, where).data
  end
  if t:dim() == 2 then t = t:unsqueeze(3) end
  if t.dtype ~= "uint8" then t = ((t + 128):floor_div(257)):to "uint8" end
  return wanted and with_channels(t, wanted) or t
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
  check_path(where, o.path)
  local t = o.image
  native.host.need_contents(where, t)
  if t.dtype ~= "uint8" then
    refuse(where, "image must be uint8, got " .. t.dtype,
           native.dtypes.by_name[t.dtype].floating and 'of numbers from 0 to 1: (t * 255):round():to("uint8")' or nil)
  end
  if o.quality and o.path:lower():find "%.png$" then
    refuse(where, "a PNG is written without loss; it has no quality", "leave it out, or save a .jpg or .webp")
  end
  native.write(o.path, { "image" }, { t:detach():to "cpu" }, o.quality and { quality = o.quality })
end

return image
