-- SPDX-License-Identifier: Apache-2.0
-- What one file of a checkpoint holds, and whether it can be trusted.

local native = require "perigee.native"
local pack = require "perigee.checkpoint.pack"

local contents = {}

local FORMAT = "perigee-checkpoint/1"

local function is_count(v) return type(v) == "number" and v >= 0 and v % 1 == 0 and v < 2 ^ 53 end

-- Why a tree is not one that save has written, or nil. What the objects' states are is theirs to check.
local function defect_of(tree)
  for _, key in ipairs { "objects", "values", "best", "rng" } do
    if type(tree[key]) ~= "table" or native.is_tensor(tree[key]) then return "its state has no " .. key end
  end
  local best, rng, metric = tree.best, tree.rng, tree.values.metric
  if not is_count(tree.values.step) then return "its state has no step" end
  if metric ~= nil and type(metric) ~= "number" then return "its metric is no number" end
  if best.step ~= nil and not is_count(best.step) or best.metric ~= nil and type(best.metric) ~= "number" or
     (best.step == nil) ~= (best.metric == nil) then
    return "its best step is none"
  end
  if type(rng.seed) ~= "string" or not rng.seed:find("^%d+$") or #rng.seed > 20 or not is_count(rng.offset) then
    return "its state of the random numbers is none"
  end
end

-- The state's text, which is written in pieces: a note is not longer than the format lets it be.
local PIECE = 2 ^ 20

local function state_notes(text)
  local notes, at, i = { format = FORMAT }, 1, 0
  repeat
    local last = math.min(at + PIECE - 1, #text)
    while last < #text and last > at and text:byte(last + 1) >= 0x80 and text:byte(last + 1) < 0xC0 do
      last = last - 1 -- not inside of a character
    end
    i = i + 1
    notes[i == 1 and "state" or "state." .. i] = text:sub(at, last)
    at = last + 1
  until at > #text
  return notes
end

local function state_text(note)
  local parts = { note("state") or "" }
  while true do
    local part = note("state." .. #parts + 1)
    if not part then return table.concat(parts) end
    parts[#parts + 1] = part
  end
end

---Writes STEM.CHECKSUM.safetensors; answers the checksum.
function contents.write(where, stem, tree)
  local text, names, tensors = pack.pack(where, tree)
  return native.write_sealed(stem, "safetensors", names, tensors, state_notes(text))
end

---The tree of a file { path, checksum }; nil and the reason where it cannot be trusted.
function contents.read(file)
  local ok, found = pcall(native.checksum, file.path)
  if not ok then return nil, tostring(found) end
  if found ~= file.checksum then
    return nil, ("damaged: its checksum is %s"):format(found)
  end
  local tensors, note, _
  ok, tensors, _, note = pcall(native.read, file.path)
  if not ok then return nil, tostring(tensors) end
  if note("format") ~= FORMAT then
    return nil, ("its format is %s, this version reads %s"):format(note("format") or "unknown", FORMAT)
  end
  local tree
  ok, tree = pcall(pack.unpack, state_text(note), tensors)
  if not ok then return nil, tostring(tree) end
  local defect = defect_of(tree)
  if defect then return nil, defect end
  return tree
end

return contents
