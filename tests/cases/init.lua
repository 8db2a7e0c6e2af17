-- SPDX-License-Identifier: Apache-2.0
-- The operator case table: rows by operator name (README.md says what a row holds).

local families = { "binary", "unary", "reduction", "view", "index", "bags", "scatter", "sort", "matrix", "window",
                   "resample", "normalise", "recurrent", "attention", "loss", "pointwise", "create", "random",
                   "optimizer", "collective", "gradients", "memory", "image", "quantized" }

local rows, names = {}, {}
for _, family in ipairs(families) do
  for name, row in pairs(require("cases." .. family)) do
    if rows[name] then error("operator " .. name .. " has two rows") end
    row.name = name
    for i, case in ipairs(row.cases) do case.number = i end
    rows[name], names[#names + 1] = row, name
  end
end
table.sort(names)

return { rows = rows, names = names }
