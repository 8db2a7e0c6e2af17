-- SPDX-License-Identifier: Apache-2.0
-- nn.RNN, nn.LSTM, nn.GRU and their cells: parameters, and layers over layers in one or both directions.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local common = require "perigee.nn.layers_common"
local initialise = require "perigee.nn.initialise"
local arguments = require "perigee.nn.recurrent.arguments"
local cells = require "perigee.nn.recurrent.cells"
local packed = require "perigee.nn.recurrent.packed"
local sequence = require "perigee.nn.recurrent.sequence"

local META = walk.META
local layers = {}
local function pg() return require "perigee" end

-- ---- parameters ----

local INPUT = { "input_size", "integer",
                doc = "size of x's last axis; with one number, which is hidden_size then, the first x's" }
local HIDDEN = { "hidden_size", "integer", doc = "size of the state" } -- needed: read_sizes tells
local BIAS = { "bias", "boolean", default = true, doc = "whether there are biases" }
local NONLINEARITY = { "nonlinearity", "string", default = "tanh", choices = { "tanh", "relu" },
                       doc = "what makes the state of the sums" }

-- One number is the hidden size, as of Linear: nn.LSTM{256}. The input's is inferred then.
local function read_sizes(where, self, ...)
  local first = ...
  local by_name = type(first) == "table" and first.input_size ~= nil or false
  local o = self.options
  if o.hidden_size == nil then
    if o.input_size == nil or by_name then
      common.refuse(where, "argument \"hidden_size\" is missing", ("nn.%s{input_size, hidden_size}"):format(where))
    end
    o.input_size, o.hidden_size = nil, o.input_size
  end
  if o.input_size then common.positive(where, o, "input_size") end
  common.positive(where, o, "hidden_size")
end

-- A class whose parameters are `make`'s.
local function class(name, params, make)
  local made = common.class(name, params)
  local read = made.init
  function made:init(...)
    read(self, ...)
    read_sizes(name, self, ...)
    make(self, self.options)
  end
  return made
end

local function uniform(self, shape) return common.uniform(shape, 1 / math.sqrt(self.options.hidden_size)) end

-- A weight for the input, which may be of unknown size.
local function input_weight(self, rows, columns)
  if columns then return uniform(self, { rows, columns }) end
  self[META].lazy = true
  return common.parameter(initialise.empty "float32")
end

-- The first input is here. What load_state brought stays.
local function materialise(self, where, x, rows, names)
  local features, bound = x:size(x:dim()), 1 / math.sqrt(self.options.hidden_size)
  if type(features) ~= "number" then
    common.refuse(where, ("x is %s; expected a known last axis, since the input size is inferred from it"):format(
                    tostring(x.shape)))
  end
  for _, name in ipairs(names) do
    local weight = self[META].tensors[name]
    if weight:numel() > 0 and not weight:has_shape { rows, features } then
      common.refuse(where, ("%s was loaded as %s, but x %s needs %s"):format(
                      name, tostring(weight.shape), tostring(x.shape),
                      tostring(native.shape { rows, features })))
    end
  end
  native.graphs.outside(pg().no_grad, function()
    for _, name in ipairs(names) do
      local weight = self[META].tensors[name]
      if weight:numel() == 0 then
        native.assign(weight, pg().device(weight.device, initialise.tensor, {
          init = "uniform", a = -bound, b = bound, shape = { rows, features }, dtype = weight.dtype }))
      end
    end
  end)
  self.options.input_size, self[META].lazy = features, false
end

-- ---- layers ----

local function suffix(layer, direction) return ("_l%d%s"):format(layer - 1, direction == 2 and "_reverse" or "") end

local function directions(o) return o.bidirectional and 2 or 1 end
local function out_size(o) return (o.proj_size or 0) > 0 and o.proj_size or o.hidden_size end

local MOST_LAYERS = 10000 -- a number that came from elsewhere is an error, not hours of making parameters

local function make_layers(name, gates)
  return function(self, o)
    common.positive(name, o, "num_layers")
    if o.num_layers > MOST_LAYERS then
      common.refuse(name, ("num_layers must be at most %d, got %g"):format(MOST_LAYERS, o.num_layers))
    end
    if o.dropout < 0 or o.dropout > 1 then
      common.refuse(name, ("dropout must lie in [0, 1], got %g"):format(o.dropout))
    end
    if o.proj_size and (o.proj_size < 0 or o.proj_size >= o.hidden_size) then
      common.refuse(name, ("proj_size must lie in 0..%d, below hidden_size, got %d"):format(o.hidden_size - 1,
                      o.proj_size))
    end
    local rows, out = gates * o.hidden_size, out_size(o)
    for layer = 1, o.num_layers do
      local inputs = o.input_size
      if layer > 1 then inputs = directions(o) * out end
      for direction = 1, directions(o) do
        local tail = suffix(layer, direction)
        self["weight_ih" .. tail] = input_weight(self, rows, inputs)
        self["weight_hh" .. tail] = uniform(self, { rows, out })
        if o.bias then
          self["bias_ih" .. tail] = uniform(self, { rows })
          self["bias_hh" .. tail] = uniform(self, { rows })
        end
        if out ~= o.hidden_size then self["weight_hr" .. tail] = uniform(self, { out, o.hidden_size }) end
      end
    end
  end
end

local function as(t, dtype)
  if t == nil or t.dtype == dtype then return t end
  return t:to(dtype)
end

-- The input's part of the gates: one product for all steps.
local function gates_of(self, x, tail, is_gru)
  local first, second = self["bias_ih" .. tail], self["bias_hh" .. tail]
  local bias = first
  if first and not is_gru then bias = first + second end -- GRU's second one is multiplied with the reset gate
  return pg().linear(x, self["weight_ih" .. tail], bias)
end

-- One direction of a layer: y, h, c.
local function one_direction(self, call, x, layer, direction)
  local o, tail, is_gru = self.options, suffix(layer, direction), call.cell == cells.gru
  local gates = gates_of(self, x, tail, is_gru)
  local dtype, number = gates.dtype, (layer - 1) * directions(o) + direction
  local w = { hidden = as(self["weight_hh" .. tail], dtype), bias = is_gru and as(self["bias_hh" .. tail], dtype) or
              nil, projection = as(self["weight_hr" .. tail], dtype) }
  local h0, c0 = call:state("h0", number, dtype), call.cell.has_cell and call:state("c0", number, dtype) or nil
  return sequence.run(call.cell, { sizes = call.sizes, reverse = direction == 2, where = call.where }, gates, h0, c0, w)
end

-- The state of a layer's direction: given, or zeros.
local function state(call, name, number, dtype)
  local given = call[name]
  if given then return as(given:select(1, number), dtype) end
  local zeros = call.zeros[name]
  if not zeros then
    zeros = pg().zeros({ call.count, call.widths[name] }, { dtype = dtype, device = call.device })
    call.zeros[name] = zeros
  end
  return zeros
end

-- All layers over x, [T, n, features] or packed rows.
local function run_layers(self, call, x)
  local o, hs, cs = self.options, {}, {}
  for layer = 1, o.num_layers do
    local ys = {}
    for direction = 1, directions(o) do
      local y, h, c = one_direction(self, call, x, layer, direction)
      ys[direction], hs[#hs + 1], cs[#cs + 1] = y, h, c
    end
    x = ys[2] and pg().cat { ys[1], ys[2], axis = -1 } or ys[1]
    if self.training and o.dropout > 0 and layer < o.num_layers then
      x = pg().dropout(x, { p = o.dropout, training = true })
    end
  end
  return x, pg().stack { hs, axis = 1 }, cs[1] and pg().stack { cs, axis = 1 } or nil
end

local function reordered(t, index)
  if not t or not index then return t end
  return t:index_select(2, index)
end

-- What a call is about, beside x: states looked at, in the order of the packed sequences.
local function prepare(self, where, cell, x, sequences, alone, sorted, h0, c0)
  local o = self.options
  local out, count = out_size(o), o.num_layers * directions(o)
  local dtypes = { x.dtype, self.weight_hh_l0.dtype, native.autocast_dtype(x) }
  local call = { where = where, cell = cell, zeros = {}, widths = { h0 = out, c0 = o.hidden_size }, state = state,
                 count = sequences, device = x.device }
  for name, given in pairs { h0 = h0, c0 = c0 } do
    local shape = { count, sequences, call.widths[name] }
    if alone then table.remove(shape, 2) end
    arguments.check_state(where, name, given, shape, dtypes, x)
    call[name] = reordered(alone and given:unsqueeze(2) or given, sorted)
  end
  return call
end

local function run_packed(self, where, cell, input, h0, c0)
  local call = prepare(self, where, cell, input.data, input.sizes[1], false, input.sorted_indices, h0, c0)
  call.sizes = input.sizes
  local y, h, c = run_layers(self, call, input.data)
  return packed.with_data(input, y), reordered(h, input.unsorted_indices), reordered(c, input.unsorted_indices)
end

-- How many there are: in graphs a size that only a run tells, too.
local function check_steps(where, x, axis)
  local steps = x:size(axis)
  if steps == 0 then common.refuse(where, ("x is %s; expected at least one step"):format(tostring(x.shape))) end
  return steps
end

local function run_padded(self, where, cell, x, h0, c0, lengths)
  local o, alone = self.options, x:dim() == 2
  if alone then
    if lengths ~= nil then
      common.refuse(where, ("lengths need a batch, but x is %s"):format(tostring(x.shape)), "x[{{1, n}}] is its part")
    end
    x = x:unsqueeze(2)
  end
  local first = o.batch_first and not alone
  local steps, count = check_steps(where, x, first and 2 or 1), x:size(first and 1 or 2)
  if lengths ~= nil then
    if type(steps) ~= "number" then
      common.refuse(where, ("lengths need a known number of steps, but x is %s"):format(tostring(x.shape)))
    end
    lengths = packed.read_lengths(where, lengths, count, steps)
    local shorter = false
    for _, n in ipairs(lengths) do shorter = shorter or n < steps end
    if shorter then
      local y, h, c = run_packed(self, where, cell, packed.pack(x, lengths, first), h0, c0)
      return packed.pad(y, first, 0, steps), h, c
    end
  end
  local call = prepare(self, where, cell, x, count, alone, nil, h0, c0)
  if first then x = x:transpose(1, 2):contiguous() end -- one product for all steps, not one each
  local y, h, c = run_layers(self, call, x)
  if alone then return y:squeeze(2), h:squeeze(2), c and c:squeeze(2) end
  return first and y:transpose(1, 2) or y, h, c
end

local function input_weights(self)
  local names = { "weight_ih_l0" }
  if self.options.bidirectional then names[2] = "weight_ih_l0_reverse" end
  return names
end

local RANKS, PACKED = { [2] = true, [3] = true }, { [2] = true }

local function check_self(where, self)
  if walk.is_layer(self) then return end
  native.raise("invalid_argument", where, "self must be a layer, got " .. native.describe(self),
               "layer(x), or layer:forward(x) with a colon")
end

local function define_layer(name, cell_of)
  local made = layers[name]
  function made:forward(input, ...)
    check_self(name, self)
    local cell, o, is_packed = cell_of(self), self.options, packed.is_packed(input)
    local h0, c0, lengths = arguments.of_layer(name, cell.has_cell or false, ...)
    local x = is_packed and input.data or input
    local shapes = is_packed and "packed [rows, input_size]" or
                   (o.batch_first and "[N, T, %s] or [T, %s]" or "[T, N, %s] or [T, %s]"):gsub("%%s", o.input_size or
                                                                                               "input_size")
    arguments.check_input(name, x, is_packed and PACKED or RANKS, shapes, o.input_size, self.weight_hh_l0)
    if self[META].lazy then materialise(self, name, x, cell.gates * o.hidden_size, input_weights(self)) end
    if not is_packed then return run_padded(self, name, cell, input, h0, c0, lengths) end
    if lengths ~= nil then common.refuse(name, "lengths are given, but x is packed and has its own") end
    return run_packed(self, name, cell, input, h0, c0)
  end
end

local NUM_LAYERS = { "num_layers", "integer", default = 1, doc = "layers, each over the outputs of the one before" }
local FORM = {
  BIAS, { "batch_first", "boolean", default = true, doc = "x and y are [N, T, ...], else [T, N, ...]" },
  { "dropout", "number", default = 0, doc = "probability of an element between layers to become 0 in training" },
  { "bidirectional", "boolean", default = false, doc = "whether a second pass of each layer begins at the end" },
}

---Recurrent layers (Elman, 1990): h' = f(W_ih x + b_ih + W_hh h + b_hh), f being tanh or relu, over the steps of
---sequences. `y, h = rnn(x)`: x [N, T, input_size], or [T, N, input_size] with batch_first=false (PyTorch's default,
---not ours), or one sequence [T, input_size]; y [N, T, D hidden_size] has the last layer's states of all steps, D being
---2 where it is bidirectional, else 1; h [num_layers D, N, hidden_size] the last states of all. rnn(x, h) and
---rnn(x, {h0=h}) begin with given ones, in place of zeros. rnn(x, {lengths={5, 3}}), a list or a tensor, ends each
---sequence at its own length: y is 0 behind it, h what it was there. Or x is packed, by nn.utils.pack_padded_sequence:
---then y is packed too. Parameters are called as PyTorch's. In a graph a number of steps that is known is recorded step
---by step, one that only a run tells as a pg.scan.
---@class perigee.nn.RNN: perigee.Layer
---@field weight_ih_l0 perigee.Tensor [hidden_size, input_size]; weight_ih_l1 and so on, weight_ih_l0_reverse
---@field weight_hh_l0 perigee.Tensor [hidden_size, hidden_size]
---@field bias_ih_l0? perigee.Tensor [hidden_size]
---@field bias_hh_l0? perigee.Tensor [hidden_size]
layers.RNN = class("RNN", { INPUT, HIDDEN, NUM_LAYERS, NONLINEARITY, unpack(FORM) }, make_layers("RNN", 1))
define_layer("RNN", function(self) return cells[self.options.nonlinearity] end)

---Long short-term memory (Hochreiter and Schmidhuber, 1997) with forget gates: i, f, o = sigmoid, g = tanh of
---W_ih x + b_ih + W_hh h + b_hh, whose rows come in the order i, f, g, o; c' = f c + i g; h' = o tanh(c'), or W_hr of
---that with proj_size (Sak et al., 2014). `y, h, c = lstm(x)`: x, y, h, `lengths` and packed sequences as of RNN, with
---states of proj_size where there is one; c [num_layers D, N, hidden_size]. lstm(x, {h, c}), lstm(x, h, c) and
---lstm(x, {h0=h, c0=c}) begin with given states, in place of zeros. Parameters are called as PyTorch's.
---@class perigee.nn.LSTM: perigee.Layer
---@field weight_ih_l0 perigee.Tensor [4 hidden_size, input_size]; weight_ih_l1 and so on, weight_ih_l0_reverse
---@field weight_hh_l0 perigee.Tensor [4 hidden_size, hidden_size], or [..., proj_size]
---@field bias_ih_l0? perigee.Tensor [4 hidden_size]
---@field bias_hh_l0? perigee.Tensor [4 hidden_size]
---@field weight_hr_l0? perigee.Tensor [proj_size, hidden_size]
layers.LSTM = class("LSTM", {
  INPUT, HIDDEN, NUM_LAYERS, FORM[1], FORM[2], FORM[3], FORM[4],
  { "proj_size", "integer", default = 0, doc = "size that h is projected to; 0: it is not" } }, make_layers("LSTM", 4))
define_layer("LSTM", function() return cells.lstm end)

---Gated recurrent units (Cho et al., 2014): r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh), n = tanh(W_in x + b_in +
---r (W_hn h + b_hn)), h' = (1 - z) n + z h; rows come in the order r, z, n, and the reset gate is applied behind the
---product, as in PyTorch. `y, h = gru(x)`: x, y, h, `lengths` and packed sequences as of RNN.
---@class perigee.nn.GRU: perigee.Layer
---@field weight_ih_l0 perigee.Tensor [3 hidden_size, input_size]; weight_ih_l1 and so on, weight_ih_l0_reverse
---@field weight_hh_l0 perigee.Tensor [3 hidden_size, hidden_size]
---@field bias_ih_l0? perigee.Tensor [3 hidden_size]
---@field bias_hh_l0? perigee.Tensor [3 hidden_size]
layers.GRU = class("GRU", { INPUT, HIDDEN, NUM_LAYERS, unpack(FORM) }, make_layers("GRU", 3))
define_layer("GRU", function() return cells.gru end)

-- ---- cells ----

local function make_cell(gates)
  return function(self, o)
    local rows = gates * o.hidden_size
    self.weight_ih = input_weight(self, rows, o.input_size)
    self.weight_hh = uniform(self, { rows, o.hidden_size })
    if not o.bias then return end
    self.bias_ih = uniform(self, { rows })
    self.bias_hh = uniform(self, { rows })
  end
end

local CELL_RANKS, CELL_WEIGHTS = { [1] = true, [2] = true }, { "weight_ih" }

local function define_cell(name, cell_of)
  local made = layers[name]
  function made:forward(x, ...)
    check_self(name, self)
    local cell, o = cell_of(self), self.options
    local h, c = arguments.of_cell(name, cell.has_cell or false, ...)
    local shapes = ("[N, %s] or [%s]"):gsub("%%s", o.input_size or "input_size")
    arguments.check_input(name, x, CELL_RANKS, shapes, o.input_size, self.weight_hh)
    if self[META].lazy then materialise(self, name, x, cell.gates * o.hidden_size, CELL_WEIGHTS) end
    local alone = x:dim() == 1
    if alone then x = x:unsqueeze(1) end
    local gates = gates_of(self, x, "", cell == cells.gru)
    local dtype = gates.dtype
    local function state_of(label, given)
      local shape = { x:size(1), o.hidden_size }
      if given == nil then return pg().zeros(shape, { dtype = dtype, device = x.device }) end
      arguments.check_state(name, label, given, alone and { o.hidden_size } or shape, { x.dtype, dtype }, x)
      return as(alone and given:unsqueeze(1) or given, dtype)
    end
    h, c = state_of("h0", h), cell.has_cell and state_of("c0", c) or nil
    h, c = cell.step(gates, h, c, { hidden = as(self.weight_hh, dtype), bias = as(self.bias_hh, dtype) })
    if alone then h, c = h:squeeze(1), c and c:squeeze(1) end
    if cell.has_cell then return h, c end
    return h
  end
end

---One step of nn.RNN: h = cell(x, h), x [N, input_size], h [N, hidden_size], or both without N. Without h it begins
---with zeros.
---@class perigee.nn.RNNCell: perigee.Layer
---@field weight_ih perigee.Tensor [hidden_size, input_size]
---@field weight_hh perigee.Tensor [hidden_size, hidden_size]
---@field bias_ih? perigee.Tensor [hidden_size]
---@field bias_hh? perigee.Tensor [hidden_size]
layers.RNNCell = class("RNNCell", { INPUT, HIDDEN, BIAS, NONLINEARITY }, make_cell(1))
define_cell("RNNCell", function(self) return cells[self.options.nonlinearity] end)

---One step of nn.LSTM: h, c = cell(x, {h, c}) or cell(x, h, c), x [N, input_size], h and c [N, hidden_size], or all
---without N. Without them it begins with zeros.
---@class perigee.nn.LSTMCell: perigee.Layer
---@field weight_ih perigee.Tensor [4 hidden_size, input_size]
---@field weight_hh perigee.Tensor [4 hidden_size, hidden_size]
---@field bias_ih? perigee.Tensor [4 hidden_size]
---@field bias_hh? perigee.Tensor [4 hidden_size]
layers.LSTMCell = class("LSTMCell", { INPUT, HIDDEN, BIAS }, make_cell(4))
define_cell("LSTMCell", function() return cells.lstm end)

---One step of nn.GRU: h = cell(x, h), x [N, input_size], h [N, hidden_size], or both without N. Without h it begins
---with zeros.
---@class perigee.nn.GRUCell: perigee.Layer
---@field weight_ih perigee.Tensor [3 hidden_size, input_size]
---@field weight_hh perigee.Tensor [3 hidden_size, hidden_size]
---@field bias_ih? perigee.Tensor [3 hidden_size]
---@field bias_hh? perigee.Tensor [3 hidden_size]
layers.GRUCell = class("GRUCell", { INPUT, HIDDEN, BIAS }, make_cell(3))
define_cell("GRUCell", function() return cells.gru end)

return layers
