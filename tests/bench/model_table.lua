-- SPDX-License-Identifier: Apache-2.0
-- The table of the whole models: each in float32 and bfloat16, eager and compiled, against PyTorch's eager and compiled
-- ones and against the floor of model_floor.cpp, by turns. Ratios are of wall time; with one thread of processor time,
-- which neighbours disturb less. Called by driver.lua with its helpers; `run models` prints it, `run mlp_step ...` some
-- rows.

local rows = {
  { "mlp_step", "MLP, batch 64, step" }, { "mlp_step_512", "MLP, batch 512, step" }, { "mlp_infer", "MLP, batch 1" },
  { "convnet_step", "convolutional net, step" }, { "convnet_infer", "the same, one image" },
  { "resnet_step", "ResNet-18, step" }, { "resnet_infer", "the same, one image" },
  { "gpt_step", "GPT, batch 8, step" }, { "gpt_infer", "GPT, batch 1" },
  { "lstm_step", "LSTM, batch 32, step" }, { "lstm_infer", "LSTM, batch 1" },
  { "mlp_tiny_step", "tiny MLP, step" }, { "mlp_tiny_infer", "tiny MLP, batch 2" },
}

-- PyTorch has no 16-bit kernels for every processor and may take minutes for a step: what takes longer is left out of
-- the rounds that follow. torch.compile compiles for a minute first.
local patience = { eager = 40, compiled = 300 }

return function(tools)
  local quote, numbers, spread, median = tools.quote, tools.numbers, tools.spread, tools.median
  local field = tools.cores == 1 and 2 or 1

  local function ours(mode)
    local command = ("%s %s %%s %%s %s"):format(quote(tools.perigee), quote(tools.folder .. "/model_step.lua"), mode)
    return function(item, dtype) return numbers(command:format(item, dtype)) end
  end
  local sides = {
    { "eager", ours "eager" },
    { "compiled", ours "compiled" },
    { "floor", function(item, dtype)
      return numbers(("%s %s %s 2>/dev/null"):format(quote(tools.build .. "/tests/bin/model_floor"), item, dtype))
    end },
  }
  local function theirs(mode)
    local command = ("timeout %d %s %s %%s %d %%s %s 2>/dev/null"):format(patience[mode], quote(tools.python),
      quote(tools.folder .. "/model_step_torch.py"), tools.cores, mode)
    return function(item, dtype) return numbers(command:format(item, dtype)) end
  end
  if tools.python ~= "" then
    sides[#sides + 1] = { "torch", theirs("eager") }
    sides[#sides + 1] = { "torch.compile", theirs("compiled") }
  end

  -- Milliseconds of each side, round by round; a side that once ran out of patience (or cannot) has none.
  local function measure(item, dtype, rounds)
    local times = {}
    for _, side in ipairs(sides) do times[side[1]] = {} end
    for i = 1, rounds do
      for _, side in ipairs(sides) do
        local list = times[side[1]]
        if #list == i - 1 then
          local found = side[2](item, dtype)
          list[i] = found and found[field] / 1e6
        end
      end
    end
    if #times.eager < rounds or #times.compiled < rounds then error(item .. " printed no numbers", 0) end
    return times
  end

  -- The quicker of PyTorch's two in each round.
  local function best_of_torch(times)
    local best, eager, compiled = {}, times.torch or {}, times["torch.compile"] or {}
    for i = 1, math.max(#eager, #compiled) do best[i] = math.min(eager[i] or math.huge, compiled[i] or math.huge) end
    return best
  end

  local function ratio(mine, others)
    if #others < #mine then return "" end
    local list = {}
    for i, time in ipairs(mine) do list[i] = time / others[i] end
    return spread(list, "%.2f")
  end

  local function shown(list) return list and #list > 0 and ("%.4g"):format(median(list)) or "" end

  print("| | eager, ms | compiled, ms | PyTorch, ms | torch.compile, ms | compiled to the better of PyTorch's | " ..
        "to the floor | to eager | eager to PyTorch's eager |")
  print("|---|---|---|---|---|---|---|---|---|")
  for _, dtype in ipairs { "float32", "bfloat16" } do
    for _, row in ipairs(rows) do
      if not tools.any_row or tools.wanted[row[1]] then
        local t = measure(row[1], dtype, tools.repeats)
        local cells = { shown(t.eager), shown(t.compiled), shown(t.torch), shown(t["torch.compile"]),
                        ratio(t.compiled, best_of_torch(t)), ratio(t.compiled, t.floor), ratio(t.compiled, t.eager),
                        ratio(t.eager, t.torch or {}) }
        print(("| %s, %s | %s |"):format(row[2], dtype, table.concat(cells, " | ")))
      end
    end
  end
end
