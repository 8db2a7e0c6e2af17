-- SPDX-License-Identifier: Apache-2.0
-- What perigee doctor knows: the machine, the process, its libraries, plugins, devices, environment. Facts only; what
-- follows from them is in checks.lua.

local facts = {}

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

local function output(command)
  local pipe = io.popen(command .. " 2>/dev/null")
  local text = pipe and pipe:read("*a") or ""
  if pipe then pipe:close() end
  text = text:gsub("%s+$", "")
  return text ~= "" and text or nil
end

local FEATURES = { "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni",
                   "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8", "asimd", "sve" }

-- Bytes that a control group allows; nil: no limit.
local function memory_limit()
  local text = read("/sys/fs/cgroup/memory.max") or read("/sys/fs/cgroup/memory/memory.limit_in_bytes")
  local bytes = text and tonumber(text)
  return bytes and bytes < 2 ^ 60 and bytes or nil
end

local function machine()
  local cpu, memory = read("/proc/cpuinfo") or "", read("/proc/meminfo") or ""
  local release = read("/etc/os-release") or ""
  local flags = " " .. (cpu:match("\nflags%s*:([^\n]*)") or cpu:match("\nFeatures%s*:([^\n]*)") or "") .. " "
  local found = {}
  for _, name in ipairs(FEATURES) do
    if flags:find(" " .. name .. " ", 1, true) then found[#found + 1] = name end
  end
  local function kilobytes(name)
    local n = memory:match(name .. ":%s*(%d+)")
    return n and tonumber(n) * 1024
  end
  return { system = release:match('PRETTY_NAME="([^"]*)"') or jit.os, kernel = output("uname -sr"), arch = jit.arch,
           cpu = cpu:match("model name%s*:%s*([^\n]*)"), features = found, cores = tonumber(output("nproc")) or 1,
           memory = kilobytes("MemTotal"), memory_free = kilobytes("MemAvailable"), memory_limit = memory_limit(),
           huge_pages = (read("/sys/kernel/mm/transparent_hugepage/enabled") or ""):match("%[(%w+)%]"),
           nvidia = (read("/proc/driver/nvidia/version") or ""):match("Module%s+([%d.]+)") or
                    (read("/proc/driver/nvidia/version") and "there") or nil }
end

local PREFIXES = { "PERIGEE_", "OMP_", "GOMP_", "KMP_", "DNNL_", "ONEDNN_", "CUDA_", "CUDNN_", "NVIDIA_", "MALLOC_",
                   "LUA_", "LD_", "XDG_", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS" }

-- The variables that may matter here, by name.
local function environment()
  local list = {}
  for entry in (read("/proc/self/environ") or ""):gmatch("[^%z]+") do
    local name, value = entry:match("^([^=]+)=(.*)$")
    for _, prefix in ipairs(PREFIXES) do
      if name and name:sub(1, #prefix) == prefix then list[name] = value end
    end
  end
  return list
end

local OF_SYSTEM = { c = true, m = true, dl = true, pthread = true, gcc_s = true, rt = true, util = true, bsd = true,
                    md = true }

-- Shared libraries of the process that are neither the system's own nor plugins: file names with their versions.
local function libraries()
  local seen, list = {}, {}
  for path in (read("/proc/self/maps") or ""):gmatch("%s(/%S+%.so[%d.]*)\n") do
    local name = path:match("[^/]+$")
    local base = name:match("^lib([%w_+-]+)")
    if not seen[path] and base and not OF_SYSTEM[base] and not path:find("/perigee/plugins/", 1, true) then
      seen[path] = true
      list[#list + 1] = { name = name, path = path }
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local function quoted(path) return "'" .. path:gsub("'", "'\\''") .. "'" end

-- Asked, not tried: a file of a known name in a folder of everybody's might be somebody's link.
local function can_write(folder) return output("test -w " .. quoted(folder) .. " && echo yes") == "yes" end

local function exists(path) return os.rename(path, path) == true end

-- Folders that Perigee writes to by itself, and those that it looks for plugins in.
local function folders()
  local state = require("perigee.prompt.history").path():match("^(.*)/[^/]*$")
  local temporary = os.getenv("TMPDIR") or "/tmp"
  local list = { { what = "history of the prompt", path = state, exists = exists(state), writable = can_write(state) },
                 { what = "temporary files", path = temporary, exists = exists(temporary),
                   writable = can_write(temporary) } }
  for path in (os.getenv("PERIGEE_PLUGIN_PATH") or ""):gmatch("[^:]+") do
    list[#list + 1] = { what = "plugins", path = path, exists = exists(path), plugins = true,
                        count = tonumber(output("ls " .. quoted(path) .. " | grep -c '[.]so$'") or 0) }
  end
  return list
end

-- 2 x 3 times 3 x 2 on a device, checked. Answers what went wrong, or nil.
local function try_device(pg, name)
  local ok, result = pcall(function()
    local x = pg.arange(6, { device = name }):to("float32"):reshape(2, 3)
    return x:matmul(x:t()):totable()
  end)
  if not ok then return tostring(result) end
  local right = result[1][1] == 5 and result[1][2] == 14 and result[2][1] == 14 and result[2][2] == 50
  return not right and "a small matrix product came out wrong" or nil
end

---@return table
function facts.collect()
  local pg, native = require "perigee", require "perigee.native"
  local plugins = native.plugins(true)
  local devices = pg.devices()
  for _, d in ipairs(devices) do d.problem = try_device(pg, d.name) end
  return { version = pg.version(), home = native.home, module_dir = native.module_dir,
           other_module = package.searchpath("perigee", package.path), lua = jit.version,
           jit = jit.status(), threads = native.threads(), machine = machine(), plugins = plugins, devices = devices,
           environment = environment(), libraries = libraries(), folders = folders() }
end

return facts
