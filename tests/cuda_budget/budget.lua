-- SPDX-License-Identifier: Apache-2.0
-- luajit budget.lua OBJECTS BUDGET [--update]: what the CUDA kernels take of a multiprocessor, as ptxas said when they
-- were compiled (OBJECTS/**.ptxas, written by plugins/cuda/ptxas_log), against the committed BUDGET. A line there is
--   KERNEL REGISTERS STACK
-- with the most registers a thread and the most bytes of stack of all of the kernel's instantiations (files are
-- compiled several at a time, so that a line cannot name one). Nothing may spill. --update writes the file anew;
-- registers round up to 8, which is what the hardware hands out.

local objects, path, update = arg[1], arg[2], arg[3] == "--update"
-- Of the build (kernels_0.cu, ...), and of the plugin where each file is compiled alone.
local sources = { objects .. "/../../", arg[0]:match("^(.*)/[^/]*$") .. "/../../plugins/cuda/" }

local function is_there(file)
  local handle = io.open(file)
  if handle then handle:close() end
  return handle ~= nil
end

local function lines_of(command)
  local pipe, list = assert(io.popen(command)), {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

-- "void cuda::(anonymous namespace)::rows<float, 4>(float*, int)" is rows.
local function family(name)
  name = name:gsub("%(anonymous namespace%)", "-"):gsub("operator[<>%(%)]+", "operator")
  name = name:gsub("%b<>", ""):gsub("%b()", ""):gsub("%s+const$", ""):gsub("%s+%[clone.*$", "")
  return name:match("([%w_~]+)%s*$") or name
end

-- What was compiled: a list of { file, symbol, registers, stack, spills }; functions that kernels call have no
-- registers.
local function compiled()
  local list, release = {}, nil
  for _, file in ipairs(lines_of(("find '%s' -name '*.ptxas' | LC_ALL=C sort"):format(objects))) do
    local source = file:sub(#objects + 2):gsub("%.o%.ptxas$", "")
    local entry, current
    -- A build keeps what was made of files that are gone.
    local made = is_there(sources[1] .. source) or is_there(sources[2] .. source)
    for line in made and io.lines(file) or function() end do
      local symbol = line:match("Compiling entry function '([^']+)'")
      local properties = line:match("Function properties for (%S+)")
      local stack, stores, loads = line:match("(%d+) bytes stack frame, (%d+) bytes spill stores, (%d+) bytes spill")
      local registers = line:match("Used (%d+) registers")
      if symbol then
        entry = { file = source, symbol = symbol, stack = 0, spills = 0 }
        list[#list + 1] = entry
      elseif properties then
        current = entry and entry.symbol == properties and entry
        if not current then -- a function of its own: __internal_trig_reduction_slowpathd, a noinline one
          current = { file = source, symbol = properties }
          list[#list + 1] = current
        end
      elseif stack and current then
        current.stack, current.spills = tonumber(stack), tonumber(stores) + tonumber(loads)
      elseif registers and entry then
        entry.registers = tonumber(registers)
        entry.stack = math.max(entry.stack, tonumber(line:match("(%d+) bytes cumulative stack") or 0))
      end
    end
  end
  for _, line in ipairs(lines_of("nvcc --version 2>/dev/null || /usr/local/cuda/bin/nvcc --version")) do
    release = release or line:match("release ([%d.]+)")
  end
  return list, release or "unknown"
end

local function demangle(list)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  for _, k in ipairs(list) do file:write(k.symbol, "\n") end
  file:close()
  for i, line in ipairs(lines_of(("c++filt < '%s'"):format(name))) do list[i].name = family(line) end
  os.remove(name)
end

local function read_budget()
  local budget, release, file = {}, nil, io.open(path)
  for line in file and file:lines() or function() end do
    release = release or line:match("^# .*release ([%d.]+)")
    local name, registers, stack = line:match("^(%S+) (%d+) (%d+)$")
    if name then budget[name] = { registers = tonumber(registers), stack = tonumber(stack) } end
  end
  if file then file:close() end
  return budget, release
end

local function write_budget(families, release)
  local file, names = assert(io.open(path, "w")), {}
  for name in pairs(families) do names[#names + 1] = name end
  table.sort(names)
  file:write("# Written by scripts/dev/cuda_budget: KERNEL REGISTERS STACK. By ptxas of CUDA release ", release,
             "\n")
  for _, name in ipairs(names) do
    local f = families[name]
    file:write(("%s %d %d\n"):format(name, math.ceil(f.registers / 8) * 8, f.stack))
  end
  file:close()
  print(("%s: %d kernels"):format(path, #names))
end

local list, release = compiled()
if #list == 0 then error("no .ptxas files in " .. objects .. ": was the CUDA plugin built?", 0) end
demangle(list)

local bad = 0
local function complain(...)
  bad = bad + 1
  print((...):format(select(2, ...)))
end

local families, instantiations = {}, 0
for _, k in ipairs(list) do
  if (k.spills or 0) > 0 then complain("%s: %s spills %d bytes (%s)", k.file, k.name, k.spills, k.symbol) end
  if k.registers then
    instantiations = instantiations + 1
    local f = families[k.name] or { registers = 0, stack = 0 }
    families[k.name] = f
    if k.registers > f.registers then f.registers, f.widest = k.registers, k.symbol end
    if k.stack > f.stack then f.stack, f.deepest = k.stack, k.symbol end
  end
end

local budget, budgeted = read_budget()
if update then
  write_budget(families, release)
elseif budgeted and budgeted ~= release then
  print(("the budget is for release %s, and this is %s: only spills are looked at"):format(budgeted, release))
else
  for key, f in pairs(families) do
    local b = budget[key]
    if not b then
      complain("%s: not in the budget (%d registers, %d bytes of stack); scripts/dev/cuda_budget adds it", key,
               f.registers, f.stack)
    else
      if f.registers > b.registers then
        complain("%s: %d registers, the budget is %d (%s)", key, f.registers, b.registers, f.widest)
      end
      if f.stack > b.stack then
        complain("%s: %d bytes of stack, the budget is %d (%s)", key, f.stack, b.stack, f.deepest)
      end
    end
  end
  for key in pairs(budget) do
    if not families[key] then complain("%s: in the budget, and not in the plugin any more", key) end
  end
end
print(("%d instantiations of kernels, %d complaints"):format(instantiations, bad))
os.exit(bad == 0 and 0 or 1)
