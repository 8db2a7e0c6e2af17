-- SPDX-License-Identifier: Apache-2.0
-- docs/reference and docs/library are what the schemas and annotations of this build say; their examples run for it.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../../.."
package.path = root .. "/tests/?.lua;" .. root .. "/tests/?/init.lua;" .. package.path

local function read(path)
  local file = io.open(path, "r")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- The same but for the last digits of numbers, which depend on the processor.
local function same(a, b)
  if a == b then return true end
  local numbers, at = {}, 0
  for number in b:gmatch("%-?%d+%.%d*e?[-+]?%d*") do numbers[#numbers + 1] = tonumber(number) or 0 end
  for number in a:gmatch("%-?%d+%.%d*e?[-+]?%d*") do
    at = at + 1
    local x, y = tonumber(number) or 0, numbers[at]
    if not y or math.abs(x - y) > 2e-4 * math.max(1, math.abs(y)) then return false end
  end
  local function bare(text) return (text:gsub("%-?%d+%.%d*e?[-+]?%d*", "#"):gsub("[ \n]+", " ")) end
  return at == #numbers and bare(a) == bare(b)
end

test("docs: the comparison sees what differs", function(t)
  t.ok(same("a 1.5000 b", "a 1.5001 b") and not same("a 1.50 b", "a 1.60 b") and not same("a", "b"))
  t.ok(not same("1.0 2.0", "1.0") and not same("x 1.0", "y 1.0"))
end)

local STALE = " is stale: run scripts/dev/docs and commit docs/"

test("docs/reference is what this build says", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  local cases, specs = require "cases", require "cases.specs"
  for name, text in pairs(require("perigee.reference.pages").make(cases, specs)) do
    local path = "docs/reference/" .. name
    local kept = read(root .. "/" .. path)
    t.ok(kept, path .. STALE)
    t.ok(same(kept, text), path .. STALE)
  end
end)

test("docs/library is what this build says", function(t)
  if t.device and t.device ~= "cpu" then t.skip("made once") end
  for name, text in pairs(require "perigee.reference.stubs"()) do
    local path = "docs/library/" .. name
    t.ok(read(root .. "/" .. path) == text, path .. STALE)
    t.ok(loadstring(text), path .. " is no Lua")
  end
end)

test("looking up has no effect: no random number is drawn, no tensor and no layer is made", function(t)
  local pg, kept, made = require "perigee", package.loaded["perigee.reference"], 0
  pg.nn.Looked = setmetatable({}, { __call = function() made = made + 1 end })
  pg.manual_seed(1)
  local expected = pg.rand({ 1 }):item()
  pg.manual_seed(1)
  local before = pg.memory.stats("cpu").allocations
  package.loaded["perigee.reference"] = nil
  local entries = require("perigee.reference").all() -- made again
  package.loaded["perigee.reference"], pg.nn.Looked = kept, nil
  t.equal(pg.memory.stats("cpu").allocations, before)
  t.equal(pg.rand({ 1 }):item(), expected)
  t.equal(made, 0)
  t.equal(#entries["nn.ZeroPad2d"].parameters, 1)
  t.equal(#entries["optim.sched.Step"].parameters, 3)
end)

-- What is called for what it does. Of everything else an editor should know what comes back.
local SILENT = { ["average:copy_to"] = true, ["average:swap"] = true, ["average:update"] = true,
  ["config.memory_fraction"] = true, ["config.memory_growth"] = true, ["config.memory_limit"] = true,
  ["config.set"] = true, ["config.visible_devices"] = true, ["graph:print"] = true, ["iterator:close"] = true,
  ["json.save"] = true, ["dist.barrier"] = true, ["dist.send"] = true, ["strategy:reduce_gradients"] = true,
  ["memory.collect"] = true, ["memory.empty_cache"] = true, ["memory.reset_peak"] = true,
  ["metric:reset"] = true, ["metric:update"] = true,
  ["optim.clip_grad_value_"] = true, ["optim.scale_grad_"] = true,
  ["image.save"] = true, ["image.show"] = true,
  ["pg.load_plugin"] = true, ["pg.manual_seed"] = true, ["pg.reset"] = true, ["pg.save"] = true,
  ["pg.save_npy"] = true, ["pg.save_npz"] = true, ["pg.set_default_device"] = true, ["pg.synchronize"] = true,
  ["plot:save"] = true, ["profile:save"] = true,
  ["scaler:unscale"] = true, ["schedule:apply"] = true, ["summary_writer:close"] = true,
  ["tokenizer:save"] = true, ["vocabulary:save"] = true,
  ["session:close"] = true, ["session:commit"] = true,
  ["tensor:backward"] = true, ["tensor:free"] = true, ["tensor:save_npy"] = true }
local SILENT_METHODS = { load_state = true, step = true, zero_grad = true }

test("what optimizers take beside their schema's options is said", function(t)
  for _, name in ipairs { "Adam", "Lion" } do
    local found = {}
    for _, p in ipairs(require("perigee.reference").all()["optim." .. name].parameters) do found[p.name] = p end
    t.equal(found.betas.default, { found.beta1.default, found.beta2.default })
  end
end)

test("every function says what it returns, and of which class its arguments are", function(t)
  local missing = {}
  for name, entry in pairs(require("perigee.reference").all()) do
    local is_lua = entry.kind == "function" or entry.kind == "method"
    local silent = SILENT[name] or name:find(":") and SILENT_METHODS[name:match("[%w_]+$")]
    if is_lua and #entry.returns == 0 and not silent then missing[#missing + 1] = name .. ": no @return" end
    for _, p in ipairs(is_lua and entry.parameters or {}) do
      if p.type == "any" and p.doc == "" and not entry.grammar and p.name ~= "..." then
        missing[#missing + 1] = ("%s: %s is any"):format(name, p.name)
      end
    end
  end
  table.sort(missing)
  t.equal(missing, {})
end)

test("a function that is a method too has one parameter more: the tensor", function(t)
  local all, wrong, seen = require("perigee.reference").all(), {}, 0
  for name, entry in pairs(all) do
    local method = name:find("^pg%.") and entry.kind ~= "operator" and all["tensor:" .. name:sub(4)]
    local first = method and entry.parameters[1]
    if method and not (first and first.name == "...") then
      seen = seen + 1
      local has, wanted = #entry.parameters, #method.parameters + 1
      if has ~= wanted then wrong[#wrong + 1] = ("%s: %d, not %d"):format(name, has, wanted) end
    end
  end
  table.sort(wrong)
  t.equal(wrong, {})
  t.ok(seen > 80, "looked at " .. seen)
end)

test("everything public has an entry with a text", function(t)
  local pg, native, reference = require "perigee", require "perigee.native", require "perigee.reference"
  local all = reference.all()
  local missing, seen = {}, 0
  local function look(prefix, part)
    for name, value in pairs(part) do
      local is_class = type(value) == "table" and rawget(value, "__perigee_layer")
      if type(name) == "string" and (is_class and name ~= "Module" or type(value) == "function") then
        local entry = all[prefix .. name] or prefix == "nn." and all["pg." .. name] or
                      prefix == "tensor:" and all["pg." .. name]
        local described = reference.is_inner(name) or prefix == "tensor:" and reference.writes_as_operator(name)
        seen = seen + 1
        if not entry then missing[#missing + 1] = not described and prefix .. name .. ": no entry" or nil
        elseif not entry.doc:find("%S") then missing[#missing + 1] = prefix .. name .. ": no text" end
      end
    end
  end
  for _, part in ipairs { "nn", "optim", "data", "amp", "callbacks", "metrics", "memory", "config", "linalg",
                          "json", "image", "prune", "compress", "quant", "tune",
                          "dist" } do
    look(part .. ".", pg[part])
  end
  look("pg.", pg)
  look("nn.init.", pg.nn.init)
  look("optim.sched.", pg.optim.sched)
  look("tensor:", native.methods)
  for name, entry in pairs(all) do
    if not entry.doc:find("%S") then missing[#missing + 1] = name .. ": no text" end
  end
  table.sort(missing)
  t.equal(missing, {})
  t.ok(seen > 500, "looked at " .. seen)
end)

test("options of layers, losses, optimizers, schedules, callbacks and metrics say what they mean", function(t)
  local missing, seen = {}, 0
  for name, entry in pairs(require("perigee.reference").all()) do
    local chosen = entry.kind == "layer" or entry.kind == "optimizer" or entry.options or
                   name:find("^optim%.%u") or name:find("^optim%.sched%.") or name:find("^callbacks%.") or
                   name:find("^metrics%.") or name:find("^prune%.")
    for _, list in ipairs(chosen and { entry.parameters, entry.options } or {}) do
      for _, p in ipairs(list) do
        seen = seen + 1
        local is_table = entry.options and p.name == "options" -- its fields are listed
        if not is_table and not (p.doc and p.doc:find("%S")) and p.name ~= "..." then
          missing[#missing + 1] = name .. ": " .. p.name
        end
      end
    end
  end
  table.sort(missing)
  t.equal(missing, {})
  t.ok(seen > 300, "looked at " .. seen)
end)

test("functions of nn, data, amp, callbacks, metrics and methods of tensors have an example", function(t)
  local examples = require "perigee.reference.examples"
  local cases, specs = require "cases", require "cases.specs"
  local native, missing, seen = require "perigee.native", {}, 0
  local parts = { data = true, amp = true, callbacks = true, metrics = true, metric = true, tensor = true,
                  prune = true, compress = true, quant = true, tune = true }
  -- Files, memory that is gone, a cdata number. What writes into x is said at the function of the same name.
  local silent = { ["tensor:free"] = true, ["tensor:save_npy"] = true, ["tensor:item_int64"] = true }
  for name in pairs(require("perigee.reference").all()) do
    local part = name:match("^(%l+)[.:]")
    local plain = name:match("[%w_]+$")
    if (part == "nn" and name:find("^nn%.%l") or parts[part]) and not silent[name] and
       not (part == "tensor" and plain:find("_$")) then
      seen = seen + 1
      local found = examples.own(name) or examples.own("pg." .. plain) or part == "nn" and examples.loss(plain) or
                    native.operators.get(plain) and examples.operator(plain, cases, specs)
      if not found then missing[#missing + 1] = name .. ": no example"
      elseif found.output:find("0x%x") or found.output == "" then
        missing[#missing + 1] = name .. ": prints " .. found.output
      end
    end
  end
  table.sort(missing)
  t.equal(missing, {})
  t.ok(seen > 150, "looked at " .. seen)
end)

test("every layer, loss, optimizer and schedule has its section: a text and an example", function(t)
  local pg = require "perigee"
  local pages = read(root .. "/docs/reference/layers.md") .. read(root .. "/docs/reference/losses.md") ..
                read(root .. "/docs/reference/optimizers.md")
  local missing, seen = {}, 0
  local function look(prefix, part)
    for name, value in pairs(part) do
      local public = type(name) == "string" and name:find("^%u") and name ~= "Module"
      if public and (type(value) == "table" or type(value) == "function") then
        local at = pages:find("\n## " .. prefix .. name .. "\n", 1, true)
        local section = at and pages:sub(at + 1, (pages:find("\n## ", at + 1, true) or 0) - 1)
        seen = seen + 1
        if not section then missing[#missing + 1] = prefix .. name .. ": no section"
        elseif not section:find("```lua", 1, true) then missing[#missing + 1] = prefix .. name .. ": no example"
        elseif not section:match("`\n\n(%S[^\n]*)") then missing[#missing + 1] = prefix .. name .. ": no text" end
      end
    end
  end
  require("perigee.reference").all()
  look("nn.", pg.nn)
  look("optim.", pg.optim)
  look("optim.sched.", pg.optim.sched)
  table.sort(missing)
  t.equal(missing, {})
  t.ok(seen > 100, "looked at " .. seen)
end)
