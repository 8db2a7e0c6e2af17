-- SPDX-License-Identifier: Apache-2.0
-- What the classes of graphs and sessions share: methods that look at self, and names that are told.

local native = require "perigee.native"

---Makes a class of the methods in it: self must be one of its objects, unknown names raise. `noun`: what messages call
---an object; `call`: what a script may call it.
return function(class, noun, call)
  local names = {}
  for name, method in pairs(class) do
    names[#names + 1] = name
    class[name] = function(self, ...)
      if getmetatable(self) ~= class then
        native.raise("invalid_argument", name, ("self must be a %s, got %s"):format(noun, native.describe(self)),
                     ("call it with a colon: %s:%s()"):format(call, name))
      end
      return method(self, ...)
    end
  end
  class.__index = class
  setmetatable(class, { __index = function(_, key)
    if type(key) == "string" and key:find "^__" then return nil end -- asked of a metatable
    local near = native.suggest(tostring(key), names)
    native.raise("not_found", nil, ("a %s has no %q"):format(noun, tostring(key)),
                 near and ("did you mean %s:%s()?"):format(call, near))
  end })
end
