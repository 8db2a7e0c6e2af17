-- SPDX-License-Identifier: Apache-2.0
-- pg.plot: curves in the terminal, and as SVG and PNG.

local native = require "perigee.native"
local scale = require "perigee.plot.scale"

---@class perigee.Plot
---@field series {x: number[], y: number[], label: string?}[]
local Plot = {}
Plot.__perigee_said = true -- the prompt does not show it a second time

local PICTURE = { width = 720, height = 440 }
local TERMINAL = { width = 76, height = 16 }

local OPTIONS = { x = "any", labels = "table", keys = "table", title = "string", xlabel = "string", ylabel = "string",
                  width = "integer", height = "integer", file = "string", style = "string", logy = "boolean",
                  color = "boolean" }

-- What messages call a kind; width and height count characters or pixels.
local EXPECTED = { integer = "a whole number from 1", boolean = "true or false" }

local function bad(message, hint) native.raise("invalid_argument", "plot", message, hint) end

-- ---- arguments ----

local function is_history(v)
  local meta = getmetatable(v)
  return type(v) == "table" and type(meta) == "table" and rawget(meta, "__perigee_history") == true
end

local function is_numbers(v)
  if type(v) ~= "table" or v[1] == nil then return false end
  for i = 1, #v do
    if type(v[i]) ~= "number" then return false end
  end
  return true
end

local function check_holes(v)
  local count, highest = 0, 0
  for key in pairs(v) do
    if type(key) == "number" then count, highest = count + 1, math.max(highest, key) end
  end
  if count ~= highest then bad(("the list has a hole: %d entries up to position %d"):format(count, highest)) end
end

local function list_of(v, what)
  if native.is_tensor(v) then
    if v:dim() ~= 1 then bad(("%s must have one axis, got %s"):format(what, tostring(v.shape))) end
    if v:numel() == 0 then bad(what .. " has no elements") end
    return v:detach():to("float64"):totable()
  end
  if type(v) == "table" then check_holes(v) end
  if not is_numbers(v) then
    bad(("%s must be a list of numbers or a tensor, got %s"):format(what, native.describe(v)))
  end
  return v
end

local function add(list, y, x, label)
  y = list_of(y, "y")
  if x ~= nil then
    x = list_of(x, "x")
    if #x ~= #y then bad(("x has %d values, but y %d"):format(#x, #y)) end
  else
    x = {}
    for i = 1, #y do x[i] = i end
  end
  list[#list + 1] = { x = x, y = y, label = label }
end

-- loss and val_loss, or the columns that are asked for.
local function add_history(list, history, keys)
  if #history == 0 then bad("the history is empty") end
  for _, key in ipairs(keys or { "loss", "val_loss" }) do
    local x, y = {}, {}
    for _, entry in ipairs(history) do
      if type(entry[key]) == "number" then
        x[#x + 1], y[#y + 1] = entry.epoch or #x + 1, entry[key]
      end
    end
    if #y > 0 then add(list, y, x, key)
    elseif keys then bad(("the history has no %q"):format(tostring(key))) end
  end
end

-- The names of {train=..., test=...}, a curve each, in order; none where it holds anything else.
local function names_of(t)
  local names = {}
  for name, v in pairs(t) do
    local is_curve = native.is_tensor(v) or (type(v) == "table" and is_numbers(v))
    if type(name) ~= "string" or OPTIONS[name] or not is_curve then return {} end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- One positional argument: a series, or several.
local function add_argument(list, v, o)
  if is_history(v) then return add_history(list, v, o.keys) end
  if type(v) == "table" then check_holes(v) end
  if native.is_tensor(v) and v:dim() == 2 then
    for _, row in v:rows() do add(list, row, o.x) end
    return
  end
  if type(v) == "table" and not is_numbers(v) and not native.is_tensor(v) then
    if v.y ~= nil then return add(list, v.y, v.x or o.x, v.label) end
    if #v > 0 and next(v, #v) == nil then
      for _, inner in ipairs(v) do add_argument(list, inner, o) end
      return
    end
    local labels = names_of(v)
    for _, label in ipairs(labels) do add(list, v[label], o.x, label) end
    if #labels > 0 then return end
    bad("a series is a list of numbers, a tensor, a history or {y=, x=, label=}; got " .. native.describe(v))
  end
  add(list, v, o.x)
end

local function is_plain(v) return type(v) == "table" and getmetatable(v) == nil end

-- Positional arguments and options of a call.
local function read(...)
  local n, arguments, named = select("#", ...), { ... }, nil
  local last = arguments[n]
  if is_plain(last) then check_holes(last) end
  if n == 1 and is_plain(last) and #names_of(last) > 0 then
    return arguments, {}
  elseif n == 1 and is_plain(last) and not is_numbers(last) and last.y == nil then
    named, arguments = last, {}
    for i, v in ipairs(last) do arguments[i] = v end
    if is_numbers(arguments) then arguments = { arguments } end
  elseif n > 1 and is_plain(last) and last[1] == nil and last.y == nil then
    named, arguments[n] = last, nil
  elseif n == 1 and is_plain(last) and is_numbers(last) then
    named, arguments = last, { { unpack(last) } }
  end
  local o, names = {}, {}
  for key in pairs(OPTIONS) do names[#names + 1] = key end
  for key, value in pairs(named or {}) do
    if type(key) == "string" then
      local kind = OPTIONS[key]
      if not kind then
        local near = native.suggest(key, names)
        if key == "path" or key == "filename" then near = "file" end
        bad(("unknown option %q"):format(key), near and ("did you mean %q?"):format(near))
      end
      local fits = kind == "any" or type(value) == kind
      if kind == "integer" then fits = type(value) == "number" and value >= 1 and value == math.floor(value) end
      if not fits then
        bad(("%s must be %s, got %s"):format(key, EXPECTED[kind] or "a " .. kind, native.describe(value)))
      end
      o[key] = value
    end
  end
  return arguments, o
end

local function lists(series, key)
  local all = {}
  for i, s in ipairs(series) do all[i] = s[key] end
  return all
end

-- ---- showing ----

function Plot:__tostring()
  local style = self.style or (#self.series > 1 and not self.color and "marks" or "braille")
  return require "perigee.plot.terminal"(self, {
    width = self.width or math.min(TERMINAL.width, (native.terminal_width() or TERMINAL.width + 1) - 1),
    height = self.height or TERMINAL.height, style = style, colour = self.color })
end

---Writes the plot as a picture: "curve.svg" or "curve.png".
---@param path string
function Plot:save(path)
  if type(path) ~= "string" then bad("path must be a string, got " .. native.describe(path)) end
  local width, height = self.width or PICTURE.width, self.height or PICTURE.height
  local kind = path:match("%.(%w+)$")
  if kind == "png" then return require "perigee.plot.png"(self, width, height, path) end
  if kind ~= "svg" then bad(("%q ends neither in .svg nor in .png"):format(path)) end
  native.write_text(path, require "perigee.plot.svg"(self, width, height))
end

native.checked.class(Plot, { noun = "a plot", call = "plot",
  fields = "title xlabel ylabel width height style logy color x_low x_high y_low y_high",
  kinds = { save = { { "path", "string", required = true } } } })

---Draws curves: in the terminal, or into a file. Every argument is a curve: a list of numbers, a tensor of one axis, a
---history of `fit` (its loss and val_loss, or the columns in `keys`), or `{y=..., x=..., label="..."}`; a tensor of two
---axes is a curve a row, a table of names a curve each. `pg.plot(history)`, `pg.plot{loss, title="loss",
---file="loss.png"}`, `pg.plot({train=a, test=b}, {title="loss"})`.
---
---Options: `x` positions common to all, `labels` a name a curve, `title xlabel ylabel`, `logy` a logarithmic axis,
---`file` (.svg or .png) where to write, `width height` in characters or pixels, `style` "braille" or "marks", `color`.
---@param ... perigee.Tensor|number[]|table
---@return perigee.Plot plot with :save(path); tostring(plot) is the text
local function plot(...)
  local arguments, o = read(...)
  local self = setmetatable({ series = {} }, Plot)
  for _, argument in ipairs(arguments) do add_argument(self.series, argument, o) end
  if #self.series == 0 then bad("needs something to draw", "pg.plot{1, 4, 9}, pg.plot(history)") end
  for i, label in ipairs(o.labels or {}) do
    if self.series[i] then self.series[i].label = tostring(label) end
  end
  for _, key in ipairs { "title", "xlabel", "ylabel", "width", "height", "style", "logy" } do self[key] = o[key] end
  if o.style and o.style ~= "braille" and o.style ~= "marks" then
    bad(("style must be \"braille\" or \"marks\", got %q"):format(o.style))
  end
  self.color = o.color == nil and native.is_terminal(1) or o.color == true
  self.x_low, self.x_high = scale.range(lists(self.series, "x"))
  self.y_low, self.y_high = scale.range(lists(self.series, "y"), self.logy)
  if o.file then self:save(o.file) else print(tostring(self)) end
  return self
end

return { plot = plot }
