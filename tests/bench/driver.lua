-- SPDX-License-Identifier: Apache-2.0
-- Runs the items of the benchmark and prints the comparison. Called by `run`: driver.lua FOLDER BUILD PYTHON CORES
-- [--repeat N] [ITEM...]. Each measurement is a process of its own, and the two sides take turns.

local clock = require("perigee.native").clock
local folder, build, python, cores = arg[1], arg[2], arg[3], tonumber(arg[4])
local perigee = build .. "/bin/perigee"

-- The third field is the ratio that is aimed at. Tiny operators are compared with one thread of PyTorch's, where it is
-- fastest; what fills the machine with all.
local timed = {
  { "add", "add, 4 elements", 0.25, threads = 1 },
  { "add_recorded", "the same, recorded", 0.3, threads = 1 },
  { "chain", "3 operators", threads = 1 },
  { "chain_recorded", "the same, recorded", threads = 1 },
  { "tiny_forward", "tiny MLP, forward", threads = 1 },
  { "tiny_backward", "and backward", threads = 1 },
  { "tiny_step", "and Adam's step", 0.2, threads = 1 },
  { "digits_step", "digits' network, step", threads = cores },
  { "attention", "causal attention, forward", 1, threads = cores, script = "model_step" },
  { "attention_backward", "and backward", 1, threads = cores, script = "model_step" },
}

local models = {} -- the rows of model_table.lua
for name in ("mlp_step mlp_step_512 mlp_infer convnet_step convnet_infer resnet_step resnet_infer gpt_step " ..
             "gpt_infer lstm_step lstm_infer mlp_tiny_step mlp_tiny_infer"):gmatch("%S+") do models[name] = true end

local repeats, wanted, any, any_model = nil, {}, false, false
do
  local i = 5
  while arg[i] do
    if arg[i] == "--repeat" then
      repeats, i = tonumber(arg[i + 1]) or error("--repeat needs a number", 0), i + 1
    else
      wanted[arg[i]], any, any_model = true, true, any_model or models[arg[i]] or false
    end
    i = i + 1
  end
end
local only_models = wanted.models or any_model
repeats = repeats or (only_models and 3 or 5)
local function is_wanted(name) return not any or wanted[name] end

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- The numbers on the first line that a command prints, or nil.
local function numbers(command)
  -- Threads are bound in what is measured, not in this process: children would inherit its one core.
  local pipe = assert(io.popen("unset GOMP_SPINCOUNT; export OMP_PROC_BIND=true; " .. command))
  local line, list = pipe:read("*l"), {}
  pipe:close()
  for number in (line or ""):gmatch("[%d.]+") do list[#list + 1] = tonumber(number) end
  return #list > 0 and list or nil
end

-- The two sides of an item are NAME.lua and NAME_torch.py, or hot_path.lua and torch_reference.py.
local function ours(item, script)
  return numbers(("%s %s %s"):format(quote(perigee), quote(("%s/%s.lua"):format(folder, script or "hot_path")), item))
end
local function theirs(item, threads, script)
  if python == "" then return nil end
  local file = script and script .. "_torch.py" or "torch_reference.py"
  return numbers(("%s %s %s %d"):format(quote(python), quote(folder .. "/" .. file), item, threads))
end

local function quantile(list, q)
  local sorted = { unpack(list) }
  table.sort(sorted)
  return sorted[math.floor((#sorted - 1) * q + 1.5)]
end
local function median(list) return quantile(list, 0.5) end

local function spread(list, format)
  format = ("%s (%s to %s)"):format(format, format, format)
  return format:format(median(list), quantile(list, 0), quantile(list, 1))
end

local function show_time(list)
  local unit, scale = "ns", 1
  if median(list) >= 1e6 then unit, scale = "ms", 1e6 elseif median(list) >= 1e4 then unit, scale = "us", 1e3 end
  local scaled = {}
  for i, v in ipairs(list) do scaled[i] = v / scale end
  return spread(scaled, scale == 1 and "%.0f" or "%.2f") .. " " .. unit
end

-- Takes turns; answers lists of wall and processor times for both sides.
local function measure(item, threads, script)
  local r = { wall = {}, cpu = {}, torch_wall = {}, torch_cpu = {}, wall_ratio = {}, cpu_ratio = {} }
  for i = 1, repeats do
    local a, b = ours(item, script), theirs(item, threads, script)
    if not a then error(item .. " printed no numbers", 0) end
    r.wall[i], r.cpu[i] = a[1], a[2]
    if b then
      r.torch_wall[i], r.torch_cpu[i] = b[1], b[2]
      r.wall_ratio[i], r.cpu_ratio[i] = a[1] / b[1], a[2] / b[2]
    end
  end
  return r
end

local function print_row(label, r, target)
  print(("%-24s  %-30s  %s"):format(label, show_time(r.wall), r.torch_wall[1] and show_time(r.torch_wall) or ""))
  if not r.wall_ratio[1] then return end
  local aim = target and ("; aim %.2f"):format(target) or ""
  print(("%-24s  ratio %s; of processor time %s%s"):format("", spread(r.wall_ratio, "%.3f"),
        spread(r.cpu_ratio, "%.3f"), aim))
end

-- From fork to the end of the process, through the shell; what the shell itself takes is measured beside it.
local function start()
  local ms, empty = {}, {}
  for i = 1, 4 * repeats + 1 do
    local t = clock()
    os.execute(quote(perigee) .. " " .. quote(folder .. "/first_operator.lua"))
    ms[i] = (clock() - t) * 1000
    t = clock()
    os.execute("true")
    empty[i] = (clock() - t) * 1000
  end
  print(("%-24s  %s ms, an empty shell %s ms; aim 50"):format("start to first result", spread(ms, "%.1f"),
        spread(empty, "%.1f")))
  if python == "" then return end
  local torch = {}
  for i = 1, 3 do
    local t = clock()
    theirs("start", 1)
    torch[i] = (clock() - t) * 1000
  end
  print(("%-24s  PyTorch %s ms"):format("", spread(torch, "%.0f")))
end

local function bandwidth()
  local add, stream, torch, ratio = {}, {}, {}, {}
  for i = 1, repeats do
    local a, t = ours("add_large"), theirs("add_large", cores)
    local s = numbers(quote(build .. "/tests/bin/bench_stream") .. " 2>/dev/null")
    add[i] = 12 * 16777216 / a[1]
    if s then stream[i], ratio[i] = s[1], add[i] / s[1] end
    if t then torch[i] = 12 * 16777216 / t[1] end
  end
  print(("%-24s  %s GB/s%s"):format("add, 16M elements", spread(add, "%.1f"),
        torch[1] and "; PyTorch " .. spread(torch, "%.1f") or ""))
  if stream[1] then
    print(("%-24s  the memory %s GB/s; reached %s of it"):format("", spread(stream, "%.1f"), spread(ratio, "%.2f")))
  end
end

local function dropped()
  local r = ours("dropped")
  print(("%-24s  resident %.0f MiB after 100, %.0f after all, %.0f at the peak"):format("100,000 tensors of 1 MiB",
        r[1], r[2], r[3]))
end

local function matmul()
  local program = build .. "/tests/bin/matmul_direct"
  local file = io.open(program)
  if not file then return end
  file:close()
  print("matrix products against oneDNN called directly (ratio of times, aim 1.05):")
  os.execute(quote(program))
end

local function processor()
  for line in io.lines("/proc/cpuinfo") do
    local name = line:match("^model name%s*:%s*(.+)")
    if name then return name end
  end
  return "unknown processor"
end

io.stdout:setvbuf("no")
print(("%s on %s, %d cores; medians of %d with least and most"):format(os.date("%Y-%m-%d"), processor(), cores,
      repeats))
if python == "" then
  print("no Python with torch: Perigee alone")
else
  os.execute(quote(python) .. " " .. quote(folder .. "/torch_reference.py") .. " info " .. cores)
end
if not only_models then
  print(("%-24s  %-30s  %s"):format("per operation or step", "Perigee", python ~= "" and "PyTorch" or ""))
end
for _, item in ipairs(timed) do
  if is_wanted(item[1]) then print_row(item[2], measure(item[1], item.threads, item.script), item[3]) end
end
if is_wanted("start") then start() end
if is_wanted("bandwidth") then bandwidth() end
if is_wanted("dropped") then dropped() end
if is_wanted("matmul") then matmul() end
if not any or only_models then
  dofile(folder .. "/model_table.lua") {
    folder = folder, build = build, perigee = perigee, python = python, cores = cores, repeats = repeats,
    wanted = wanted, any_row = any_model, quote = quote, numbers = numbers, spread = spread, median = median,
  }
end
