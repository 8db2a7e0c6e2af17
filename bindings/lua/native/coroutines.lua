-- SPDX-License-Identifier: Apache-2.0
-- Whether there may be coroutines. To ask which one runs is a call that LuaJIT does not compile, and scopes ask at each
-- call; most scripts make none. Who makes a state watches before anything else runs in it: see state.cpp, workers.lua.

local M = { possible = true }

local function note() M.possible = true end

---From now on whatever can make one is noted: coroutine.create and wrap, and modules of C, which may make their own.
function M.watch()
  M.possible = false
  local create, wrap, loadlib = coroutine.create, coroutine.wrap, package.loadlib
  rawset(coroutine, "create", function(fn)
    note()
    return create(fn)
  end)
  rawset(coroutine, "wrap", function(fn)
    note()
    return wrap(fn)
  end)
  rawset(package, "loadlib", function(...)
    note()
    return loadlib(...)
  end)
  for i = 3, #package.loaders do -- the first two are of what is loaded, and of Lua
    local load = package.loaders[i]
    package.loaders[i] = function(name)
      local found = load(name)
      if type(found) == "function" then note() end
      return found
    end
  end
end

return M
