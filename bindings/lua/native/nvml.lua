-- SPDX-License-Identifier: Apache-2.0
-- What NVIDIA's driver tells of its devices (NVML): how busy they are, the energy that they have taken. The library
-- comes with the driver; where it is not, there is nothing to tell.

local ffi = require "ffi"

local M = {}

local library -- false: none
local devices = {}

local DECLARATIONS = [[
typedef struct perigee_nvml_use { unsigned gpu, memory; } perigee_nvml_use;
int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetUtilizationRates(void *device, perigee_nvml_use *use);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
]]

-- The functions of the library that it has: older drivers lack some.
local function open()
  if library ~= nil then return library end
  library = false
  local ok, loaded = pcall(ffi.load, "libnvidia-ml.so.1")
  if not ok then return false end
  pcall(ffi.cdef, DECLARATIONS) -- again where package.loaded was cleared
  local count = ffi.new("unsigned[1]")
  local begun = pcall(function()
    assert(loaded.nvmlInit_v2() == 0 and loaded.nvmlDeviceGetCount_v2(count) == 0)
    for i = 0, count[0] - 1 do
      local device = ffi.new("void *[1]")
      if loaded.nvmlDeviceGetHandleByIndex_v2(i, device) == 0 then
        devices[#devices + 1] = { number = i, handle = device[0] }
      end
    end
  end)
  if begun then library = loaded end
  return library
end

---What the driver's devices do now: { number, use, joules }, `use` the share of the last moments in which kernels ran,
---`joules` since the driver was loaded; each nil where a device does not tell. An empty list where there is no driver.
---@return { number: integer, use: number?, joules: number? }[]
function M.look()
  local nvml, list = open(), {}
  if not nvml then return list end
  local use, energy = ffi.new("perigee_nvml_use[1]"), ffi.new("unsigned long long[1]")
  for i, device in ipairs(devices) do
    local told, code = pcall(function() return nvml.nvmlDeviceGetUtilizationRates(device.handle, use) end)
    local busy = told and code == 0 and use[0].gpu / 100 or nil
    told, code = pcall(function() return nvml.nvmlDeviceGetTotalEnergyConsumption(device.handle, energy) end)
    list[i] = { number = device.number, use = busy, joules = told and code == 0 and tonumber(energy[0]) / 1e3 or nil }
  end
  return list
end

return M
