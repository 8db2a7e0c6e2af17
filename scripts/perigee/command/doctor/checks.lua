-- SPDX-License-Identifier: Apache-2.0
-- What is wrong with the facts, and what to do about it. A finding is { level = "problem" or "note", text, remedy }.

local suggest = require "perigee.native.suggest"

local VARIABLES = { "PERIGEE_HOME", "PERIGEE_PLUGIN_PATH", "PERIGEE_MEMORY", "PERIGEE_CPU_ISA", "PERIGEE_LOG",
                    "PERIGEE_SIM_DEVICES", "PERIGEE_DIST_DEADLINE", "PERIGEE_DIST_DEBUG", "PERIGEE_PIECES" }

local checks = {}

function checks.library(f, report)
  if not f.home then
    report("problem", "libperigee.so was not found", "set PERIGEE_HOME to the folder that holds lib/libperigee.so")
  end
  local dir = f.other_module and f.other_module:gsub("/init%.lua$", ""):gsub("%.lua$", "")
  if dir and f.module_dir and dir ~= f.module_dir then
    report("problem", ("require \"perigee\" finds %s, but this process runs %s"):format(dir, f.module_dir),
           "take the other one out of LUA_PATH or package.path")
  end
end

function checks.compiler(f, report)
  if not f.jit then
    report("problem", "LuaJIT's compiler is off: scripts run many times slower",
           "it needs memory near its code, or was switched off (jit.off(), -joff, a hardened kernel)")
  end
end

function checks.processor(f, report)
  local has = {}
  for _, name in ipairs(f.machine.features) do has[name] = true end
  if f.machine.arch == "x64" and not has.avx2 then
    report("problem", "the processor has no AVX2, which the CPU plugin's kernels are compiled for",
           "run on a processor of 2013 or later, or pass its features through to the virtual machine")
  end
  if f.environment.PERIGEE_CPU_ISA == "avx2" and has.avx512f then
    report("note", "PERIGEE_CPU_ISA=avx2 keeps AVX-512 unused", "unset it, unless you compare the two")
  end
end

function checks.threads(f, report)
  local cores, asked = f.machine.cores, tonumber(f.environment.OMP_NUM_THREADS)
  if f.threads > cores then
    report("problem", ("%d threads on %d cores: they wait for each other"):format(f.threads, cores),
           ("OMP_NUM_THREADS=%d, or pg.config.set{threads=%d}"):format(cores, cores))
  elseif asked and f.threads < cores then
    report("note", ("OMP_NUM_THREADS=%d leaves %d of %d cores idle"):format(asked, cores - f.threads, cores),
           "unset it to use all")
  end
  if f.environment.OMP_WAIT_POLICY and f.environment.OMP_WAIT_POLICY:lower() == "passive" then
    report("note", "OMP_WAIT_POLICY=passive makes every parallel region wake its threads anew", "unset it")
  end
end

function checks.memory(f, report)
  local m, gigabyte = f.machine, 2 ^ 30
  if m.memory_limit and m.memory and m.memory_limit < m.memory then
    report("note", ("a control group limits memory to %.1f GB of %.1f"):format(m.memory_limit / gigabyte,
           m.memory / gigabyte), "the process is killed beyond it; pg.config.memory_limit(\"cpu\", ...) fails earlier")
  end
  if m.memory_free and m.memory_free < gigabyte then
    report("note", ("only %.2f GB of memory are free"):format(m.memory_free / gigabyte), "end other programs")
  end
  if f.environment.PERIGEE_MEMORY == "exact" then
    report("note", "PERIGEE_MEMORY=exact allocates every tensor by itself, for memory checkers: slow", "unset it")
  end
  if m.huge_pages == "never" then
    report("note", "transparent huge pages are off: large tensors take more time",
           "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)")
  end
end

function checks.variables(f, report)
  for name, value in pairs(f.environment) do
    local known = name:sub(1, 8) ~= "PERIGEE_" or name:sub(1, 12) == "PERIGEE_SIM_"
    for _, variable in ipairs(VARIABLES) do known = known or variable == name end
    if not known then
      local near = suggest(name, VARIABLES)
      report("problem", ("%s=%s: Perigee reads no such variable"):format(name, value),
             near and "did you mean " .. near .. "?" or "there are " .. table.concat(VARIABLES, ", "))
    end
  end
  if f.environment.LD_PRELOAD then
    report("note", "LD_PRELOAD=" .. f.environment.LD_PRELOAD .. " is loaded into every program", "unset it if in doubt")
  end
end

-- Plugins that are of use with a GPU alone.
local FOR_GPUS = { cuda = "install its driver and the CUDA runtime",
                   nccl = "install NCCL (libnccl2) and the CUDA runtime" }

function checks.plugins(f, report)
  local kinds = {}
  for _, p in ipairs(f.plugins) do
    if p.state == "available" then
      for kind in (p.kinds or ""):gmatch("[%w_]+") do kinds[kind] = true end
    else
      report(FOR_GPUS[p.name] and not f.machine.nvidia and "note" or "problem",
             ("plugin %s is %s: %s"):format(p.name ~= "" and p.name or p.path or "?", p.state or "unavailable",
                                            p.reason or "no reason given"),
             FOR_GPUS[p.name] and ("with a GPU: %s; without one ignore this"):format(FOR_GPUS[p.name]) or
             ("rebuild it for this version, or take %s out of the folder"):format(p.path or "it"))
    end
  end
  for _, kind in ipairs { "ops", "kernels", "device", "layers", "optimizers", "formats" } do
    if not kinds[kind] then
      report("problem", ("no plugin gives %s"):format(kind), "the installation is incomplete: install it again")
    end
  end
end

-- Plugins that a build leaves out where what they need is not there.
function checks.collectives(f, report)
  local gpus, has_nccl = 0, false
  for _, d in ipairs(f.devices) do gpus = gpus + (d.type == "cuda" and 1 or 0) end
  for _, p in ipairs(f.plugins) do has_nccl = has_nccl or p.name == "nccl" end
  if gpus > 1 and not has_nccl then
    report("note", ("%d GPUs, and no plugin nccl: Perigee was built where no nccl.h was found, and tensors are " ..
                    "copied from one to the other"):format(gpus), "install libnccl-dev, and build again")
  end
  for _, p in ipairs(f.plugins) do
    if ("," .. (p.kinds or "") .. ","):find(",collectives?,") then return end
  end
  report("note", "no plugin carries tensors between processes: Perigee was built where no MPI was found",
         "for perigee launch: apt-get install libopenmpi-dev openmpi-bin, and build again")
end

function checks.devices(f, report)
  local has_cuda = false
  for _, d in ipairs(f.devices) do
    has_cuda = has_cuda or d.type == "cuda"
    if d.problem then
      report("problem", ("%s does not compute: %s"):format(d.name, d.problem), "perigee test tests/lua/operators " ..
             "--device " .. d.name .. " says more")
    end
  end
  if f.machine.nvidia and not has_cuda then
    local reason
    for _, u in ipairs(f.devices.unavailable or {}) do
      if u.type == "cuda" then reason = u.reason end
    end
    local visible = f.environment.CUDA_VISIBLE_DEVICES
    if visible == "" or visible == "-1" then
      reason = "CUDA_VISIBLE_DEVICES=" .. visible .. " hides all"
    else
      for _, p in ipairs(f.plugins) do -- its own finding says it
        if p.name == "cuda" and p.state ~= "available" then return end
      end
    end
    report("problem", "there is an NVIDIA driver (" .. f.machine.nvidia .. ") but no CUDA device: " ..
           (reason or "the CUDA plugin is not there"), reason and "see there" or "build with nvcc and cuDNN installed")
  end
end

function checks.folders(f, report)
  for _, folder in ipairs(f.folders) do
    if folder.plugins and not folder.exists then
      report("problem", "PERIGEE_PLUGIN_PATH names " .. folder.path .. ", which is not there",
             "correct it, or unset it")
    elseif folder.plugins and folder.count == 0 then
      report("problem", "PERIGEE_PLUGIN_PATH names " .. folder.path .. ", which holds no plugin (NAME.so)",
             "correct it, or unset it")
    elseif folder.exists and folder.writable == false then
      report("note", ("%s cannot be written (%s)"):format(folder.path, folder.what),
             "chmod it, or set XDG_STATE_HOME or TMPDIR")
    end
  end
end

local ORDER = { "library", "compiler", "processor", "threads", "memory", "variables", "plugins", "collectives",
                "devices", "folders" }

---All findings, problems first.
---@param f table facts
---@return {level: string, text: string, remedy: string}[]
return function(f)
  local problems, notes = {}, {}
  local function report(level, text, remedy)
    table.insert(level == "problem" and problems or notes, { level = level, text = text, remedy = remedy })
  end
  for _, name in ipairs(ORDER) do checks[name](f, report) end
  for _, note in ipairs(notes) do problems[#problems + 1] = note end
  return problems
end
