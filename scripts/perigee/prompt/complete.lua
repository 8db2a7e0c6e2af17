-- SPDX-License-Identifier: Apache-2.0
-- Completion of the text before the cursor: names, fields, methods, and the options of the call that is open.

local native = require "perigee.native"
local lexer = require "perigee.prompt.lexer"
local walk = require "perigee.nn.walk"

local WIDTH = 80

local function add_keys(set, t, pattern)
  for key, value in next, t do
    if type(key) == "string" and key:find("^[%a_][%w_]*$") and key:sub(1, 2) ~= "__" and
       (not pattern or type(value) == pattern) then
      set[key] = true
    end
  end
end

-- Keys of a table and of what it inherits from; `kind` narrows to functions behind a colon.
local function add_table(set, t, kind)
  for _ = 1, 20 do
    add_keys(set, t, kind)
    if walk.is_layer(t) then add_keys(set, t[walk.META].tensors, kind) end
    local meta = getmetatable(t)
    local parent = type(meta) == "table" and rawget(meta, "__index")
    -- Containers look positions up with a function; their names are in the class all the same.
    if type(parent) == "function" and rawget(meta, "__perigee_layer") then parent = meta end
    if type(parent) ~= "table" or rawget(parent, "__hidden") then return end
    t = parent
  end
end

local function add_tensor(set, is_method)
  native.run_rooms()
  for name in pairs(native.methods) do set[name] = true end
  for _, name in ipairs(native.op_names()) do
    if not name:find("_grad") and native.operators.is_method(name) then set[name] = true end
  end
  if is_method then return end
  for _, name in ipairs(native.tensor.field_names()) do set[name] = true end
end

-- Names that a module would give but has not loaded yet.
local function add_lazy(set, t)
  local pg = require "perigee"
  if rawequal(t, pg) then
    pg.version() -- makes the front end
    native.run_rooms()
    add_keys(set, pg)
    for _, name in ipairs(native.op_names()) do
      if not name:find("_grad") then set[name] = true end
    end
    for _, name in ipairs(native.lazy_names()) do set[name] = true end
  elseif rawequal(t, rawget(pg, "nn")) then
    for _, name in ipairs(native.layer_names()) do set[name] = true end
  elseif rawequal(t, rawget(pg, "optim")) then
    for _, name in ipairs(native.optimizer_names()) do set[name] = true end
  end
end

-- The value of "a.b[1].c" without running anything but look-ups. Nil: unknown.
local function resolve(env, expression)
  local name = expression:match("^[%a_][%w_]*")
  if not name then return nil end
  local value, rest = env[name], expression:sub(#name + 1)
  while rest ~= "" and value ~= nil do
    local key = rest:match("^[.:]([%a_][%w_]*)")
    local number = rest:match("^%[(%-?%d+)%]")
    if not key and not number then return nil end
    rest = key and rest:sub(#key + 2) or rest:sub(#number + 3)
    local ok, found = pcall(function() return value[key or tonumber(number)] end)
    if not ok then return nil end
    value = found
  end
  return value
end

-- The name of the call whose argument table or parenthesis is open at the end of the tokens.
local function open_call(tokens)
  local depth = 0
  for i = #tokens, 1, -1 do
    local text = tokens[i].kind == "symbol" and tokens[i].text
    if text == ")" or text == "}" or text == "]" then depth = depth + 1 end
    if text == "(" or text == "{" or text == "[" then
      depth = depth - 1
      if depth < 0 then
        local at = i
        if text == "{" and tokens[i - 1] and (tokens[i - 1].text == "(" or tokens[i - 1].text == ",") then
          at = nil -- f(x, {: the table of options belongs to the parenthesis
          depth = 0
        end
        if at then
          local parts = {}
          local j = at - 1
          while tokens[j] and (tokens[j].kind == "name" or tokens[j].text == "." or tokens[j].text == ":") do
            table.insert(parts, 1, tokens[j].text)
            j = j - 1
          end
          return table.concat(parts)
        end
      end
    end
  end
end

local function option_names(env, call)
  if not call or call == "" then return {} end
  local reference = require "perigee.reference"
  local value = resolve(env, (call:gsub(":", ".")))
  local entry = value ~= nil and reference.find_value(value) or reference.find(call) or
                reference.find((call:gsub("^.*[.:]", "")))
  local set = {}
  for _, p in ipairs(entry and entry.parameters or {}) do
    if p.name ~= "..." and p.name ~= "self" then set[p.name .. "="] = true end
  end
  return set
end

local function matching(set, prefix)
  local list = {}
  for name in pairs(set) do
    local hidden = name:sub(1, 1) == "_" and prefix:sub(1, 1) ~= "_"
    if name:sub(1, #prefix) == prefix and not hidden then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

local KEYWORDS = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
                   "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" }

local function plain_names(env, tokens, prefix)
  local set = option_names(env, open_call(tokens))
  local has_options = next(set) ~= nil
  if prefix == "" and has_options then return set end
  add_keys(set, env)
  if has_options and #matching(set, prefix) > 0 then return set end
  add_keys(set, _G)
  for _, word in ipairs(KEYWORDS) do set[word] = true end
  return set
end

local function members(env, base, separator)
  local set = {}
  local value = resolve(env, base)
  if native.is_tensor(value) then add_tensor(set, separator == ":")
  elseif type(value) == "string" then add_keys(set, string)
  elseif type(value) == "table" then
    add_table(set, value, separator == ":" and "function" or nil)
    if separator == "." then add_lazy(set, value) end
  end
  return set
end

-- Values that an option of this name takes.
local function option_values(name)
  local set = {}
  if name == "dtype" then
    for dtype in pairs(native.dtypes.by_name) do set[dtype] = true end
  elseif name == "device" then
    for _, d in ipairs(require("perigee").devices()) do set[d.name] = true end
  end
  return set
end

local function common_start(list)
  local common = list[1]
  for _, name in ipairs(list) do
    while name:sub(1, #common) ~= common do common = common:sub(1, -2) end
  end
  return common
end

local function columns(list)
  local width = 0
  for _, name in ipairs(list) do width = math.max(width, #name + 2) end
  local per_line = math.max(1, math.floor(WIDTH / width))
  local lines, line = {}, {}
  for i, name in ipairs(list) do
    line[#line + 1] = name .. (" "):rep(width - #name)
    if #line == per_line or i == #list then
      lines[#lines + 1] = (table.concat(line):gsub("%s+$", ""))
      line = {}
    end
  end
  return table.concat(lines, "\n")
end

-- The names that fit, and what of them is typed already.
local function candidates(env, text)
  local tokens = lexer.tokens(text)
  local last = tokens[#tokens]
  if last and last.kind == "string" and not last.finished then
    local equals, name = tokens[#tokens - 1], tokens[#tokens - 2]
    if not (equals and equals.text == "=" and name and name.kind == "name") then return {}, "" end
    local prefix = last.text:sub(2)
    return matching(option_values(name.text), prefix), prefix
  end
  if last and last.kind == "comment" then return {}, "" end
  local base, separator, prefix = text:match("([%a_][%w_.:%[%]%-]*)([.:])([%w_]*)$")
  if base then return matching(members(env, base, separator), prefix), prefix end
  prefix = text:match("[%a_][%w_]*$") or ""
  if prefix ~= "" then tokens[#tokens] = nil end
  return matching(plain_names(env, tokens, prefix), prefix), prefix
end

---@param env table names at the prompt
---@param text string the line up to the cursor
---@return string insert what to type further
---@return string? list what to show when several names fit
return function(env, text)
  if not text:find("%S") then return "  " end
  local list, prefix = candidates(env, text)
  if #list == 0 then return "" end
  local insert = common_start(list):sub(#prefix + 1)
  if #list == 1 or insert ~= "" then return insert end
  return "", columns(list)
end
