-- SPDX-License-Identifier: Apache-2.0
-- A profile as Chrome's trace format: https://ui.perfetto.dev opens it.

local native = require "perigee.native"
local pg = require "perigee"

local PROCESS, HOST, RANGES, FIRST_DEVICE = 1, 1, 2, 10

local function encode(event) return pg.json.encode(event) end

local function thread_name(number, name)
  return encode { ph = "M", name = "thread_name", pid = PROCESS, tid = number, args = { name = name } }
end

-- Which line a record stands on: kernels and copies on that of their device.
local function line_of(r)
  if r.kind == "range" then return RANGES end
  if (r.kind == "op" or r.kind == "backward" or r.kind == "wait") or r.device < 0 then return HOST end
  return FIRST_DEVICE + r.device
end

local function event_of(r)
  local arguments = { shapes = r.shapes, line = r.origin, layer = r.layer,
                      bytes = r.bytes > 0 and r.bytes or nil }
  return encode { ph = "X", name = r.kind == "backward" and "gradient of " .. r.name or r.name, cat = r.kind,
                  ts = r.from * 1e6, dur = (r.to - r.from) * 1e6, pid = PROCESS, tid = line_of(r),
                  args = next(arguments) and arguments or nil }
end

---@param profile perigee.Profile
---@param path string
return function(profile, path)
  local events = { encode { ph = "M", name = "process_name", pid = PROCESS, args = { name = "perigee" } },
                   thread_name(HOST, "host"), thread_name(RANGES, "ranges") }
  local live, used = {}, {}
  for device, start in pairs(profile.live) do live[device] = start.bytes end
  for _, r in ipairs(profile.records) do
    if r.block then
      live[r.device] = (live[r.device] or 0) + (r.kind == "alloc" and r.bytes or -r.bytes)
      events[#events + 1] = encode { ph = "C", pid = PROCESS, ts = r.from * 1e6, args = { bytes = live[r.device] },
        name = "memory of " .. (profile.live[r.device] and profile.live[r.device].name or tostring(r.device)) }
    else
      local line = line_of(r)
      if line >= FIRST_DEVICE and not used[line] then
        used[line] = true
        local start = profile.live[r.device]
        events[#events + 1] = thread_name(line, start and start.name or tostring(r.device))
      end
      events[#events + 1] = event_of(r)
    end
  end
  native.write_text(path, '{"displayTimeUnit":"ms","traceEvents":[\n' .. table.concat(events, ",\n") .. "\n]}\n")
end
