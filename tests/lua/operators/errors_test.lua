-- SPDX-License-Identifier: Apache-2.0
-- Bad inputs raise, say why, and leave the process usable.

local here = debug.getinfo(1, "S").source:match("^@(.*)operators/[^/]*$") or "../"
package.path = here .. "../?.lua;" .. here .. "../?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check, specs = require "cases.check", require "cases.specs"
local table_ = require "cases"

local function make(op, inputs)
  local args = {}
  specs.seed(1)
  local function tensor(v)
    if not specs.is_spec(v) then return v end
    return check.tensor(specs.draw(v, nil, {}), check.dtype_of(v, "float32"))
  end
  for i in ipairs(op.inputs) do
    local v = inputs[i]
    if type(v) == "table" and not specs.is_spec(v) then
      args[i] = {}
      for k, item in ipairs(v) do args[i][k] = tensor(item) end
    else
      args[i] = v and tensor(v)
    end
  end
  return args
end

-- What is missing, the call grammar finds; it alone sees calls as users write them.
local function issue(name, args, attrs, pattern)
  if pattern ~= "missing" then return native.call(name, args, attrs) end
  local call = { unpack(args) }
  for key, v in pairs(attrs or {}) do call[key] = v end
  return native.op(name)(call)
end

for _, name in ipairs(table_.names) do
  local op, row = native.operators.get(name), table_.rows[name]
  for i, bad in ipairs(op and not check.is_absent(name) and row.bad or {}) do
    test("errors/" .. name .. "/" .. i, function(t)
      if bad.not_on and bad.not_on:find((pg.device():match "^%a+")) then t.skip("composed of other operators there") end
      local args = make(op, bad[1])
      local err = t.raises(function()
        for _, y in ipairs { issue(name, args, bad[2], bad[3]) } do y:totable() end
      end, bad[3])
      t.ok(native.is_error(err), "not an error of Perigee's: " .. tostring(err))
      t.ok(err.code == "invalid_argument" or err.code == "not_supported" or err.code == "out_of_memory" or
           err.code == "not_found", "code " .. tostring(err.code) .. ": " .. tostring(err))
      t.ok(tostring(err):find(name, 1, true), "the message does not name the operator: " .. tostring(err))
      t.equal((pg.tensor { 1, 2 } + 1):totable(), { 2, 3 })
    end)
  end
end
