-- SPDX-License-Identifier: Apache-2.0
-- pg.compile: a function whose work is planned once and launched again.

local native = require "perigee.native"
local pg = require "perigee"

local frozen = require "perigee.compile.frozen"

local compiled = native.compiled
local call_with_none, call_with_one = compiled.call_with_none, compiled.call_with_one
local call_with_two, in_main = compiled.call_with_two, native.in_main

---@class perigee.Compiled
---@overload fun(...: any): any
local Compiled = {}

local read = native.signature("compile", {
  { "fn", "function", required = true, doc = "what a call runs; its tensors live as in pg.scope" },
  { "amp", "string", type = '"bfloat16"|"float16"', doc = "a dtype: calls run under pg.amp.autocast with it" },
  { "fuse", "boolean", default = true, doc = "whether operators may be joined into one kernel where a plugin can" },
  { "capture", "boolean", default = true, doc = "whether a plan is launched as one where its device can" },
  { "frozen", "boolean", default = false,
    doc = "for inference: whether calls with arguments like those of an earlier one skip the function" },
  { "layout", "boolean", default = true,
    doc = "of frozen calls: whether convolutions, and what stands around them, may be computed as one kernel whose " ..
          "result differs by rounding" },
})

---pg.compile(fn, options): a function that does what fn does, with the same bits. fn runs at every call; what it asks
---for is compared with plans of earlier calls, and where it is the same, the plan's kernels are launched in one go, in
---memory that was laid out once. A call is a pg.scope: what fn returns or keeps stays. The first call runs as always,
---the second is noted.
---
---With `frozen=true`, for inference, fn runs without gradients, and only where a call's arguments are not yet known by
---their dtypes, shapes and devices (of tensors) or by what they are (of all else). Other calls launch what was noted,
---without fn: tensors that it met are read as they are at the call, numbers and branches stay those of then. What fn
---cannot do without itself (`:item()`, random numbers, backward) is an error. Convolutions and what stands around them
---may be one kernel, whose results differ from eager ones by rounding; not with `layout=false`.
---@param fn function
---@return perigee.Compiled
local function compile(...)
  local o = read(...)
  local fn, inner = o.fn, o.fn
  if o.amp then
    inner = function(...) return pg.amp.autocast({ dtype = o.amp }, fn, ...) end
  end
  if o.frozen then
    local recorded = inner
    inner = function(...) return pg.no_grad(recorded, ...) end
  end
  local by = "the compiled function of " .. (native.script_line() or "?")
  local self = { fn = inner, mode = compiled.mode "compile", fuse = o.fuse, by = by, native = false }
  self.captures = o.capture and self.mode == "capture"
  self.layout = o.layout and (self.mode == "layout" or self.mode == "capture")
  if self.mode ~= "off" then
    self.native = compiled.create(inner, by, o.fuse and self.mode ~= "plan", self.captures)
  end
  self.frozen = o.frozen and self.native ~= false
  self.planned = not self.frozen and self.native
  if self.frozen then frozen.start(self) end
  return setmetatable(self, Compiled)
end

local function call(self, ...)
  if self.frozen then return frozen.call(self, ...) end
  if self.native then return compiled.call(self.native, ...) end
  return native.lifetimes.scope(self.by, self.fn, ...)
end

function Compiled:__call(...)
  local planned, arguments = self.planned, select("#", ...)
  if planned and arguments <= 2 and in_main() then -- see "Code that compiles" in bindings/lua/README.md
    if arguments == 0 then return call_with_none(planned) end
    local a, b = ...
    if arguments == 1 then return call_with_one(planned, a) end
    return call_with_two(planned, a, b)
  end
  return call(self, ...)
end

local function nothing() -- of a function that is not compiled
  return { calls = 0, hits = 0, recorded = 0, replayed = 0, eager = 0, plans = 0, why = {}, stretches = {} }
end

---What the function has done so far: `calls`; `plans` that are kept; `hits`, stretches of calls that were launched as
---a plan; `recorded`, those that were noted; `replayed`, those that began as a plan and went on otherwise; `eager`,
---calls that were not looked at; `why`, how often for which reason something was not launched as a plan. Of the plan
---used last: `items`; `layers`, calls of plugins' layers among them that are compared as wholes; `launches`, the
---kernels that these are one by one, and `kernels`, those that are launched; `regions`, each with the `operators` that
---are one kernel, and how many `nodes`, `inputs` and `outputs`, what it does `about` layouts, and the bytes `packed`
---that it keeps of parameters; and bytes: `bytes` of its memory as it is laid out, `bound` of what lives at once at
---least, `separate` the same without reuse, `own` of what outlives the call, `eager_peak` of what eager code held at
---once. Of a plan that is captured on its device: `captures`, how often it was; `pieces`, what it is launched as beside
---kernels that are launched one by one, and `captured`, the kernels in them; `runtime`, bytes of numbers that are
---written before a launch; `copied`, bytes of arguments and results that lie elsewhere each time; `capture_why`, why it
---was captured anew, or why it is not.
---@return table figures
function Compiled:stats()
  local s = self.native and compiled.stats(self.native) or nothing()
  local first = s.stretches[1]
  s.regions = first and first.regions or {}
  for _, name in ipairs { "items", "layers", "launches", "kernels", "bytes", "bound", "separate", "own", "eager_peak",
                          "captures", "pieces", "captured", "runtime", "copied" } do
    s[name] = first and first[name] or 0
  end
  s.capture_why = first and first.capture_why or ""
  return s
end

local MOST = 12 -- operators that are told one by one

-- Operators of a region: in their order, or where there are many how often each.
local function counted(operators)
  local names, count, total = {}, {}, 0
  for name in operators:gmatch "%S+" do
    if not count[name] then names[#names + 1] = name end
    count[name], total = (count[name] or 0) + 1, total + 1
  end
  if total <= MOST then return operators end
  for i, name in ipairs(names) do names[i] = count[name] .. " " .. name end
  return table.concat(names, ", ")
end

---The same as text, a line for each stretch that is planned.
---@return string
function Compiled:explain()
  local s, lines = self:stats(), {}
  lines[1] = ("%s: %d calls, %d plans, %d hits, %d recorded, %d called again as they were, %d eager"):format(
    self.native and self.mode or "off", s.calls, s.plans, s.hits, s.recorded, s.replayed, s.eager)
  for i, p in ipairs(s.stretches) do
    if p.refused then
      lines[#lines + 1] = ("stretch %d: not planned: %s"):format(i, p.refused)
    else
      local text = "stretch %d: %d items, %d kernels (%d without fusion), used %d times; memory %d bytes, " ..
                   "%d live at once, %d without reuse; %d outlive the call; eager code held %d"
      lines[#lines + 1] = text:format(i, p.items, p.kernels, p.launches, p.uses, p.bytes, p.bound, p.separate, p.own,
                                      p.eager_peak)
      if (p.captures or 0) > 0 or (p.capture_why or "") ~= "" then
        local form = "  captured %d times: %d kernels in %d launches, %d bytes of numbers, %d bytes copied%s"
        lines[#lines + 1] = form:format(p.captures, p.captured, p.pieces, p.runtime, p.copied,
                                        p.capture_why ~= "" and "; " .. p.capture_why or "")
      end
      for _, r in ipairs(p.regions) do
        local form = r.joined and "  one kernel of %s: %s (%d inputs, %d outputs)"
                     or "  %s computes one by one: %s (%d inputs, %d outputs)"
        lines[#lines + 1] = form:format(r.by, counted(r.operators), r.inputs, r.outputs)
        if r.about ~= "" then
          lines[#lines + 1] = ("    layout: %s; %d bytes kept of constants"):format(r.about, r.packed)
        end
      end
    end
  end
  local reasons = {}
  for why, times in pairs(s.why) do reasons[#reasons + 1] = ("%d times: %s"):format(times, why) end
  table.sort(reasons)
  for _, reason in ipairs(reasons) do lines[#lines + 1] = reason end
  if not self.fuse or self.mode == "plan" or self.mode == "off" then lines[#lines + 1] = "fusion: off" end
  return table.concat(lines, "\n")
end

native.checked.class(Compiled, { noun = "a compiled function", call = "compiled" })

function Compiled:__tostring() return "pg.compile: " .. self:explain() end

return { compile = compile }
