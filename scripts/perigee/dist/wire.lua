-- SPDX-License-Identifier: Apache-2.0
-- Tensors of any shape from one process to another, which are sent without waiting: a line of numbers that says what
-- comes, and the elements.

local native = require "perigee.native"

local M = {}

local ROOM = 12 -- numbers of a line: dtype, axes, sizes
local DTYPES = { "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool" }
local CODES = {}
for code, name in ipairs(DTYPES) do CODES[name] = code end

local function pg() return require "perigee" end

local function line_of(t)
  if not CODES[t.dtype] or t:dim() > ROOM - 2 then
    native.raise("not_supported", "dist.pipeline", ("stages cannot send %s of %d axes"):format(t.dtype, t:dim()))
  end
  local line = { CODES[t.dtype], t:dim() }
  for axis = 1, t:dim() do line[axis + 2] = t.shape[axis] end
  for i = #line + 1, ROOM do line[i] = 0 end
  return pg().tensor(line, { dtype = "int64", device = "cpu" })
end

local function empty_like(line)
  local numbers, shape = line:totable(), {}
  for axis = 1, numbers[2] do shape[axis] = numbers[axis + 2] end
  return pg().empty(shape, { dtype = DTYPES[numbers[1]], device = "cpu" })
end

local function blank() return pg().zeros({ ROOM }, { dtype = "int64", device = "cpu" }) end

local Line = {}
Line.__index = Line

local function begin(self, t, to, tag)
  local number = native.dist.begin_send(self.group.number, t, to, tag)
  if number then self.begun[#self.begun + 1] = { number = number, t = pg().keep(t) } end
end

---Begins to send; what is on its way lives until it has arrived.
function Line:send(t, to, tag)
  for i = #self.begun, 1, -1 do
    if native.dist.look(self.begun[i].number) then table.remove(self.begun, i) end
  end
  t = t:detach():cpu():contiguous()
  begin(self, line_of(t), to, tag)
  if t:numel() > 0 then begin(self, t, to, tag) end
end

---Waits for what comes from a rank with this tag, and brings it to a device.
function Line:receive(from, tag, device)
  local o = { from = from, tag = tag, group = self.group }
  local t = empty_like(pg().dist.receive(blank(), o))
  if t:numel() > 0 then t = pg().dist.receive(t, o) end
  return device and t:to(device) or t
end

---Waits until all has arrived.
function Line:close()
  for _, entry in ipairs(self.begun) do native.dist.finish(entry.number) end
  self.begun = {}
end

function M.open(group) return setmetatable({ group = group, begun = {} }, Line) end

---One rank's tensor on all, there too.
function M.spread(group, t, root)
  local dist, o = pg().dist, { root = root, group = group }
  local own = group.rank == root and t:detach():cpu():contiguous() or nil
  local line = dist.broadcast(own and line_of(own) or blank(), o)
  local like = own or empty_like(line)
  if like:numel() == 0 then return like end
  return dist.broadcast(like, o)
end

return M
