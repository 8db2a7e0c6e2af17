-- SPDX-License-Identifier: Apache-2.0
-- The reference as Markdown: a page a chapter, by file name.

local native = require "perigee.native"
local reference = require "perigee.reference"
local examples = require "perigee.reference.examples"
local heading = require "perigee.reference.heading"

local pages = {}

local NOTE = "<!-- Made by scripts/dev/docs from schemas and annotations; edit those. -->\n"

local function cell(text) return (tostring(text):gsub("|", "\\|"):gsub("\n", " ")) end

local function add_parameters(lines, parameters, title)
  if #parameters == 0 then return end
  lines[#lines + 1] = ("\n| %s | type | default | |\n|---|---|---|---|"):format(title)
  for _, p in ipairs(parameters) do
    local default = p.required and "required" or p.default ~= nil and "`" .. reference.literal(p.default) .. "`" or ""
    local kind = p.choices and #p.choices > 0 and table.concat(p.choices, ", ") or p.type
    lines[#lines + 1] = ("| `%s` | %s | %s | %s |"):format(p.name, cell(kind), cell(default), cell(p.doc))
  end
end

local function add_tensors(lines, title, list)
  if not list or #list == 0 then return end
  local parts = {}
  for i, input in ipairs(list) do
    parts[i] = ("`%s` %s%s"):format(input.name, input.doc or "", input.optional and " (optional)" or "")
  end
  lines[#lines + 1] = ("\n%s: %s."):format(title, table.concat(parts, "; "))
end

local function add_example(lines, e)
  if not e then return end
  lines[#lines + 1] = ("\n```lua\n%s\n```\n```\n%s\n```"):format(e.code, e.output)
end

-- The text of one entry.
local function section(entry, example)
  local lines = { ("\n## %s\n\n`%s`"):format(entry.name, heading(entry)) }
  if entry.doc ~= "" then lines[#lines + 1] = "\n" .. entry.doc end
  add_tensors(lines, "Inputs", entry.inputs)
  local is_function = entry.kind == "function" or entry.kind == "method"
  add_parameters(lines, entry.parameters, is_function and "argument" or "option")
  add_parameters(lines, entry.options or {}, "option")
  add_tensors(lines, "Gives", entry.outputs)
  if #entry.returns > 0 then lines[#lines + 1] = "\nReturns: `" .. table.concat(entry.returns, "`, `") .. "`." end
  if entry.op then
    local facts = { entry.differentiable and "differentiable" or "no gradient" }
    if native.operators.is_method(entry.name:sub(4)) then facts[#facts + 1] = "also a method" end
    if entry.in_place then facts[#facts + 1] = ("in place as `%s_`"):format(entry.name:sub(4)) end
    lines[#lines + 1] = "\n" .. table.concat(facts, ", "):gsub("^%l", string.upper) .. "."
  end
  add_example(lines, example)
  return table.concat(lines, "\n")
end

local function page(title, text, sections)
  return NOTE .. "# " .. title .. "\n\n" .. text .. "\n" .. table.concat(sections, "\n") .. "\n"
end

-- ---- chapters ----

local function operator_pages(out, cases, specs)
  local by_category = {}
  for _, name in ipairs(reference.names()) do
    local entry = reference.all()[name]
    local op = entry.kind == "operator" and entry or nil
    if not op and native.operators.get((name:gsub("^pg%.", ""))) and name:find("^pg%.") then op = entry end
    if op then
      local plain = name:sub(4)
      local category = native.operators.get(plain).category
      by_category[category] = by_category[category] or {}
      table.insert(by_category[category], section(entry, examples.operator(plain, cases, specs)))
    end
  end
  for category, sections in pairs(by_category) do
    out["operators_" .. category .. ".md"] = page("Operators: " .. category,
      "Functions of `pg`, and methods of their first argument. Shapes stand in brackets; axes count from 1.", sections)
  end
end

local function chapter(out, file, title, text, belongs, example_of)
  local sections = {}
  for _, name in ipairs(reference.names()) do
    local entry = reference.all()[name]
    if belongs(name, entry) then sections[#sections + 1] = section(entry, example_of and example_of(name, entry)) end
  end
  out[file] = page(title, text, sections)
end

local function is_loss(name, entry)
  return name:find("^nn%.%l") ~= nil and entry.source ~= nil and entry.source:find("^nn/loss") ~= nil
end

---All pages.
---@param cases table the case table of tests/cases
---@param specs table
---@return table<string, string> text by file name
function pages.make(cases, specs)
  local out = {}
  operator_pages(out, cases, specs)
  chapter(out, "layers.md", "Layers", "Classes of `nn`; each takes a table and makes a layer, `layer(x)` runs it.",
          function(name) return name:find("^nn%.%u") ~= nil end,
          function(name, entry) return examples.layer(name:sub(4), entry.info) end)
  chapter(out, "losses.md", "Losses",
          "Functions of `nn`: prediction, target, options. `nn.CrossEntropyLoss{}` and its kin are layers of the same.",
          is_loss, function(name) return examples.own(name) or examples.loss(name:sub(4)) end)
  chapter(out, "optimizers.md", "Optimizers and schedules",
          "`optim.NAME{model:parameters(), lr=...}`; without parameters a recipe for `model:fit`.",
          function(name) return name:find("^optim%.") ~= nil end,
          function(name, entry)
            return examples.own(name) or entry.kind == "optimizer" and examples.optimizer(name:sub(7)) or nil
          end)
  chapter(out, "tensors.md", "Tensors", "Methods of tensors that are no operators by themselves.",
          function(name) return name:find("^tensor:") ~= nil end, examples.own)
  chapter(out, "functions.md", "Functions",
          "Functions of `pg` that are no operators by themselves, and those of its parts.",
          function(name, entry)
            if entry.kind == "operator" or native.operators.get((name:gsub("^pg%.", ""))) then return false end
            if name:find("^nn%.") then return name:find("^nn%.%l") ~= nil and not is_loss(name, entry) end
            return name:find("^[%l_]+%.") ~= nil and not name:find("^optim")
          end, examples.own)
  chapter(out, "models.md", "Models and data", "Methods of layers, optimizers, data sets, graphs and what `fit` gives.",
          function(name) return name:find("^[%l_]+:") ~= nil and not name:find("^tensor:") end, examples.own)
  local names, lines = {}, {}
  for file in pairs(out) do names[#names + 1] = file end
  table.sort(names)
  for _, file in ipairs(names) do
    local _, count = out[file]:gsub("\n## ", "")
    lines[#lines + 1] = ("- [%s](%s): %d entries"):format(out[file]:match("\n# ([^\n]*)"), file, count)
  end
  out["README.md"] = NOTE .. "# Reference\n\n" .. table.concat(lines, "\n") ..
    "\n\nThe same at the prompt: `help(pg.softmax)`, `?nn.Conv2d`. `scripts/dev/docs` makes these pages anew.\n"
  return out
end

return pages
