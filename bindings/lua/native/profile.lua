-- SPDX-License-Identifier: Apache-2.0
-- What the process does and when: the core's records as Lua tables, and what scripts mark in them.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local origins = require "perigee.native.origins"
local scopes = require "perigee.native.scopes"

---`on`: a profile is under way.
local M = { on = false }
local C

-- By PGC_PROFILE_...
local KINDS = { "op", "kernel", "launch", "backward", "upload", "download", "peer", "wait", "alloc", "free", "range",
                "stage", "optimizer", "plan" }
local RANGE, STAGE, DEVICE = 11, 12, 0xffffffff

---@param capacity integer records
---@param lines boolean whether operators are noted with the script's lines and the layers
function M.begin(capacity, lines)
  if C.pgc_profile_start(capacity) ~= 0 then errors.raise_native(C, "profile") end
  M.on = true
  if lines then origins.begin_profile() end
end

-- Texts by their addresses: there are few, and each stands in many records.
local function reader()
  local known = {}
  return function(p)
    if p == nil then return nil end
    local key = tonumber(ffi.cast("uintptr_t", p))
    local text = known[key]
    if not text then
      text = ffi.string(p)
      known[key] = text
    end
    return text
  end
end

-- "train.lua:12 in Net.fc (Linear)" as both; of one that a plugin's layer called, the layer is known already.
local function split(origin, layer)
  if not origin then return nil, layer end
  local line, path = origin:match "^(.-) in (.*)$"
  return line or origin, path or layer
end

---Ends the profile. Records { kind, name, from, to, shapes, origin, line, layer, bytes, device, stream, thread,
---sequence, block, elements }, with times in seconds since `base`, in the order in which they ended; how many had no
---room; and the seconds that looking for lines took. `thread` is a name; nil: the device itself. `origin`: line, layer.
---@return table[] records
---@return integer lost
---@return number noting
function M.finish(base)
  local records = ffi.new("const pgc_profile_record *[1]")
  local count, lost = ffi.new("uint64_t[1]"), ffi.new("uint64_t[1]")
  M.on = false
  local noting = origins.end_profile()
  if C.pgc_profile_stop(records, count, lost) ~= 0 then errors.raise_native(C, "profile") end
  local list, text, first = {}, reader(), records[0]
  local start = ffi.new("int64_t", base)
  for i = 0, tonumber(count[0]) - 1 do
    local r = first[i]
    local kind = KINDS[r.kind]
    local memory = kind == "alloc" or kind == "free"
    local sequence, origin, bytes = tonumber(r.sequence), text(r.origin), tonumber(r.bytes)
    local line, layer = split(origin, text(r.layer))
    list[i + 1] = { kind = kind, name = text(r.name), from = tonumber(r.begin - start) * 1e-9,
                    to = tonumber(r["end"] - start) * 1e-9, shapes = text(r.shapes), origin = origin, line = line,
                    layer = layer, bytes = kind == "stage" and 0 or bytes,
                    elements = kind == "stage" and math.max(bytes, 1) or nil, device = r.device, stream = r.stream,
                    thread = r.thread ~= DEVICE and text(C.pgc_profile_thread(r.thread)) or nil,
                    block = memory and sequence or nil, sequence = not memory and sequence ~= 0 and sequence or nil }
  end
  C.pgc_profile_drop()
  return list, tonumber(lost[0]), noting
end

---Forgets a profile that failed.
function M.drop()
  M.on = false
  origins.end_profile()
  C.pgc_profile_drop()
end

---The moment, as finish takes it.
function M.time()
  local value = C.pgc_profile_time()
  return value
end

---The moment, as note_stage takes it; 0 where no profile is under way.
function M.now()
  local value = C.pgc_profile_begin()
  return value
end

---An element of a pipeline's stage that the script's thread made since.
function M.note_stage(begin, name) C.pgc_profile_end(begin, STAGE, name) end

---Calls fn(...), under a name where a profile is under way.
function M.range(name, fn, ...)
  if not M.on then return fn(...) end
  return scopes.with(M.now, function(begin) C.pgc_profile_end(begin, RANGE, name) end, fn, ...)
end

---An iterator whose calls are ranges.
function M.each(name, iterator, state, first)
  if not M.on then return iterator, state, first end
  return function(s, control) return M.range(name, iterator, s, control) end, state, first
end

function M.start(library) C = library end

return M
