-- SPDX-License-Identifier: Apache-2.0
-- Finds and loads libperigee. Called once, at the first use of something that needs it.

local ffi = require "ffi"

local function here()
  return (debug.getinfo(1, "S").source:match("^@(.*)[/\\][^/\\]*$")) or "."
end

-- The folder of init.lua: native/ lies in it.
local module_dir = here():gsub("[/\\]native$", "")

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

-- The prefix that holds lib/libperigee.so: PERIGEE_HOME, else three above lib/lua or share/lua/5.1/perigee.
local function find_home()
  local tried = {}
  local home = os.getenv("PERIGEE_HOME")
  local candidates = home and home ~= "" and { home } or { module_dir .. "/../../../.." }
  for _, dir in ipairs(candidates) do
    local path = dir .. "/lib/libperigee.so"
    if exists(path) then return dir, path end
    tried[#tried + 1] = path
  end
  return nil, table.concat(tried, ", ")
end

-- libgomp reads this when it loads. Without it the first parallel region after 10 ms of rest takes milliseconds.
local function tame_openmp()
  if not os.getenv("GOMP_SPINCOUNT") and not os.getenv("OMP_PROC_BIND") then
    ffi.C.perigee_setenv("GOMP_SPINCOUNT", "1000", 0)
  end
end

local function load_library()
  tame_openmp()
  local home, path = find_home()
  if not home then
    error("perigee: libperigee.so was not found (looked for " .. path ..
          "); set PERIGEE_HOME to the folder that holds lib/libperigee.so", 0)
  end
  local C = ffi.load(path)
  C.pgc_add_plugin_path(home .. "/lib/perigee/plugins")
  local break_calls = package.loaded["perigee.native.break_calls"] -- of our executable: it answers Ctrl-C
  if break_calls then break_calls(tonumber(ffi.cast("uintptr_t", ffi.cast("void *", C.pgc_interrupt)))) end
  return C, home
end

ffi.cdef(require "perigee.native.cdef")

return { load = load_library, module_dir = module_dir }
