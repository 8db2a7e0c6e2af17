-- SPDX-License-Identifier: Apache-2.0
-- The table of the whole models: each in float32 and bfloat16 against PyTorch and against the floor of model_floor.cpp,
-- by turns; what takes long and hardly varies (PyTorch in bfloat16) is measured in the first round only.
-- Called by driver.lua with its helpers; `run models` prints it, `run mlp_step ...` some rows.

local rows = {
  { "mlp_step", "MLP, batch 64, step" }, { "mlp_step_512", "MLP, batch 512, step" }, { "mlp_infer", "MLP, batch 1" },
  { "convnet_step", "convolutional net, step" }, { "convnet_infer", "the same, one image" },
  { "resnet_step", "ResNet-18, step" }, { "resnet_infer", "the same, one image" },
  { "gpt_step", "GPT, batch 8, step" }, { "gpt_infer", "GPT, batch 1" },
}

-- PyTorch has no 16-bit kernels for every processor and may take minutes for a step: then its time is "more than" this.
local patience = 40

return function(tools)
  local quote, numbers, spread, median = tools.quote, tools.numbers, tools.spread, tools.median

  local function ours(item, dtype)
    return numbers(("%s %s %s %s"):format(quote(tools.perigee), quote(tools.folder .. "/model_step.lua"), item, dtype))
  end
  local function theirs(item, dtype)
    if tools.python == "" then return nil end
    return numbers(("timeout %d %s %s %s %d %s"):format(patience, quote(tools.python),
                   quote(tools.folder .. "/model_step_torch.py"), item, tools.cores, dtype))
  end
  local function floor(item, dtype)
    return numbers(("%s %s %s 2>/dev/null"):format(quote(tools.build .. "/tests/bin/model_floor"), item, dtype))
  end

  local function ratios(mine, others, field)
    local list = {}
    for i, pair in ipairs(mine) do list[i] = pair[field] / (others[i] or others[#others])[field] end
    return list
  end

  local function milliseconds(list)
    local values = {}
    for i, pair in ipairs(list) do values[i] = pair[1] / 1e6 end
    return ("%.4g"):format(median(values))
  end

  local function measure(item, dtype, rounds)
    local mine, torch, least, impatient = {}, {}, {}, nil
    for i = 1, rounds do
      mine[i] = ours(item, dtype) or error(item .. " printed no numbers", 0)
      if i == 1 or dtype == "float32" and not impatient then
        torch[#torch + 1] = theirs(item, dtype)
        impatient = #torch < i
      end
      least[#least + 1] = floor(item, dtype)
    end
    return mine, torch, least, impatient
  end

  local function against_torch(mine, torch, gave_up)
    if torch[1] and not gave_up then
      return milliseconds(torch), spread(ratios(mine, torch, 2), "%.2f"), spread(ratios(mine, torch, 1), "%.2f")
    end
    if tools.python == "" then return "", "", "" end
    local bound = ("below %.2f"):format(mine[1][1] / (patience * 1e9))
    return (">%d s"):format(patience), bound, bound
  end

  local function print_row(row, dtype, rounds)
    local mine, torch, least, gave_up = measure(row[1], dtype, rounds)
    local torch_time, cpu, wall = against_torch(mine, torch, gave_up)
    local function to_floor(field) return least[1] and spread(ratios(mine, least, field), "%.2f") or "" end
    print(("| %s, %s | %s | %s | %s | %s | %s | %s |"):format(row[2], dtype, milliseconds(mine), torch_time, cpu, wall,
          to_floor(1), to_floor(2)))
  end

  print("| | Perigee, ms | PyTorch, ms | ratio of processor time | of wall time | to the floor's, wall | processor |")
  print("|---|---|---|---|---|---|---|")
  for _, dtype in ipairs { "float32", "bfloat16" } do
    for _, row in ipairs(rows) do
      local chosen = not tools.any_row or tools.wanted[row[1]]
      if chosen then print_row(row, dtype, tools.repeats) end
    end
  end
end
