-- SPDX-License-Identifier: Apache-2.0
-- What tests of nets of frozen calls share.

local pg = require "perigee"

local netted = {}

-- How far a is off b, of b's largest element.
function netted.difference(a, b)
  local scale = math.max(b:abs():max():item(), 1e-30)
  return (a:to { dtype = "float64" } - b:to { dtype = "float64" }):abs():max():item() / scale
end

-- What explain() says of layouts: batch norms, activations and sums that are in convolutions, and copies.
function netted.net_of(f)
  local net = {}
  for _, r in ipairs(f:stats().regions) do
    local norms, functions, sums, copies = r.about:match(
      "^(%d+) batch norms in weights, (%d+) activations and (%d+) sums in convolutions, (%d+) copies between layouts$")
    if norms and r.joined then
      net[#net + 1] = { norms = tonumber(norms), functions = tonumber(functions), sums = tonumber(sums),
                        copies = tonumber(copies), nodes = r.nodes }
    end
  end
  return net
end

-- What explain() says of linear layers: norms in each one's weights, and activations.
function netted.layers_of(f)
  local layers = {}
  for _, r in ipairs(f:stats().regions) do
    local norms, functions =
      r.about:match "^(%d+) batch norms in a linear layer's weights, (%d+) activations in its product$"
    if norms and r.joined then layers[#layers + 1] = { tonumber(norms), tonumber(functions) } end
  end
  return layers
end

-- Nets are the processor's, and depend on what its library has kernels for.
function netted.begin(t)
  t.uncompiled()
  if pg.device() ~= "cpu" then t.skip "nets are of the processor" end
end

-- Statistics and scales as training leaves them.
function netted.stir(model)
  for name, p in pairs(model:state()) do
    pg.no_grad(function()
      if name:find "running_var" then p:copy_(pg.rand(p.shape) + 0.5)
      elseif name:find "running_mean" then p:copy_(pg.randn(p.shape) * 0.3)
      elseif #p.shape == 1 and name:find "weight" then p:copy_(pg.rand(p.shape) + 0.5)
      elseif #p.shape == 1 and name:find "bias" then p:copy_(pg.randn(p.shape) * 0.3) end
    end)
  end
  return model:eval()
end

function netted.eager(fn, ...)
  return pg.no_grad(function(...) return fn(...) end, ...)
end

return netted
