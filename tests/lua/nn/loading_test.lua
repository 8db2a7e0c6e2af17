-- SPDX-License-Identifier: Apache-2.0
-- Weights from elsewhere into a layer: tied parameters, names that differ by a beginning, and what is said of others.

local pg = require "perigee"
local nn = pg.nn

-- An embedding whose weight is the last layer's, too, as in GPT-2.
local Tied = nn.class "Tied"
function Tied:init()
  self.wte = nn.Embedding { 4, 3 }
  self.norm = nn.LayerNorm { 3 }
  self.head = nn.Linear { 3, 4, bias = false }
  self.head.weight = self.wte.weight
end
function Tied:forward(ids) return self.head(self.norm(self.wte(ids))) end

local function weights() return pg.arange(12):to("float32"):reshape(4, 3) end
local function norms() return { ["norm.weight"] = pg.ones { 3 }, ["norm.bias"] = pg.zeros { 3 } } end
local function with(tensors, more)
  for name, x in pairs(more) do tensors[name] = x end
  return tensors
end
local function with_prefix(prefix, tensors)
  local named = {}
  for name, x in pairs(tensors) do named[prefix .. name] = x end
  return named
end

test("a tied parameter is loaded by any of its names", function(t)
  for _, name in ipairs { "wte.weight", "head.weight" } do
    local model = Tied()
    local missing, unexpected = model:load_state(with(norms(), { [name] = weights() }))
    t.equal({ missing, unexpected }, { {}, {} })
    t.equal(model.head.weight, weights())
    t.ok(model.head.weight == model.wte.weight, "still one parameter")
  end
end)

test("both names of a tied parameter must say the same", function(t)
  local model, x = Tied(), weights()
  model:load_state(with(norms(), { ["wte.weight"] = x, ["head.weight"] = x:clone() }))
  t.equal(model.wte.weight, x)
  local nan = x * (0 / 0)
  model:load_state(with(norms(), { ["wte.weight"] = nan, ["head.weight"] = nan:clone() }))
  model:load_state(with(norms(), { ["wte.weight"] = x, ["head.weight"] = x }))
  for _, other in ipairs { x + 1, nan } do
    local e = t.raises(function()
      model:load_state(with(norms(), { ["wte.weight"] = x * 2, ["head.weight"] = other }), { strict = false })
    end, "load_state: wte.weight and head.weight are one tensor here but differ in what is loaded")
    t.equal(e.code, "invalid_argument")
    t.equal(model.wte.weight, x)
  end
  t.raises(function() model:load_state(with(norms(), { ["wte.weight"] = x, ["head.weight"] = pg.ones { 3, 4 } })) end,
           "head.weight is {4, 3} here but {3, 4} in what is loaded")
  local same = nn.ModuleDict { a = nn.Identity {}, b = nn.Identity {} }
  same.a:buffer("mask", pg.tensor { true, false })
  same.b:buffer("mask", same.a.mask)
  same:load_state { ["a.mask"] = pg.tensor { false, true }, ["b.mask"] = pg.tensor { false, true } }
  t.equal(same.b.mask, { false, true })
  t.raises(function()
    same:load_state { ["a.mask"] = pg.tensor { false, true }, ["b.mask"] = pg.tensor { true, true } }
  end, "a.mask and b.mask are one tensor here")
end)

test("a tied parameter that is not there is missing under all of its names", function(t)
  local model = Tied()
  t.raises(function() model:load_state(norms()) end, "Missing: wte.weight, head.weight. Unexpected: none")
  local missing = model:load_state(norms(), { strict = false })
  t.equal(missing, { "wte.weight", "head.weight" })
end)

test("names that differ by one beginning: the message names the option", function(t)
  local model = nn.Sequential { nn.Linear { 2, 3 }, nn.Linear { 3, 1 } }
  local given = nn.Sequential { nn.Linear { 2, 3 }, nn.Linear { 3, 1 } }:state()
  for _, prefix in ipairs { "model.", "module.", "a.b.", "x" } do
    local e = t.raises(function() model:load_state(with_prefix(prefix, given)) end)
    t.equal((e.message:gsub("^[^:]+:%d+: ", "")), ('load_state: names differ by one beginning: what is loaded has ' ..
            '"%s0.weight" for "0.weight" ({strip_prefix="%s"})'):format(prefix, prefix))
    model:load_state(with_prefix(prefix, given), { strip_prefix = prefix })
    t.equal(model[1].weight, given["0.weight"])
  end
  local inner = nn.ModuleDict { model = model }
  t.raises(function() inner:load_state(given) end,
           'what is loaded has "0.weight" for "model.0.weight" %({add_prefix="model."}%)')
  inner:load_state(given, { add_prefix = "model." })
  inner:load_state(with_prefix("module.", given), { strip_prefix = "module.", add_prefix = "model." })
  -- One name more than the prefix explains is found in the second round.
  local more = with(with_prefix("model.", given), { ["lm_head.weight"] = pg.ones { 1 } })
  t.raises(function() model:load_state(more) end, 'strip_prefix="model."')
  t.raises(function() model:load_state(more, { strip_prefix = "model." }) end,
           "Missing: none. Unexpected: lm_head.weight")
  local missing, unexpected = model:load_state(more, { strip_prefix = "model.", strict = false })
  t.equal({ missing, unexpected }, { {}, { "lm_head.weight" } })
  local tied = Tied()
  t.raises(function() tied:load_state(with_prefix("transformer.", with(norms(), { ["wte.weight"] = weights() }))) end,
           'strip_prefix="transformer."')
end)

test("names that differ otherwise are listed", function(t)
  local model = nn.Linear { 2, 3 }
  t.raises(function() model:load_state { ["a.weight"] = pg.ones { 3, 2 }, ["b.bias"] = pg.ones { 3 } } end,
           "names differ. Missing: weight, bias. Unexpected: a.weight, b.bias %({strict=false} loads the rest%)")
end)

test("what the options refuse", function(t)
  local model = nn.Linear { 2, 3, bias = false }
  local given = { ["a.weight"] = pg.ones { 3, 2 }, weight = pg.zeros { 3, 2 } }
  local function raises(options, pattern)
    t.equal(t.raises(function() model:load_state(given, options) end, pattern).code, "invalid_argument")
  end
  raises({ strip_prefix = "a." }, 'load_state: "a.weight" and "weight" both become "weight"')
  raises({ strip_prefix = "b." },
         'no name that is loaded begins with strip_prefix="b." %(the first of 2 is "a.weight"%)')
  raises({ strip_prefix = 3 }, 'strip_prefix must be the beginning of names, such as "model.", got number 3')
  raises({ add_prefix = "" }, 'add_prefix must be the beginning of names, such as "model.", got string ""')
  raises({ prefix = "a." }, 'unknown option "prefix" %(options are strict, strip_prefix, add_prefix%)')
end)

test("a saved layer holds each tied parameter once, and loads", function(t)
  local path = os.tmpname() .. ".safetensors"
  local model = Tied()
  pg.save(path, model)
  local tensors, names = pg.load(path), {}
  for name in pairs(tensors) do names[#names + 1] = name end
  table.sort(names)
  t.equal(names, { "norm.bias", "norm.weight", "wte.weight" })
  local copy = pg.load(path, Tied())
  t.equal(copy.head.weight, model.wte.weight)
  t.ok(copy.head.weight == copy.wte.weight)
  Tied():load_state(tensors)
  t.raises(function() Tied():load_state(pg.load(path)) end, "options must be a table, got a function %(pg.load ans" ..
           "wers a file's notes behind its tensors: pg.load%(path, model%), or model:load_state%(%(pg.load%(path%)%)%)")
  pg.save(path, model:state()) -- both names, as PyTorch's state_dict has them
  t.ok(pg.load(path)["head.weight"] ~= nil)
  t.equal(pg.load(path, Tied()).head.weight, model.wte.weight)
  pg.save(path, with_prefix("model.", tensors))
  t.raises(function() pg.load(path, Tied()) end, 'strip_prefix="model."')
  t.equal(pg.load(path, Tied(), { strip_prefix = "model." }).head.weight, model.wte.weight)
  os.remove(path)
end)
