-- SPDX-License-Identifier: Apache-2.0
-- Layers as text: print(model) and model:summary{input=...}.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"

local show = {}
local META = walk.META

local function indent(text) return (text:gsub("\n", "\n  ")) end

---"Sequential(\n  (1): Linear(inputs=3, out=4)\n)": positions from 1, as in model[1].
function show.tree(layer)
  local class = getmetatable(layer)
  local name = class.__name
  if not rawget(layer, META) then return name end
  local lines = {}
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "layer" then
      local label = tostring(entry.key)
      if entry.position then label = ("%s[%d]"):format(label, entry.position) end
      lines[#lines + 1] = ("  (%s): %s"):format(label, indent(show.tree(entry.value)))
    end
  end
  local own = class.describe and layer:describe() or ""
  if #lines == 0 then return ("%s(%s)"):format(name, own) end
  return ("%s(%s\n%s\n)"):format(name, own, table.concat(lines, "\n"))
end

-- "1,234,567"
local function thousands(n)
  local text = ("%d"):format(n)
  local head, tail = text:match("^(%d%d?%d?)(.*)$")
  while #tail % 3 ~= 0 do head, tail = head:sub(1, -2), head:sub(-1) .. tail end
  return head .. tail:gsub("(%d%d%d)", ",%1")
end

local function own_count(layer)
  local count = 0
  for _, entry in ipairs(walk.entries(layer)) do
    if entry.kind == "parameter" then count = count + entry.value:numel() end
  end
  return count
end

-- Runs the model once and notes every layer's output shape, in the order of calls.
local function trace(self, size)
  local pg = require "perigee"
  local rows, handles, names = {}, {}, {}
  local function name_all(layer, prefix)
    for _, entry in ipairs(walk.entries(layer)) do
      if entry.kind == "layer" and not names[entry.value] then
        names[entry.value] = prefix .. entry.name
        name_all(entry.value, prefix .. entry.name .. ".")
      end
    end
  end
  name_all(self, "")
  local training = {}
  for _, layer in ipairs(walk.modules(self)) do
    training[layer] = layer.training
    if layer ~= self then
      table.insert(handles, layer:hook("forward", function(l, _, output)
        rows[#rows + 1] = { name = names[l], layer = l,
                            shape = native.is_tensor(output) and tostring(output.shape) or "?" }
      end))
    end
  end
  local first = self:parameters()[1]
  local ok, problem = pcall(pg.no_grad, function()
    self:eval()
    local x = pg.device(first and first.device or "cpu", function() return pg.zeros(size) end)
    return self(x)
  end)
  for _, handle in ipairs(handles) do handle:remove() end
  for layer, on in pairs(training) do rawset(layer, "training", on) end
  if not ok then error(problem, 0) end
  return rows
end

---Prints a line a layer with its output's shape and number of parameters, and the totals.
---@param options {input: integer[], dtype?: string} shape of one sample, without the batch axis
---@return string text what was printed
function show.summary(self, options)
  if type(options) ~= "table" or type(options.input) ~= "table" then
    native.raise("invalid_argument", "summary", "needs the shape of one sample", "model:summary{input={1, 28, 28}}")
  end
  local size = { 1, dtype = options.dtype }
  for i, n in ipairs(options.input) do size[i + 1] = n end
  local rows = trace(self, size)
  local lines = { ("%-32s %-20s %12s"):format("layer", "output", "parameters") }
  for _, row in ipairs(rows) do
    local label = ("%s (%s)"):format(row.name, getmetatable(row.layer).__name)
    lines[#lines + 1] = ("%-32s %-20s %12s"):format(label, row.shape, thousands(own_count(row.layer)))
  end
  lines[#lines + 1] = ("%s parameters, %s trainable, %s bytes"):format(thousands(self:count_parameters()),
                        thousands(self:count_parameters { trainable = true }), thousands(self:size()))
  local text = table.concat(lines, "\n")
  print(text)
  return text
end

return show
