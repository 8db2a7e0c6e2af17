-- SPDX-License-Identifier: Apache-2.0
-- ds:cache: elements are computed once.

local native = require "perigee.native"
local base = require "perigee.data.dataset"
local Dataset, fields_of = base.Dataset, base.fields_of

-- By position: what is kept, or the parent's, which is kept then.
local function by_position(cache, stage)
  return { count = stage.count, get = function(i)
    local element = native.data.cache_get(cache, i)
    if element ~= nil then return element end
    element = stage.get(i)
    native.data.cache_put(cache, i, stage.count, element)
    return element
  end }
end

-- One after the other: the parent goes along until all are kept.
local function one_by_one(cache, next_, size)
  local i = 0
  return function()
    i = i + 1
    local count = native.data.cache_count(cache)
    if count then return i <= count and native.data.cache_get(cache, i) or nil end
    local element = next_()
    local kept = native.data.cache_get(cache, i)
    if kept ~= nil then return kept end
    native.data.cache_put(cache, i, size, element)
    return element
  end
end

local read_cache = native.signature("cache", {
  { "path", "string", doc = "a file; in memory if not given" },
  { "version", "string", named = true,
    doc = "of what the pipeline reads besides: another one makes a file another pipeline's" } })
---Elements are computed once, in the first pass that reaches them, and kept: in memory, or in a file that outlives the
---script. The order and the random draws are those of the first epoch: shuffle and augment behind it. A file appears
---under its name once it has all elements, holds checksums of them, and is refused where the stages, functions or data
---before it are others (files are told by their names only: give a `version`). Samples from memory share the memory of
---what is kept: change copies.
---@param ... any path?, version=
---@return perigee.Dataset
function Dataset:cache(...)
  local o = read_cache(...)
  local parent = base.first_epoch(fields_of(self))
  local identity = o.path and base.identity(parent) or ""
  if o.version ~= nil then identity = identity .. "\nversion " .. o.version end
  local cache, size = native.data.cache(o.path, identity), self.size
  return base.derive(parent, { name = "cache", in_memory = not o.path, size = size, what = "cache",
    stage = function(stage) return by_position(cache, stage) end,
    pull = function(next_) return one_by_one(cache, next_, size) end,
    native = function(stage) return native.data.cached(stage, cache) end })
end
