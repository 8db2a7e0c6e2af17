-- SPDX-License-Identifier: Apache-2.0
-- What fit asks of the strategy whose replicas are devices of one process (fit/replicas.lua).

local native = require "perigee.native"
local lockstep = require "perigee.dist.lockstep"
local shares = require "perigee.dist.shares"
local sums = require "perigee.dist.device_sums"
local turns = require "perigee.dist.device_turns"

local function pg() return require "perigee" end

-- fn() on device k, whose tensors handles show.
local function on_device(self, k, fn)
  local function enter()
    self._twins:exchange(k)
    return native.set_device(self._numbers[k])
  end
  local function leave(device)
    native.set_device(device)
    self._twins:exchange(k)
  end
  native.with(enter, leave, fn)
end

---@param parts table what the strategy does: add_model, steps_alike, part_of, ask_for_layers, serve
return function(parts)
  return {
    begin = function(self, model)
      parts.add_model(self, "fit", model)
      self._twins:follow()
    end,
    processes = function() return 1 end,
    devices = function(self) return self._devices end,
    sum = function(self, params, optimizer, scaled)
      local to_all = not scaled and parts.steps_alike(self, optimizer)
      local lists = sums.sum(self, optimizer, params, self._ones, to_all)
      if to_all then self._updates:note(optimizer, lists) end
    end,
    change = function(self, optimizer, fn)
      fn()
      if self._updates:has_noted(optimizer) then
        for k = 2, #self._devices do on_device(self, k, fn) end
      end
    end,
    step = function(self, optimizer, params)
      self._updates:step(optimizer, params, sums.lists_of(self, params), optimizer.step)
    end,
    spread_parameters = function(self, params) self._twins:follow(params) end,
    spread_buffers = function(self) self._twins:follow() end,
    each = function(self, batch, _, fn)
      self._at_work = nil
      local cut, counts = {}, {}
      for k = 1, self.num_replicas_in_sync do
        cut[k] = parts.part_of(self, batch, k)
        counts[k] = shares.of(cut[k])
      end
      parts.ask_for_layers(self, counts)
      local function start(k) return turns.call(self, k, fn, cut[k], self._devices[k], k) end
      turns.run(self, self._ones, function()
        return lockstep.run("fit", self._names, start, function(questions) return parts.serve(self, questions) end)
      end)
    end,
    merge = function(self, metric_kind, seen)
      self._at_work = nil
      local function rows(t) return lockstep.ask("rows", "rows", t) end
      local function reduced(op, value) return lockstep.ask("strategy:reduce()", op, value) end
      local function join(questions)
        local list, answers = {}, {}
        for _, q in ipairs(questions) do
          if #q[2] > 0 then list[#list + 1] = q[2]:to(self._devices[1]) end
        end
        local all = #list > 0 and pg().cat(list, { axis = 1 }) or questions[1][2]
        for k = 1, #questions do answers[k] = { n = 1, all } end
        return answers
      end
      local results = lockstep.run("fit", self._names, function(k) return metric_kind.merge(seen[k], reduced, rows) end,
        function(questions) return questions[1].what == "rows" and join(questions) or parts.serve(self, questions) end)
      return results[1][1]
    end,
  }
end
