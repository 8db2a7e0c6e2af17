-- SPDX-License-Identifier: Apache-2.0
-- Tensors of what Lua holds: numbers, booleans and nested tables of them.

jit.off(true, true) -- walks option tables with next, which cannot be compiled; attempts at it thrash

return function(pg, native)
  local function from_lua(where, data, o)
    local number = o.device and native.place_device(o.device, where)
    return native.host.from_lua(where, data, o.dtype and native.dtypes.by_name[o.dtype], number)
  end

  local function finish(t, o)
    if o.requires_grad then t.requires_grad = true end
    return t
  end

  local NO_OPTIONS = {}
  local read_options = native.signature("tensor", {
    { "data", "any" }, { "dtype", "dtype", named = true }, { "device", "device", named = true },
    { "requires_grad", "boolean", named = true } })

  -- pg.tensor{1, 2, dtype="int64"}: the array part is the data. One nested list in it is the positional argument.
  local function from_table_call(data)
    local named = false
    for k in pairs(data) do named = named or type(k) == "string" end
    if not named then return data end
    local list, options = {}, {}
    for k, v in pairs(data) do (type(k) == "string" and options or list)[k] = v end
    if options.data ~= nil and #list == 0 then
      list, options.data = options.data, nil
      return list, options
    end
    if #list == 1 and type(list[1]) == "table" then list = list[1] end
    return list, options
  end

  ---A tensor of numbers or booleans: a nested table, a number, or a copy of another tensor.
  ---@param data number|boolean|table|perigee.Tensor
  ---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean}
  ---@return perigee.Tensor
  function pg.tensor(data, options, ...)
    if select("#", ...) > 0 or (options ~= nil and type(options) ~= "table") then
      native.raise("invalid_argument", "tensor", "takes the data and a table of options",
                   "pg.tensor({1, 2, 3}) is a list")
    end
    if data == nil then native.raise("invalid_argument", "tensor", "argument \"data\" is missing") end
    if type(data) == "table" and not options then data, options = from_table_call(data) end
    local o = options and read_options(options) or NO_OPTIONS
    if native.is_tensor(data) then
      local t = data:detach():clone()
      if o.device then t = t:to(o.device) end
      return finish(o.dtype and t:to(o.dtype) or t, o)
    end
    return finish(from_lua("tensor", data, o), o)
  end

  ---Positions that count from 1 (Lua numbers) as an index tensor, whose contents count from 0.
  ---@param ... integer|integer[]
  ---@return perigee.Tensor
  function pg.indices(...)
    local list = select("#", ...) == 1 and type((...)) == "table" and (...) or { ... }
    local contents = {}
    for i, p in ipairs(list) do
      if type(p) ~= "number" or p ~= math.floor(p) or p < 1 then
        native.raise("invalid_argument", "indices", ("position %d must be a whole number from 1, got %s"):format(
                       i, native.describe(p)))
      end
      contents[i] = p - 1
    end
    return native.host.from_lua("indices", contents, native.dtypes.by_name.int64)
  end
end
