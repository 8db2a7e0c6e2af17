-- SPDX-License-Identifier: Apache-2.0
-- nn.RNN, nn.LSTM, nn.GRU and their cells against PyTorch's (tests/recurrent): outputs, gradients of both orders.

local pg = require "perigee"
local json = require("perigee.native").json
local nn = pg.nn

local folder = debug.getinfo(1, "S").source:match("^@(.*)lua/[^/]*/[^/]*$") .. "recurrent/data/"
local tensors = pg.load(folder .. "recurrent.safetensors")
for name, x in pairs(tensors) do tensors[name] = x:to(pg.device()) end
local file = assert(io.open(folder .. "recurrent.json", "rb"))
local cases = json(file:read("*a"))
file:close()

local SECOND = 50 -- squares of gradients, summed: their rounding adds up
local NAMES = { "bias", "num_layers", "bidirectional", "nonlinearity", "proj_size" }

local function title(number, case)
  local words = {}
  for _, name in ipairs { "bias", "batch_first", "num_layers", "bidirectional", "nonlinearity", "proj_size", "states",
                          "alone" } do
    if case[name] ~= nil then words[#words + 1] = name .. "=" .. tostring(case[name]) end
  end
  if case.lengths then words[#words + 1] = "lengths" end
  return ("%d: %s%s"):format(number, case.kind, #words > 0 and " with " .. table.concat(words, ", ") or "")
end

-- The layer of a case with its weights, loaded by name; its inputs by name.
local function build(number, case, dtype)
  local is_cell = case.kind:find "Cell" ~= nil
  local options = { 4, 3 }
  for _, name in ipairs(NAMES) do options[name] = case[name] end
  if not is_cell then options.batch_first = case.batch_first or false end
  local layer, weights, inputs = nn[case.kind](options), {}, {}
  for _, name in ipairs(case.inputs) do
    local t = tensors[("%d.in.%s"):format(number, name)]
    if name:find "^weight" or name:find "^bias" then
      weights[name] = t
    else
      inputs[name] = t:to(dtype):detach():requires_grad_()
    end
  end
  layer:to(dtype):load_state(weights)
  for name, p in layer:named_parameters() do inputs[name] = p end
  return layer, inputs
end

local function call(case, layer, inputs)
  return { layer(inputs.x, { h0 = inputs.h0, c0 = inputs.c0, lengths = case.lengths }) }
end

-- Largest difference, relative where numbers are large.
local function far(got, expected)
  if expected:numel() == 0 then return 0 end
  got = got:to("float64")
  return ((got - expected):abs() / expected:abs():clamp(1, math.huge)):max():item()
end

local function check(t, number, case, dtype, tolerance)
  local layer, inputs = build(number, case, dtype)
  local function near(what, got, tail, scale)
    local expected = tensors[("%d.%s"):format(number, tail)]
    t.ok(got.shape == expected.shape, ("%s is %s, expected %s"):format(what, tostring(got.shape),
                                                                       tostring(expected.shape)))
    local distance = far(got, expected)
    t.ok(distance <= tolerance * (scale or 1), ("%s %s differs by %g"):format(dtype, what, distance))
  end
  local outputs, cotangents, list = call(case, layer, inputs), {}, {}
  for i, y in ipairs(outputs) do
    near("output " .. i, y, "out." .. i)
    t.equal(y.dtype, dtype)
    cotangents[i] = tensors[("%d.cotangent.%d"):format(number, i)]:to(dtype)
  end
  for i, name in ipairs(case.inputs) do list[i] = inputs[name] end
  t.equal(#outputs, case.kind:find "^LSTM" and (case.kind:find "Cell" and 2 or 3) or case.kind:find "Cell" and 1 or 2)
  local first = { pg.grad(outputs, list, { grad_outputs = cotangents, retain_graph = true }) }
  for i, name in ipairs(case.inputs) do near("the gradient of " .. name, first[i], "grad." .. name) end

  local plain = pg.no_grad(call, case, layer, inputs)
  for i, y in ipairs(plain) do t.ok(far(y, outputs[i]:detach():to("float64")) <= tolerance, "without gradients") end

  local recorded = { pg.grad(outputs, list, { grad_outputs = cotangents, create_graph = true }) }
  local norm = 0
  for i, name in ipairs(case.inputs) do
    near("the recorded gradient of " .. name, recorded[i], "grad." .. name)
    if name == "x" or name:find "^weight_hh" then norm = norm + recorded[i]:square():sum() end
  end
  local second = { pg.grad(norm, list, { allow_unused = true }) }
  for i, name in ipairs(case.inputs) do
    local tail = "second." .. name
    local expected = tensors[("%d.%s"):format(number, tail)]
    if expected then near(tail, second[i] or pg.zeros_like(expected), tail, SECOND) end
  end
end

for number, case in ipairs(cases) do
  test(title(number, case), function(t)
    check(t, number, case, "float64", 1e-12)
    check(t, number, case, "float32", 1e-6)
  end)
end
