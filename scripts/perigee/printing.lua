-- SPDX-License-Identifier: Apache-2.0
-- tostring(t): the elements as numpy prints them, aligned, the middle of large tensors left out.

local THRESHOLD, EDGE, WIDTH = 1000, 3, 80

return function(pg, native)
  local tensor, hooks = native.tensor, native.hooks
  local options = { precision = 4 }

  -- The positions of an axis that are shown: all, or the edges.
  local function shown(n, summarize)
    local list = {}
    if not summarize or n <= 2 * EDGE then
      for i = 1, n do list[i] = i end
      return list, false
    end
    for i = 1, EDGE do list[i], list[EDGE + i] = i, n - EDGE + i end
    return list, true
  end

  -- The part of a large tensor that is shown, so that only it is fetched.
  local function edges(t)
    for axis = 1, tensor.rank(t) do
      local n = tensor.size(t, axis)
      if n > 2 * EDGE then
        t = native.call("cat", { { t:narrow(axis, 1, EDGE), t:narrow(axis, n - EDGE + 1, EDGE) } }, { axis = axis })
      end
    end
    return t
  end

  local function trim(text) return (text:gsub("0+$", "")) end

  -- A function that writes one float, chosen by the whole list.
  local function float_format(list)
    local largest, smallest, whole = 0, math.huge, true
    for _, v in ipairs(list) do
      local a = math.abs(v)
      if v == v and a ~= math.huge then
        if a > largest then largest = a end
        if a ~= 0 and a < smallest then smallest = a end
        if v ~= math.floor(v) then whole = false end
      end
    end
    local special = { ["nan"] = "nan", ["inf"] = "inf", ["-inf"] = "-inf" }
    local function guard(write)
      return function(v)
        if v ~= v then return special.nan end
        if v == math.huge then return special.inf end
        if v == -math.huge then return special["-inf"] end
        return write(v)
      end
    end
    if largest >= 1e8 or (largest > 0 and not whole and (smallest < 1e-4 or largest / smallest > 1e7)) then
      return guard(function(v) return ("%." .. options.precision .. "e"):format(v) end)
    end
    if whole then return guard(function(v) return ("%d."):format(v) end) end
    local digits = 0
    for _, v in ipairs(list) do
      if v == v and math.abs(v) ~= math.huge then
        local fraction = trim(("%." .. options.precision .. "f"):format(v)):match("%.(%d*)$")
        digits = math.max(digits, #fraction)
      end
    end
    return guard(function(v) return ("%." .. digits .. "f"):format(v) end)
  end

  local function texts(t, dtype)
    if not dtype.floating then return native.host.flat_text(t) end
    local list = {}
    local flat, n = native.host.flat(t, "tostring")
    local write = float_format(flat)
    for i = 1, n do list[i] = write(flat[i]) end
    return list
  end

  local function pad(list)
    local width = 0
    for _, s in ipairs(list) do width = math.max(width, #s) end
    for i, s in ipairs(list) do list[i] = (" "):rep(width - #s) .. s end
    return width
  end

  -- The last axis: elements, wrapped.
  local function row(parts, indent)
    local lines, line = {}, ""
    for i, part in ipairs(parts) do
      local piece = part .. (i < #parts and ", " or "")
      if #line > 0 and indent + #line + #piece > WIDTH then
        lines[#lines + 1] = (line:gsub(" $", ""))
        line = ""
      end
      line = line .. piece
    end
    lines[#lines + 1] = line
    return table.concat(lines, "\n" .. (" "):rep(indent))
  end

  local function block(list, shape, summarize, axis, at, indent)
    local positions, gap = shown(shape[axis], summarize)
    local parts = {}
    for i in ipairs(positions) do
      if gap and i == EDGE + 1 then parts[#parts + 1] = "..." end
      if axis == #shape then
        parts[#parts + 1] = list[at]
        at = at + 1
      else
        parts[#parts + 1], at = block(list, shape, summarize, axis + 1, at, indent + 1)
      end
    end
    if axis == #shape then return "[" .. row(parts, indent + 1) .. "]", at end
    local gap_lines = ("\n"):rep(#shape - axis)
    return "[" .. table.concat(parts, "," .. gap_lines .. (" "):rep(indent + 1)) .. "]", at
  end

  local function suffix(t, empty)
    local parts = {}
    if empty then parts[#parts + 1] = "shape=" .. tostring(t.shape) end
    local dtype = t.dtype
    if dtype ~= native.default_dtype() and dtype ~= "int64" and dtype ~= "bool" or empty then
      parts[#parts + 1] = "dtype=" .. dtype
    end
    if t.device ~= "cpu" then parts[#parts + 1] = "device=" .. t.device end
    if t.requires_grad then parts[#parts + 1] = "requires_grad=true" end
    return #parts > 0 and ", " .. table.concat(parts, ", ") or ""
  end

  function hooks.tostring(t)
    if native.is_graph_tensor(t) then
      return ("tensor(<graph>, shape=%s, dtype=%s)"):format(tostring(t.shape), t.dtype)
    end
    local shape, count = t.shape, native.host.numel(t)
    if count == 0 then return "tensor([]" .. suffix(t, true) .. ")" end
    return pg.no_grad(function()
      local summarize = count > THRESHOLD
      local part = t:detach()
      if summarize then part = edges(part) end
      local list = texts(part, native.dtypes.by_name[t.dtype])
      if #shape == 0 then return "tensor(" .. list[1] .. suffix(t) .. ")" end
      pad(list)
      local body = block(list, shape, summarize, 1, 1, #"tensor(")
      return "tensor(" .. body .. suffix(t) .. ")"
    end)
  end

  ---`pg.set_print{precision=6}`: digits behind the point.
  local read = native.signature("set_print", { { "precision", "integer", named = true } })
  function pg.set_print(...)
    local o = read(...)
    options.precision = o.precision or options.precision
  end
end
