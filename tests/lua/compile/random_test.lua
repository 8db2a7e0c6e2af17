-- SPDX-License-Identifier: Apache-2.0
-- Random programs, compiled and not: what they return, leave in tensors and gradients, and raise must be the same.
-- PERIGEE_PROGRAMS says how many; PERIGEE_PROGRAM runs the one of that number.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/compile/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local generator = require("draws").generator -- not of numbers that are compared

local CALLS = 7

local unary = { "relu", "tanh", "sigmoid", "exp", "neg", "abs", "square", "clone", "detach", "contiguous" }
local binary = { "add", "sub", "mul", "maximum", "div" }
local in_place = { "add_", "mul_", "sub_" }

-- One instruction: a function of the state { values, params, i, seen }.
local instructions = {
  function(draw)
    local name, a = unary[draw(#unary)], draw(64)
    return function(s) local x = s.pick(a) s.push(x[name](x)) end
  end,
  function(draw)
    local name, a, b = binary[draw(#binary)], draw(64), draw(64)
    return function(s) local x, y = s.pick(a), s.pick(b) s.push(x[name](x, y)) end
  end,
  function(draw)
    local a, factor, changes = draw(64), draw(5), draw(4) == 1
    return function(s) s.push(s.pick(a) * (changes and factor * s.i or factor) + 0.5) end
  end,
  function(draw)
    local a = draw(64)
    return function(s) local x = s.pick(a) s.push(x:matmul(x:t()):tanh():matmul(x)) end
  end,
  function(draw)
    local a, axis = draw(64), draw(2)
    return function(s) local x = s.pick(a) s.push(x - x:sum(axis, true) * 0.1) end
  end,
  function(draw)
    local name, a, b = in_place[draw(#in_place)], draw(64), draw(64)
    return function(s)
      local x, y = s.pick(a), s.pick(b)
      if x.is_leaf and x.requires_grad then return end
      x[name](x, y * 0.5)
    end
  end,
  function(draw)
    local a, row = draw(64), draw(3)
    return function(s)
      local x = s.pick(a)
      if x.is_leaf and x.requires_grad then return end
      x[row]:mul_(0.5)
    end
  end,
  function(draw)
    local a, b = draw(64), draw(64)
    return function(s) s.push(pg.cat({ s.pick(a)[{ { 1, 2 } }], s.pick(b)[{ { 2, 2 } }] }, 1)) end
  end,
  function(draw)
    local a = draw(64)
    return function(s) s.push(s.pick(a):t():contiguous():reshape { 3, 3 }) end
  end,
  function(draw)
    local a = draw(64)
    return function(s) s.push(pg.no_grad(function() return s.pick(a) * 2 end)) end
  end,
  function() return function(s) s.push(pg.randn { 3, 3 }) end end,
  function(draw)
    local every = draw(3)
    return function(s) if s.i % every == 0 then s.push(pg.ones { 3, 3 } * s.i) end end
  end,
  function(draw)
    local a, rare = draw(64), draw(3) == 1
    return function(s) if not rare or s.i % 3 == 0 then s.seen[#s.seen + 1] = s.pick(a):sum():item() end end
  end,
  function(draw)
    local a = draw(64)
    return function(s)
      local x = s.pick(a)
      if x.requires_grad then x:sum():backward() end
    end
  end,
  function(draw)
    local a = draw(3)
    return function(s)
      local p = s.params[a]
      if p.grad then pg.no_grad(function() p:sub_(p.grad * 0.01) end) end
    end
  end,
  function(draw)
    local a, clear = draw(3), draw(2) == 1
    return function(s)
      local p = s.params[a]
      if clear then p.grad = nil elseif p.grad then p.grad:mul_(0.5) end
    end
  end,
  function(draw)
    local a = draw(64)
    return function(s) s.buffer:copy_(s.pick(a):detach()) end
  end,
  function(draw)
    local a = draw(64)
    return function(s) s.push(pg.dropout(s.pick(a), 0.3, true)) end
  end,
  function(draw)
    local a, fails = draw(64), draw(12) == 1
    return function(s)
      if fails and s.i == 5 then s.pick(a):reshape { 5 } end
      s.push(s.pick(a):softmax(-1))
    end
  end,
}

local function program(seed)
  local draw = generator(seed)
  local list = {}
  for k = 1, 4 + draw(14) do list[k] = instructions[draw(#instructions)](draw) end
  local returned, keeps_history = draw(3), draw(6) == 1
  local always_backward, clears = draw(3) > 1, draw(3) > 1
  return function()
    local params, buffer = { pg.randn { 3, 3 }, pg.randn { 3, 3 }, pg.randn { 3, 3 } }, pg.zeros { 3, 3 }
    params[1].requires_grad, params[2].requires_grad = true, true
    local f = function(i)
      local values = { params[1] * 1, params[2], params[3], buffer }
      local s = { i = i, params = params, buffer = buffer, seen = {} }
      function s.pick(n) return values[(n - 1) % #values + 1] end
      function s.push(x) values[#values + 1] = x:clamp(-4, 4) end
      if clears then for p = 1, 2 do params[p].grad = nil end end
      for k = 1, #list do list[k](s) end
      local last = values[#values]
      if always_backward and last.requires_grad then last:sum():backward() end
      if returned == 1 then return s.seen, keeps_history and last or last:detach() end
      if returned == 2 then
        return s.seen, keeps_history and values[1 + math.floor(#values / 2)] or last:detach(), last.requires_grad
      end
      return s.seen
    end
    return f, params, buffer
  end
end

-- Which of two NaN comes out of a sum is left open where operators are joined.
local function number_text(x) return x ~= x and "nan" or ("%.17g"):format(x) end
local function text(v)
  if pg.is_tensor(v) then
    local flat, parts = v:detach():clone():reshape { -1 }:totable(), {}
    for i, x in ipairs(flat) do parts[i] = number_text(x) end
    return table.concat(parts, " ") .. (v.requires_grad and " g" or "")
  elseif type(v) == "table" then
    local parts = {}
    for i, x in ipairs(v) do parts[i] = type(x) == "number" and number_text(x) or text(x) end
    return "{" .. table.concat(parts, "; ") .. "}"
  end
  return tostring(v)
end

local function trace(make, compiled)
  pg.manual_seed(3)
  local f, params, buffer = make()
  local step = compiled and pg.compile(f) or f
  local lines = {}
  for i = 1, CALLS do
    local result = { pcall(step, i) }
    for k, v in ipairs(result) do
      result[k] = result[1] and text(v) or tostring(v):gsub("^.-:%d+: ", ""):gsub("version %d+, saved at %d+", "")
    end
    local rest = { table.concat(result, " | "), text(buffer), text(pg.rand { 2 }) }
    for k, p in ipairs(params) do rest[k + 3] = text(p) .. " / " .. (p.grad and text(p.grad) or "-") end
    lines[i] = table.concat(rest, "\n")
  end
  return lines, step
end

test("random programs", function(t)
  local only = tonumber(os.getenv "PERIGEE_PROGRAM")
  local hits, total = 0, 0
  for seed = only or 1, only or tonumber(os.getenv "PERIGEE_PROGRAMS") or 600 do
    local make = program(seed)
    local expected = trace(make, false)
    local got, step = trace(make, true)
    for i = 1, CALLS do
      if got[i] ~= expected[i] then
        local form = "program %d, call %d:\n%s\n-- instead of\n%s\n%s"
        error(form:format(seed, i, got[i], expected[i], step:explain()), 0)
      end
    end
    hits, total = hits + (step:stats().hits > 0 and 1 or 0), total + 1
  end
  t.ok(only or hits > total / 5, ("%d of %d programs were ever launched as plans"):format(hits, total))
end)
