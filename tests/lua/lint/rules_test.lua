-- SPDX-License-Identifier: Apache-2.0
-- What the checker of scripts finds, and what it leaves alone.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
local root = here .. "/../../.."

local pg = require "perigee"
local lint = require "perigee.lint"
local files_of = require "perigee.command.files"

local NAMES = [[
local pg = require "perigee"
local nn, optim, data = pg.nn, pg.optim, pg.data
local x, y, a, b, w = pg.rand { 3 }, pg.rand { 3 }, pg.rand { 3 }, pg.rand { 3 }, pg.rand { 3 }
local model, loss = nn.Sequential { nn.Linear { 3, 2 } }, nn.mse(x, y)
local opt = optim.SGD { model:parameters(), lr = 1 }
local given, list, names, rows = ...
]]
local _, LINES = NAMES:gsub("\n", "")

-- What is found in a program as lines of text; those of its fixtures are none.
local function found(code, prefix)
  local list = {}
  for i, f in ipairs(lint.check((prefix or "") .. code)) do
    list[i] = ("%d:%d: %s (%s)"):format(f.line - (prefix and LINES or 0), f.column, f.message, f.rule)
  end
  return list
end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "*a"
  if file then file:close() end
  return text
end

for _, rule in ipairs(lint.rules()) do
  test("lint: " .. rule.name, function(t)
    t.ok(#rule.bad > 0 and #rule.good > 0)
    for _, code in ipairs(rule.bad) do
      local all = found(code, NAMES)
      t.ok(#all > 0, "nothing is found in " .. code)
      for _, text in ipairs(all) do t.ok(text:find("(" .. rule.name .. ")", 1, true), code .. ": " .. text) end
      t.equal(found(code .. " -- lint: ignore", NAMES), {})
    end
    for _, code in ipairs(rule.good) do
      for _, text in ipairs(found(code, NAMES)) do t.ok(false, code .. ": " .. text) end
    end
  end)
end

test("a plugin that cannot be loaded may have a name that nothing is like", function(t)
  t.raises(function() pg.load_plugin("/nowhere/lint_test.so") end, "cannot be read")
  t.equal(found("print(pg.my_own_operator(x), nn.MyPluginLayer)", NAMES), {})
  t.equal(#found("print(pg.zeross(2))", NAMES), 1)
end)

test("what is found says where, and what is written instead", function(t)
  t.equal(found("local function f(x, pg)\n  if x:gt(0):any() then return x[0] end\nend"),
          { '2:14: a tensor is true in Lua, whatever it holds: :item() gives the boolean (tensor-condition)',
            '2:34: positions count from 1: the first is 1, the last -1 (position-from-zero)' })
  t.equal(found("pg.graph(function(g)\n  local h = g:placeholder{'h', shape={2}}\n" ..
                "  if h:sum():gt(0) then h = -h end\n  while h:gt(1):any() do h = h / 2 end\n" ..
                "  return { y = h }\nend)", NAMES),
          { "3:14: a tensor is true in Lua, and the graph's has no contents yet: pg.cond(tensor, fn, fn) decides at " ..
            "each run (tensor-condition)",
            "4:17: a tensor is true in Lua, and the graph's has no contents yet: pg.while_loop{...} repeats at each " ..
            "run (tensor-condition)" })
  t.equal(found("print(pg.stack{x:max{axis=2}}, x.sum())", NAMES),
          { "1:18: max gives values and indices, and both go into this call: write (x:max{...}), or amax (two-results)",
            "1:34: a method is called with a colon: x:sum(...) (dot-for-colon)" })
  t.equal(found("print(x.T, optim.lr_scheduler)", NAMES),
          { '1:9: a tensor has no field or method "T" (x:t() transposes a matrix, x:transpose(a, b) swaps two axes) ' ..
            '(unknown-name)',
            '1:18: optim has no "lr_scheduler" (optim.sched.Step, optim.sched.Cosine, ...) (unknown-name)' })
end)

test("types follow variables, and what is set to two kinds of things has none", function(t)
  local prefix = "local pg = require 'perigee' local g = ... "
  local none = { "local v = 0 v = v + pg.rand{2} print(v == 0)", "local v = pg.rand{2} v = g print(v == 0)",
                 "local v = g print(v[0], v == 0, v.sum())",
                 "local v if g then v = pg.rand{2} end if v then print(v) end",
                 "local pg = g print(pg:zeros(2), pg.nothing)",
                 "for i = 1, 2 do local x = pg.rand{2} print(x, i) end print(g[0])",
                 "function g:any() return true end if g:any() then print(1) end",
                 "local outer, self = g, g print(outer[0], self.sum())" }
  for _, code in ipairs(none) do t.equal(found(prefix .. code), {}) end
  t.equal(found "return function(v) if v:eq(v.zero):any() then return v.backward() end end", {}) -- nothing of Perigee
  local some = { "local v = pg.rand{2} v = v:relu() v = v * 2 print(v == 0)",
                 "local a, b = pg.rand{2}:max(1) print(g, a[0], b)",
                 "local v = pg.rand{2} local function f() return v == 0 end print(f)",
                 "local t = pg.cat{pg.rand{2}, g} print(t.sum())",
                 "local function f(q) q:unsqueeze(1) return q[0] end print(f)",
                 "local n = (((pg.rand{2}))) print(n[0])", "local m = -pg.rand{2} print(m[0])" }
  for _, code in ipairs(some) do t.equal({ code, #found(prefix .. code) }, { code, 1 }) end
end)

test("long chains take a time that grows with them", function(t)
  local chain, sum = (":relu()"):rep(150), (" + x"):rep(150)
  t.equal(found("local pg = ... local x = pg.rand{2} x = x" .. chain .. sum .. " print(x" .. chain .. sum .. ")"), {})
end)

test("what is expected to fail is left alone", function(t)
  t.equal(found("pcall(function() return x[0] end) t.raises(function() print(a == b, x.sum()) end, 'why')", NAMES), {})
end)

test("what does not compile says what is meant", function(t)
  local rows = {
    { "local x = 1\nx += 1", "2:1: .*Lua has no %+=" }, { "if a != b then end", "1:1: .*not equal is ~=" },
    { "local y = x[1:3]", "x%[{{first, last}}%]" }, { "def f(x):", "local function name" },
    { "import torch", 'require "perigee"' }, { "from torch import nn", 'require "perigee"' },
    { "with torch.no_grad():", "pg%.no_grad%(function" }, { "local f = lambda x: x", "function%(x%) return" },
    { "class Net(nn.Module):", "nn%.class" }, { "# a comment\nlocal x = = 1", "2:1: " },
    { "for i in range(3):\n  print(i)", "for i = 1, n do" }, { "local z = a ** 2", "powers are x %^ y" },
    { "x = a // b", "Lua has no //" }, { "local = 1", "1:1: '?<?name>?'? expected" },
    { "if x is None: pass", "x == nil" },
    { "while true do\n  continue\nend", "goto continue" }, { "local c = a @ b", "a:matmul%(b%)" },
  }
  for _, row in ipairs(rows) do
    local all = found(row[1])
    t.equal({ row[1], #all, all[1]:find(row[2]) ~= nil, all[1]:match "%(syntax%)$" },
            { row[1], 1, true, "(syntax)" })
  end
end)

test("no example and no suite raises an alarm", function(t)
  if not read(root .. "/examples/README.md") then t.skip("runs in the source tree") end
  local scripts = 0
  for _, folder in ipairs { "/examples", "/tests/lua" } do
    for _, path in ipairs(files_of(root .. folder, "*.lua")) do
      scripts = scripts + 1
      for _, text in ipairs(found(read(path))) do t.ok(false, path .. ":" .. text) end
    end
  end
  t.ok(scripts > 100)
end)

test("no page raises an alarm", function(t)
  local blocks = 0
  for _, path in ipairs(files_of(root .. "/docs", "*.md") or {}) do
    for code in read(path):gmatch("\n```lua\n(.-)\n```") do
      blocks = blocks + 1
      if not path:find "/lint.md$" then
        for _, text in ipairs(found(code)) do t.ok(false, path .. ":" .. text .. "\n" .. code) end
      end
    end
  end
  if blocks == 0 then t.skip("runs in the source tree") end
  t.ok(blocks > 100)
end)

test("the page of the checker lists every rule", function(t)
  local page = read(root .. "/docs/lint.md")
  if not page then t.skip("runs in the source tree") end
  for _, rule in ipairs(lint.rules()) do
    t.ok(page:find("| `" .. rule.name .. "` |", 1, true), rule.name)
  end
  local _, rows = page:gsub("\n| `", "")
  t.equal(rows, #lint.rules() + 1) -- and syntax
end)
