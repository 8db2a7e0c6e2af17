-- SPDX-License-Identifier: Apache-2.0
-- How a training tells its callbacks.

local native = require "perigee.native"

-- Callbacks are functions, called at each epoch's end, or tables with on_train_begin, on_epoch_begin, on_batch_end,
-- on_interrupt, on_epoch_end, on_train_end. All get the job: { model, optimizer, epoch, step, done, history, stop };
-- stop = true ends it with the optimizer's next step; where that is inside of an epoch, on_interrupt comes before
-- on_epoch_end. Those with `last` come behind the others: they save what the others have done.
local EVENTS = { "on_train_begin", "on_epoch_begin", "on_batch_end", "on_interrupt", "on_epoch_end", "on_train_end" }
local is_event = {}
for _, name in ipairs(EVENTS) do is_event[name] = true end

local function check_events(i, methods)
  for name in pairs(methods) do
    if type(name) == "string" and name:sub(1, 3) == "on_" and not is_event[name] then
      local near = native.suggest(name, EVENTS)
      native.raise("invalid_argument", "fit", ("callback %d has %q, which nothing calls"):format(i, name),
                   near and ("did you mean %q?"):format(near) or "events are " .. table.concat(EVENTS, ", "))
    end
  end
end

-- A list, of which there may be one without a list around it.
local function listed(callbacks)
  if type(callbacks) ~= "table" or getmetatable(callbacks) ~= nil then return { callbacks } end
  for key in pairs(callbacks) do
    if type(key) == "string" and key:find("^on_") then return { callbacks } end
    if type(key) ~= "number" then
      native.raise("invalid_argument", "fit", ("callbacks is a list, but has the name %q"):format(tostring(key)),
                   "callbacks={ a, b }")
    end
  end
  return callbacks
end

---@return table callbacks as a list
---@return fun(job: table, event: string, argument: any) notify tells them of an event
return function(given)
  local callbacks, order = listed(given), {}
  for i, callback in ipairs(callbacks) do
    if type(callback) ~= "function" and type(callback) ~= "table" then
      native.raise("invalid_argument", "fit", ("callback %d must be a function or a table, got %s"):format(i,
                   native.describe(callback)))
    end
    if type(callback) == "table" then
      local meta = getmetatable(callback)
      local class = type(meta) == "table" and rawget(meta, "__index")
      check_events(i, callback)
      if type(class) == "table" then check_events(i, class) end
    end
  end
  for _, last in ipairs { false, true } do
    for _, callback in ipairs(callbacks) do
      if (type(callback) == "table" and callback.last or false) == last then order[#order + 1] = callback end
    end
  end
  return callbacks, function(job, event, argument)
    for _, callback in ipairs(order) do
      if type(callback) == "function" then
        if event == "on_epoch_end" then callback(job, argument) end
      elseif callback[event] then
        callback[event](callback, job, argument)
      end
    end
  end
end
