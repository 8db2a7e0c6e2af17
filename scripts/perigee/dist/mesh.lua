-- SPDX-License-Identifier: Apache-2.0
-- pg.dist.mesh: all processes in rows and columns, and the groups that are its lines.

local native = require "perigee.native"
local world = require "perigee.dist.world"

local WHERE = "dist.mesh"

---All processes, arranged along axes that have names: `mesh.model` is the group of those that differ from this one in
---their place along that axis alone.
---@class perigee.Mesh
---@field axes string[] names, the outermost first
---@field sizes integer[] of the axes
---@field [string] perigee.Group
local Mesh = { __name = "perigee.Mesh" }

---The group of this process along an axis.
---@param name string
---@return perigee.Group
function Mesh:group(name)
  local group = type(name) == "string" and rawget(self, "_groups")[name]
  if group then return group end
  local near = type(name) == "string" and native.suggest(name, self.axes)
  native.raise("invalid_argument", WHERE, ("has no axis %s; it has %s"):format(type(name) == "string" and
               ("%q"):format(name) or native.describe(name), table.concat(self.axes, ", ")),
               near and ("did you mean %q?"):format(near))
end

function Mesh:__tostring()
  local parts = {}
  for i, name in ipairs(self.axes) do
    parts[i] = ("%s %d of %d"):format(name, self:group(name).rank, self.sizes[i])
  end
  return "mesh(" .. table.concat(parts, ", ") .. ")"
end

native.checked.class(Mesh, { noun = "a mesh", call = "mesh", open = true,
  kinds = { group = { { "name", "string", required = true } } } })

function Mesh.__index(self, key)
  if Mesh[key] ~= nil then return Mesh[key] end
  if type(key) == "string" and key:find "^__" then return nil end
  return Mesh.group(self, key)
end

-- Replicas are furthest from each other, and parts of layers, which talk most, next to each other.
local PLACES = { data = 1, pipeline = 2, model = 4 }

local function order_of(sizes, given)
  local names = {}
  for name in pairs(sizes) do names[#names + 1] = name end
  if given == nil then
    table.sort(names, function(a, b)
      local p, q = PLACES[a] or 3, PLACES[b] or 3
      if p ~= q then return p < q end
      return a < b
    end)
    return names
  end
  local seen = {}
  for i, name in ipairs(type(given) == "table" and given or {}) do
    if sizes[name] == nil or seen[name] then
      native.raise("invalid_argument", WHERE, ("order[%d] is %s, which is %s"):format(i, native.describe(name),
                   seen[name] and "there twice" or "no axis"))
    end
    seen[name] = true
  end
  if type(given) ~= "table" or #given ~= #names then
    native.raise("invalid_argument", WHERE, "order must be a list of all axes, got " .. native.describe(given))
  end
  return { unpack(given) }
end

local function read(options)
  if not native.is_plain(options) then
    native.raise("invalid_argument", WHERE, "needs a table of sizes by axis, got " .. native.describe(options),
                 "pg.dist.mesh{data=2, model=2}")
  end
  local sizes, count, given = {}, 0, nil
  for name, size in pairs(options) do
    if name == "order" then
      given = size
    elseif type(name) ~= "string" or rawget(Mesh, name) ~= nil or name == "axes" or name == "sizes" then
      native.raise("invalid_argument", WHERE, ("an axis cannot be called %s"):format(native.describe(name)))
    elseif type(size) ~= "number" or size < 1 or size % 1 ~= 0 then
      native.raise("invalid_argument", WHERE, ("%s must be a whole number from 1, got %s"):format(name,
                   native.describe(size)))
    else
      sizes[name], count = size, count + 1
    end
  end
  if count == 0 then native.raise("invalid_argument", WHERE, "has no axis", "pg.dist.mesh{data=2, model=2}") end
  return sizes, given
end

local function check_product(names, sizes, size)
  local product, texts = 1, {}
  for i, name in ipairs(names) do
    product, texts[i] = product * sizes[name], ("%s %d"):format(name, sizes[name])
  end
  if product == size then return end
  native.raise("invalid_argument", WHERE, ("%s make %d, and there %s"):format(table.concat(texts, " x "), product,
               size == 1 and "is 1 process" or ("are %d processes"):format(size)),
               ("perigee launch -n %d starts as many"):format(product))
end

local M = {}

---Raises unless v is a mesh. Answers it.
function M.need(where, v)
  if type(v) == "table" and getmetatable(v) == Mesh then return v end
  native.raise("invalid_argument", where, "mesh must be one that pg.dist.mesh made, got " .. native.describe(v))
end

---@param options table<string, integer>
---@return perigee.Mesh
function M.new(options)
  local w = world.get(WHERE)
  local sizes, given = read(options)
  local names = order_of(sizes, given)
  check_product(names, sizes, w.size)
  local self = { axes = names, sizes = {}, _groups = {} }
  local stride = w.size
  for i, name in ipairs(names) do
    local size = sizes[name]
    stride = stride / size
    local place = math.floor(w.rank / stride) % size
    local ranks = {}
    for k = 0, size - 1 do ranks[k + 1] = w.rank + (k - place) * stride end
    self.sizes[i] = size
    self._groups[name] = size == w.size and w.everybody or size == 1 and world.alone() or world.group(ranks)
  end
  return setmetatable(self, Mesh)
end

return M
