-- SPDX-License-Identifier: Apache-2.0
-- What one step of each kind of recurrent layer computes, and its way back. Here and nowhere else: what gates do is one
-- operator each way in `run` and `back`.
--
-- A kind has
--   gates                   how many times its hidden size a product with the input is wide
--   has_cell                whether there is a second state
--   step(x, h, c, w)        h and c after a step, where x is the input's part of the gates [n, gates * hidden], by
--                           operators that a tape or a graph may record
--   run(x, h, c, w, keep)   the same where nobody records (`w.tidy`): what has served is closed. `keep`, if given, is
--                           called with a list of tensors that the way back needs.
--   all(x, h, c, w, reverse, keep)  all steps in one operator, where a kind has one: y, all c (the last one without
--                           `keep`) and what all_back needs
--   all_back(pass, saved, c, w, reverse)  what flows into x, h and c, by what flows into y, the last h and the last c
--   back(saved, dh, dc, w)  what flows into x, into h as far as it does not pass through w.hidden, into c, and into the
--                           hidden part of the gates where that differs from x's
-- w has the parameters: hidden [gates * hidden, out], bias (GRU's second), projection [out, hidden], by tensors that
-- are of x's dtype.

local native = require "perigee.native"
local close = native.handles.close

local cells = {}
local whole
local function pg() -- asked for at every step: `require` would keep the loops from being compiled
  whole = whole or require "perigee"
  return whole
end

local function operator(name)
  local f
  return function(...)
    f = f or native.op(name)
    return f(...)
  end
end
local lstm_cell, lstm_cell_grad = operator "lstm_cell", operator "lstm_cell_grad"
local lstm_steps, lstm_steps_grad = operator "lstm_steps", operator "lstm_steps_grad"
local gru_cell, gru_cell_grad = operator "gru_cell", operator "gru_cell_grad"
local tanh_grad, relu_grad = operator "tanh_grad", operator "relu_grad"

-- ---- RNN: h' = f(x + h W^T) ----

local function plain(activation, slope)
  return {
    gates = 1,
    step = function(x, h, _, w)
      local sum = x + pg().linear(h, w.hidden)
      return sum[activation](sum)
    end,
    run = function(x, h, _, w, keep)
      local product = pg().linear(h, w.hidden)
      local y = product:add_(x)[activation .. "_"](product) -- in place: no other memory is touched
      if keep then keep { y } end
      return y
    end,
    back = function(saved, dh) return slope(saved[1], dh) end,
  }
end

cells.tanh = plain("tanh", tanh_grad)
-- Where y is 0 so was the slope: relu's own rule.
cells.relu = plain("relu", relu_grad)

-- ---- LSTM: c' = f c + i g, h' = o tanh(c'), gates in the order i, f, g, o ----

cells.lstm = {
  gates = 4,
  has_cell = true,
  step = function(x, h, c, w)
    local size = c:size(2)
    local sum = x + pg().linear(h, w.hidden)
    local s = sum:sigmoid() -- g's part of it is computed for nothing: one operator is faster than two
    local g = sum:narrow(2, 2 * size + 1, size):tanh()
    local i, f, o = s:narrow(2, 1, size), s:narrow(2, size + 1, size), s:narrow(2, 3 * size + 1, size)
    local new_c = pg().addcmul(f * c, i, g)
    local m = o * new_c:tanh()
    return w.projection and pg().linear(m, w.projection) or m, new_c
  end,
  run = function(x, h, c, w, keep)
    local product = pg().linear(h, w.hidden)
    local m, new_c, gates = lstm_cell(x, product, c)
    local new_h = w.projection and pg().linear(m, w.projection) or m
    close(product)
    if keep then
      keep { gates, c, m }
    else
      close(gates)
      if new_h ~= m then close(m) end
    end
    return new_h, new_c
  end,
  all = function(x, h, c, w, reverse, keep)
    return lstm_steps(x, w.hidden, h, c, { reverse = reverse, keep = keep })
  end,
  all_back = function(pass, saved, c, w, reverse)
    return lstm_steps_grad(pass[1] or nil, pass[2] or nil, pass[3] or nil, saved.gates, saved.states, w.hidden, c,
                           { reverse = reverse })
  end,
  back = function(saved, dh, dc, w)
    local dm = w.projection and dh:matmul(w.projection) or dh
    local dx, new_dc = lstm_cell_grad(dm, dc or nil, saved[1], saved[2])
    return dx, nil, new_dc
  end,
}

-- ---- GRU: h' = n + z (h - n), n = tanh(x_n + r (h W_n^T + b_n)), gates in the order r, z, n ----

cells.gru = {
  gates = 3,
  step = function(x, h, _, w)
    local size = h:size(2)
    local product = pg().linear(h, w.hidden, w.bias)
    local sum = x:narrow(2, 1, 2 * size) + product:narrow(2, 1, 2 * size)
    local s = sum:sigmoid()
    local r, z = s:narrow(2, 1, size), s:narrow(2, size + 1, size)
    local inner = pg().addcmul(x:narrow(2, 2 * size + 1, size), r, product:narrow(2, 2 * size + 1, size))
    return inner:tanh():lerp(h, z)
  end,
  run = function(x, h, _, w, keep)
    local product = pg().linear(h, w.hidden, w.bias)
    local new_h, gates = gru_cell(x, product, h)
    if keep then
      keep { gates, product, h }
    else
      close(product)
      close(gates)
    end
    return new_h
  end,
  back = function(saved, dh)
    local dx, dhidden, direct = gru_cell_grad(dh, saved[1], saved[2], saved[3])
    return dx, direct, nil, dhidden
  end,
}

return cells
