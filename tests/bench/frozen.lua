-- SPDX-License-Identifier: Apache-2.0
-- Inference with few samples: eager, compiled and frozen calls, and with PYTHON (that has PyTorch) its eager calls
-- (inference_mode) and torch.compile's, and ONNX Runtime and OpenVINO where it has them and onnx: by turns, row by row.
-- A row has the least microseconds of each, and the median of the rounds' ratios of frozen calls' times to the quickest
-- of the others', with least and most. DTYPE bfloat16: calls under autocast on both sides (PyTorch's also of a model
-- that is bfloat16 itself, whichever is quicker), OpenVINO told to compute in it; ONNX Runtime computes in float32.
--
--   perigee tests/bench/frozen.lua [ROUNDS [THREADS [PYTHON [DTYPE [ROW ...]]]]]

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn

local rounds, threads, python, dtype = tonumber(arg[1]) or 7, tonumber(arg[2]) or 1, arg[3], arg[4] or "float32"
if python == "" then python = nil end
pg.config.set { threads = threads }
local folder = arg[0]:match "^(.*)/[^/]*$" or "."
local models = {}
for _, file in ipairs { "models", "vision" } do
  local items = dofile(("%s/%s.lua"):format(folder, file))(nil, function(model, x) return { model = model, x = x } end)
  for name, make in pairs(items) do models[name] = make end
end

local function mlp(inputs, hidden)
  return nn.Sequential { nn.Linear { inputs, hidden }, nn.ReLU {}, nn.Linear { hidden, hidden }, nn.ReLU {},
                         nn.Linear { hidden, 10 } }
end

local function row_of(name, item)
  local made = models[item]()
  return { name, made.x, made.model }
end

local ROWS = {
  { "MLP 4-8-2, 2 samples", { 2, 4 }, nn.Sequential { nn.Linear { 4, 8 }, nn.ReLU {}, nn.Linear { 8, 2 } } },
  { "MLP 256-256-10, 1 sample", { 1, 256 }, mlp(256, 256) },
  { "MLP 784-2048-2048-10, 1 sample", { 1, 784 }, mlp(784, 2048) },
  { "linear, GELU, norm, linear, 64", { 1, 64 },
    nn.Sequential { nn.Linear { 64, 64 }, nn.GELU {}, nn.LayerNorm { 64 }, nn.Linear { 64, 64 } } },
  { "transformer layer, 16 x 64", { 1, 16, 64 },
    nn.TransformerEncoderLayer { 64, 4, feedforward = 256, dropout = 0 } },
  { "convolutions, 1 x 16 x 16", { 1, 1, 16, 16 },
    nn.Sequential { nn.Conv2d { 1, 8, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 },
                    nn.Conv2d { 8, 16, 3, padding = 1 }, nn.ReLU {}, nn.MaxPool2d { 2 }, nn.Flatten {},
                    nn.Linear { 256, 10 } } },
  row_of("ResNet-18, 3 x 224 x 224", "resnet_infer"), row_of("MLP with batch norm, 784", "mlp_infer"),
  row_of("the small net, 1 x 28 x 28", "convnet_infer"), row_of("GPT, 256 tokens", "gpt_infer"),
  row_of("LSTM, 100 x 64", "lstm_infer"),
}

local function time(fn, x)
  local least = math.huge
  for _ = 1, 5 do
    local count, begin = 0, native.clock()
    repeat
      fn(x):free()
      count = count + 1
    until native.clock() - begin > 0.04 and count >= 2
    least = math.min(least, (native.clock() - begin) / count * 1e6)
  end
  return least
end

-- PyTorch's two, ONNX Runtime's and OpenVINO's, of a row.
local function times_of_others(row)
  if not python then return {} end
  local command = "%s %s/frozen_torch.py %d %s %d 2>/dev/null"
  local pipe = assert(io.popen(command:format(python, folder, threads, dtype, row)))
  local found = {}
  for line in pipe:lines() do
    local n, rest = line:match "^(%d+)\t(.*)$"
    if tonumber(n) == row then
      for word in rest:gmatch "%S+" do found[#found + 1] = tonumber(word) or false end
    end
  end
  pipe:close()
  return found
end

local function calls_of(row)
  local model = row[3]:eval()
  local amp = dtype ~= "float32" and dtype or nil
  local function call(v) return model(v) end
  local function eager(v) return pg.no_grad(call, v) end
  local calls = { amp and function(v) return pg.amp.autocast({ device = "cpu", dtype = amp }, eager, v) end or eager,
                  pg.compile(eager, { amp = amp }),
                  pg.compile(call, { frozen = true, amp = amp }) }
  local x = pg.is_tensor(row[2]) and row[2] or pg.randn(row[2])
  for k = 1, #calls do for _ = 1, 5 do calls[k](x) end end
  return calls, x
end

local HEADS = { "eager", "compiled", "frozen", "torch eager", "torch.compile", "ONNX Runtime", "OpenVINO" }
print(("%-32s"):format "us a call" .. ("%14s"):rep(#HEADS):format(unpack(HEADS)) .. "  ratio")
local wanted = {}
for i = 5, #arg do wanted[tonumber(arg[i])] = true end
for i, row in ipairs(ROWS) do
  if wanted[i] or #arg < 5 then
    local calls, x = calls_of(row)
    local least, ratios = {}, {}
    for _ = 1, rounds do
      local now = {}
      for k = 1, 3 do now[k] = time(calls[k], x) end
      local quickest = math.huge
      for k, us in ipairs(times_of_others(i)) do
        now[k + 3] = us
        quickest = math.min(quickest, us or quickest)
      end
      if quickest < math.huge then ratios[#ratios + 1] = now[3] / quickest end
      for k = 1, #HEADS do if now[k] then least[k] = math.min(least[k] or math.huge, now[k]) end end
    end
    table.sort(ratios)
    local text = ("%-32s"):format(row[1])
    for k = 1, #HEADS do text = text .. (least[k] and ("%14.1f"):format(least[k]) or ("%14s"):format "") end
    if #ratios > 0 then
      text = text .. ("  %.2f (%.2f to %.2f)"):format(ratios[math.ceil(#ratios / 2)], ratios[1], ratios[#ratios])
    end
    print(text)
    io.stdout:flush()
  end
end
