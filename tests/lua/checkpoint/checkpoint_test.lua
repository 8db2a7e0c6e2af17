-- SPDX-License-Identifier: Apache-2.0
-- Atomic files, pg.CheckpointManager, exact resumption: trainings that are killed at random end in the same bits.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local pack = require "perigee.checkpoint.pack"
local process = require "process"
local nn, optim, data = pg.nn, pg.optim, pg.data

local function temporary()
  local path = os.tmpname()
  os.remove(path)
  native.make_folder(path)
  return path
end

local function remove(folder) os.execute(("rm -rf '%s'"):format(folder)) end

local function with_folder(fn)
  local folder = temporary()
  local ok, err = pcall(fn, folder)
  remove(folder)
  if not ok then error(err, 0) end
end

local read, write = process.read, process.write

test("any tree of plain values and tensors comes back as it was", function(t)
  local tree = { a = { 1, "two", false, { deep = -0.1, [3] = "x" } }, empty = {}, ["$odd"] = 1, ["quote\"\n\1"] = "é\0",
                 tiny = 5e-324, third = 1 / 3, huge = math.huge, tensor = pg.tensor { 1, 2 },
                 ["a.b"] = pg.tensor { 3 }, a2 = { b = pg.tensor { 4 } } }
  local text, names, tensors = pack.pack("test", tree)
  local by_name = {}
  for i, name in ipairs(names) do by_name[name] = tensors[i] end
  local back = pack.unpack(text, by_name)
  t.equal(back.a, tree.a)
  t.equal({ back.empty, back["$odd"], back["quote\"\n\1"] }, { {}, 1, "é\0" })
  t.ok(back.tiny == 5e-324 and back.third == 1 / 3 and back.huge == math.huge)
  t.equal({ back.tensor:totable(), back["a.b"]:totable(), back.a2.b:totable() }, { { 1, 2 }, { 3 }, { 4 } })
  t.raises(function() pack.pack("test", { a = { f = print } }) end, "a%.f is a function")
  for _, keys in ipairs { { 3 }, { 10, 20, 30 }, { 0, 1, 2 }, { -1, 1, 2, 3 }, { true, false, 1 }, { 1.5, 1 },
                         { "a", 1 } } do
    local sparse = {}
    for i, key in ipairs(keys) do sparse[key] = i end
    t.equal(pack.unpack((pack.pack("test", { sparse = sparse })), {}).sparse, sparse)
  end
  local with_hole = { 1, 2, 3, 4 }
  with_hole[2] = nil
  for _, list in ipairs { with_hole, { 1, nil, 3, n = 3 }, { 1, nil, 3 }, { 1, nil, 3, x = "x" },
                         { 1, [2 ^ 40] = 2 } } do
    local err = t.raises(function() pack.pack("test", { a = { list = list } }) end,
                         "a%.list has a hole: .* nothing at 2")
    t.equal(err.code, "invalid_argument")
  end
  local most = {}
  for _ = 2, 199 do most = { x = most } end
  most = { x = most, tensor = pg.ones { 1 } }
  t.ok(pack.unpack(pack.pack("test", most), { tensor = 1, ["x.tensor"] = 1 }))
  t.raises(function() pack.pack("test", { a = { [pg.ones { 1 }] = 1 } }) end, "a has tensor .* for a key")
  t.raises(function() pack.pack("test", { a = { [{}] = 1, [{ 2 }] = 2 } }) end, "a has a table for a key")
  local deep, top = {}, {}
  top.deep = deep
  for _ = 1, 1e5 do
    deep.x = {}
    deep = deep.x
  end
  t.raises(function() pack.pack("test", top) end, "nested more than 200 deep")
  local loop = {}
  loop.loop = loop
  t.raises(function() pack.pack("test", { a = loop }) end, "contains itself")
end)

test("what cannot be written leaves the old file, and nothing beside it", function(t)
  with_folder(function(folder)
    local path = folder .. "/a.safetensors"
    pg.save(path, { x = pg.tensor { 1 } })
    local before = read(path)
    native.make_folder(folder .. "/b.safetensors/in_the_way")
    t.raises(function() pg.save(folder .. "/b.safetensors", { x = pg.tensor { 1 } }) end, "b%.safe.*: cannot rename")
    t.raises(function() pg.save(folder .. "/none/a.safetensors", { x = pg.tensor { 1 } }) end, "none")
    t.raises(function() native.write_text(folder .. "/none/a", "x") end, "none")
    pg.save(path, { x = pg.tensor { 2 } })
    t.ok(read(path) ~= before)
    native.write_text(path, "")
    t.equal(read(path), "")
    t.equal(native.folder(folder), { "a.safetensors", "b.safetensors" })
  end)
end)

local function small()
  local model = nn.Linear { 2, 2 }
  local optimizer = optim.Adam { model:parameters(), lr = 0.1 }
  local function step()
    optimizer:zero_grad()
    model(pg.randn { 3, 2 }):square():sum():backward()
    optimizer:step()
  end
  return model, optimizer, step
end

test("the manager keeps the newest and the best, and restores model, optimizer, random numbers, values", function(t)
  with_folder(function(folder)
    pg.manual_seed(7)
    local model, optimizer, step = small()
    local manager = pg.CheckpointManager { folder, keep = 2, mode = "max", model = model, optimizer = optimizer }
    t.equal(manager:restore(), nil)
    t.equal(manager:latest(), nil)
    for i, metric in ipairs { 0.1, 0.9, 0.3, 0.4, 0 / 0 } do
      step()
      manager:save { step = i, metric = metric, note = { "n", i }, extra = pg.full({ 2 }, i) }
    end
    t.equal(manager:steps(), { 2, 4, 5 })
    t.equal(select(2, manager:best()), 2)
    t.equal(select(2, manager:latest()), 5)
    step()
    local expected = model.weight:totable()

    local other, other_optimizer, other_step = small()
    local second = pg.CheckpointManager { folder, keep = 2, model = other, optimizer = other_optimizer }
    t.equal({ select(2, second:best()) }, { 2, 0.9 })
    local values = second:restore()
    t.equal({ values.step, values.note, values.extra:totable() }, { 5, { "n", 5 }, { 5, 5 } })
    other_step()
    t.equal(other.weight:totable(), expected)
    t.equal(second:restore(4).step, 4)
    t.equal(second:restore_best().step, 2)
    t.raises(function() second:restore(3) end, "no checkpoint of step 3")
    second:save { step = 5 }
    second:save { step = 5, again = true } -- the same step anew: one file
    t.equal(second:steps(), { 2, 4, 5 })
    t.equal(second:restore().again, true)
  end)
end)

test("the best of an earlier run stays, and what a new run saves last", function(t)
  with_folder(function(folder)
    local model = nn.Linear { 2, 2 }
    local function manager(keep, mode)
      return pg.CheckpointManager { folder, keep = keep, mode = mode, model = model }
    end
    local first = manager(1)
    first:save { step = 1, metric = 0.1 }
    first:save { step = 2, metric = 0.5 }
    manager(1):save { step = 3, metric = 0.9 }
    t.equal({ select(2, manager(1):best()) }, { 1, 0.1 })
    manager(1):save { step = 4 }
    t.equal({ select(2, manager(1):best()) }, { 1, 0.1 })
    t.equal(manager(1):steps(), { 1, 4 })
    manager(1):save { step = 1, metric = 0.7 } -- replaces the best
    t.equal({ select(2, manager(1):best()) }, { 1, 0.7 })
  end)
  with_folder(function(folder)
    local function manager() return pg.CheckpointManager { folder, keep = 2, model = nn.Linear { 1, 1 } } end
    for step = 8, 10 do manager():save { step = step } end
    local new = manager()
    new:save { step = 1 }
    t.equal(new:steps(), { 10, 1 })
    new:save { step = 2 }
    t.equal(new:steps(), { 1, 2 })
    t.equal({ select(2, new:latest()) }, { 2 })
    t.equal(manager():restore().step, 2)
    new:save { step = 2, again = true }
    new:save { step = 1, again = true } -- falls back once more
    t.equal({ manager():restore().again, manager():restore().step, new:steps() }, { true, 1, { 2, 1 } })
  end)
end)

test("damaged and partial checkpoints are passed over, and said", function(t)
  with_folder(function(folder)
    local model, optimizer, step = small()
    local manager = pg.CheckpointManager { folder, keep = 5, model = model, optimizer = optimizer }
    local paths = {}
    for i = 1, 4 do
      step()
      paths[i] = manager:save { step = i }
    end
    local text = read(paths[4])
    write(paths[4], text:sub(1, #text - 3)) -- cut short
    text = read(paths[3])
    write(paths[3], text:sub(1, -9) .. string.char((text:byte(-8) + 1) % 256) .. text:sub(-7)) -- a byte changed
    local said = {}
    local stderr = io.stderr
    io.stderr = { write = function(_, ...) said[#said + 1] = table.concat { ... } end } -- luacheck: ignore
    local values = manager:restore()
    io.stderr = stderr -- luacheck: ignore
    t.equal(values.step, 2)
    t.equal(#said, 2)
    t.ok(said[1]:find("step%-00000004%..*is skipped: damaged") and said[2]:find("step%-00000003"))
    write(paths[2], "")
    write(paths[1], "")
    io.stderr = { write = function() end } -- luacheck: ignore
    local err = t.raises(function() manager:restore() end, "none of the 4 checkpoints")
    io.stderr = stderr -- luacheck: ignore
    t.equal(err.code, "data_loss")
    manager:save { step = 9 }
    t.equal(manager:restore().step, 9)
  end)
end)

test("values of many megabytes come back", function(t)
  with_folder(function(folder)
    local manager = pg.CheckpointManager { folder }
    local values = { step = 1, text = ("aé€😀\n\"\\"):rep(2 ^ 17), list = {} }
    for i = 1, 1e5 do values.list[i] = i / 3 end
    manager:save(values)
    t.ok(#read((manager:latest())) > 4 * 2 ^ 20)
    local back = pg.CheckpointManager { folder }:restore()
    t.ok(back.text == values.text)
    t.equal(back.list, values.list)
  end)
end)

test("what the manager refuses", function(t)
  with_folder(function(folder)
    local model = nn.Linear { 2, 2 }
    t.raises(function() pg.CheckpointManager {} end, "needs a folder")
    t.raises(function() pg.CheckpointManager { folder, keep = 0 } end, "keep")
    t.raises(function() pg.CheckpointManager { folder, mode = "least" } end, "mode")
    t.raises(function() pg.CheckpointManager { folder, modle = 3 } end, "state%(%)")
    local manager = pg.CheckpointManager { folder, model = model }
    t.raises(function() manager:save {} end, "step must be a count")
    t.raises(function() manager:save { step = 1, metric = "low" } end, "metric")
    t.raises(function() manager:save { step = 1, fn = print } end, "values%.fn is a function")
    t.raises(function() manager:save { step = 1, ["a\0b"] = pg.ones { 1 } } end, "a NUL byte stands in the name")
    t.equal(manager:steps(), {})
    manager:save { step = 1 }
    local two = pg.CheckpointManager { folder, model = model, optimizer = optim.SGD { model:parameters() } }
    t.raises(function() two:restore() end, 'holds no "optimizer"; it holds model')
    write(folder .. "/file", "")
    t.raises(function() pg.CheckpointManager { folder .. "/file" } end, "cannot make folder")
  end)
end)

test("a checkpoint that does not fit all objects changes none", function(t)
  with_folder(function(folder)
    local function manager(model, optimizer, extra)
      return pg.CheckpointManager { folder, model = model, optimizer = optimizer, zero = extra }
    end
    local function extra(fail)
      return { n = fail and 1 or 0, state = function(self) return { n = self.n } end,
               load_state = function(self, saved)
                 if fail then error("cannot") end
                 self.n = saved.n
               end }
    end
    local model = nn.Linear { 3, 2 }
    manager(model, optim.Adam { model:parameters() }, extra()):save { step = 1 }
    local other = nn.Linear { 3, 2 }
    local function weights() return other.weight:totable() end
    local before = weights()
    local function refused(optimizer, last, text)
      t.raises(function() manager(other, optimizer, last):restore() end, text)
      t.equal(weights(), before)
    end
    refused(optim.SGD { other:parameters() }, extra(), "restore: optimizer: SGD:load_state: the state is one of Adam")
    local adam = optim.Adam { other:parameters(), lr = 0.5 }
    refused(adam, extra(true), "cannot")
    t.equal({ adam.groups[1].lr, adam.groups[1].steps }, { 0.5, { 0, 0 } })
    manager(other, adam, extra()):restore()
    t.equal(weights(), model.weight:totable())
    local narrow = nn.Linear { 2, 2 }
    t.raises(function() manager(narrow, optim.Adam { narrow:parameters() }, extra()):restore() end,
             "restore: model: load_state: weight is")
  end)
end)

test("an iterator's state goes on in the same order", function(t)
  local ds = data.range(20):shuffle { seed = 2 }:batch(3)
  local function rest(iterator)
    local list = {}
    for step, b in iterator do list[#list + 1] = { step, b.value:totable() } end
    return list
  end
  rest(ds:each())
  local it = ds:each()
  for _ = 1, 3 do it() end
  local state = it:state()
  t.equal(state, { epoch = 2, position = 3, size = 7 })
  local expected = rest(it)
  t.equal(expected[1][1], 4)
  local anew = data.range(20):shuffle { seed = 2 }:batch(3)
  t.equal(rest(anew:each { from = state }), expected)
  t.equal(rest(anew:each()), rest(ds:each())) -- the epochs that follow, too
  it:close()
  t.equal(it(), nil)
  t.raises(function() data.range(5):each { from = state } end, "a pipeline of 7; this one has 5")
  t.raises(function() ds:each { from = {} } end, "no epoch")
end)

-- ---- killed at random ----

local script = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") .. "/train.lua"

-- Runs the training, killed after some seconds (nil: not). Answers whether it ended by itself.
local function run(folder, kind, seconds)
  local limit = seconds and ("timeout -s KILL %.3f "):format(seconds) or ""
  local text, status = process.run(("%s'%s' '%s' '%s' %s"):format(limit, process.perigee(), script, folder, kind))
  if status == 0 then return true end
  if not seconds or status ~= 137 then error(("%s training: %s"):format(kind, text), 0) end
  return false
end

local function killed_at_random(t, kind, kills)
  process.need_perigee(t)
  with_folder(function(folder)
    local function fresh(name)
      remove(folder .. "/" .. name)
      native.make_folder(folder .. "/" .. name)
      return folder .. "/" .. name
    end
    local whole = fresh("whole")
    run(whole, kind)
    local expected, started = read(whole .. "/result"), native.clock()
    local part, done = fresh("part"), 0
    math.randomseed(os.time())
    while done < kills and native.clock() - started < 60 do
      if run(part, kind, 0.06 + 0.4 * math.random()) then
        t.ok(read(part .. "/result") == expected)
        part = fresh("part")
      else
        done = done + 1
      end
    end
    t.ok(done >= math.min(kills, 5), "killed " .. done .. " times only")
    run(part, kind)
    t.ok(read(part .. "/result") == expected, kind .. ": the result differs after " .. done .. " kills")
  end)
end

test("an own loop that is killed ten times ends in the same bits", function(t) killed_at_random(t, "loop", 10) end)
test("a fit that is killed ten times ends in the same bits", function(t) killed_at_random(t, "fit", 10) end)
