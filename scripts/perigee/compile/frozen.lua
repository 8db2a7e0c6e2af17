-- SPDX-License-Identifier: Apache-2.0
-- Compiled functions that are not run any more: what they answer is computed from their arguments by the plan of an
-- earlier call.

local native = require "perigee.native"

local compiled, is_tensor = native.compiled, native.is_tensor
local MOST = 16 -- calls with other arguments that are kept

local frozen = {}

-- ---- arguments: tensors, and a text that tells other values apart ----

local ALL = {} -- by count: nothing but so many tensors
for n = 0, 16 do ALL[n] = ("T"):rep(n) end

local numbers, count = setmetatable({}, { __mode = "k" }), 0 -- of values that are told apart by identity
local function number_of(v)
  if not numbers[v] then count = count + 1 numbers[v] = count end
  return numbers[v]
end

local read_value
local function read_table(t, tensors)
  local keys, parts = {}, {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b)
    if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b end
    return type(a) .. tostring(a) < type(b) .. tostring(b)
  end)
  for i, k in ipairs(keys) do parts[i] = read_value(k, tensors) .. "=" .. read_value(t[k], tensors) end
  return "{" .. table.concat(parts, ",") .. "}"
end

function read_value(v, tensors)
  local kind = type(v)
  if is_tensor(v) then
    tensors[#tensors + 1] = v
    return "T"
  elseif kind == "number" then
    return ("%.17g"):format(v)
  elseif kind == "string" then
    return ("%q"):format(v)
  elseif kind == "nil" or kind == "boolean" then
    return tostring(v)
  elseif kind == "table" and getmetatable(v) == nil then
    return read_table(v, tensors)
  end
  return "#" .. number_of(v)
end

local function read(n, ...)
  local tensors = { ... }
  for i = 1, n do
    if not is_tensor(tensors[i]) then
      tensors = {}
      local parts = {}
      for k = 1, n do parts[k] = read_value((select(k, ...)), tensors) end
      return table.concat(parts, ";"), tensors
    end
  end
  return ALL[n] or ("T"):rep(n), tensors
end

-- ---- results: a template, in which tensors stand by numbers ----

local Slot = {} -- the metatable of a template's entries: { made = } or { argument = }

local function index_of(list, v)
  for i = 1, #list do if rawequal(list[i], v) then return i end end
end

-- The tensors among what a function answers, each once.
local function tensors_of(...)
  local list = {}
  local function add(v) if is_tensor(v) and not index_of(list, v) then list[#list + 1] = v end end
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if type(v) == "table" and getmetatable(v) == nil then for _, x in pairs(v) do add(x) end else add(v) end
  end
  return list
end

local function slot_of(v, list, made, arguments)
  local i = is_tensor(v) and index_of(list, v)
  if not i then return v end
  if made[i] then return setmetatable({ made = i }, Slot) end
  i = index_of(arguments, v)
  return i and setmetatable({ argument = i }, Slot) or v
end

local function template_of(list, made, arguments, n, ...)
  local template = { n = n }
  for i = 1, n do
    local v = select(i, ...)
    if type(v) == "table" and getmetatable(v) == nil then
      local copy = {}
      for k, x in pairs(v) do copy[k] = slot_of(x, list, made, arguments) end
      template[i] = copy
    else
      template[i] = slot_of(v, list, made, arguments)
    end
  end
  return template
end

local function fill(v, tensors, arguments)
  local kind = getmetatable(v)
  if kind == Slot then return v.made and tensors[v.made] or arguments[v.argument] end
  if type(v) ~= "table" or kind ~= nil then return v end
  local copy = {}
  for k, x in pairs(v) do copy[k] = fill(x, tensors, arguments) end
  return copy
end

local function answer(call, arguments)
  local tensors = {}
  for i = 1, #call.made do if call.made[i] then tensors[i] = compiled.wrap(call.results[i - 1]) end end
  local template = call.template
  local first = template[1]
  if template.n == 1 and getmetatable(first) == Slot and first.made then return tensors[first.made] end
  local values = {}
  for i = 1, template.n do values[i] = fill(template[i], tensors, arguments) end
  return unpack(values, 1, template.n)
end

-- ---- calls ----

local function forget_oldest(self)
  local oldest = table.remove(self.order, 1)
  local list = self.calls[oldest.key]
  for i = 1, #list do if list[i] == oldest then table.remove(list, i) break end end
  if #list == 0 then self.calls[oldest.key] = nil end
  compiled.release(self.native, oldest)
end

local function used(self, call)
  local order = self.order
  if order[#order] == call then return end
  for i = 1, #order do if order[i] == call then table.remove(order, i) break end end
  order[#order + 1] = call
end

local function keep(self, key, call)
  if #self.order == MOST then forget_oldest(self) end
  call.key = key
  local list = self.calls[key] or {}
  list[#list + 1], self.calls[key] = call, list
  self.order[#self.order + 1] = call
end

-- The function is run, and what it does is noted, to be done without it from now on.
local function note(self, key, arguments, ...)
  local returned, n
  local function results(how_many, result)
    returned, n = how_many == 1 and { result } or result, how_many
    return tensors_of(unpack(returned, 1, n))
  end
  local function made(call, flags)
    local list = tensors_of(unpack(returned, 1, n))
    call.template = template_of(list, flags, arguments, n, unpack(returned, 1, n))
    keep(self, key, call)
  end
  return compiled.call_to_freeze(self.native, arguments, results, made, ...)
end

---Makes a compiled function one whose calls are frozen.
function frozen.start(self)
  self.calls, self.order = {}, {} -- by what arguments are; from the one used longest ago
  compiled.freezes(self.native, self.layout)
end

function frozen.call(self, ...)
  if native.anomalies.detected then return native.lifetimes.scope(self.by, self.fn, ...) end
  local key, arguments = read(select("#", ...), ...)
  local list = self.calls[key]
  if list then
    for i = 1, #list do
      local call = list[i]
      if compiled.run(self.native, call, arguments) then
        used(self, call)
        return answer(call, arguments)
      end
    end
  end
  return note(self, key, arguments, ...)
end

return frozen
