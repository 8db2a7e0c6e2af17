-- SPDX-License-Identifier: Apache-2.0
-- Writes the Lua function of an operator. What hot loops use is spelt out, so that it compiles to one C call: tensors
-- only, one tensor and one number, one tensor and the first attribute as a number. The rest goes to the call grammar.

local ffi = require "ffi"
local handles = require "perigee.native.handles"
local origins = require "perigee.native.origins"
local attributes = require "perigee.native.attributes"
local has_entries = require "perigee.native.has_entries"
local options = require "perigee.native.generate_options"
local results_of = require "perigee.native.results"

local kinds = attributes.kinds
-- A pg_number begins with a double, and is that as long as its kind is 0, as it is in a function's own struct.
local function is_real(attr) return attr.kind == kinds.float or attr.kind == kinds.number end

local head = [[
local C, ffi, Handle, wrap, op, operators, handles, scratch, origins = ...
local istype, floor, select, type = ffi.istype, math.floor, select, type
local id, out, any, where = op.id, scratch.out, operators.call_any, scratch.where
local call1, call2, call = C.pgc_call1, C.pgc_call2, C.pgc_call
local ins, attrs, first, scalar, value = scratch.ins, scratch.attrs, scratch.first, scratch.scalar, scratch.value
local release = C.pgc_release
local first_list, huge, getmetatable = scratch.first_list, 2^63, getmetatable
local function whole(v) return type(v) == 'number' and floor(v) == v and v > -huge and v < huge end
local function last(...)
  for i = select('#', ...), 1, -1 do
    if (select(i, ...)) ~= nil then return i end
  end
  return 0
end
local holds = scratch.has_entries
local function closed(x, y)
  if x and x.ptr == nil then handles.raise_closed(x, where) end
  if y and y.ptr == nil then handles.raise_closed(y, where) end
end
]]

-- One native call with its reissue after an answer of "retry". $call is the expression, $attrs what it was given.
local issue = [[
  if origins.before then origins.note() end
  local rc = $call
  if rc ~= 0 then
    if rc == 10 then
      operators.make_room()
      $again
      rc = $call
    end
    if rc ~= 0 then operators.fail(op, where, $attrs, $first) end
  end
]]

-- A profile is told the line behind the operator: where that needs a look at the stack, LuaJIT interprets what follows
-- it in the same function.
local noted = "  if origins.after then origins.note_after() end\n"
local give = { [false] = "  local made = wrap(out[0])\n" .. noted .. "  return made\n",
               [true] = "  release(out[0])\n" .. noted .. "  return x\n" }

local function expand(template, names)
  return (template:gsub("%$(%l+)", function(name) return names[name] or error("no value for $" .. name) end))
end

local function native_call(inputs, attrs, in_place)
  if in_place then
    return ("call(id, ins, %d, nil, %s, 1, out, 1)"):format(#inputs, attrs)
  end
  return ("call%d(id, %s, %s, out)"):format(#inputs, table.concat(inputs, ", "), attrs)
end

-- Statements that run the operator on the pointer expressions `inputs` and return the result.
local function body(inputs, attrs, in_place, first)
  local lines, again = {}, ""
  if in_place then
    for i, input in ipairs(inputs) do lines[i] = ("  ins[%d] = %s\n"):format(i - 1, input) end
    again = table.concat(lines)
  end
  local call = native_call(inputs, attrs, in_place)
  return table.concat(lines) ..
         expand(issue, { call = call, again = again, attrs = attrs, first = first }) ..
         give[in_place]
end

-- The call grammar, with the count of arguments: trailing nils are left out.
local unary_fallback = [[
end
  local more = select('#', ...)
  local n = more > 0 and more + 5 or d ~= nil and 5 or c ~= nil and 4 or b ~= nil and 3 or a ~= nil and 2
  return any(op, $flag, n or (x ~= nil and 1 or 0), x, a, b, c, d, ...)
end
]]
local binary_fallback = [[
end
  local more = select('#', ...)
  return any(op, $flag, more > 0 and more + 2 or y ~= nil and 2 or x ~= nil and 1 or 0, x, y, ...)
end
]]

local optional_fallback = [[
  local n = select('#', ...)
  if n > 0 then return any(op, $flag, n + $count, $list, ...) end
  return any(op, $flag, last($list), $list)
end
]]

-- One tensor, then up to four whole numbers that make up the list attribute, or a list of them: of its entries the
-- first few without a loop, which would end the trace of the loop that the call stands in.
local list_entry = [[
      if n >= $i then
        v = a[$i]
        if whole(v) and (v ~= 0 or $zero) then first[$i - 1] = $entry else whole_ones = false end
      end
]]
local list_form = [[
if whole(a) $nonzero and select('#', ...) == 0 then
  local n = d and 4 or c and 3 or b and 2 or 1
  if (n < 2 or whole(b)) and (n < 3 or whole(c)) and (n < 4 or whole(d)) then
    first_list.count = n
    first[0] = $a
    if n > 1 then first[1] = $b end
    if n > 2 then first[2] = $c end
    if n > 3 then first[3] = $d end
$body
  end
elseif type(a) == 'table' and b == nil and select('#', ...) == 0 then
  local n, meta = #a, getmetatable(a)
  if n > 0 and n <= 8 and (meta == nil or type(meta) == 'table' and meta.__perigee_list) and holds(a, n) then
    local whole_ones, v = true, nil
$entries
    for i = 5, n do
      v = a[i]
      if whole(v) and (v ~= 0 or $zero) then first[i - 1] = $entry else whole_ones = false break end
    end
    if whole_ones then
      first_list.count = n
$body
    end
  end
end
]]

-- Statements for the call with its first attribute as a number, or nil where it takes no number.
local function number_form(attr, in_place)
  local run = body({ "p" }, "attrs", in_place, "x")
  if attr.kind == kinds.axes or attr.kind == kinds.ints or attr.kind == kinds.dims then
    local names = { body = run, nonzero = "", zero = "true", entry = "v" }
    for _, name in ipairs { "a", "b", "c", "d" } do names[name] = name end
    if attr.kind == kinds.axes then
      names.zero, names.entry = "false", "v > 0 and v - 1 or v"
      names.nonzero = "and a ~= 0 and b ~= 0 and c ~= 0 and d ~= 0"
      for _, name in ipairs { "a", "b", "c", "d" } do names[name] = (("@ > 0 and @ - 1 or @"):gsub("@", name)) end
    end
    local entries = {}
    for i = 1, 4 do
      names.i = tostring(i)
      entries[i] = expand(list_entry, names)
    end
    names.entries = table.concat(entries)
    return expand(list_form, names)
  end
  local test, value = nil, "a"
  if attr.kind == kinds.axis then test, value = "a ~= 0 and whole(a)", "a > 0 and a - 1 or a"
  elseif attr.kind == kinds.int then test = "whole(a)"
  elseif is_real(attr) then test = "true" end
  if not test then return "" end
  return ("if type(a) == 'number' and b == nil and select('#', ...) == 0 and %s then\n  first[0] = %s\n%send\n"):format(
           test, value, run)
end

-- What a call's number for an attribute must be, and what is stored of it; nil: such an attribute takes no number.
local function number_test(attr, v)
  if attr.pair > 0 then return nil end
  if attr.kind == kinds.axis then
    return ("%s ~= 0 and whole(%s)"):format(v, v), ("%s > 0 and %s - 1 or %s"):format(v, v, v)
  end
  if attr.kind == kinds.int then return ("whole(%s)"):format(v), v end
  if is_real(attr) then return ("type(%s) == 'number'"):format(v), v end
end

-- The same with its first two attributes as numbers, of which no more is required: clamp(x, 0, 1).
local function two_numbers(op, in_place)
  local first, second, third = op.visible[1], op.visible[2], op.visible[3]
  local test, stored = number_test(first, "a")
  local other_test, other_stored = number_test(second, "b")
  if not (test and other_test) or third and third.required then return "" end
  return expand([[
if type(a) == 'number' and type(b) == 'number' and c == nil and d == nil and select('#', ...) == 0 and $test and
   $second then
  scratch.two[1][0], scratch.two[2][0] = $stored, $other
$body
end
]], { test = test, second = other_test, stored = stored, other = other_stored,
      body = body({ "p" }, "scratch.pair", in_place, "x") })
end

local function unary(op, in_place)
  local locals, form = options.form(expand, op, body({ "p" }, "options", in_place, "x"))
  local parts = { head, locals, "return function(x, a, b, c, d, ...)\n",
                  "if istype(Handle, x) then\n  local p = x.ptr\n", "  if p == nil then closed(x) end\n" }
  local attr, second = op.visible[1], op.visible[2]
  if not (attr and attr.required) then
    parts[#parts + 1] = "if a == nil and b == nil and c == nil and d == nil and select('#', ...) == 0 then\n" ..
                        body({ "p" }, "nil", in_place, "x") .. "end\n"
  end
  if attr and attr.pair == 0 and not (second and second.required) then
    parts[#parts + 1] = number_form(attr, in_place)
  end
  if op.visible[2] then parts[#parts + 1] = two_numbers(op, in_place) end
  parts[#parts + 1] = form
  parts[#parts + 1] = expand(unary_fallback, { flag = tostring(in_place) })
  return table.concat(parts)
end

local store_scalar = [[
    scalar.kind = floor($number) == $number and $number < huge and $number > -huge and 2 or 3
    scalar.input = $index
    value[0] = $number
]]

local function binary(op, in_place)
  local parts = { head, "return function(x, y, ...)\nif select('#', ...) == 0 then\n",
                  "if istype(Handle, x) then\n",
                  "if istype(Handle, y) then\n  local p, q = x.ptr, y.ptr\n",
                  "  if p == nil or q == nil then closed(x, y) end\n",
                  body({ "p", "q" }, "nil", in_place, "x") }
  if op.scalar then
    parts[#parts + 1] = "elseif type(y) == 'number' then\n  local p = x.ptr\n  if p == nil then closed(x) end\n" ..
                        expand(store_scalar, { number = "y", index = "1" }) ..
                        body({ "p", "nil" }, "attrs", in_place, "x") .. "end\n"
    if not in_place then
      parts[#parts + 1] = "elseif type(x) == 'number' and istype(Handle, y) then\n  local q = y.ptr\n" ..
                          "  if q == nil then closed(y) end\n" ..
                          expand(store_scalar, { number = "x", index = "0" }) ..
                          body({ "nil", "q" }, "attrs", in_place, "y") .. "end\n"
    else
      parts[#parts + 1] = "end\n"
    end
  else
    parts[#parts + 1] = "end\nend\n"
  end
  parts[#parts + 1] = expand(binary_fallback, { flag = tostring(in_place) })
  return table.concat(parts)
end

local function general(_, in_place)
  return head .. ("return function(...) return any(op, %s, select('#', ...), ...) end"):format(in_place)
end

-- What the call has given, as run of operators.lua answers it.
local function results(op)
  local count = op.visible_outputs
  if count == 1 then return give[false] end
  local lines, list = {}, {}
  for i = 1, count do
    lines[i] = ("  local y%d = out[%d]\n"):format(i, i - 1)
    list[i] = ("y%d ~= nil and wrap(y%d) or nil"):format(i, i)
  end
  if count == 2 then
    lines[3] = "  if y1 ~= nil and y2 ~= nil then return scratch.note(where, wrap(y1), wrap(y2)) end\n"
  end
  return table.concat(lines) .. ("  do return %s end\n"):format(table.concat(list, ", "))
end

-- Tensors that must be there, then tensors that may be: linear(x, weight, bias), cross_entropy(logits, labels).
local function with_optional(op)
  local names, tests, stores = {}, {}, {}
  for i, input in ipairs(op.inputs) do
    local x = "x" .. i
    names[i] = x
    tests[i] = ("istype(Handle, %s)"):format(x)
    local store = ("  if %s.ptr == nil then closed(%s) end\n  ins[%d] = %s.ptr\n"):format(x, x, i - 1, x)
    stores[i] = store
    if input.optional then
      tests[i] = ("(%s == nil or %s)"):format(x, tests[i])
      stores[i] = ("  if %s ~= nil then\n%s  else\n  ins[%d] = nil\n  end\n"):format(x, store, i - 1)
    end
  end
  local list = table.concat(names, ", ")
  local store = table.concat(stores)
  local run = expand(issue, { call = ("call(id, ins, %d, nil, nil, 0, out, %d)"):format(#names, op.visible_outputs),
                              again = store, attrs = "nil", first = "x1" })
  return table.concat { head, "return function(", list, ", ...)\nif select('#', ...) == 0 and ",
                        table.concat(tests, " and "), " then\n", store, run, results(op), "end\n",
                        expand(optional_fallback, { flag = "false", count = tostring(#names), list = list }) }
end

-- A list of tensors, and where the first attribute is an axis that one: cat{a, b}, cat({a, b}, 2), cat{a, b, axis=2}.
local list_of_tensors = [[
local groups, most, otherwise = scratch.groups, scratch.most, first and first[0]
local function put(list, n)
  for i = 1, n do
    local t = list[i]
    if not istype(Handle, t) or t.ptr == nil then return false end
    ins[i - 1] = t.ptr
  end
  if n < 2 then return true end
  local a, b = C.pgc_describe(list[n - 1].ptr), C.pgc_describe(list[n].ptr) -- of different dtypes: results.lua looks
  return a.dtype_code == b.dtype_code and a.dtype_bits == b.dtype_bits
end
return function(list, a, ...)
if type(list) == 'table' and getmetatable(list) == nil and select('#', ...) == 0 then
  local n, axis = #list, $axis
  local named = axis ~= nil and 1 or 0
  if a ~= nil then axis = a end
  if n > 0 and n <= most and not (a ~= nil and named == 1) and (axis == nil or axis ~= 0 and whole(axis)) and
     holds(list, n + named) and put(list, n) then
    groups[0], first[0] = n, axis == nil and otherwise or axis > 0 and axis - 1 or axis
$body
  end
end
  local more = select('#', ...)
  return any(op, false, more > 0 and more + 2 or a ~= nil and 2 or list ~= nil and 1 or 0, list, a, ...)
end
]]
local function variadic(op)
  local attr = op.visible[1]
  local run = expand(issue, { call = "call(id, ins, n, groups, attrs, 0, out, 1)", again = "put(list, n)",
                              attrs = "attrs", first = "list[1]" })
  local axis = ("list[%q]"):format(attr.shown or attr.name)
  return head .. expand(list_of_tensors, { axis = axis, body = run .. give[false] })
end

local MOST_INPUTS, MOST_NUMBERS, MOST_RESULTS = 5, 2, 4

-- Whether `positional` can write calls of an operator: what must be given are tensors and the first numbers.
local function takes_numbers(op)
  local numbers = true
  for k, attr in ipairs(op.visible) do
    numbers = numbers and k <= MOST_NUMBERS and number_test(attr, "a") ~= nil
    if attr.required and not numbers then return false end
  end
  return #op.inputs > 0 and #op.inputs <= MOST_INPUTS and not (op.scalar and #op.inputs > 3)
end

-- All tensors, of which optional ones may be nil and one may be a number where the operator takes one, and behind them
-- up to two attributes as numbers: gather(x, index, 2), where(mask, x, 0), masked_fill_(x, mask, 0).
local function positional(op, in_place)
  local names, tests, stores = {}, {}, {}
  for i, input in ipairs(op.inputs) do
    local x = "x" .. i
    names[i] = x
    local is = ("istype(Handle, %s)"):format(x)
    local store = ("if %s.ptr == nil then closed(%s) end ins[%d] = %s.ptr"):format(x, x, i - 1, x)
    if op.scalar and i > 1 then
      is = ("(%s or type(%s) == 'number')"):format(is, x)
      store = ("if type(%s) == 'number' then ins[%d] = nil%s else %s end"):format(
        x, i - 1, expand(store_scalar, { number = x, index = tostring(i - 1) }), store)
    elseif input.optional then
      is = ("(%s == nil or %s)"):format(x, is)
      store = ("if %s == nil then ins[%d] = nil else %s end"):format(x, i - 1, store)
    end
    tests[i], stores[i] = is, "  " .. store .. "\n"
  end
  if op.scalar then
    for i = 3, #op.inputs do
      tests[#tests + 1] = ("not (type(x%d) == 'number' and type(x2) == 'number')"):format(i)
    end
    table.insert(stores, 1, "  scalar.kind = 0\n")
  end
  local again, numbers = table.concat(stores), {}
  for k = 1, math.min(MOST_NUMBERS, #op.visible) do
    local attr, v = op.visible[k], "a" .. k
    local test, stored = number_test(attr, v)
    if not test then break end
    numbers[k], names[#names + 1] = attr, v
    tests[#tests + 1] = attr.required and test or ("(%s == nil or %s)"):format(v, test)
    stores[#stores + 1] = ("  if %s == nil then at%d[0] = otherwise%d else at%d[0] = %s end\n"):format(
      v, k, k, k, stored)
  end
  local parts = { head }
  for k in ipairs(numbers) do
    parts[#parts + 1] = ("local at%d = scratch.numbers[%d]\nlocal otherwise%d = at%d[0]\n"):format(k, k, k, k)
  end
  local list = table.concat(names, ", ")
  -- The number between two tensors, as PyTorch has it: gather(x, 2, index).
  local swap = ""
  if #op.inputs == 2 and not op.scalar and #numbers > 0 and not op.inputs[2].optional then
    swap = "if type(x2) == 'number' and istype(Handle, a1) then x2, a1 = a1, x2 end\n"
  end
  local issued = ("call(id, ins, %d, nil, attrs, %d, out, %d)"):format(#op.inputs, in_place and 1 or 0,
                                                                       in_place and 1 or op.visible_outputs)
  local fallback = { flag = tostring(in_place), count = tostring(#names), list = list }
  parts[#parts + 1] = table.concat {
    "return function(", list, ", ...)\n", swap, "if select('#', ...) == 0 and ", table.concat(tests, " and "),
    " then\n",
    table.concat(stores), expand(issue, { call = issued, again = again, attrs = "attrs", first = "x1" }),
    in_place and "  release(out[0])\n" .. noted .. "  return x1\n" or results(op), "end\n",
    expand(optional_fallback, fallback) }
  return table.concat(parts)
end

-- Whether tensors alone make a call that has several results: lstm_cell(x, hidden, c).
local function gives_several(op)
  for _, attr in ipairs(op.visible) do
    if attr.required then return false end
  end
  return not op.variadic and not op.variadic_output and not op.scalar and op.visible_outputs > 1 and
         op.visible_outputs <= MOST_RESULTS and #op.inputs > 0 and #op.inputs <= MOST_INPUTS
end

-- Whether tensors alone make a call: some that must be there, then only ones that may.
local function may_end_early(op)
  local seen = false
  for i, input in ipairs(op.inputs) do
    if input.optional then seen = true elseif seen then return false end
    if i == 1 and input.optional then return false end
  end
  for _, attr in ipairs(op.visible) do
    if attr.required then return false end
  end
  return seen and #op.inputs <= 5
end

-- Which form an operator's declaration allows.
local function pick(op, in_place)
  local count = #op.inputs
  if op.variadic and count == 1 and op.visible_outputs == 1 and op.variadic_output == nil and not in_place and
     op.visible[1] and op.visible[1].kind == kinds.axis then
    return variadic
  end
  local numbers = op.visible[1] and number_test(op.visible[1], "a") ~= nil
  if not in_place and count == 1 and numbers and not op.variadic and not op.variadic_output and
     op.visible_outputs > 1 and op.visible_outputs <= MOST_RESULTS then
    return takes_numbers(op) and positional or general -- sort(x, 2), topk(x, 5)
  end
  if not in_place and gives_several(op) then return with_optional end
  if op.variadic or op.visible_outputs ~= 1 then return general end
  if not op.scalar and not in_place and may_end_early(op) then return with_optional end
  local plain = true
  for _, input in ipairs(op.inputs) do plain = plain and (not input.optional or op.scalar) end
  if count == 1 and plain then return unary end
  for _, attr in ipairs(op.visible) do plain = plain and not attr.required end
  if count == 2 and plain and (op.scalar or not numbers) then return binary end
  return takes_numbers(op) and positional or general
end

-- Structs that the function writes into; each keeps the defaults in what it does not write.
local MOST = 64 -- tensors of a list; longer ones go to the grammar
local function make_scratch(op, in_place)
  local scratch = { out = ffi.new("pgc_tensor *[?]", math.max(op.visible_outputs, 1)), note = results_of.note,
                    groups = ffi.new("uint32_t[1]"), most = MOST,
                    ins = ffi.new("pgc_tensor *[?]", op.variadic and MOST or math.max(#op.inputs, 2)),
                    attrs = ffi.new("uint8_t[?]", math.max(op.attr_size, 8)),
                    has_entries = has_entries, where = in_place and op.name .. "_" or op.shown or op.name }
  ffi.copy(scratch.attrs, op.defaults, op.attr_size)
  if op.scalar then
    scratch.scalar = ffi.cast("pg_scalar *", scratch.attrs + op.scalar.offset)
    scratch.value = ffi.cast("double *", scratch.attrs + op.scalar.value)
  end
  local pair, two = ffi.new("uint8_t[?]", math.max(op.attr_size, 8)), {} -- of two_numbers
  ffi.copy(pair, op.defaults, op.attr_size)
  for k = 1, math.min(2, #op.visible) do
    two[k] = ffi.cast(is_real(op.visible[k]) and "double *" or "int64_t *", pair + op.visible[k].offset)
  end
  scratch.pair, scratch.two = pair, two
  scratch.numbers = {}
  for k = 1, math.min(MOST_NUMBERS, #op.visible) do
    local ctype = is_real(op.visible[k]) and "double *" or "int64_t *"
    scratch.numbers[k] = ffi.cast(ctype, scratch.attrs + op.visible[k].offset)
  end
  options.make_scratch(scratch, op)
  local attr = op.visible[1]
  if attr then
    local at = scratch.attrs + attr.offset
    if attr.kind == kinds.axes or attr.kind == kinds.ints or attr.kind == kinds.dims then
      local list = ffi.cast("pg_ints *", at)
      list.count = 1
      scratch.first, scratch.first_list = list.value, list
    else
      scratch.first = ffi.cast(is_real(attr) and "double *" or "int64_t *", at)
    end
  end
  return scratch
end

return function(C, operators, op, in_place)
  local text = pick(op, in_place)(op, in_place)
  local chunk = assert(loadstring(text, "=perigee:" .. op.name))
  return chunk(C, ffi, handles.Handle, handles.wrap, op, operators, handles, make_scratch(op, in_place), origins)
end
