-- SPDX-License-Identifier: Apache-2.0
-- perigee run-graph, and scripts, in processes that know nothing but the file: the same bits.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local files, process = require "graph_files", require "process"

local function command(t, words) return process.run(("'%s' run-graph %s"):format(process.need_perigee(t), words)) end

local function model()
  pg.manual_seed(8)
  local layers = pg.nn.Sequential { pg.nn.Linear { 4, 8 }, pg.nn.GELU {}, pg.nn.Linear { 8, 2 } }
  return pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "batch", 4 } }
    local labels = g:placeholder { "labels", shape = { "batch" }, dtype = "int64" }
    local scale = g:variable { "scale", init = { 1, 2 } }
    local y = layers(x) * scale
    local loss = pg.nn.cross_entropy(y, labels)
    local by = g:gradients(loss, { scale })[1]
    pg.no_grad(function() scale:sub_(by * 0.1) end)
    return { y = y, loss = loss, train = scale, noise = pg.rand { 3 } }
  end)
end

local function in_folder(fn)
  local folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir -p '%s'"):format(folder))
  local ok, e = pcall(fn, folder .. "/")
  os.execute(("rm -r '%s'"):format(folder))
  if not ok then error(e, 0) end
end

test("perigee run-graph computes what the session that was saved does", function(t)
  in_folder(function(at)
    local session = pg.Session { model() }
    local feeds = { x = pg.randn { 5, 4 }, labels = pg.tensor({ 0, 1, 1, 0, 1 }, { dtype = "int64" }) }
    session:run("train", feeds)
    pg.save(at .. "m.pgraph", session)
    feeds.x:save_npy(at .. "x.npy")
    pg.save_npz(at .. "all.npz", { labels = feeds.labels, images = feeds.x })
    local text, status = command(t, ("'%sm.pgraph' --feed x='%sx.npy' --fetch y --out '%sy.npy'"):format(at, at, at))
    t.equal({ text, status }, { "y: float32 {5, 2}\n", 0 })
    files.same_bits(pg.load_npy(at .. "y.npy"), session:run("y", feeds), "y")
    text, status = command(t, ("'%sm.pgraph' --feed x='%sall.npz:images' --feed labels='%sall.npz' " ..
                               "--fetch loss,train --fetch noise --seed 5 --out '%sout.npz'"):format(at, at, at, at))
    t.equal({ text, status }, { "loss: float32 {}\ntrain: float32 {2}\nnoise: float32 {3}\n", 0 })
    pg.manual_seed(5)
    files.same_all(pg.load_npz(at .. "out.npz"),
                   session:run({ loss = "loss", train = "train", noise = "noise" }, feeds))
    -- a frozen one needs less
    pg.save(at .. "f.pgraph", session, { inputs = { features = "x" }, outputs = { "y" }, freeze = true })
    t.equal({ command(t, ("'%sf.pgraph' --feed features='%sx.npy' --out '%sy.safetensors'"):format(at, at, at)) },
            { "y: float32 {5, 2}\n", 0 })
    files.same_bits(pg.load(at .. "y.safetensors").y, session:run("y", feeds), "y")
    t.equal({ command(t, ("'%sf.pgraph' --print"):format(at)) }, { pg.load_graph(at .. "f.pgraph"):text() ..
      "input features: float32 {batch, 4}\noutput y: float32 {batch, 2}\n", 0 })
  end)
end)

test("training goes on in another process with the same bits", function(t)
  local perigee = process.need_perigee(t)
  in_folder(function(at)
    local session = pg.Session { model() }
    local feeds = { x = pg.randn { 5, 4 }, labels = pg.tensor({ 0, 1, 1, 0, 1 }, { dtype = "int64" }) }
    session:run("train", feeds)
    pg.save(at .. "m.pgraph", session)
    pg.save(at .. "feeds.safetensors", feeds)
    process.write(at .. "go_on.lua", [[
local pg, at = require "perigee", ...
local session, feeds = pg.Session { pg.load_graph(at .. "m.pgraph") }, pg.load(at .. "feeds.safetensors")
for _ = 1, 3 do session:run("train", feeds) end
pg.save(at .. "state.safetensors", session:state())
]])
    t.equal({ process.run(("'%s' '%sgo_on.lua' '%s'"):format(perigee, at, at)) }, { "", 0 })
    for _ = 1, 3 do session:run("train", feeds) end
    files.same_all(pg.load(at .. "state.safetensors"), session:state())
  end)
end)

test("perigee run-graph says what is wrong", function(t)
  in_folder(function(at)
    pg.save(at .. "m.pgraph", pg.Session { model() })
    pg.save_npz(at .. "two.npz", { a = pg.ones { 1 }, b = pg.ones { 1 } })
    pg.ones { 2, 3 }:save_npy(at .. "x.npy")
    local function says(words, pattern, status)
      local text, got = command(t, (words:gsub("@", at)))
      if not text:find(pattern) or got ~= status then
        error(("%s: got %q, %s; expected %q, %d"):format(words, text, tostring(got), pattern, status), 0)
      end
    end
    says("", "which graph%?", 2)
    says("@m.pgraph --fed x=y", "unknown option %-%-fed", 2)
    says("@m.pgraph --feed x", "%-%-feed x: NAME=FILE is expected", 2)
    says("@m.pgraph --fetch", "%-%-fetch needs a value", 2)
    says("@m.pgraph @m.pgraph", "one graph at a time", 2)
    says("@none.pgraph", "there is no file", 1)
    says("@two.npz", "it holds no graph", 1)
    says("@m.pgraph", "the outputs need %-%-feed labels=FILE %-%-feed x=FILE", 1)
    says("@m.pgraph --fetch y --feed x=@two.npz", "two.npz has no x; it has a, b", 1)
    says("@m.pgraph --fetch y --feed x=@x.npy", "'x' was fed shape %[2, 3%]; expected %[batch, 4%]", 1)
    says("@m.pgraph --fetch y --feed z=@x.npy", "no tensor named 'z'", 1)
    says("@m.pgraph --fetch noise,train --out @y.npy", "was not fed", 1)
    says("@m.pgraph --fetch noise --fetch scale --out @y.npy", "holds one array, and 2 were fetched", 1)
    says("@m.pgraph --device tpu:3 --fetch noise", "tpu:3", 1)
  end)
end)
