-- SPDX-License-Identifier: Apache-2.0
-- What Lua does not compile, and what is meant where it looks like Python.

local syntax = {}

-- Patterns of a line without its strings and comments, and what Lua says instead.
local MEANT = {
  { "!=", "not equal is ~=" },
  { "[%w_%)%]]%s*%+=", "Lua has no +=: x = x + 1; x:add_(y) writes into a tensor" },
  { "[%w_%)%]]%s*[%-%*/]=", "Lua has no -=, *= and /=: x = x - 1; x:sub_(y) writes into a tensor" },
  { "[%w_%)%]]%s*//", "Lua has no //: math.floor(a / b), pg.floor_div(a, b); comments begin with --" },
  { "^%s*//", "comments begin with --" }, { "^%s*#", "comments begin with --" },
  { "%*%*", "powers are x ^ y" },
  { "%[[^%[%]{}]*:[^%[%]]*%]", "slices are lists, both ends included: x[{{first, last}}], x[{{}, 1}]" },
  { "^%s*def%s", "functions are: local function name(a, b) ... end" },
  { "^%s*class%s", "a layer's class is: local Net = nn.class(\"Net\")" },
  { "^%s*import%s", "local pg = require \"perigee\"" },
  { "^%s*from%s+[%w_.]+%s+import", "local pg = require \"perigee\"" },
  { "^%s*elif%f[%W]", "elseif ... then" }, { "^%s*else%s*:", "else" },
  { "^%s*with%s", "scopes are functions: pg.no_grad(function() ... end)" },
  { "^%s*try%f[%W]", "local ok, problem = pcall(function() ... end)" },
  { "%f[%w]lambda%f[%W]", "function(x) return ... end" },
  { "%sis%s+None", "x == nil" }, { "%sis%s+not%s", "x ~= nil" },
  { "%f[%w]continue%s*$", "goto continue, with ::continue:: before the loop's end" },
  { "^%s*for%s.-%sin%s+range", "for i = 1, n do ... end" },
  { ":%s*$", "blocks are: if x then ... end, for ... do ... end" },
  { "[^%w@]@[^@]", "a:matmul(b)" }, { "%s&&%s", "and" }, { "%s||%s", "or" }, { "%f[%w]null%f[%W]", "nil" },
}

-- A line without what stands in quotes and behind "--".
local function code_of(line)
  line = line:gsub("\\.", "  "):gsub("\"[^\"]*\"", "\"\""):gsub("'[^']*'", "''")
  return (line:gsub("%-%-.*$", ""))
end

local function meant_by(code)
  for _, row in ipairs(MEANT) do
    if code:find(row[1]) then return row[2] end
  end
end

---What is wrong with a text that Lua does not compile.
---@param text string
---@param message string of loadstring
---@return integer line
---@return string said
function syntax.explain(text, message)
  local number, problem = message:match "^[^\n]-:(%d+): (.*)$"
  local line, lines = tonumber(number) or 1, {}
  problem = problem or message
  for code in (text:gsub("^#[^\n]*", "") .. "\n"):gmatch "(.-)\r?\n" do lines[#lines + 1] = code_of(code) end
  for at = line, math.max(line - 1, 1), -1 do -- what ends a line may be found out in the next one
    local hint = lines[at] and meant_by(lines[at])
    if hint then return at, ("%s (%s)"):format(problem, hint) end
  end
  return line, problem
end

return syntax
