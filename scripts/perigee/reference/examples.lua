-- SPDX-License-Identifier: Apache-2.0
-- Examples of the reference pages: short programs that are run where the pages are made, so that what they print is
-- true. An operator's comes from its row in tests/cases; layers, losses and optimizers are tried with small inputs.

local native = require "perigee.native"
local reference = require "perigee.reference"

local examples = {}

local MOST_ELEMENTS = 16

-- Examples that no table gives.
local OWN = {
  arange = "print(pg.arange(0, 10, 2))", fill = "print(pg.full({2, 2}, 7))", uniform = "print(pg.rand{2, 2}.shape)",
  normal = "print(pg.randn{2, 2}.shape)", randint = "print(pg.randint(0, 10, {2, 2}).shape)",
  cast = "print(pg.tensor{1.7, -1.7}:to(\"int64\"))", transfer = "print(pg.ones{2}:to(\"cpu\"))",
  slice = "print(pg.arange(10)[{{2, 8, 3}}])",
}

-- The same for names of other chapters, whole as users write them.
local layer_own, other_own = require "perigee.reference.layer_examples", {}
for _, file in ipairs { "other", "function", "program", "image" } do
  for name, code in pairs(require("perigee.reference." .. file .. "_examples")) do other_own[name] = code end
end

local PREAMBLE = "local pg = require \"perigee\"\nlocal nn, optim, data, amp = pg.nn, pg.optim, pg.data, pg.amp\n"

---Runs a program; answers what it printed, or nil and why it failed.
---@param code string
---@return string? output
---@return string? problem
function examples.run(code)
  local lines = {}
  local plain = _G.print
  local function note(...)
    local parts = {}
    for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
    lines[#lines + 1] = table.concat(parts, "\t")
  end
  local fn, problem = loadstring(PREAMBLE .. code, "=example")
  if not fn then return nil, problem end
  require("perigee").manual_seed(1)
  rawset(_G, "print", note) -- what Perigee prints counts too
  local ok, err = pcall(fn)
  rawset(_G, "print", plain)
  if not ok then return nil, tostring(err) end
  return table.concat(lines, "\n")
end

local function example(code)
  local output, problem = examples.run(code)
  return output and { code = code, output = output } or nil, problem
end

-- What is written down must run.
local function own_example(name, code)
  local found, problem = example(code)
  return found or error(("the example of %s fails: %s\n%s"):format(name, problem, code), 0)
end

-- ---- operators, from the case table ----

local NAMES = { "x", "y", "z", "u", "v", "w", "a", "b", "c", "d" }

local function number(v)
  if v == math.floor(v) then return ("%d"):format(v) end
  return (("%.2f"):format(v):gsub("0+$", ""):gsub("%.$", ""))
end

-- Nested lists of a dense array.
local function nested(shape, data, axis, at)
  local parts = {}
  for i = 1, shape[axis] do
    if axis == #shape then parts[i] = data[at.n + 1] at.n = at.n + 1
    else parts[i] = nested(shape, data, axis + 1, at) end
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local DTYPES = { index = "int64", whole = "int64", bool = "bool" }

-- Too many elements to write down: random ones in the same shape.
local function random_text(spec)
  local shape = {}
  for i, n in ipairs(spec.shape or {}) do shape[i] = tostring(n) end
  shape = table.concat(shape, ", ")
  if spec.kind == "index" then return ("pg.randint(%d, %d, {%s})"):format(spec.whole[1], spec.whole[2] + 1, shape) end
  if spec.kind ~= "float" then return nil end
  return ("pg.rand{%s}"):format(shape)
end

local function tensor_text(specs, spec, before)
  local a = specs.draw(spec, nil, before)
  if #a.data == 0 then return nil end
  if #a.data > MOST_ELEMENTS then return random_text(spec), a, true end
  local texts = {}
  for i, v in ipairs(a.data) do
    if v ~= v or v == math.huge or v == -math.huge then return nil end
    texts[i] = spec.kind == "bool" and tostring(v ~= 0) or number(v)
  end
  local data = #a.shape == 0 and texts[1] or nested(a.shape, texts, 1, { n = 0 })
  local dtype = DTYPES[spec.kind]
  if dtype and dtype ~= "bool" then
    return ("pg.tensor({%s}, {dtype=%q})"):format(data:match("^{(.*)}$") or data, dtype), a
  end
  return ("pg.tensor(%s)"):format(data), a
end

-- Statements that make the inputs, and the arguments of the call. Nil: too large for an example.
local function inputs_of(op, case, specs)
  local lines, arguments, before, used, large = {}, {}, {}, 0, false
  local function one(v)
    if v == false or v == nil then return "nil" end
    if type(v) == "number" then return number(v) end
    local text, a, is_large = tensor_text(specs, v, before)
    if not text then return nil end
    large = large or is_large
    used = used + 1
    before[#before + 1] = a
    lines[#lines + 1] = ("local %s = %s"):format(NAMES[used], text)
    return NAMES[used]
  end
  for i, input in ipairs(op.inputs) do
    local v = case[i]
    if input.variadic then
      local list = {}
      for k, item in ipairs(v or {}) do
        list[k] = one(item)
        if not list[k] then return nil end
      end
      arguments[i] = "{" .. table.concat(list, ", ") .. "}"
    else
      arguments[i] = one(v)
      if not arguments[i] then return nil end
    end
  end
  while arguments[#arguments] == "nil" do arguments[#arguments] = nil end
  for _, argument in ipairs(arguments) do
    if argument == "nil" then return nil end
  end
  return lines, arguments, large
end

local function options_text(op, attrs)
  local parts = {}
  for _, attr in ipairs(op.visible) do
    local v = attrs and attrs[attr.name]
    if v ~= nil then parts[#parts + 1] = ("%s=%s"):format(attr.shown, reference.literal(v)) end
  end
  for key in pairs(attrs or {}) do
    local known
    for _, attr in ipairs(op.visible) do known = known or attr.name == key end
    if not known then return nil end
  end
  return #parts > 0 and "{" .. table.concat(parts, ", ") .. "}" or ""
end

local function from_case(op, name, case, specs)
  specs.seed(1)
  local lines, arguments, large = inputs_of(op, case, specs)
  local options = lines and options_text(op, case.attrs)
  if not options then return nil end
  if options ~= "" then arguments[#arguments + 1] = options end
  local call = ("pg.%s(%s)"):format(name, table.concat(arguments, ", "))
  if large then
    lines[#lines + 1] = ("local result = %s\nprint(result.shape)"):format(call)
  else
    lines[#lines + 1] = ("print(%s)"):format(call)
  end
  local found, problem = example(table.concat(lines, "\n"))
  if found then found.large, found.elements = large, #lines[1] end
  return found, problem
end

---The example of an operator; `cases` is the table of tests/cases.
function examples.operator(name, cases, specs)
  local own = OWN[name] or other_own["pg." .. name]
  if own then return own_example(name, own) end
  local op, row = native.operators.get(name), cases.rows[name]
  if not row or row.random then return nil end
  local best
  local function rank(e) return (e.large and 2 or 0) + (e.code:find("tensor(%-?[%d.]+)") and 1 or 0) end
  for _, case in ipairs(row.cases) do
    local ok, found = pcall(from_case, op, name, case, specs)
    local fine = ok and found and found.output ~= "" and not found.output:find("nan")
    if fine and (not best or rank(found) < rank(best)) then best = found end
  end
  return best
end

-- ---- layers, losses, optimizers ----

-- Values of required attributes, by name.
local VALUES = { inputs = 4, channels = 4, features = 4, out = 2, outputs = 2, kernel = 3, count = 10, groups = 2,
                 heads = 2, size = 2, shape = "{4}", p = 0.5, embedding = 4, hidden = 3, factor = 2, hidden_size = 3 }
local SHAPES = { ["1d"] = { "2, 4, 8" }, ["2d"] = { "2, 4, 8, 8" }, ["3d"] = { "2, 4, 6, 6, 6" } }
local ANY = { "2, 4", "2, 3, 4", "2, 4, 8, 8", "2, 4, 8" }

---The example that stands in a table for a name, or nil.
function examples.own(name)
  return other_own[name] and own_example(name, other_own[name])
end

function examples.layer(name, info)
  local own = layer_own[name]
  if own then
    return own_example(name, own[3] or ("local layer = %s\nprint(layer(%s).shape)"):format(own[1], own[2]))
  end
  local parts = {}
  for _, attr in ipairs(info and info.visible or {}) do
    local value = tostring(VALUES[attr.name] or 2)
    if attr.required then parts[#parts + 1] = ("%s=%s"):format(attr.shown or attr.name, value) end
  end
  local make = ("nn.%s{%s}"):format(name, table.concat(parts, ", "))
  local inputs = {}
  for _, shape in ipairs(SHAPES[name:match("%dd$") or ""] or ANY) do
    inputs[#inputs + 1] = ("pg.rand{%s}"):format(shape)
  end
  inputs[#inputs + 1] = "pg.tensor({{0, 1, 2}}, {dtype=\"int64\"})"
  for _, input in ipairs(inputs) do
    local found = example(("local layer = %s\nprint(layer)\nprint(layer(%s).shape)"):format(make, input))
    if found then return found end
  end
end

local PAIRS = {
  { "pg.tensor{{2, 0, 1}, {0, 1, 0}}", "pg.tensor({0, 1}, {dtype=\"int64\"})" },
  { "pg.tensor{0.2, 0.9, 0.5}", "pg.tensor{0, 1, 1}" },
  { "pg.tensor{{0.2, 0.9}, {0.5, 0.1}}", "pg.tensor{{0, 1}, {1, 0}}" },
}

---The example of a loss function of two tensors.
function examples.loss(name)
  for _, pair in ipairs(PAIRS) do
    local found = example(("local x, y = %s, %s\nprint(nn.%s(x, y))"):format(pair[1], pair[2], name))
    if found and not found.output:find("nan") and not found.output:find("inf") then return found end
  end
end

function examples.optimizer(name)
  return example(("local w = pg.tensor({1, -2}, {requires_grad=true})\n" ..
                  "local optimizer = optim.%s{{w}, lr=0.1}\nlocal loss = (w * w):sum()\n" ..
                  "loss:backward()\noptimizer:step()\nprint(w)"):format(name))
end

return examples
