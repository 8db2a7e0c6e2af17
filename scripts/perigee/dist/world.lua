-- SPDX-License-Identifier: Apache-2.0
-- The processes that were launched together, as this one knows them; groups of them.

local native = require "perigee.native"
local ending = require "perigee.dist.ending"

local M = {}

local WORLD_GROUP = 1 -- number of the group of all (perigee.h); 0 is this process alone

local Group = { __name = "perigee.Group" }
function Group.__tostring(g) return ("group of ranks %s"):format(table.concat(g.ranks, ", ")) end

-- What launchers say of how many they started. For where nothing brings the processes together.
local COUNTS = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE" }

local world

local function whole(v) return type(v) == "number" and v == math.floor(v) end

local function refuse_alone(where)
  for _, name in ipairs(COUNTS) do
    local count = tonumber(os.getenv(name) or nil)
    if count and count > 1 then
      native.raise("failed_precondition", where,
                   ("this is one of %d processes that were launched together, but none sees another: %s"):format(
                     count, native.unavailable "collectives" or "no plugin carries tensors between them"),
                   "perigee doctor says more")
    end
  end
end

local function all_ranks(size)
  local ranks = {}
  for i = 1, size do ranks[i] = i - 1 end
  return ranks
end

---Whether processes compare what they are about to do.
function M.debugs() return os.getenv "PERIGEE_DIST_DEBUG" == "1" end

---This process among the others: rank, size, local_rank, local_size, engine.
function M.get(where)
  if world then return world end
  local seconds = os.getenv("PERIGEE_DIST_DEADLINE")
  if seconds and seconds ~= "" then
    local n = tonumber(seconds)
    if not n or n < 0 then
      native.raise("invalid_argument", where, ("PERIGEE_DIST_DEADLINE must be a number of seconds, got %q"):format(
                     seconds))
    end
    native.dist.set_deadline(n)
  end
  local found = native.dist.world(where)
  if found.size == 1 then
    refuse_alone(where)
  else
    ending.watch()
    if M.debugs() then native.dist.set_agreement(true) end
  end
  found.everybody = setmetatable({ number = found.size > 1 and WORLD_GROUP or 0, ranks = all_ranks(found.size),
                                   rank = found.rank, size = found.size }, Group)
  world = found
  return world
end

---A group as the user gives it; nil is that of all.
function M.group_of(where, group)
  local w = M.get(where)
  if group == nil then return w.everybody end
  if getmetatable(group) ~= Group then
    native.raise("invalid_argument", where, "group must be one that pg.dist.group made, got " ..
                 native.describe(group))
  end
  return group
end

---The group, of several: where a process is alone, there is nobody to send to.
function M.need(where, group)
  if group.number == 0 then
    native.raise("failed_precondition", where, "this process was not launched together with others",
                 "perigee launch -n 2 script.lua")
  end
  return group
end

function M.check_rank(where, name, rank, group)
  if not whole(rank) or rank < 0 or rank >= group.size then
    native.raise("invalid_argument", where, ("%s must be a rank of the group, 0 to %d, got %s"):format(
                   name, group.size - 1, native.describe(rank)))
  end
  return rank
end

function M.check_tag(where, tag)
  if not whole(tag) or tag < 0 or tag > 32767 then
    native.raise("invalid_argument", where, "tag must be a whole number from 0 to 32767, got " .. native.describe(tag))
  end
  return tag
end

function M.group(ranks)
  local where = "dist.group"
  local w = M.get(where)
  if type(ranks) ~= "table" or #ranks == 0 then
    native.raise("invalid_argument", where, "needs a list of ranks, got " .. native.describe(ranks))
  end
  for i, rank in ipairs(ranks) do
    M.check_rank(where, ("ranks[%d]"):format(i), rank, w.everybody)
    if i > 1 and rank <= ranks[i - 1] then
      native.raise("invalid_argument", where, ("rank %d stands behind rank %d; ranks rise, and none is named twice")
        :format(rank, ranks[i - 1]))
    end
  end
  local own
  for i, rank in ipairs(ranks) do own = rank == w.rank and i - 1 or own end
  if not own then
    native.raise("invalid_argument", where, ("this is rank %d, which is not in the group; only its members make it")
      :format(w.rank))
  end
  local number = #ranks > 1 and native.dist.group(ranks) or 0
  return setmetatable({ number = number, ranks = { unpack(ranks) }, rank = own, size = #ranks }, Group)
end

---This process as a group of its own.
function M.alone()
  return setmetatable({ number = 0, ranks = { M.get("dist").rank }, rank = 0, size = 1 }, Group)
end

local gradient_groups = {}

---The number of a second group of the same ranks for gradients alone, whose calls come between others at any time. The
---first call is made by all of them.
function M.gradients(group)
  local number = gradient_groups[group.number] or native.dist.group(group.ranks)
  gradient_groups[group.number] = number
  return number
end

function M.set_deadline(seconds)
  if type(seconds) ~= "number" or seconds < 0 or seconds ~= seconds then
    native.raise("invalid_argument", "dist.deadline", "needs a number of seconds, got " .. native.describe(seconds))
  end
  M.get("dist.deadline")
  return native.dist.set_deadline(seconds)
end

return M
