-- SPDX-License-Identifier: Apache-2.0
-- Containers: entries assigned, inserted, removed and sliced by position; names in state() follow.

local pg = require "perigee"
local nn = pg.nn

local function names_of(layer)
  local names = {}
  for name in layer:named_parameters() do names[#names + 1] = name end
  return table.concat(names, " ")
end

local function linears(class, count)
  local list = {}
  for i = 1, count do list[i] = nn.Linear { i, i, bias = false } end
  return nn[class](list), list
end

-- The sizes of the Linear layers in order.
local function sizes(layer)
  local list = {}
  for i, p in ipairs(layer:parameters()) do list[i] = p:size(1) end
  return table.concat(list, " ")
end

for _, class in ipairs { "Sequential", "ModuleList", "Residual" } do
  test(class .. ": positions are assigned, from both ends", function(t)
    local s, list = linears(class, 3)
    s[-1] = nn.Linear { 7, 7, bias = false }
    t.equal(sizes(s), "1 2 7")
    t.equal(#s, 3)
    t.ok(s[3] == s[-1] and s[1] == s[-3])
    s[#s + 1] = list[3]
    s[1] = list[2]
    t.equal(sizes(s), "2 7 3") -- a shared one counts once
    t.equal(names_of(s), "0.weight 2.weight 3.weight")
    t.equal(#s, 4)
    s[-4] = list[1]
    t.ok(s[1] == list[1])
    s[2] = function(x) return x end
    t.equal(sizes(s), "1 7 3")
    t.raises(function() s[0] = list[1] end, class .. ": position 0, but positions count from 1")
    t.raises(function() s[6] = list[1] end, class .. ": position 6 is out of range for 4 entries %(position 5 would")
    t.raises(function() s[-5] = list[1] end, "position %-5 is out of range for 4 entries")
    t.raises(function() s[1.5] = list[1] end, "a position must be a whole number")
    t.raises(function() s[5] = 3 end, class .. ": entry 5 must be a layer, got number 3")
    t.raises(function() s[-1] = pg.ones { 2 } end, "entry 4 must be a layer, got tensor")
    t.equal(#s, 4)
    t.equal(s[9], nil)
    t.equal(s[-9], nil)
  end)

  test(class .. ": nil takes an entry out, and the others move up", function(t)
    local s, list = linears(class, 4)
    s[2] = nil
    t.equal(names_of(s), "0.weight 1.weight 2.weight")
    t.equal(sizes(s), "1 3 4")
    t.equal(#s, 3)
    s[-1] = nil
    t.equal(sizes(s), "1 3")
    s[1] = nil
    s[1] = nil
    t.ok(s[1] == nil)
    t.equal(#s, 0)
    t.raises(function() s[1] = 3 end, "entry 1 must be a layer")
    s[1] = list[4]
    t.equal(names_of(s), "0.weight")
    t.raises(function() s[3] = nil end, "out of range for 1 entry")
  end)

  test(class .. ": what is no layer is refused at the next look, and the old entry stays", function(t)
    local s = linears(class, 2)
    s[1] = 3
    t.raises(function() s:parameters() end, class .. ": entry 1 must be a layer, got number 3")
    t.equal(sizes(s), "1 2")
    s[2] = nn.ReLU
    t.raises(function() return s[3] end, "entry 2 must be a layer, got the class ReLU %(nn.ReLU{} makes one%)")
    t.equal(sizes(s), "1 2")
  end)
end

test("a Sequential runs what stands in it now", function(t)
  local s = nn.Sequential { nn.Linear { 2, 2 }, nn.ReLU {}, nn.Tanh {} }
  local x = pg.randn { 3, 2 }
  local function linear() return x:matmul(s[1].weight:t()) + s[1].bias end
  s[2] = nil
  t.ok(pg.allclose(s(x), linear():tanh()))
  s[2] = nn.Sigmoid {}
  t.ok(pg.allclose(s(x), linear():sigmoid()))
  s[1] = 3
  t.raises(function() s(x) end, "Sequential: entry 1 must be a layer, got number 3")
  t.ok(pg.allclose(s(x), linear():sigmoid()))
  s[1] = nil
  t.ok(pg.allclose(s(x), x:sigmoid()))
  s[1] = nil
  t.ok(s(x) == x)
end)

test("slices hold the same layers", function(t)
  for _, class in ipairs { "Sequential", "ModuleList" } do
    local s, list = linears(class, 4)
    local cut = s[{ 2, 3 }]
    t.equal(#cut, 2)
    t.ok(cut[1] == list[2] and cut[2] == list[3] and getmetatable(cut) == getmetatable(s))
    t.equal(names_of(cut), "0.weight 1.weight")
    t.equal(sizes(s[{ -2, -1 }]), "3 4")
    t.equal(sizes(s[{ 1, 4, 2 }]), "1 3")
    t.equal(sizes(s[{ { 3, 9 } }]), "3 4")
    t.equal(#s[{ 3, 2 }], 0)
    t.equal(#s[{}], 4)
    for _, wrong in ipairs { { 1 }, { 0, 2 }, { 1, 2.5 }, { 1, 2, 0 }, { 1, 2, 3, 4 }, { a = 1 } } do
      t.raises(function() return s[wrong] end, class .. ": a slice is {first, last%[, step%]}")
    end
    t.raises(function() s[{ 1, 2 }] = list[1] end, "a position must be a whole number, got a table")
  end
end)

test("insert, extend, remove", function(t)
  for _, class in ipairs { "Sequential", "ModuleList" } do
    local s, list = linears(class, 2)
    local new = nn.Linear { 9, 9, bias = false }
    t.ok(s:insert(1, new) == s)
    t.equal(sizes(s), "9 1 2")
    s:insert(-1, nn.ReLU {}):insert(#s + 1, nn.Tanh {})
    t.equal(#s, 5)
    t.equal(names_of(s), "0.weight 1.weight 3.weight")
    t.ok(s:remove(1) == new)
    s:remove()
    t.equal(names_of(s), "0.weight 2.weight")
    t.ok(s:extend { new, function(x) return x end } == s)
    t.ok(s[4] == new)
    s:extend(s)
    t.equal(#s, 10)
    s:extend(nn.ModuleList { list[1] })
    t.ok(s[11] == list[1])
    t.raises(function() s:insert(13, new) end, class .. ": position 13 is out of range for 11 entries")
    t.raises(function() s:insert(0, new) end, "positions count from 1")
    t.raises(function() s:insert(1, 3) end, "entry 1 must be a layer, got number 3")
    t.raises(function() s:extend { new, 3 } end, "entry 13 must be a layer, got number 3")
    t.raises(function() s:extend(3) end, "expected a list, got number 3")
    t.raises(function() s:remove(12) end, "out of range")
    t.equal(#s, 11)
  end
end)

test("copies, saved states and subclasses follow the positions", function(t)
  local s = linears("Sequential", 3)
  s[1] = nil
  local copy = s:clone()
  t.equal(names_of(copy), "0.weight 1.weight")
  copy[1] = nil
  t.equal(sizes(copy), "3")
  t.equal(sizes(s), "2 3")
  local Net = nn.class("Net", nn.Sequential)
  local net = Net { nn.ReLU {}, nn.Tanh {} }
  t.ok(net[-1] == net[2])
  t.equal(#net[{ 1, 1 }], 1)
  net.extra = nn.Linear { 2, 2 }
  net[3] = nn.Linear { 2, 2 }
  net[1] = nil
  t.equal(names_of(net), "1.weight 1.bias extra.weight extra.bias")
end)

test("a ParameterList makes parameters of what is assigned", function(t)
  local list = nn.ParameterList { pg.ones { 1 }, pg.ones { 2 } }
  list[3] = pg.ones { 3 }
  list[1] = pg.ones { 4 }
  t.equal(sizes(list), "4 2 3")
  t.ok(nn.is_parameter(list[1]) and list[-1] == list[3])
  t.equal(names_of(list), "0 1 2")
  list[2] = nil
  t.equal(names_of(list), "0 1")
  list:extend { pg.ones { 5 } }
  t.equal(sizes(list[{ 2, 3 }]), "3 5")
  t.raises(function() list[9] = pg.ones { 1 } end, "ParameterList: position 9 is out of range for 3 entries")
  t.raises(function() list[4] = 3 end, "ParameterList: expected tensors, got number 3")
end)

test("names of a ModuleDict", function(t)
  local dict = nn.ModuleDict { a = nn.ReLU {} }
  dict.b = nn.Tanh {}
  t.equal(table.concat(dict:names(), " "), "a b")
  dict.a = nil
  t.equal(table.concat(dict:names(), " "), "b")
  t.raises(function() nn.ModuleDict { ["a.b"] = nn.ReLU {} } end, 'ModuleDict: the name "a%.b" must not contain a dot')
  t.raises(function() dict:add("", nn.ReLU {}) end, "ModuleDict: a name must not be empty")
  t.raises(function() dict["a.b"] = nn.ReLU {} end, "must not contain a dot")
  t.raises(function() nn.ModuleDict { nn.ReLU {} } end, "ModuleDict: expected names and layers, got number 1")
end)

test("names of methods are names of a ModuleDict, too", function(t)
  local reserved = { "training", "init", "names", "get", "__index", "__call" }
  for name in pairs(nn.Module) do
    if type(name) == "string" then reserved[#reserved + 1] = name end
  end
  local entries, given, expected = {}, {}, {}
  for i, name in ipairs(reserved) do
    entries[name] = nn.Linear { 1, 1, bias = false }
    given[name .. ".weight"] = pg.full({ 1, 1 }, i)
  end
  for name in pairs(given) do expected[#expected + 1] = name end
  table.sort(expected)
  t.ok(#expected > 30)
  local dict = nn.ModuleDict(entries)
  local function check(layer)
    t.equal(layer:load_state(given), {})
    local names = {}
    for name in layer:named_parameters() do names[#names + 1] = name end
    table.sort(names)
    t.equal(names, expected)
    t.equal(#layer:names(), #expected)
    for i, name in ipairs(reserved) do t.equal(layer:get(name)(pg.ones { 1 }), { i }) end
  end
  check(dict)
  check(dict:clone())
  t.ok(dict:clone():get("state") ~= dict:get("state"))
  check(dict:eval():train():freeze():unfreeze():to("float64"):to("float32"))
  t.ok(tostring(dict):find("(predict): Linear", 1, true))
  local path = os.tmpname() .. ".safetensors"
  pg.save(path, dict)
  t.equal(pg.load(path, nn.ModuleDict(entries)):get("size").weight, given["size.weight"])
  os.remove(path)
end)

test("layers of a ModuleDict are found, replaced and removed by any name", function(t)
  local first, second = nn.ReLU {}, nn.Tanh {}
  local dict = nn.ModuleDict { state = first, conv = second }
  t.ok(dict:get("state") == first and dict:get("conv") == second and dict.conv == second)
  t.equal(type(dict.state), "function")
  dict:add("state", second):add("conv", first)
  t.ok(dict:get("state") == second and dict.conv == first)
  t.equal(dict:names(), { "conv", "state" })
  t.ok(dict:remove("state") == second and dict:remove("conv") == first)
  t.equal(dict:names(), {})
  t.equal(t.raises(function() dict:get("conv") end, 'ModuleDict:get: there is no layer "conv" %(it is empty%)').code,
          "not_found")
  dict:add("conv", first)
  t.raises(function() dict:get("cnov") end, 'there is no layer "cnov" %(did you mean "conv"%?%)')
  t.raises(function() dict:remove("predict") end, 'remove: there is no layer "predict" %(the names are conv%)')
  t.raises(function() dict.size = first end, '"size" is a method of every layer and cannot be a field ' ..
           '%(an nn.ModuleDict holds it: dict:add%("size", layer%)')
  t.raises(function() dict:add("state", dict) end, "a layer cannot hold itself")
  -- A model whose own tensors have such a name in state().
  local Net = nn.class("Net", nn.ModuleDict)
  function Net:init() self:add("predict", nn.Linear { 2, 1 }) end
  function Net:forward(x) return self:get("predict")(x) end
  local net = Net()
  net:load_state { ["predict.weight"] = pg.ones { 1, 2 }, ["predict.bias"] = pg.zeros { 1 } }
  t.equal(net:predict(pg.ones { 1, 2 }), { { 2 } })
end)
