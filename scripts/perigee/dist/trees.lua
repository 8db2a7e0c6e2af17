-- SPDX-License-Identifier: Apache-2.0
-- What processes tell each other beside gradients: trees of plain values and tensors, rows of which each has others.

local pack = require "perigee.checkpoint.pack"
local gradients = require "perigee.dist.gradients"

local M = {}

local TAG = 32766 -- behind those that scripts begin with

local function pg() return require "perigee" end

local function bytes_of(text)
  local bytes = {}
  for i = 1, #text do bytes[i] = text:byte(i) end
  return pg().tensor(bytes, { dtype = "uint8" })
end

local function text_of(bytes)
  local list, parts = bytes:totable(), {}
  for first = 1, #list, 4096 do
    parts[#parts + 1] = string.char(unpack(list, first, math.min(first + 4095, #list)))
  end
  return table.concat(parts)
end

-- "bytes of the name, dtype, sizes\n" and the name, of each tensor.
local function header_of(names, tensors)
  local parts = {}
  for i, t in ipairs(tensors) do
    local words = { #names[i], t.dtype }
    for axis = 1, t:dim() do words[#words + 1] = t.shape[axis] end
    parts[i] = table.concat(words, " ") .. "\n" .. names[i]
  end
  return table.concat(parts)
end

local function send_flat(t, to, group)
  if t:numel() > 0 then pg().dist.send(t:detach():reshape(-1), { to = to, tag = TAG, group = group }) end
end

local function receive_flat(n, dtype, from, group)
  local like = pg().empty({ n }, { dtype = dtype })
  return n > 0 and pg().dist.receive(like, { from = from, tag = TAG, group = group }) or like
end

-- What rank `from` has sent: two texts of these lengths, and the tensors that the first tells of.
local function receive_tree(from, header_length, length, group)
  local header = text_of(receive_flat(header_length, "uint8", from, group))
  local text = text_of(receive_flat(length, "uint8", from, group))
  local tensors, at = {}, 1
  while at <= #header do
    local line, last = header:match("^([^\n]*)\n()", at)
    local name_length, dtype, sizes = line:match "^(%d+) (%S+)(.*)$"
    local shape, n = {}, 1
    for size in sizes:gmatch "%d+" do
      shape[#shape + 1] = tonumber(size)
      n = n * tonumber(size)
    end
    local name = header:sub(last, last + tonumber(name_length) - 1)
    tensors[name] = receive_flat(n, dtype, from, group):reshape(shape)
    at = last + tonumber(name_length)
  end
  return pack.unpack(text, tensors)
end

---The trees of all processes, or of a group's, in the order of ranks, on rank 0. The others get nil.
---@param tree table
---@param group? perigee.Group
---@return table[]?
function M.gather(tree, group)
  local dist = pg().dist
  local text, names, tensors = pack.pack("dist", tree)
  local header = header_of(names, tensors)
  local lengths = gradients.exchange({ #header, #text }, group)
  local rank, size = group and group.rank or dist.rank(), group and group.size or dist.size()
  if rank > 0 then
    send_flat(bytes_of(header), 0, group)
    send_flat(bytes_of(text), 0, group)
    for _, t in ipairs(tensors) do send_flat(t, 0, group) end
    return nil
  end
  local all = { tree }
  for from = 1, size - 1 do
    all[from + 1] = receive_tree(from, lengths[from + 1][1], lengths[from + 1][2], group)
  end
  return all
end

---The rows of all processes behind each other, in the order of ranks; each may have another number of them.
---@param t perigee.Tensor [n]
---@param group? perigee.Group
---@return perigee.Tensor
function M.rows(t, group)
  local counts, most = gradients.exchange({ #t }, group), 0
  for _, count in ipairs(counts) do most = math.max(most, count[1]) end
  if most == 0 then return t end
  local full = pg().zeros({ most }, { dtype = t.dtype })
  if #t > 0 then full[{ { 1, #t } }]:copy_(t) end
  local all, parts = pg().dist.all_gather(full:reshape(1, most), { group = group }), {}
  for rank, count in ipairs(counts) do
    if count[1] > 0 then parts[#parts + 1] = all[rank][{ { 1, count[1] } }] end
  end
  return pg().cat(parts, { axis = 1 })
end

return M
