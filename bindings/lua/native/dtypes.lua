-- SPDX-License-Identifier: Apache-2.0
-- Names of dtypes, their codes (PG_DTYPE of plugin.h) and the C types that hold their elements on the host.

local ffi = require "ffi"
local errors = require "perigee.native.errors"
local suggest = require "perigee.native.suggest"

local INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL, E4M3FN, E5M2 = 0, 1, 2, 4, 5, 6, 10, 12

local rows = { -- name, short form, kind, bits, C type
  { "float64", "f64", FLOAT, 64, "double" }, { "float32", "f32", FLOAT, 32, "float" },
  { "float16", "f16", FLOAT, 16, "uint16_t" }, { "bfloat16", "bf16", BFLOAT, 16, "uint16_t" },
  { "int64", "i64", INT, 64, "int64_t" }, { "int32", "i32", INT, 32, "int32_t" },
  { "int16", "i16", INT, 16, "int16_t" }, { "int8", "i8", INT, 8, "int8_t" },
  { "uint8", "u8", UINT, 8, "uint8_t" }, { "bool", "b8", BOOL, 8, "uint8_t" },
  { "float8_e4m3fn", "f8e4m3fn", E4M3FN, 8, "uint8_t" }, { "float8_e5m2", "f8e5m2", E5M2, 8, "uint8_t" },
  { "complex64", "c64", COMPLEX, 64, "float" }, { "complex128", "c128", COMPLEX, 128, "double" },
}

local M = { by_code = {}, by_name = {}, names = {} }

for _, row in ipairs(rows) do
  local name, short, kind, bits, ctype = row[1], row[2], row[3], row[4], row[5]
  local dtype = {
    name = name, code = kind * 65536 + bits, kind = kind, bytes = bits / 8, ctype = ctype,
    floating = kind == FLOAT or kind == BFLOAT, integer = kind == INT or kind == UINT,
    boolean = kind == BOOL, complex = kind == COMPLEX,
    float8 = kind == E4M3FN or kind == E5M2, -- stored and converted: not among the floating, with which one computes
    array = ffi.typeof(ctype .. "[?]"), single = ffi.new(ctype .. "[1]"),
    direct = kind < BFLOAT and name ~= "float16" or kind == BOOL, -- the C type's values are the elements
  }
  M.by_code[dtype.code], M.by_name[name], M.by_name[short] = dtype, dtype, dtype
  M.names[#M.names + 1] = name
end

for _, dtype in pairs(M.by_code) do
  if dtype.integer then
    local bits = dtype.bytes * 8
    dtype.lowest = dtype.kind == UINT and 0 or -2 ^ (bits - 1)
    dtype.beyond = dtype.kind == UINT and 2 ^ bits or 2 ^ (bits - 1)
  end
end

---Raises where a Lua number is outside an integer dtype: C would make another number of it. NaN is outside, too.
---@param dtype table one of this module's descriptions
function M.check_number(where, value, dtype)
  if not dtype.integer or type(value) ~= "number" and (dtype.bytes == 8 or type(value) ~= "cdata") then return end
  local whole = type(value) == "cdata" and value or value < 0 and math.ceil(value) or math.floor(value)
  if whole >= dtype.lowest and whole < dtype.beyond then return end
  local range = dtype.bytes == 8 and "-2^63 to 2^63 - 1" or ("%.0f to %.0f"):format(dtype.lowest, dtype.beyond - 1)
  errors.raise("invalid_argument", where, ("%s cannot hold %s"):format(dtype.name, tostring(value)),
               value ~= value and "give a float dtype" or "it holds " .. range)
end

-- What others call them.
M.foreign = { float = "float32", double = "float64", half = "float16", long = "int64", int = "int32", short = "int16",
              byte = "uint8", char = "int8", boolean = "bool", single = "float32", fp16 = "float16",
              fp32 = "float32", fp64 = "float64", float8 = "float8_e4m3fn", fp8 = "float8_e4m3fn",
              float8_e4m3 = "float8_e4m3fn" }

---The dtype that a name which is none was meant to be, as others call it ("Float", "torch.float32") or misspelt; nil.
---@param name string
---@return string?
function M.meant(name)
  local bare = name:lower():gsub("^%l+%.", ""):gsub("tensor$", "")
  return M.foreign[bare] or (M.by_name[bare] and M.by_name[bare].name) or suggest(name, M.names)
end

---The description of a dtype given by name or short form; raises.
---@param name string
---@param where string operator or function that asks
function M.find(name, where)
  local dtype = type(name) == "string" and M.by_name[name]
  if dtype and dtype.complex then
    errors.raise("not_supported", where,
                 dtype.name .. " is not supported: no operator computes with complex numbers")
  end
  if dtype then return dtype end
  if type(name) ~= "string" then
    errors.raise("invalid_argument", where, ("dtype must be a name, got %s"):format(errors.describe(name)))
  end
  local near = M.meant(name)
  errors.raise("invalid_argument", where, ("unknown dtype %q"):format(name),
               near and ("did you mean %q?"):format(near)
               or "dtypes are " .. table.concat(M.names, " ", 1, #M.names - 2)) -- not the complex ones
end

return M
