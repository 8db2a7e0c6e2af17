-- SPDX-License-Identifier: Apache-2.0
-- Graphs of every operator that can be recorded, with their gradients, written into a file and read again: the same
-- bits, from the nodes that were saved and from gradients that are taken afterwards.

local here = debug.getinfo(1, "S").source:match("^@(.*)lua/graph/[^/]*$") or "../../"
package.path = here .. "?.lua;" .. here .. "?/init.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local check = require "cases.check"
local files = require "graph_files"

-- Inputs as placeholders, those that are written as variables; the loss is the sum of all outputs.
local function build(op, row, case, size)
  local args, feeds, sources = check.tensors(op, case, "float64"), {}, {}
  local is_leaf = {}
  for _, leaf in ipairs(check.differentiable(op, row, case) and check.leaves(op, row, case, args) or {}) do
    is_leaf[leaf] = true
  end
  local g = pg.graph(function(g)
    local count, named = 0, {}
    local nodes = check.map_tensors(op, args, function(t, input)
      count = count + 1
      if check.is_mutated(input) then
        local variable = g:variable { "v" .. count, init = t }
        variable.requires_grad = false
        return variable
      end
      local shape, name = {}, "p" .. count
      for i, d in ipairs(t.shape) do shape[i] = d == size and "batch" or d end
      feeds[name] = t
      if is_leaf[t] then sources[#sources + 1] = name end
      return g:placeholder { name, shape = shape, dtype = t.dtype }
    end)
    local loss
    for k, y in ipairs { native.call(op.name, nodes, case.attrs) } do
      named["y" .. k] = y
      if check.is_floating(y) and y.requires_grad then loss = (loss and loss + (y * y):sum() or (y * y):sum()) end
    end
    named.loss = #sources > 0 and loss or nil
    return named
  end)
  return g, feeds, sources
end

local function fetch_all(g, feeds, extra)
  local fetches = {}
  for name, t in pairs(g.results) do fetches[name] = t end
  for i, t in pairs(extra) do fetches["gradient " .. i] = t end
  pg.manual_seed(9)
  return pg.Session { g }:run(fetches, feeds)
end

local function gradients(g, sources)
  if not g.results.loss then return {} end
  return g:gradients("loss", sources, { allow_unused = true })
end

-- The text, but for the lines that gradients were taken in.
local function without_lines(g) return (g:text():gsub("  %S+%.lua:%d+\n", "\n")) end

local function run(t, op, row, case, size)
  local g, feeds, sources = build(op, row, case, size)
  local read = files.round_trip(pg.Session { g })
  t.equal(read:text(), g:text())
  local want = fetch_all(g, feeds, gradients(g, sources))
  files.same_all(fetch_all(read, feeds, gradients(read, sources)), want) -- taken anew, of the calls that were read
  t.equal(without_lines(read), without_lines(g))
  local again = files.round_trip(pg.Session { g }) -- with the gradients' nodes
  t.equal(again:text(), g:text())
  files.same_all(fetch_all(again, feeds, {}), fetch_all(g, feeds, {}))
end

check.for_each(require "cases", function(op, row, case, name)
  if row.graph == false then return end
  local size = row.symbolic ~= false and case.symbolic ~= false and not row.creates and
                 check.batch_of(op, check.tensors(op, case, "float64")) or nil
  test("export/" .. name, function(t) run(t, op, row, case, size) end)
end)
