-- SPDX-License-Identifier: Apache-2.0
-- What one step of each kind of recurrent layer computes, and its way back. Here and nowhere else: a kernel for whole
-- steps takes the place of `step` and `back`.
--
-- A kind has
--   gates                   how many times its hidden size a product with the input is wide
--   has_cell                whether there is a second state
--   step(x, h, c, w, keep)  h and c after a step, where x is the input's part of the gates [n, gates * hidden]. `keep`,
--                           if given, is called with a list of tensors that the way back needs; otherwise they are
--                           closed as soon as they have served where `w.tidy` says that no tape holds them either
--   back(saved, dh, dc, w)  what flows into x, into h as far as it does not pass through w.hidden, into c, and into the
--                           hidden part of the gates where that differs from x's
-- w has the parameters: hidden [gates * hidden, out], bias (GRU's second), projection [out, hidden], by tensors that
-- are of x's dtype.

local native = require "perigee.native"
local close = native.handles.close

local cells = {}
local function pg() return require "perigee" end

local function slope_of_sigmoid(y, d) return native.call("sigmoid_grad", { y, d }) end
local function slope_of_tanh(y, d) return native.call("tanh_grad", { y, d }) end

local function close_all(...)
  for i = 1, select("#", ...) do close((select(i, ...))) end
end

-- ---- RNN: h' = f(x + h W^T) ----

local function plain(activation, slope)
  return {
    gates = 1,
    step = function(x, h, _, w, keep)
      local product = pg().linear(h, w.hidden)
      local sum = x + product
      local y = sum[activation](sum)
      if keep then keep { y } end
      if w.tidy then close_all(product, sum) end
      return y
    end,
    back = function(saved, dh) return slope(saved[1], dh) end,
  }
end

cells.tanh = plain("tanh", slope_of_tanh)
-- Where y is 0 so was the slope: relu's own rule.
cells.relu = plain("relu", function(y, d) return native.call("relu_grad", { y, d }) end)

-- ---- LSTM: c' = f c + i g, h' = o tanh(c'), gates in the order i, f, g, o ----

cells.lstm = {
  gates = 4,
  has_cell = true,
  step = function(x, h, c, w, keep)
    local size = c:size(2)
    local product = pg().linear(h, w.hidden)
    local sum = x + product
    local s = sum:sigmoid() -- g's part of it is computed for nothing: one operator is faster than two
    local g = sum:narrow(2, 2 * size + 1, size):tanh()
    local i, f, o = s:narrow(2, 1, size), s:narrow(2, size + 1, size), s:narrow(2, 3 * size + 1, size)
    local kept = f * c
    local new_c = pg().addcmul(kept, i, g)
    local t = new_c:tanh()
    local m = o * t
    local new_h = w.projection and pg().linear(m, w.projection) or m
    if keep then keep { i, f, g, o, t, c, m } end
    if w.tidy then
      close_all(product, sum, kept)
      if not keep then close_all(s, g, i, f, o, t) end
      if not keep and new_h ~= m then close(m) end
    end
    return new_h, new_c
  end,
  back = function(saved, dh, dc, w)
    local i, f, g, o, t, c = unpack(saved, 1, 6)
    local dm = w.projection and dh:matmul(w.projection) or dh
    local through = slope_of_tanh(t, dm * o)
    dc = dc and dc + through or through
    local dx = pg().cat { slope_of_sigmoid(i, dc * g), slope_of_sigmoid(f, dc * c), slope_of_tanh(g, dc * i),
                          slope_of_sigmoid(o, dm * t), axis = 2 }
    return dx, nil, dc * f
  end,
}

-- ---- GRU: h' = n + z (h - n), n = tanh(x_n + r (h W_n^T + b_n)), gates in the order r, z, n ----

cells.gru = {
  gates = 3,
  step = function(x, h, _, w, keep)
    local size = h:size(2)
    local product = pg().linear(h, w.hidden, w.bias)
    local sum = x:narrow(2, 1, 2 * size) + product:narrow(2, 1, 2 * size)
    local s = sum:sigmoid()
    local r, z = s:narrow(2, 1, size), s:narrow(2, size + 1, size)
    local hidden = product:narrow(2, 2 * size + 1, size)
    local inner = pg().addcmul(x:narrow(2, 2 * size + 1, size), r, hidden)
    local n = inner:tanh()
    local new_h = n:lerp(h, z)
    if keep then keep { r, z, n, hidden, h } end
    if w.tidy then
      close_all(sum, inner)
      if not keep then close_all(product, s, r, z, hidden, n) end
    end
    return new_h
  end,
  back = function(saved, dh)
    local r, z, n, hidden, h = unpack(saved, 1, 5)
    local kept = dh * z
    local dn = slope_of_tanh(n, dh - kept)
    local dr, dz = slope_of_sigmoid(r, dn * hidden), slope_of_sigmoid(z, dh * (h - n))
    return pg().cat { dr, dz, dn, axis = 2 }, kept, nil, pg().cat { dr, dz, dn * r, axis = 2 }
  end,
}

return cells
