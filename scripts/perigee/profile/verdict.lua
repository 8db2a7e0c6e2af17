-- SPDX-License-Identifier: Apache-2.0
-- What holds a run back, and what to change.

-- Where nobody says how fast a device is: a kernel that does fewer operations than this for each byte that it moves
-- waits for memory.
local INTENSITY = 4
-- A kernel that is over before the next one can be called: its calls are what takes the time.
local SMALL = 10e-6

local ADVICE = {
  ["input-bound"] = "the model waits for its data: prepare batches on other threads (map with workers), cache what " ..
    "does not change, prefetch",
  ["copy-bound"] = "bytes travel between devices: keep data where it is computed with, copy it once, in larger " ..
    "pieces, and avoid :item() and :totable() in the loop",
  ["launch-bound"] = "many small operators: larger batches, fewer and larger operators, pg.compile, or a graph " ..
    "(pg.Session), which calls them for less",
  ["host-bound"] = "the script itself takes the time: move loops over elements into operators, and work that does " ..
    "not depend on the step out of it",
  ["memory-bound"] = "kernels move more bytes than they compute with: join elementwise operators, use bfloat16, " ..
    "write in place",
  ["compute-bound"] = "kernels compute: this is what the machine can do; bfloat16, a smaller model or a faster " ..
    "device make it faster",
}

-- Whether the kernels' time goes to those that compute much with what they read.
local function is_dense(self)
  local dense, sparse = 0, 0
  for _, row in ipairs(self.rows) do
    local weight, computes = row.kernel, row.bytes > 0 and row.flops / row.bytes > INTENSITY
    if row.bound then computes = row.bound == "compute" end
    if self.parts.waits > self.parts.kernels then -- its own time is unknown
      weight = math.max(row.flops / 8, row.bytes)
    end
    if computes then dense = dense + weight else sparse = sparse + weight end
  end
  return dense > sparse
end

local function mean_kernel(self)
  local seconds, count = 0, 0
  local function add(list)
    for _, r in ipairs(list) do
      if r.kind == "kernel" then seconds, count = seconds + (r.to - r.from), count + 1 end
    end
  end
  add(self.threads.script)
  for _, list in pairs(self.on_devices) do add(list) end
  return count > 0 and seconds / count or 0, count
end

---@return {kind: string, text: string, advice: string}
return function(self)
  local parts = self.parts
  local compute = parts.kernels + parts.waits
  local mean, count = mean_kernel(self)
  local kind, most = "host-bound", parts.script
  local function weigh(name, seconds)
    if seconds > most then kind, most = name, seconds end
  end
  weigh("input-bound", parts.input)
  weigh("copy-bound", parts.copies)
  local small = count > 0 and mean < SMALL and parts.waits < parts.kernels + parts.dispatch
  if small then
    weigh("launch-bound", parts.dispatch + parts.kernels + math.min(parts.script, parts.dispatch * 2))
  else
    weigh(is_dense(self) and "compute-bound" or "memory-bound", compute)
    weigh("launch-bound", parts.dispatch)
  end
  local function percent(v) return ("%.0f %%"):format(100 * v / math.max(self.seconds, 1e-12)) end
  local text = ("%s: input %s, copies %s, kernels %s, waiting for devices %s, calling operators %s, script %s"):format(
    kind, percent(parts.input), percent(parts.copies), percent(parts.kernels), percent(parts.waits),
    percent(parts.dispatch), percent(parts.script))
  return { kind = kind, text = text, advice = ADVICE[kind] }
end
