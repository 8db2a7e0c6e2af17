-- SPDX-License-Identifier: Apache-2.0
-- Graph files that were changed at random, the same way at every run: each is refused with a code and the file's name,
-- or says of the graph that is read just what stands in it. PERIGEE_FUZZ_GRAPHS says how many, PERIGEE_FUZZ_SEED which.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local nn = pg.nn
local files = require "graph_files"

local COUNT = tonumber(os.getenv "PERIGEE_FUZZ_GRAPHS") or 600
local SEED = tonumber(os.getenv "PERIGEE_FUZZ_SEED") or 1

local graphs = {
  function(g) -- updates, through a view too
    local x, w = g:placeholder { "x", shape = { "batch", 3 } }, g:variable { "w", shape = { 3, 2 }, init = "normal" }
    local loss = (x:matmul(w) + g:constant({ 1, 2 }, { name = "b" })):pow(2):mean()
    local by = g:gradients(loss, { w })[1]
    pg.no_grad(function() w[{ {}, 1 }]:sub_(by[{ {}, 1 }] * 0.1) end)
    return { loss = loss, train = w }
  end,
  function(g) -- sizes
    local x = g:placeholder { "x", shape = { "batch", 3 } }
    local found = x:gt(0):nonzero()
    return { found, x:reshape { x:size(1) * 3 }, x:narrow(1, 1, x:size(1) / 2), pg.zeros { found:size(1), 2 },
             pg.cat({ x, x }, 1):sum { axis = { 1, 2 }, keepdim = true } }
  end,
  function(g) -- a layer, random numbers
    local x = g:placeholder { "x", shape = { 2, 4 } }
    local model = nn.Sequential { nn.Linear { 4, 4 }, nn.BatchNorm1d { 4 }, nn.Dropout { 0.5 } }
    return { y = model(x), top = (x:topk(2)), norm = pg.layer_norm(x, { 4 }), r = pg.rand { 2 } }
  end,
  function(g) -- branches and loops, with gradients
    local x, w = g:placeholder { "x", shape = { "time", 3 } }, g:variable { "w", shape = { 3 }, init = "ones" }
    local last, all = pg.scan { init = pg.zeros { 3 }, xs = x, body = function(c, v)
      local y = pg.cond(c:sum():gt(0), function() return c * w end, function() return v:detach() + 1 end)
      return (y + v):tanh(), v:gt(0):nonzero():sum()
    end }
    local z = pg.while_loop { state = { last }, max_iterations = 5, cond = function(s) return s[1]:sum():lt(9) end,
                              body = function(s) return { s[1] * w + 1 } end }[1]
    return { z = z, all = all, by = g:gradients(z:sum(), { w })[1] }
  end,
}
local feeds = { pg.randn { 4, 3 }, pg.randn { 4, 3 }, pg.randn { 2, 4 }, pg.randn { 4, 3 } }

local state = SEED
local function random(n) -- 1 to n
  state = (state * 16807) % 2147483647
  return state % n + 1
end

-- All places in a document, as tables and keys, in an order of their own: pairs has none.
local function places(value, list, path)
  list, path = list or {}, path or ""
  for key, v in pairs(value) do
    local at = path .. "." .. tostring(key)
    list[#list + 1] = { value, key, at }
    if type(v) == "table" then places(v, list, at) end
  end
  return list
end

local function copy(v)
  if type(v) ~= "table" then return v end
  local c = pg.json.is_array(v) and pg.json.array() or {}
  for key, x in pairs(v) do c[key] = copy(x) end
  return c
end

local texts = { "", "x", "w", "batch", "add", "2*batch + 1", "max(batch, 0)", "(batch)//(0)", "((batch)//(2)", "nan",
                "float64", "bool", "int64", "none", "cpu:0", "\0", "-1*batch", "matmul", "9999999999999999999", "a b" }
local numbers = { -1, 0, 1, 2, 3, 8, 9, 1e9, 2 ^ 40, -2 ^ 62, 0.5, 1e300, -1e9, 2147483647LL, 9223372036854775807LL,
                  -9223372036854775807LL }

local function other_value()
  local kind = random(6)
  if kind == 1 then return texts[random(#texts)] end
  if kind <= 3 then return numbers[random(#numbers)] end
  if kind == 4 then return random(2) == 1 end
  if kind == 5 then return pg.json.null end
  return random(2) == 1 and {} or pg.json.array { numbers[random(#numbers)] }
end

local function change(document)
  local list = places(document)
  table.sort(list, function(a, b) return a[3] < b[3] end)
  local t, key = unpack(list[random(#list)])
  local kind = random(7)
  if kind <= 2 then
    t[key] = other_value()
  elseif kind == 3 then -- of another place
    local from = list[random(#list)]
    t[key] = copy(from[1][from[2]])
  elseif kind == 4 then
    if type(key) == "number" then table.remove(t, key) else t[key] = nil end
  elseif kind == 5 and type(key) == "number" then
    table.insert(t, key, copy(t[random(#t)]))
  elseif kind == 6 and type(key) == "number" then
    local at = random(#t)
    t[key], t[at] = t[at], t[key]
  elseif type(t[key]) == "number" then
    t[key] = t[key] + random(3) - 2
  elseif type(t[key]) == "boolean" then
    t[key] = not t[key]
  else
    t[key] = other_value()
  end
end

-- A safetensors file, written as it is.
local function write(path, header, body)
  local file, length, bytes = assert(io.open(path, "wb")), #header, {}
  for i = 1, 8 do bytes[i], length = string.char(length % 256), math.floor(length / 256) end
  file:write(table.concat(bytes), header, body)
  file:close()
end

local function parts(path)
  local file = assert(io.open(path, "rb"))
  local text, length = file:read "*a", 0
  file:close()
  for i = 8, 1, -1 do length = length * 256 + text:byte(i) end
  return pg.json.decode(text:sub(9, 8 + length)), text:sub(9 + length)
end

-- What may differ from the file in what is read: hints, what a file need not say, the order of symbols.
local LOOSE = { symbols = true, device = true, plugin = true, taped = true, detached = true, leaf = true, id = true,
                gradient = true }

-- Where `said` has something that `is` has not; sizes that are expressions may be written in another way.
local function missing(said, is, path)
  if type(said) ~= "table" then
    if type(said) == "string" and path:find "%.shape%." or path:find "%.value%.%d+$" then return nil end
    if type(said) == "cdata" and type(is) == "number" then said = tonumber(said) end -- of a float
    return said ~= is and ("%s: %s, but it is %s"):format(path, tostring(said), tostring(is)) or nil
  end
  if type(is) ~= "table" then return path .. " is no table" end
  if pg.json.is_array(said) and #said ~= #is then return ("%s has %d entries, not %d"):format(path, #said, #is) end
  for key, v in pairs(said) do
    if not LOOSE[key] then
      local found = missing(v, is[key], path .. "." .. tostring(key))
      if found then return found end
    end
  end
end

local ALLOWED = { data_loss = true, not_supported = true, invalid_argument = true, out_of_memory = true }

local function check_refusal(e, path)
  if not native.is_error(e) then error("a raw error: " .. tostring(e), 0) end
  if not ALLOWED[e.code] then error(("the code %s: %s"):format(e.code, e.message), 0) end
  if not e.message:find(path, 1, true) then error("no file is named: " .. e.message, 0) end
end

-- Whether its loops end before long.
local function ends(document)
  local ok = true
  require("perigee.graph.document").each_node(document.graph, function(node)
    local rounds = node.control == "while_loop" and (node.most or math.huge) or tonumber(node.length) or 0
    ok = ok and rounds <= 1000
  end)
  return ok
end

local function check_graph(g, document, path, x)
  local session = pg.Session { g }
  pg.save(path, session, { outputs = {} })
  local again = files.document(path)
  local found = missing(document.graph, again.graph, "graph")
  if found then error("taken in silence: " .. found, 0) end
  for name, t in pairs(ends(document) and g.results or {}) do -- runs, or says why not
    local ok, e = pcall(session.run, session, t, { x = x })
    if not ok and not native.is_error(e) then error(("running %s: a raw error: %s"):format(name, tostring(e)), 0) end
  end
end

test(("%d changed graph files are refused, or are what they say"):format(COUNT), function(t)
  pg.config.memory_limit("cpu:0", "1GB")
  local accepted, originals = 0, {}
  files.with_path(function(path)
    for i, build in ipairs(graphs) do
      pg.manual_seed(i)
      pg.save(path, pg.Session { pg.graph(build) })
      local header, body = parts(path)
      originals[i] = { header = header, body = body, text = header.__metadata__["perigee.graph"] }
    end
    for number = 1, COUNT do
      local before = state
      local original = originals[number % #graphs + 1]
      local header, text = copy(original.header), original.text
      local document = pg.json.decode(text)
      if random(8) == 1 then -- bytes of the text
        local at = random(#text)
        text = text:sub(1, at - 1) .. string.char(random(95) + 31) .. text:sub(at + 1)
      elseif random(8) == 1 then -- what stands beside it
        change(header)
        text = type(header.__metadata__) == "table" and header.__metadata__["perigee.graph"]
      else
        for _ = 1, random(3) do change(document) end
        text = pg.json.encode(document)
      end
      if type(header.__metadata__) == "table" then header.__metadata__["perigee.graph"] = text end
      local ok, e = pcall(function()
        write(path, pg.json.encode(header), original.body)
        local read, g = pcall(pg.load_graph, path)
        if not read then return check_refusal(g, path) end
        accepted = accepted + 1
        check_graph(g, pg.json.decode(text), path, feeds[number % #graphs + 1])
      end)
      if not ok then error(("number %d, PERIGEE_FUZZ_SEED=%d: %s"):format(number, before, tostring(e)), 0) end
    end
  end)
  pg.config.memory_limit("cpu:0", 0)
  t.ok(accepted > COUNT / 100, "hardly any of them is read: " .. accepted)
  t.ok(accepted < COUNT / 2, "most of them are read: " .. accepted)
end)
