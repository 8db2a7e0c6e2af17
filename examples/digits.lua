-- SPDX-License-Identifier: Apache-2.0
-- The handwritten digits, shuffled once and split: images [n, 1, 8, 8] in 0 .. 1 and labels [n] from 0.

local pg = require "perigee"
local data = pg.data

local digits = {}

---@param folder string where this file is
---@param held_out number part that goes into the test set
function digits.load(folder, held_out)
  local rows = data.csv(folder .. "data/digits.csv.gz")
  rows = rows[pg.randperm(#rows)]
  local images = rows[{ {}, { 1, 64 } }]:reshape(-1, 1, 8, 8) / 16
  local labels = rows[{ {}, 65 }]:to("int64")
  local last = math.floor(#rows * (1 - held_out))
  return { x = images[{ { 1, last } }], y = labels[{ { 1, last } }] },
         { x = images[{ { last + 1, -1 } }], y = labels[{ { last + 1, -1 } }] }
end

---Prints how often each digit (rows) was taken for which (columns).
function digits.print_confusion(labels, predicted)
  local count = {}
  for digit = 0, 9 do
    count[digit] = {}
    for other = 0, 9 do count[digit][other] = 0 end
  end
  labels, predicted = labels:totable(), predicted:totable()
  for i, label in ipairs(labels) do count[label][predicted[i]] = count[label][predicted[i]] + 1 end
  print("confusion matrix: rows are labels, columns predictions")
  print("      0   1   2   3   4   5   6   7   8   9")
  for digit = 0, 9 do
    local line = (" %d "):format(digit)
    for other = 0, 9 do line = line .. ("%4d"):format(count[digit][other]) end
    print(line)
  end
end

return digits
