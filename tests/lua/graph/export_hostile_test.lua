-- SPDX-License-Identifier: Apache-2.0
-- Graph files that say what cannot be: each is refused with the file, the node and what is wrong.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local files = require "graph_files"

local function graph()
  return pg.graph(function(g)
    local x = g:placeholder { "x", shape = { "batch", 3 } }
    local w = g:variable { "w", shape = { 3, 2 }, init = "ones" }
    local y = x:matmul(w) + 1
    local found = x:gt(0):nonzero()
    pg.no_grad(function() w:mul_(2) end)
    return { y = y, flat = x:reshape { x:size(1) * 3 }, both = pg.cat({ x, x }, 1), found = found, w2 = w,
             s = x:sum { axis = 1 } }
  end)
end

-- What is done to the document, and what is said of the file then.
local function node(d, name)
  for _, n in ipairs(d.graph.nodes) do
    if n.name == name then return n end
  end
  error("no node " .. name)
end
local null = pg.json.null

local rows = {
  -- the whole
  { "data_loss", 'does not say that it is a "perigee.graph"', function(d) d.format = "onnx" end },
  { "not_supported", "version 3 of the format; this Perigee reads up to 2", function(d) d.version = 3 end },
  { "data_loss", 'the graph: it has an unknown "more"', function(d) d.more = 1 end },
  { "data_loss", 'the graph: it has no "results"', function(d) d.results = nil end },
  { "data_loss", 'operator "matmul" is not among its operators', function(d) d.operators.matmul = nil end },
  { "not_supported", "versions of operators that are others here: matmul 3, here 1",
    function(d) d.operators.matmul.version = 3 end },
  { "data_loss", 'the results: "y" is "nope", which the graph has not',
    function(d) d.results[#d.results].value = "nope" end,
    key = "y" },
  { "data_loss", 'input "x" is no placeholder', function(d) d.signature.inputs[1].value = "w" end },
  -- sources
  { "data_loss", "variable 'w': it is to be float32 %[3,3%], but is float32 %[3, 2%]",
    function(d) d.graph.sources[2].shape[2] = 3 end },
  { "data_loss", "variable 'w': it is to be int64", function(d) d.graph.sources[2].dtype = "int64" end },
  { "data_loss", "variable 'w': there is no dtype 'float33'", function(d) d.graph.sources[2].dtype = "float33" end },
  { "data_loss", "variable 'v': the file has no tensor of that name", function(d) d.graph.sources[2].name = "v" end },
  { "data_loss", "variable 'w': its latest value is not there", function(d) d.graph.sources[2].latest = "z" end },
  { "data_loss", "variable 'w': its latest value is not one of its own",
    function(d) d.graph.sources[2].latest = "y" end },
  { "data_loss", "the tensor 'w' is of no source", function(d) table.remove(d.graph.sources, 2) end },
  { "data_loss", "file 'x': there is no such kind of source", function(d) d.graph.sources[1].kind = "file" end },
  { "data_loss", "placeholder 'x': a size is less than 0", function(d) d.graph.sources[1].shape[2] = -3 end },
  { "data_loss", "placeholder 'x': a size is no whole number",
    function(d) d.graph.sources[1].shape[2] = -9223372036854775807LL end },
  { "data_loss", "placeholder 'x': 9 axes are more than 8",
    function(d) for i = 3, 9 do d.graph.sources[1].shape[i] = 1 end end },
  { "data_loss", "placeholder 'x': an axis of a placeholder is a number or a symbol that feeds decide",
    function(d) d.graph.sources[1].shape[1] = "2*batch" end },
  { "data_loss", "symbol 'batch' stands there twice", function(d) d.graph.symbols[2].id = "batch" end },
  { "data_loss", "symbol 'more' is of no placeholder and no output",
    function(d) d.graph.symbols[3] = { id = "more", name = "more" } end },
  -- nodes
  { "data_loss", "node 'matmul' %(matmul%): input 2, 'y', is no value that is made before it",
    function(d) node(d, "matmul").inputs[2] = "y" end },
  { "data_loss", "node 'matmul' %(matmul%): it has 1 inputs; expected 2",
    function(d) table.remove(node(d, "matmul").inputs) end },
  { "data_loss", "node 'matmul' %(matmul%): .*argument 2 %(y%) is missing",
    function(d) node(d, "matmul").inputs[2] = null end },
  { "data_loss", "node 'matmul' %(matmul%): x .* do not fit", function(d) node(d, "matmul").inputs[1] = "w" end },
  { "data_loss", "node 'both' %(cat%): an entry of \"groups\" is not a whole number below 3",
    function(d) node(d, "both").groups[1] = 4294967295 end },
  { "data_loss", "node 'both' %(cat%): it has 2 inputs; expected 1", function(d) node(d, "both").groups[1] = 1 end },
  { "data_loss", "node 'y' %(add%): it has groups, but none of its inputs is a list",
    function(d) node(d, "y").groups = { 1, 1 } end },
  { "data_loss", "node 'y' %(add%): the name is taken", function(d) node(d, "y").name = "x" end, any = true },
  { "data_loss", "output 1 has another name than its node", function(d) node(d, "y").name = "z" end },
  { "data_loss", "the name 'y' is taken",
    function(d) node(d, "flat").name, node(d, "flat").outputs[1].name = "y", "y" end },
  { "data_loss", "node 'y' %(add%): output 1: it is to be float32 %[\"batch\",4%], but is float32 %[batch, 2%]",
    function(d) node(d, "y").outputs[1].shape[2] = 4 end },
  { "data_loss", "node 'y' %(add%): output 1: it is to be float64",
    function(d) node(d, "y").outputs[1].dtype = "float64" end },
  { "data_loss", "node 'y' %(add%): it has 2 outputs; expected 1",
    function(d) node(d, "y").outputs[2] = node(d, "y").outputs[1] end },
  { "data_loss", "node 'found' %(nonzero%): output 1: .* is of a variable that is not there",
    function(d) node(d, "found").outputs[1].variable = "v" end },
  { "data_loss", "node 'found' %(nonzero%): output 1: w is float32 %[3, 2%], it is not",
    function(d) node(d, "found").outputs[1].variable = "w" end },
  { "data_loss", "node 'y' %(add%): it writes 1 values; expected 0",
    function(d) node(d, "y").writes = { { input = 0, name = "q" } } end },
  { "data_loss", "it comes after a value that is not made before it",
    function(d) node(d, "matmul").after = { "y" } end },
  -- attributes
  { "data_loss", "the operator has no attribute 'axis_of_evil'",
    function(d) node(d, "matmul").attributes.axis_of_evil = { type = "bool", value = true } end },
  { "data_loss", "the attribute transpose_x is no bool there",
    function(d) node(d, "matmul").attributes.transpose_x.type = "int" end },
  { "data_loss", "the attribute transpose_x is not true or false",
    function(d) node(d, "matmul").attributes.transpose_x.value = 1 end },
  { "data_loss", "the attribute scalar: there is no kind 'none'",
    function(d) node(d, "y").attributes.scalar.value.kind = "none" end },
  { "data_loss", "the attribute scalar: its number is no int",
    function(d) node(d, "y").attributes.scalar.value.number = 1e300 end },
  { "data_loss", "the attribute scalar: the input that it stands for is there",
    function(d) node(d, "y").attributes.scalar.value.input = 0 end },
  { "data_loss", "the attribute scalar: \"input\" is not a whole number below 2",
    function(d) node(d, "y").attributes.scalar.value.input = 2 end },
  { "data_loss", "node 's' %(sum%): .*is not a list of at most 8",
    function(d) for i = 1, 9 do node(d, "s").attributes.axes.value[i] = i end end },
  { "data_loss", "node 's' %(sum%): axis 8 is out of range",
    function(d) node(d, "s").attributes.axes.value[1] = 7 end },
  { "data_loss", "node 's' %(sum%): axis 9223372036854775807 is out of range", -- counted from 1 it would overflow
    function(d) node(d, "s").attributes.axes.value[1] = 9223372036854775807LL end },
  { "data_loss", "names 'rows', which is no symbol that is known there",
    function(d) node(d, "flat").attributes.shape.value[1] = "3*rows" end },
  { "data_loss", "cannot be divided by 0", function(d) node(d, "flat").attributes.shape.value[1] = "(batch)//(0)" end },
  { "data_loss", "can be written more simply",
    function(d) node(d, "flat").attributes.shape.value[1] = "(batch + 1)//(1)*batch" end },
  { "data_loss", "nested more than 64 deep",
    function(d) node(d, "flat").attributes.shape.value[1] = ("max("):rep(70) .. "batch" .. (", 1)"):rep(70) end },
  { "data_loss", "is longer than 16384 bytes",
    function(d) node(d, "flat").attributes.shape.value[1] = "batch" .. (" + batch"):rep(3000) end },
  { "data_loss", "more than an int64 can count",
    function(d) node(d, "flat").attributes.shape.value[1] = "4611686018427387000*batch*9 + 4611686018427387000" end },
}

local function with_file(fn)
  files.with_path(function(path)
    pg.save(path, pg.Session { graph() })
    fn(path, (pg.load(path)), files.document(path))
  end)
end

local function plain(text) return (text:gsub("%%", "%%%%")) end

for _, row in ipairs(rows) do
  test("refused: " .. row[2], function(t)
    with_file(function(path, tensors, document)
      if row.key then
        table.sort(document.results, function(a, b) return tostring(a.key) < tostring(b.key) end)
        for i, entry in ipairs(document.results) do
          if entry.key == row.key then table.insert(document.results, table.remove(document.results, i)) end
        end
      end
      row[3](document)
      files.write(path, tensors, pg.json.encode(document))
      local e = t.raises(function() pg.load_graph(path) end, row.any and "" or row[2])
      t.equal(e.code, row[1])
      t.equal(e.message:find(path, 1, true) ~= nil, true)
    end)
  end)
end

test("a document that is no JSON, or has a name twice, is refused", function(t)
  with_file(function(path, tensors, document)
    local text = pg.json.encode(document)
    for damage, pattern in pairs { [text:sub(1, -2)] = "the graph is not JSON: ", ["[]"] = "does not say that it is",
                                   [plain('{"format":"a",') .. text:sub(2)] = "stands there twice",
                                   [("["):rep(5000)] = "nested more than" } do
      files.write(path, tensors, damage)
      t.equal(t.raises(function() pg.load_graph(path) end, pattern).code, "data_loss")
    end
  end)
end)

test("a long document stands in several notes", function(t)
  local g = pg.graph(function(g)
    local x = g:placeholder { "x", shape = { 1 } }
    for i = 1, 4000 do x = x + i end
    return { y = x, note = g:constant({ 1 }, { name = ("é"):rep(100) }):clone() }
  end)
  files.with_path(function(path)
    pg.save(path, pg.Session { g })
    local document = files.document(path)
    t.equal(#document.graph.nodes, 4001)
    t.equal(pg.load_graph(path):text(), g:text())
  end)
  local cut = require("perigee.graph.document")
  local text = ("aé"):rep(2 ^ 20 + 7)
  local notes = cut.to_notes(text)
  t.equal(notes["perigee.graph.2"] ~= nil, true)
  t.equal(cut.from_notes(function(key) return notes[key] end) == text, true)
end)
