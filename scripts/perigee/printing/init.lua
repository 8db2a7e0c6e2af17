-- SPDX-License-Identifier: Apache-2.0
-- tostring(t): the elements as numpy prints them, aligned, the middle of large tensors left out.

local numbers = require "perigee.printing.numbers"
local layout = require "perigee.printing.layout"

local DEFAULTS = { precision = 4, threshold = 1000, edgeitems = 3, linewidth = 80, suppress = false }
local PROFILES = { default = {}, short = { precision = 2, edgeitems = 2 }, full = { threshold = math.huge } }

return function(pg, native)
  local tensor, hooks = native.tensor, native.hooks
  local options = {}
  for key, value in pairs(DEFAULTS) do options[key] = value end

  -- The part of a large tensor that is shown, so that only it is fetched.
  local function edges(t, edge)
    for axis = 1, tensor.rank(t) do
      local n = tensor.size(t, axis)
      if n > 2 * edge then
        local parts = { t:narrow(axis, 1, edge), t:narrow(axis, n - edge + 1, edge) }
        t = native.call("cat", { parts }, { axis = axis })
      end
    end
    return t
  end

  local function texts(t)
    local dtype = native.dtypes.by_name[t.dtype]
    if not dtype.floating and not dtype.float8 then return native.host.flat_text(t) end
    return numbers.texts(native.host.flat(t, "tostring"), dtype.name, options)
  end

  local function notes(t, empty)
    local parts = {}
    if empty then parts[#parts + 1] = "shape=" .. tostring(t.shape) end
    local dtype = t.dtype
    if dtype ~= native.default_dtype() and dtype ~= "int64" and dtype ~= "bool" or empty then
      parts[#parts + 1] = "dtype=" .. dtype
    end
    if t.device ~= "cpu" then parts[#parts + 1] = "device=" .. t.device end
    if t.requires_grad then parts[#parts + 1] = "requires_grad=true" end
    return table.concat(parts, ", ")
  end

  -- "tensor(BODY, NOTES)"; the notes on a line of their own where they do not fit.
  local function finish(body, said)
    if said == "" then return "tensor(" .. body .. ")" end
    local last = body:match("[^\n]*$")
    local indent = #"tensor("
    local fits = #last + (body:find("\n") and 0 or indent) + #said + 3 <= options.linewidth
    return "tensor(" .. body .. "," .. (fits and " " or "\n" .. (" "):rep(indent)) .. said .. ")"
  end

  function hooks.tostring(t)
    if native.is_graph_tensor(t) then
      return ("tensor(<graph>, shape=%s, dtype=%s)"):format(tostring(t.shape), t.dtype)
    end
    local shape, count = t.shape, native.host.numel(t)
    if count == 0 then return finish("[]", notes(t, true)) end
    return pg.no_grad(function()
      local edge = count > options.threshold and options.edgeitems or nil
      local list = texts(edge and edges(t:detach(), edge) or t:detach())
      if #shape == 0 then return finish(list[1], notes(t)) end
      layout.align(list)
      return finish(layout.brackets(list, shape, edge, #"tensor(", options.linewidth - 1), notes(t))
    end)
  end

  local read = native.signature("set_printoptions", {
    { "precision", "integer", named = true }, { "threshold", "number", named = true },
    { "edgeitems", "integer", named = true }, { "linewidth", "integer", named = true },
    { "suppress", "boolean", named = true }, { "sci_mode", "any", named = true, type = 'boolean|"auto"' },
    { "profile", "string", named = true, choices = { "default", "short", "full" } } })

  ---How tensors print: `pg.set_printoptions{precision=6}`. `precision` digits behind the point at most; tensors of more
  ---than `threshold` elements show `edgeitems` at each end of an axis; lines have `linewidth` characters; `suppress`
  ---keeps small numbers out of powers of ten; `sci_mode` true or false says when there are any ("auto": by the values);
  ---`profile` "default", "short" or "full" sets all of them.
  ---@return table options what was in force before
  function pg.set_printoptions(...)
    local o = read(...)
    local before = {}
    for key, value in pairs(options) do before[key] = value end
    if before.sci_mode == nil then before.sci_mode = "auto" end
    if o.profile then
      local profile = PROFILES[o.profile]
      for key, value in pairs(DEFAULTS) do options[key] = profile[key] or value end
      options.sci_mode = nil
    end
    local least = { precision = 0, threshold = 0, edgeitems = 1, linewidth = 10 }
    for _, key in ipairs { "precision", "threshold", "edgeitems", "linewidth" } do
      if o[key] and o[key] < least[key] then
        native.raise("invalid_argument", "set_printoptions", ("%s is %d, which is too small"):format(key, o[key]))
      end
      options[key] = o[key] or options[key]
    end
    if o.suppress ~= nil then options.suppress = o.suppress end
    if o.sci_mode == "auto" then options.sci_mode = nil
    elseif type(o.sci_mode) == "boolean" then options.sci_mode = o.sci_mode
    elseif o.sci_mode ~= nil then
      native.raise("invalid_argument", "set_printoptions", "sci_mode must be true, false or \"auto\", got " ..
                   native.describe(o.sci_mode))
    end
    return before
  end
end
