-- SPDX-License-Identifier: Apache-2.0
-- L-BFGS (Liu and Nocedal, 1989): steps of Newton's kind, with curvature from the last gradients.

local native = require "perigee.native"
local walk = require "perigee.nn.walk"
local lasting = require "perigee.optim.lasting"
local parameters = require "perigee.optim.parameters"

local module = {}

---@class perigee.LBFGS
---@field lr number length of a step along its direction
local LBFGS = {}

local read = native.signature("optim.LBFGS", {
  { "params", "any", required = true, many = true, type = "perigee.Layer|perigee.Tensor[]", doc = "what is optimized" },
  { "lr", "number", named = true, default = 1, doc = "length of a step along its direction" },
  { "max_iter", "integer", named = true, default = 20, doc = "most iterations of a step" },
  { "max_eval", "integer", named = true, doc = "most calls of the closure in a step; max_iter 5 / 4 if not given" },
  { "tolerance_grad", "number", named = true, default = 1e-7, doc = "largest gradient at which it stops" },
  { "tolerance_change", "number", named = true, default = 1e-9, doc = "change of weights or loss at which it stops" },
  { "history_size", "integer", named = true, default = 100, doc = "how many past moves are remembered" } })

---Steps of Newton's kind (Liu and Nocedal, 1989): w -= lr H g, H being an estimate of the inverse of the second
---derivatives from past moves s = w' - w and turns y = g' - g of the gradient, by the two-loop recursion beginning with
---s y / (y y); the first step goes along the gradient. optimizer:step(closure), where closure clears gradients,
---computes the loss, calls backward and returns the loss. PyTorch's steps without a line search. All parameters must
---have one dtype and one device.
---@return perigee.LBFGS
function module.LBFGS(...)
  local o = read(...)
  local params = walk.is_layer(o.params) and o.params:parameters() or o.params
  if type(params) ~= "table" or not native.is_tensor(params[1]) then
    native.raise("invalid_argument", "LBFGS", "needs a list of parameters or a layer, got " ..
                 native.describe(o.params))
  end
  local seen = {}
  for i, p in ipairs(params) do
    parameters.check("LBFGS", seen, p, i)
    if p.dtype ~= params[1].dtype or p.device ~= params[1].device then
      native.raise("invalid_argument", "LBFGS", ("parameter %d is %s on %s, the first %s on %s"):format(i, p.dtype,
                   p.device, params[1].dtype, params[1].device))
    end
  end
  for _, name in ipairs { "max_iter", "history_size" } do
    if o[name] < 1 then native.raise("invalid_argument", "LBFGS", name .. " must be at least 1") end
  end
  o.max_eval = o.max_eval or math.floor(o.max_iter * 5 / 4)
  return setmetatable({ params = params, options = o, lr = o.lr, moves = {}, turns = {}, iterations = 0 }, LBFGS)
end

-- All gradients as one vector; parameters without one count as 0.
local function flat_gradient(self)
  local parts = {}
  for i, p in ipairs(self.params) do
    local g = p.grad
    parts[i] = (g and g:detach() or p:detach():zeros_like()):flatten()
  end
  return require("perigee").cat(parts, { axis = 1 }):clone()
end

local function add_along(self, direction, t)
  local at = 0
  for _, p in ipairs(self.params) do
    local n = p:numel()
    if n > 0 then
      native.call("copy", { p:detach(), p:detach() + t * direction[{ { at + 1, at + n } }]:reshape(p.shape) })
    end
    at = at + n
  end
end

local function dot(a, b) return (a * b):sum():item() end

-- -H g by the two loops over the last moves (s) and turns of the gradient (y).
local function two_loops(self, gradient)
  local q, alpha, rho = -gradient, {}, {}
  for i = #self.moves, 1, -1 do
    rho[i] = 1 / dot(self.turns[i], self.moves[i])
    alpha[i] = dot(self.moves[i], q) * rho[i]
    q = q - alpha[i] * self.turns[i]
  end
  local r = q * self.diagonal
  for i = 1, #self.moves do r = r + self.moves[i] * (alpha[i] - dot(self.turns[i], r) * rho[i]) end
  return r
end

local function remember(self, gradient)
  local turn, move = gradient - self.gradient, self.direction * self.t
  local curvature = dot(turn, move)
  if curvature <= 1e-10 then return end
  if #self.moves == self.options.history_size then
    table.remove(self.moves, 1)
    table.remove(self.turns, 1)
  end
  self.moves[#self.moves + 1], self.turns[#self.turns + 1] = move, turn
  self.diagonal = curvature / dot(turn, turn)
end

local function next_direction(self, gradient)
  self.iterations = self.iterations + 1
  if self.iterations == 1 then
    self.direction, self.diagonal = -gradient, 1
  else
    remember(self, gradient)
    self.direction = two_loops(self, gradient)
  end
  self.gradient = gradient
end

-- What is remembered is kept where the parameters are, also after the model has moved.
local function follow(self, device)
  if not self.gradient or self.gradient.device == device then return end
  local function here(t) return lasting(native.methods.to, t, device) end
  self.direction, self.gradient = here(self.direction), here(self.gradient)
  for i, move in ipairs(self.moves) do self.moves[i], self.turns[i] = here(move), here(self.turns[i]) end
end

local function evaluate(closure)
  local pg = require "perigee"
  local loss = closure()
  if not native.is_tensor(loss) then
    native.raise("invalid_argument", "LBFGS", "the closure must return the loss, got " .. native.describe(loss))
  end
  return pg.no_grad(function() return loss:item() end)
end

local function largest(t) return t:numel() > 0 and t:abs():max():item() or 0 end

---Up to max_iter iterations; each evaluates the closure.
---@param closure fun(): perigee.Tensor clears gradients, computes the loss, calls backward, returns the loss
---@return number loss at the beginning
function LBFGS:step(closure)
  if type(closure) ~= "function" then
    native.raise("invalid_argument", "LBFGS", "step needs a function, got " .. native.describe(closure))
  end
  if rawget(native, "strategy") then
    native.raise("not_supported", "LBFGS", "step evaluates its closure where gradients are those of one replica",
                 "other optimizers take their step under a strategy")
  end
  local o, no_grad = self.options, require("perigee").no_grad
  local first = evaluate(closure)
  local loss, gradient = first, lasting(no_grad, flat_gradient, self)
  if largest(gradient) <= o.tolerance_grad then return first end
  follow(self, gradient.device)
  local evaluations = 1
  for iteration = 1, o.max_iter do
    lasting(no_grad, next_direction, self, gradient)
    self.t = self.lr
    if self.iterations == 1 then
      self.t = self.lr * math.min(1, 1 / no_grad(function() return gradient:abs():sum():item() end))
    end
    if no_grad(dot, gradient, self.direction) > -o.tolerance_change then break end
    no_grad(add_along, self, self.direction, self.t)
    if iteration == o.max_iter then break end -- the closure would only be asked for what nobody reads
    local before = loss
    loss, gradient = evaluate(closure), lasting(no_grad, flat_gradient, self)
    evaluations = evaluations + 1
    if evaluations >= o.max_eval or largest(gradient) <= o.tolerance_grad then break end
    if no_grad(largest, self.direction) * self.t <= o.tolerance_change then break end
    if math.abs(loss - before) < o.tolerance_change then break end
  end
  return first
end

-- A step evaluates the closure until the loss is low enough: how often is known only while it runs.
local function refuse(method)
  native.raise("not_supported", "LBFGS", method .. " cannot record a step: it evaluates the loss as often as its " ..
               "values ask for", "train with step(closure) in eager code, or with another optimizer")
end

---Raises: how often a step evaluates the loss depends on its values.
---@param loss perigee.Tensor
---@return nil
function LBFGS:minimize(loss) refuse("minimize", loss) end -- luacheck: no self
---Raises: how often a step evaluates the loss depends on its values.
---@param pairs perigee.Tensor[][] of a gradient and a variable each
---@return nil
function LBFGS:apply_gradients(pairs) refuse("apply_gradients", pairs) end -- luacheck: no self

local function forget_gradients(self) native.clear_grads(self.params) end
local function lists_of(self) return { self.params } end

---Forgets the gradients of all parameters, or with set_to_none=false makes them zeros.
---@param options? boolean|{set_to_none: boolean?}
function LBFGS:zero_grad(...)
  if select("#", ...) == 0 then return forget_gradients(self) end
  parameters.clear(self, forget_gradients, lists_of, ...)
end

---A plain table of what is remembered, for load_state.
---@return table
function LBFGS:state()
  return { lr = self.lr, moves = { unpack(self.moves) }, turns = { unpack(self.turns) }, iterations = self.iterations,
           direction = self.direction, gradient = self.gradient, diagonal = self.diagonal, t = self.t }
end

local function check_state(self, saved)
  local count = 0
  for _, p in ipairs(self.params) do count = count + p:numel() end
  local function need(condition, name)
    if not condition then
      native.raise("invalid_argument", "LBFGS:load_state",
                   ("needs what state() returned for %d numbers; %s is not"):format(count, name))
    end
  end
  local function is_vector(t) return native.is_tensor(t) and t:has_shape { count } end
  need(type(saved) == "table", "it")
  need(type(saved.lr) == "number" and saved.lr >= 0 and saved.lr < math.huge, "lr")
  local iterations = saved.iterations
  need(type(iterations) == "number" and iterations >= 0 and iterations % 1 == 0, "iterations")
  for _, name in ipairs { "direction", "gradient" } do
    need(iterations == 0 and saved[name] == nil or is_vector(saved[name]), name)
  end
  for _, name in ipairs { "diagonal", "t" } do
    need(iterations == 0 and saved[name] == nil or type(saved[name]) == "number", name)
  end
  need(type(saved.moves) == "table" and type(saved.turns) == "table" and #saved.moves == #saved.turns, "moves")
  for i, move in ipairs(saved.moves) do need(is_vector(move) and is_vector(saved.turns[i]), "moves") end
end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function LBFGS:load_state(saved)
  check_state(self, saved)
  local device = self.params[1].device
  local function here(t) return t and lasting(function() return t:clone():to(device) end) end
  self.lr, self.iterations, self.diagonal, self.t = saved.lr, saved.iterations, saved.diagonal, saved.t
  self.direction, self.gradient, self.moves, self.turns = here(saved.direction), here(saved.gradient), {}, {}
  for i, move in ipairs(saved.moves) do self.moves[i], self.turns[i] = here(move), here(saved.turns[i]) end
  return self
end

native.checked.class(LBFGS, { noun = "an optimizer", call = "optimizer", fields = "direction gradient diagonal t",
  hint = function(key) return native.suggest.foreign.hint("optimizer", key) end })

function LBFGS:__tostring() return ("LBFGS(%d parameters; lr=%g)"):format(#self.params, self.lr) end

return module
