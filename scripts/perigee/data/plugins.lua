-- SPDX-License-Identifier: Apache-2.0
-- Sources and transforms that plugins bring, by name, and what their codecs make of bytes and of tensors.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"

-- "lines", { path = ... } or { "lines", path = ... }: the name, and a copy of the options.
local function read(where, what, ...)
  local name, given, more = ...
  local options = {}
  if type(name) == "table" and given == nil then
    name, given = name[1], name
  end
  if type(name) ~= "string" or more ~= nil or (given ~= nil and type(given) ~= "table") then
    native.raise("invalid_argument", where, ("needs the name of a %s and a table of options, got %s%s"):format(what,
                   native.describe(name), given ~= nil and " and " .. native.describe(given) or ""))
  end
  for key, value in pairs(given or {}) do
    if not (key == 1 and given[1] == name) then options[key] = value end
  end
  return name, options
end

-- What messages call a part: what it is, and where the script made it.
local function shown(what, name)
  local line = native.script_line()
  return ("%s %q%s"):format(what, name, line and " at " .. line or "")
end

-- A text that tells options apart, for caches.
local function of_options(what, name, options)
  local list = {}
  for key, value in pairs(options) do list[#list + 1] = { key, value } end
  table.sort(list, function(a, b) return tostring(a[1]) < tostring(b[1]) end)
  return ("%s %s %s"):format(what, name, native.fingerprint.value(list))
end

-- The core's stage of a source. `name`: whose; `shown_as`: what its messages call it.
local function stage_of(where, name, options, shown_as)
  local packed = native.parts.pack(where, native.parts.source(where, name), options)
  return native.data.plugin_source(name, packed, shown_as, where)
end

-- The pipeline of a core's stage whose elements have positions.
local function by_position(stage, name, what)
  return pipeline.source { name = name, count = native.data.stage_count(stage), what = what,
                           native = function() return stage end,
                           get = function(i) return native.data.stage_get(stage, i) end }
end

-- Of one whose elements come one after the other. `make`: makes the stage, anew for each pass.
local function in_order(make, name, what, count)
  return pipeline.source { name = name, count = count, what = what, native = make, pull = function()
    local run = native.data.start_run(make(), 0, { threads = 0, capacity = 1, tunes_threads = 0, tunes_capacity = 0,
                                                   memory = 2 ^ 30 })
    return function() return run and (native.data.next_element(run)) end, function() run = nil end
  end }
end

-- The pipeline of a source by position. `name`: what the pipeline is called.
local function dataset_of(where, source_name, options, name, shown_as)
  return by_position(stage_of(where, source_name, options, shown_as or name), name,
                     pipeline.of_function(name, options))
end

---Samples of a source that a plugin brings: `data.source("lines", {path="a.txt"})`. What it is called, which options it
---has and what its samples hold, the plugin says; what is not there is an error with the names that are.
---@param name string
---@param options? table<string, string|number|boolean|integer[]|string[]|perigee.Tensor|table<string, perigee.Tensor>>
---@return perigee.Dataset
local function source(name, options, ...)
  local where = "data.source"
  name, options = read(where, "source", name, options, ...)
  local info = native.parts.source(where, name)
  local packed, text = native.parts.pack(where, info, options), shown("source", name)
  local function open() return native.data.plugin_source(name, packed, text) end
  local first = open() -- what is wrong is said here
  local what = of_options("source", name, options)
  if not native.data.stage_in_order(first) then return by_position(first, name, what) end
  return in_order(function()
    local stage = first or open()
    first = nil
    return stage
  end, name, what, native.data.stage_count(first))
end

local function codec_named(where, name)
  local codec = native.codecs.named(name)
  if codec then return codec end
  local names = {}
  for i, each in ipairs(native.codecs.list()) do names[i] = each.name end
  table.sort(names)
  local near = native.suggest(name, names)
  native.raise("not_found", where, ("there is no codec %q; there are %s"):format(name, table.concat(names, ", ")),
               near and ("did you mean %q?"):format(near))
end

---What bytes of a file hold, as a tensor: `data.decode(bytes, {codec="png"})`. Without `codec` it is told by how they
---begin. Other options are the codec's: max_pixels (what a header may claim), of some scale, top, left, height and
---width, and what a plugin adds.
---@param bytes string
---@param options? table<string, string|number|boolean|integer[]>
---@return perigee.Tensor
local function decode(bytes, options)
  local where = "data.decode"
  if type(bytes) ~= "string" or (options ~= nil and type(options) ~= "table") then
    native.raise("invalid_argument", where, "needs a string of bytes and a table of options, got " ..
                 native.describe(type(bytes) == "string" and options or bytes))
  end
  local own = {}
  for key, value in pairs(options or {}) do own[key] = value end
  local codec
  if own.codec ~= nil then
    if type(own.codec) ~= "string" then
      native.raise("invalid_argument", where, "codec must be a name, got " .. native.describe(own.codec))
    end
    codec = codec_named(where, own.codec)
  else
    codec = native.codecs.of_bytes(bytes)
  end
  if not codec then
    native.raise("data_loss", where, "the bytes begin like nothing that a codec is there for", 'codec="png" names one')
  end
  own.codec = nil
  return native.read_bytes(bytes, codec.extensions[1], own, where).data
end

---A tensor as the bytes of a file: `data.encode(tensor, "png")`. Options are the codec's, such as quality.
---@param tensor perigee.Tensor
---@param codec string
---@param options? table<string, string|number|boolean|integer[]>
---@return string
local function encode(tensor, codec, options)
  local where = "data.encode"
  if not native.is_tensor(tensor) or type(codec) ~= "string" or (options ~= nil and type(options) ~= "table") then
    native.raise("invalid_argument", where, "needs a tensor, the name of a codec and a table of options")
  end
  native.host.need_contents(where, tensor)
  return native.codecs.encode(where, codec_named(where, codec), tensor:detach():to "cpu", options)
end

return { source = source, decode = decode, encode = encode,
         parts = { read = read, shown = shown, of_options = of_options, stage_of = stage_of,
                   in_order = in_order, dataset_of = dataset_of } }
