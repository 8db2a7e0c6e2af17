-- SPDX-License-Identifier: Apache-2.0
-- data.image_folder: a folder of pictures as a source, a folder in it a class.

local native = require "perigee.native"

local function is_picture(name, endings)
  local ending = name:match "%.(%w+)$"
  return ending and name:sub(1, 1) ~= "." and endings[ending:lower()] ~= nil
end

-- Names of what is in a folder, nil of what is none.
local function names_in(path)
  local ok, names = pcall(native.folder, path)
  if ok then return names end
end

-- Pictures of a folder and of those inside of it, behind `list`.
local function collect(path, names, list, endings)
  for _, name in ipairs(names) do
    local whole = path .. "/" .. name
    if is_picture(name, endings) then
      list[#list + 1] = whole
    else
      local inner = names_in(whole)
      if inner then collect(whole, inner, list, endings) end
    end
  end
end

local read_folder = native.signature("data.image_folder", {
  { "path", "string", required = true, doc = "a folder with a folder a class" },
  { "channels", "integer", default = 3, named = true, doc = "of all pictures: 1, 2, 3 or 4" },
  { "size", "counts", named = true,
    doc = "rows and columns that they are resized to, or one number for both; as they are if not given" },
  { "filter", "string", default = "bilinear", named = true,
    choices = { "nearest", "bilinear", "bicubic", "lanczos", "area" }, doc = "of resizing" },
  { "draft", "boolean", default = false, named = true, doc = "JPEGs are decoded smaller where that is still as large" },
  { "numbered", "boolean", default = false, named = true,
    doc = "samples have their number, from 1, as `sample`: what pg.image's random functions ask for" },
  { "workers", "any", named = true, type = "integer|\"auto\"",
    doc = "threads that decode; on the script's thread if not given" },
  { "on_error", "string", named = true, default = "raise", choices = { "raise", "skip" },
    doc = "what a damaged file does; \"skip\" leaves it out, counts it and logs why" } })
---Pictures in folders that are named like their classes, as samples { x = uint8 [rows, columns, channels], y = class },
---classes from 0 in the order of the alphabet: `ds:class_name(y)`. Files are read when their samples are asked for; one
---that is damaged is an error that names it, or left out (see map).
---@return perigee.Dataset
local function image_folder(...)
  local where, o = "data.image_folder", read_folder(...)
  local root = names_in(o.path)
  if not root then native.raise("not_found", where, ("there is no folder %q"):format(o.path)) end
  local classes, paths, labels, endings = {}, {}, {}, native.codecs.endings()
  for _, class in ipairs(root) do
    local folder = o.path .. "/" .. class
    local names, list = names_in(folder), {}
    if names then collect(folder, names, list, endings) end
    if list[1] then
      classes[#classes + 1] = class
      for _, path in ipairs(list) do paths[#paths + 1], labels[#paths + 1] = path, #classes - 1 end
    end
  end
  if not paths[1] then
    native.raise("not_found", where, ("there are no pictures in the folders of %q"):format(o.path),
                 "they are PATH/CLASS/NAME.jpg, .jpeg, .png or .webp")
  end
  local pipeline, elements = require "perigee.data.pipeline", require "perigee.data.elements"
  local size = type(o.size) == "number" and { o.size, o.size } or o.size
  if size and (#size ~= 2 or not (size[1] >= 1 and size[2] >= 1)) then
    native.raise("invalid_argument", where, "size must be one number of 1 or more, or {rows, columns}")
  end
  local workers = elements.check_workers(where, o.workers)
  local own = { paths = paths, numbers = require("perigee").tensor(labels, { dtype = "int64", device = "cpu" }),
                channels = o.channels, for_size = o.draft and size or {}, numbered = o.numbered }
  local parts = require("perigee.data.plugins").parts
  local ds = parts.dataset_of(where, "pictures", own, "image_folder", parts.shown("source", "image_folder"))
  if o.on_error == "skip" then ds = elements.or_skipped(ds, "image_folder") end
  if not size then
    if workers then elements.on_threads(ds, o.workers, workers) end
    return pipeline.named(ds, classes)
  end
  local filter = o.filter
  local function resized(sample)
    local x = sample.x
    local box = sample.rows and { 0, 0, sample.rows, sample.columns } or nil
    local made = require("perigee").image.resize(x, size, { filter = filter, box = box })
    if made ~= x then x:free() end -- nobody else has it: its memory is free at once, for the next one
    return { x = made, y = sample.y, sample = sample.sample }
  end
  return pipeline.named(ds:map { resized, workers = o.workers }, classes)
end

return image_folder
