-- SPDX-License-Identifier: Apache-2.0
-- Regular expressions with Unicode's classes, by PCRE2, which is loaded when one is compiled.

local ffi = require "ffi"

ffi.cdef [[
typedef struct perigee_pcre2_code perigee_pcre2_code;
typedef struct perigee_pcre2_match_data perigee_pcre2_match_data;
perigee_pcre2_code *pcre2_compile_8(const char *pattern, size_t length, uint32_t options, int *error, size_t *offset,
                                    void *context);
void pcre2_code_free_8(perigee_pcre2_code *);
int pcre2_jit_compile_8(perigee_pcre2_code *, uint32_t options);
int pcre2_get_error_message_8(int error, char *buffer, size_t length);
perigee_pcre2_match_data *pcre2_match_data_create_from_pattern_8(const perigee_pcre2_code *, void *context);
void pcre2_match_data_free_8(perigee_pcre2_match_data *);
size_t *pcre2_get_ovector_pointer_8(perigee_pcre2_match_data *);
int pcre2_match_8(const perigee_pcre2_code *, const char *subject, size_t length, size_t start, uint32_t options,
                  perigee_pcre2_match_data *, void *context);
]]

local UTF, UCP, INVALID_UTF, DOLLAR_ENDONLY = 0x00080000, 0x00020000, 0x04000000, 0x00000010
local JIT_COMPLETE, NO_MATCH = 1, -1

local M = {}
local library

local function message_of(code)
  local buffer = ffi.new "char[256]"
  library.pcre2_get_error_message_8(code, buffer, 256)
  return ffi.string(buffer)
end

---Compiles a pattern. What it answers, find(text, from), gives the first and the last byte of the first match from a
---byte on, or nothing; bytes that are not UTF-8 match nothing. Answers nil and a message where it cannot be done.
---@param pattern string in Perl's syntax
---@return (fun(text: string, from: integer): integer?, integer?)?
---@return string? problem
function M.compile(pattern)
  if not library then
    local ok, found = pcall(ffi.load, "pcre2-8")
    if not ok then ok, found = pcall(ffi.load, "libpcre2-8.so.0") end -- without the package for developers
    if not ok then return nil, "PCRE2 is not here (Debian's package is libpcre2-8-0): " .. tostring(found) end
    library = found
  end
  local code, offset = ffi.new "int[1]", ffi.new "size_t[1]"
  local options = UTF + UCP + INVALID_UTF + DOLLAR_ENDONLY
  local compiled = library.pcre2_compile_8(pattern, #pattern, options, code, offset, nil)
  if compiled == nil then
    return nil, ("%s at character %d"):format(message_of(code[0]), tonumber(offset[0]) + 1)
  end
  compiled = ffi.gc(compiled, library.pcre2_code_free_8)
  library.pcre2_jit_compile_8(compiled, JIT_COMPLETE) -- where that cannot be had, it is interpreted
  local data = ffi.gc(library.pcre2_match_data_create_from_pattern_8(compiled, nil), library.pcre2_match_data_free_8)
  local at = library.pcre2_get_ovector_pointer_8(data)
  return function(text, from)
    local count = library.pcre2_match_8(compiled, text, #text, from - 1, 0, data, nil)
    if count > 0 then return tonumber(at[0]) + 1, tonumber(at[1]) end
    if count ~= NO_MATCH then error(message_of(count), 0) end
  end
end

return M
