-- SPDX-License-Identifier: Apache-2.0
-- What Monitor and `perigee top` make of NVIDIA's driver, shown by a library that stands in for it.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../../?.lua;" .. package.path
local process = require "process"
local pg = require "perigee"

local STAND_IN = [[
static unsigned long long taken = 5000;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)(unsigned long)(index + 1);
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned use[2]) {
  use[0] = (unsigned long)device == 1 ? 75 : 0;
  use[1] = 10;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
  if ((unsigned long)device == 2) return 3; /* not supported */
  *millijoules = taken += 250;
  return 0;
}
]]

local SCRIPT = [[
local pg = require "perigee"
local monitor = pg.callbacks.Monitor { 100, seconds = 0, print = false }
local model, x = pg.nn.Linear { 2, 1 }, pg.rand { 8, 2 }
model:fit { x = x, y = x:sum { axis = 2, keepdim = true }, loss = "mse", optimizer = pg.optim.SGD { lr = 0.1 },
            epochs = 2, batch_size = 4, verbose = 0, callbacks = { monitor } }
local use, energy = monitor.usage["use of nvidia 0"], monitor.usage["energy of nvidia 0"]
print(use.unit, use.mean, use.count, energy.unit, energy.total / energy.count, energy.count)
print(monitor.usage["use of nvidia 1"].mean, monitor.usage["energy of nvidia 1"])
]]

test("Monitor and top tell what NVIDIA's driver says", function(t)
  if t.device and t.device ~= "cpu" then t.skip("of the processor") end
  local perigee = process.need_perigee(t)
  local folder = os.tmpname() .. ".nvml"
  os.execute("mkdir -p " .. folder)
  process.write(folder .. "/nvml.c", STAND_IN)
  process.write(folder .. "/script.lua", SCRIPT)
  local built = os.execute(("cc -shared -fPIC -o %s/libnvidia-ml.so.1 %s/nvml.c 2>/dev/null"):format(folder, folder))
  if built ~= 0 and built ~= true then
    os.execute("rm -r " .. folder)
    t.skip("no C compiler")
  end
  local command = ("LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH '%s' "):format(folder, perigee)
  local text, status = process.run(command .. folder .. "/script.lua")
  local top = process.run(command .. "top --once")
  os.execute("rm -r " .. folder)
  t.equal(status, 0, text)
  t.equal(text, "devices\t0.75\t5\tjoules\t0.25\t5\n0\tnil\n")
  t.ok(top:find "nvidia 0 +75 %%", top)
end)

test("without NVIDIA's driver there is nothing to tell", function(t)
  if t.device and t.device ~= "cpu" then t.skip("of the processor") end
  for _, device in ipairs(require("perigee.native").nvml.look()) do
    t.ok(type(device.number) == "number")
  end
  t.ok(pg.callbacks.Monitor {})
end)
