-- SPDX-License-Identifier: Apache-2.0
-- Lua states for threads of pipelines.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local pack = require "perigee.native.pack"

local M = {}
jit.off(true, true) -- calls of another Lua state must not be compiled

local C
local lua = ffi.C

local BEGIN = [[
  local path, cpath, packed = ...
  package.path, package.cpath = path, cpath
  require("perigee.native.coroutines").watch()
  return require("perigee.native.worker").start(packed)
]]

local function push(L, text) lua.lua_pushlstring(L, text, #text) end

local function new_state(packed)
  local L = lua.luaL_newstate()
  if L == nil then errors.raise("out_of_memory", "map", "no memory for a worker's Lua state") end
  lua.luaL_openlibs(L)
  local status = lua.luaL_loadbuffer(L, BEGIN, #BEGIN, "=perigee:worker")
  if status == 0 then
    push(L, package.path)
    push(L, package.cpath)
    push(L, packed)
    status = lua.lua_pcall(L, 3, 1, 0)
  end
  if status ~= 0 then
    local text = lua.lua_tolstring(L, -1, nil)
    local message = text ~= nil and ffi.string(text) or "unknown error"
    lua.lua_close(L)
    errors.raise("internal", "map", "a worker could not begin: " .. message)
  end
  return L, ffi.cast("int32_t (*)(uint32_t, void *)", ffi.cast("uintptr_t", lua.lua_tonumber(L, -1)))
end

---Functions of a script, checked and packed: { text =, kept = }.
function M.pack(functions)
  local text, kept = pack(functions)
  return { text = text, kept = kept }
end

---`count` workers for packed functions. They are closed once neither Lua nor a run has them.
function M.create(packed, count)
  local list = ffi.new("pgc_worker[?]", count)
  for i = 0, count - 1 do
    list[i].state, list[i].call = new_state(packed.text)
    list[i].close = ffi.cast("void (*)(void *)", lua.lua_close)
  end
  local out = ffi.new("pgc_workers *[1]")
  if C.pgc_workers_create(list, count, out) ~= 0 then errors.raise_native(C, "map") end
  return ffi.gc(out[0], C.pgc_workers_release)
end

---How many workers "auto" is.
function M.automatic() return C.pgc_threads() end

function M.start(library) C = library end

return M
