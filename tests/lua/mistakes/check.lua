-- SPDX-License-Identifier: Apache-2.0
-- Calls that must fail, with their exact messages: first of all what users of PyTorch type.

local pg = require "perigee"

local NAMES = "local pg, nn, optim, data, x, y, w, idx, loss, model, opt, logits = ...; "

-- What the names stand for.
local function fixtures()
  local x = pg.arange(6):to("float32"):reshape(2, 3)
  local w = pg.tensor({ 1, 2 }, { requires_grad = true })
  local model = pg.nn.Sequential { pg.nn.Linear { 3, 2 }, pg.nn.ReLU {} }
  return pg, pg.nn, pg.optim, pg.data, x, x + 1, w, pg.tensor({ 0, 1 }, { dtype = "int64" }), (w * w):sum(), model,
         pg.optim.SGD { model:parameters(), lr = 0.1 }, pg.zeros { 2, 3 }
end

---@param test function what makes a case in the calling file
---@param rows table[] the code, and the message behind "script:1: "
return function(test, rows)
  for i, row in ipairs(rows) do
    test(("mistakes/%d: %s"):format(i, row[1]), function(t)
      if t.device and t.device ~= "cpu" then t.skip("messages name the device") end
      local fn = assert(loadstring(NAMES .. row[1], "=script"))
      local ok, err = pcall(fn, fixtures())
      t.ok(not ok, "nothing was raised")
      t.equal(tostring(err), "script:1: " .. row[2])
      t.equal(pg.tensor { 1, 2 } + 1, { 2, 3 })
    end)
  end
end
