-- SPDX-License-Identifier: Apache-2.0
-- The prompt without a terminal: what chunks become, what completes, what a pipe gets. tests/prompt has the rest.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"
local chunk = require "perigee.prompt.chunk"
local lexer = require "perigee.prompt.lexer"
local complete = require "perigee.prompt.complete"
local inspect = require "perigee.prompt.inspect"

-- What a session with these inputs leaves: the values of the last one.
local function session(...)
  local env, declare = chunk.environment()
  local results
  for _, text in ipairs { ... } do
    local fn, names = chunk.compile(text, env)
    if not fn then error(names, 0) end
    declare(names)
    results = { fn() }
  end
  return results, env
end

test("the lexer finds every token's kind", function(t)
  local kinds = {}
  for i, token in ipairs(lexer.tokens([==[local s = "a\"b" .. [[x
y]] -- to the end
f(0x1F, 1e-3, .5) ~= '...' --[[ long
one]] "open]==])) do kinds[i] = token.kind:sub(1, 2) .. (token.finished and "" or "!") end
  t.equal(table.concat(kinds, " "), "ke na sy st sy st co na sy nu sy nu sy nu sy sy st co st!")
end)

test("locals of the top level stay, others do not", function(t)
  t.equal(session("local a, b = 1, 2", "a + b"), { 3 })
  t.equal(session("local x = 1; do local x = 5 end", "x"), { 1 })
  t.equal(session("local function f(n) local k = n * 2 return k end", "f(4)"), { 8 })
  t.equal(session("local n = 0 for i = 1, 3 do local m = i n = n + m end", "n"), { 6 })
  t.equal(session("local t = { f = function() local q = 7 return q end } local u = t.f()", "u"), { 7 })
  t.equal(session("if true then local y = 2 elseif no then local z = 3 else local z = 4 end local w = 9", "w"), { 9 })
  t.equal(session("local a = 1 local b", "b == nil"), { true })
  local _, env = session("local function f() local hidden = 1 end", "prompt_test_global = 4")
  t.equal(rawget(env, "hidden"), nil)
  t.equal(rawget(_G, "prompt_test_global"), 4)
  _G.prompt_test_global = nil
  t.equal(session("local text = 'local no = 1' -- local no = 2", "text .. tostring(rawget(_G, 'no'))"),
          { "local no = 1nil" })
end)

test("statements with an expression behind the last semicolon show it", function(t)
  t.equal(session("x = 3; x + 1"), { 4 })
  local results, env = session("local a, b = 1, 2; local c = a + b; c, a")
  t.equal(results, { 3, 1 })
  t.ok(env.c == 3)
  t.equal(session("local s = 'a;b'; s"), { "a;b" })
  t.equal(session("do local z = 1; end; 5"), { 5 })
  t.raises(function() session("x = 1;\n x.y.z") end, "stdin:2:")
end)

test("what is unfinished waits for more lines", function(t)
  local env = chunk.environment()
  for _, text in ipairs { "for i = 1, 3 do", "f(", "{1,", "local x =", "[[a", "--[[ a", "if a then b() else",
                          "1 +" } do
    local fn, _, unfinished = chunk.compile(text, env)
    t.ok(not fn and unfinished, text)
  end
  for _, text in ipairs { "x = = 1", "end", "f)", "!!", "'open", "x\n!!" } do
    local fn, message, unfinished = chunk.compile(text, env)
    t.ok(not fn and not unfinished and type(message) == "string", text)
  end
end)

test("which lines go on with the one before", function(t)
  for _, line in ipairs { "  :sum()", ".field", "+ 1", "* 2", "}", "and x", ":help(x)" } do
    t.ok(chunk.continues(line), line)
  end
  for _, line in ipairs { "x", ":quit", ":help x", "(f)()", "-1", "?x", "=x", "", "-- a", "local x", "#t" } do
    t.ok(not chunk.continues(line), line)
  end
end)

test("errors name the line of the prompt", function(t)
  local env = chunk.environment()
  local ok, err = pcall((chunk.compile("pg.zeros(2):sum(5)", setmetatable({ pg = pg }, { __index = env }))))
  t.ok(not ok and tostring(err):find("^stdin:1: sum: axis 5"), tostring(err))
end)

test("completion", function(t)
  local env = setmetatable({ pg = pg, x = pg.zeros { 2, 3 }, net = pg.nn.Linear { 2, 3 },
                             pile = pg.nn.Sequential { pg.nn.ReLU {} },
                             mine = { wanted = 1, want = 2 }, deep = { { inner = 5 } } }, { __index = _G })
  local function of(text)
    local insert, list = complete(env, text)
    return list and { insert, list } or insert
  end
  t.equal(of("pg.softma"), "x")
  t.equal(of("y = pg.softpl"), "us")
  t.equal(of("x.requires_"), "grad")
  t.equal(of("x:cumpr"), "od")
  t.equal(of("x.dty"), "pe")
  t.equal(of("pg.nn.LayerNo"), "rm")
  t.equal(of("pg.optim.SG"), "D")
  t.equal(of("net:named_p"), "arameters")
  t.equal(of("net.weig"), "ht")
  t.equal(of("pile:named_p"), "arameters")
  t.equal(of("net:state_d"), "")
  t.equal(of("mine."), "want")
  t.equal(of("mine.want"), { "", "want    wanted" })
  t.equal(of("deep[1].in"), "ner")
  t.equal(of("pg.nn.Linear{2, 3, bi"), "as=")
  t.equal(of("x:sum{keep"), "dim=")
  t.equal(of("x:softmax{"), "axis=")
  t.equal(of("pg.sum(x, {keep"), "dim=")
  t.equal(of("net:fit{ epo"), "chs=")
  t.equal(of("pg.zeros{2, dtype=\"bfl"), "oat16")
  t.equal(of("pg.zeros{2, device='cp"), "u")
  t.equal(of("whil"), "e")
  t.equal(of("string.forma"), "t")
  t.equal(of("unknown_thing."), "")
  t.equal(of("x.nothing.at.al"), "")
  t.equal(of("-- pg.soft"), "")
  t.equal(of("print('pg.softma"), "")
  t.equal(of(""), "  ")
end)

test("values as the prompt shows them", function(t)
  t.equal(inspect("a\nb\"c"), [["a\nb\"c"]])
  t.equal(inspect { 1, "x", { y = true } }, [[{1, "x", {y = true}}]])
  t.equal(inspect { ["end"] = 1, [2.5] = 2, ["a b"] = 3 }, [==[{[2.5] = 2, [a b] = 3, [end] = 1}]==])
  t.equal(inspect { pg.zeros { 2, 3 } }, "{tensor {2, 3} float32}")
  t.equal(inspect(pg.tensor({ 1 }, { device = "cpu" })), "tensor([1.])")
  local loop = {}
  loop.self = loop
  t.equal(inspect(loop), "{self = {...}}")
  local long = {}
  for i = 1, 60 do long[i] = "entry " .. i end
  t.ok(inspect(long):find("... 10 more", 1, true))
end)

local function prompt(t, input)
  local perigee, path = process.need_perigee(t), process.file(input)
  local text = process.run(("'%s' < '%s'"):format(perigee, path))
  os.remove(path)
  return (text:gsub("^[^\n]*\n", ""))
end

test("a pipe", function(t)
  t.equal(prompt(t, "local x = pg.arange(4)\nx\n  :sum()\n  :item()\n" ..
                    "if x then\n  print('yes')\nelse\n  print('no')\nend\n" ..
                    "error('gone wrong')\n1, nil, 'a'\n:names\n_"),
          "6\nyes\nstdin:1: gone wrong\n1\tnil\t\"a\"\nx (tensor int64 {4})\n1\n")
end)

test("an entry of several lines is one in the history, and in its file", function(t)
  local history, getenv, folder = require "perigee.prompt.history", os.getenv, os.tmpname()
  os.remove(folder)
  local given = {}
  local editor = { remember = function(text) given[#given + 1] = text end,
                   make_folder = function(path) return os.execute(("mkdir -p '%s'"):format(path)) == 0 end }
  os.getenv = function(name) return name == "XDG_STATE_HOME" and folder or getenv(name) end -- luacheck: ignore
  local ok, problem = pcall(function()
    history.load(editor)
    for _, text in ipairs { "for i = 1, 2 do\n  print(i)\nend", "1 + 1", "  \n " } do history.add(editor, text) end
    history.load(editor)
  end)
  os.getenv = getenv -- luacheck: ignore
  os.execute(("rm -rf '%s'"):format(folder))
  t.ok(ok, tostring(problem))
  local entries = { "for i = 1, 2 do\n  print(i)\nend", "1 + 1" }
  t.equal(given, { entries[1], entries[2], entries[1], entries[2] })
end)

test("a stack overflow names a line of the script", function(t)
  local text = prompt(t, "local function f(n) return 1 + f(n + 1) end f(1)\n6 * 7\n")
  t.equal({ text:match("^[^\n]*"), text:match("\n(%d+)\n$") }, { "stdin:1: stack overflow", "42" })
  t.ok(text:find("\tstdin:1: in function 'f'", 1, true), text)
end)

test("help says what is known", function(t)
  t.equal(prompt(t, "?pg.elu\n"), table.concat({
    "pg.elu(x, alpha=1)", "  x where x > 0, else alpha * (exp(x) - 1) (Clevert, Unterthiner, Hochreiter 2015).",
    "inputs", "  x              any shape", "options",
    "  alpha          number: the limit for very negative x is -alpha (default 1)", "gives",
    "  y              shape of x", "" }, "\n"))
  t.ok(prompt(t, "help 'no such thing'"):find("nothing is known", 1, true))
  t.ok(prompt(t, "?soft"):find("pg.softmax", 1, true))
end)

local OBJECTS = [[
local x = g and nil; model = nn.Sequential{ nn.Linear{2, 3} }; ds = data.from_slices{ x = pg.ones{4, 2} }
opt = optim.Adam{ model:parameters(), lr = 0.1 }; sched = optim.sched.Step{ opt, step_size = 2 }
g = pg.graph(function(g) return { y = g:placeholder{"x", shape={2}, dtype="float32"} + 1 } end); s = pg.Session{ g }
scaler = pg.amp.GradScaler{}; it = ds:each()
]]
for name, heading in pairs {
  ["g:gradients"] = "graph:gradients(target, sources, [options])", ["ds:map"] = "dataset:map(fn",
  ["opt:step"] = "optimizer:step([closure])", ["s:run"] = "session:run(fetches, [feeds])", ["model:fit"] = "layer:fit(",
  ["sched:step"] = "schedule:step([metric])", ["scaler:scale"] = "scaler:scale(losses)",
  ["model:insert"] = "sequential:insert(", ["it:state"] = "iterator:state(", ["model.load_state"] = "layer:load_state(",
} do
  test("help of a live object's method: " .. name, function(t)
    t.equal(prompt(t, OBJECTS .. "?" .. name .. "\n"):sub(1, #heading), heading)
  end)
end

test("help of a live object lists what it can do", function(t)
  for name, first in pairs { g = "Graph(x -> y)", ds = "Dataset(4 samples)", opt = "Adam(2 parameters",
                             model = "Sequential(", s = "Session(Graph(x -> y))" } do
    t.equal(prompt(t, OBJECTS .. "?" .. name .. "\n"):sub(1, #first), first)
  end
  t.ok(prompt(t, OBJECTS .. "help(opt)\n"):find("\noptimizer:step +Updates all parameters"))
  local text = prompt(t, OBJECTS .. "help(model)\n")
  t.ok(text:find("\nlayer:fit +Trains") and text:find("\nsequential:insert") and not text:find("\nplot:", 1, true))
  t.ok(prompt(t, "help(pg.callbacks)\n"):find("callbacks.EarlyStopping +Stops when"))
  t.ok(prompt(t, "?optim.sched\n"):find("optim.sched.Cosine +"))
end)

test("help keeps to lines of 118 columns where there is no terminal", function(t)
  for _, name in ipairs { "model:fit", "model", "pg.conv2d", "g:constant" } do
    for line in prompt(t, OBJECTS .. "?" .. name .. "\n"):gmatch("[^\n]+") do
      t.ok(require("perigee.printing.columns").count(line) <= 118, line)
    end
  end
end)
