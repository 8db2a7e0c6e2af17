-- SPDX-License-Identifier: Apache-2.0
-- perigee doctor: what it sees here, and what it says of machines that are not well.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local check = require "perigee.command.doctor.checks"
local process = require "process"

local function healthy()
  return { version = "1", home = "/p", module_dir = "/p/share/perigee", other_module = "/p/share/perigee/init.lua",
           jit = true, threads = 2, environment = {}, libraries = {}, folders = {},
           machine = { arch = "x64", cores = 2, features = { "avx2" }, memory = 2 ^ 34, memory_free = 2 ^ 33 },
           plugins = { { name = "ops", state = "available", kinds = "ops" },
                       { name = "cpu", state = "available", kinds = "device,kernels" },
                       { name = "x", state = "available", kinds = "layers,optimizers,formats" },
                       { name = "mpi", state = "available", kinds = "collectives" } },
           devices = { { name = "cpu", type = "cpu" }, unavailable = {} } }
end

local function says(change)
  local f = healthy()
  change(f)
  local lines = {}
  for i, finding in ipairs(check(f)) do lines[i] = ("%s: %s"):format(finding.level, finding.text) end
  return table.concat(lines, "\n")
end

local rows = {
  { "nothing", function() end, "" },
  { "no library", function(f) f.home = nil end, "problem: libperigee.so was not found" },
  { "another perigee", function(f) f.other_module = "/old/perigee/init.lua" end,
    "problem: require \"perigee\" finds /old/perigee, but this process runs /p/share/perigee" },
  { "no compiler", function(f) f.jit = false end, "problem: LuaJIT's compiler is off: scripts run many times slower" },
  { "no AVX2", function(f) f.machine.features = {} end,
    "problem: the processor has no AVX2, which the CPU plugin's kernels are compiled for" },
  { "lesser instructions", function(f)
    f.machine.features, f.environment.PERIGEE_CPU_ISA = { "avx2", "avx512f" }, "avx2"
  end, "note: PERIGEE_CPU_ISA=avx2 keeps AVX-512 unused" },
  { "too many threads", function(f) f.threads = 8 end, "problem: 8 threads on 2 cores: they wait for each other" },
  { "idle cores", function(f) f.threads, f.environment.OMP_NUM_THREADS = 1, "1" end,
    "note: OMP_NUM_THREADS=1 leaves 1 of 2 cores idle" },
  { "a control group", function(f) f.machine.memory_limit = 2 ^ 31 end,
    "note: a control group limits memory to 2.0 GB of 16.0" },
  { "little memory", function(f) f.machine.memory_free = 2 ^ 28 end, "note: only 0.25 GB of memory are free" },
  { "exact memory", function(f) f.environment.PERIGEE_MEMORY = "exact" end,
    "note: PERIGEE_MEMORY=exact allocates every tensor by itself, for memory checkers: slow" },
  { "no huge pages", function(f) f.machine.huge_pages = "never" end,
    "note: transparent huge pages are off: large tensors take more time" },
  { "a misspelt variable", function(f) f.environment.PERIGEE_PLUGINPATH = "x" end,
    "problem: PERIGEE_PLUGINPATH=x: Perigee reads no such variable" },
  { "variables that are known", function(f)
    f.environment.PERIGEE_SIM_DEVICES, f.environment.PERIGEE_PLUGIN_PATH = "2", "/x"
  end, "" },
  { "a broken plugin", function(f)
    table.insert(f.plugins, { name = "mine", state = "unavailable", reason = "wrong ABI", path = "/x/mine.so" })
  end, "problem: plugin mine is unavailable: wrong ABI" },
  { "no GPU for cuda", function(f)
    table.insert(f.plugins, { name = "cuda", state = "unavailable", reason = "no driver" })
  end, "note: plugin cuda is unavailable: no driver" },
  { "no libraries for nccl", function(f)
    table.insert(f.plugins, { name = "nccl", state = "unavailable", reason = "needs the library libnccl.so.2" })
  end, "note: plugin nccl is unavailable: needs the library libnccl.so.2" },
  { "no libraries for nccl, and a GPU", function(f)
    f.machine.nvidia = "550"
    table.insert(f.devices, { name = "cuda:0", type = "cuda" })
    table.insert(f.plugins, { name = "nccl", state = "unavailable", reason = "needs the library libnccl.so.2" })
  end, "problem: plugin nccl is unavailable: needs the library libnccl.so.2" },
  { "GPUs without nccl", function(f)
    f.machine.nvidia = "550"
    for i = 0, 1 do table.insert(f.devices, { name = "cuda:" .. i, type = "cuda" }) end
  end, "note: 2 GPUs, and no plugin nccl: Perigee was built where no nccl.h was found, and tensors are copied from " ..
       "one to the other" },
  { "no MPI", function(f) table.remove(f.plugins) end,
    "note: no plugin carries tensors between processes: Perigee was built where no MPI was found" },
  { "no kernels", function(f) table.remove(f.plugins, 2) end,
    "problem: no plugin gives kernels\nproblem: no plugin gives device" },
  { "a device that fails", function(f) f.devices[1].problem = "lost" end, "problem: cpu does not compute: lost" },
  { "hidden GPUs", function(f) f.machine.nvidia, f.environment.CUDA_VISIBLE_DEVICES = "550", "" end,
    "problem: there is an NVIDIA driver (550) but no CUDA device: CUDA_VISIBLE_DEVICES= hides all" },
  { "a folder that is not there", function(f)
    f.folders[1] = { what = "plugins", path = "/no", plugins = true, exists = false }
  end, "problem: PERIGEE_PLUGIN_PATH names /no, which is not there" },
  { "a folder without plugins", function(f)
    f.folders[1] = { what = "plugins", path = "/no", plugins = true, exists = true, count = 0 }
  end, "problem: PERIGEE_PLUGIN_PATH names /no, which holds no plugin (NAME.so)" },
  { "a folder that cannot be written", function(f)
    f.folders[1] = { what = "history of the prompt", path = "/h", exists = true, writable = false }
  end, "note: /h cannot be written (history of the prompt)" },
}

for _, row in ipairs(rows) do
  test("doctor: " .. row[1], function(t) t.equal(says(row[2]), row[3]) end)
end

test("doctor: every finding has a remedy", function(t)
  for _, row in ipairs(rows) do
    local f = healthy()
    row[2](f)
    for _, finding in ipairs(check(f)) do t.ok(type(finding.remedy) == "string" and #finding.remedy > 5, row[1]) end
  end
end)

local function run(t, environment)
  return process.run(("%s '%s' doctor"):format(environment, process.need_perigee(t)))
end

test("doctor: the command", function(t)
  local text, status = run(t, "PERIGEE_PLUGIN_PAHT=/x")
  t.equal(status, 1)
  t.ok(text:find("PERIGEE_PLUGIN_PAHT=/x: Perigee reads no such variable\n    did you mean PERIGEE_PLUGIN_PATH?", 1,
                 true))
  for _, title in ipairs { "Perigee", "Machine", "Libraries", "Plugins", "Devices", "Environment", "Folders" } do
    t.ok(text:find("\n" .. title .. "\n", 1, true) or text:find("^" .. title .. "\n"), title)
  end
  t.ok(text:find("libluajit", 1, true) and text:find("cpu ", 1, true))
  local plain, plain_status = run(t, "")
  t.equal(plain_status, plain:find("\n  problem: ", 1, true) and 1 or 0)
end)

test("doctor: a reason is given once", function(t)
  local folder = os.tmpname()
  os.remove(folder)
  process.run(("mkdir -p '%s' && echo no > '%s/broken.so'"):format(folder, folder))
  local text, status = run(t, ("PERIGEE_PLUGIN_PATH='%s'"):format(folder))
  process.run(("rm -r '%s'"):format(folder))
  t.equal(status, 1)
  local reason = text:match("plugin broken is unavailable: ([^\n]+)")
  t.ok(reason, text)
  local _, count = text:gsub((reason:gsub("%p", "%%%0")), "")
  t.equal(count, 1)
  t.ok(text:find("broken +unavailable, see the findings"), text)
end)
