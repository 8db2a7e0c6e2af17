// SPDX-License-Identifier: Apache-2.0
#include "perigee/plugin.hpp"

#include <locale.h>

#include <new>

namespace pg {

Error::Error(int32_t code, std::string message, int64_t native, uint32_t flags)
    : code(code), native(native), flags(flags), message_(std::move(message)) {}
Error::~Error() = default;
const char* Error::what() const noexcept { return message_.c_str(); }

namespace {

// Numbers in texts are written with a point, whatever the locale of the program around says.
class PlainNumbers {
 public:
  PlainNumbers() {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", locale_t{});
    if (plain != locale_t{}) before_ = uselocale(plain);
  }
  ~PlainNumbers() {
    if (before_ != locale_t{}) uselocale(before_);
  }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  locale_t before_{};
};

}  // namespace

std::string format_list(const char* pattern, va_list arguments) {
  PlainNumbers plain;
  va_list again;
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = format_list(pattern, arguments);
  va_end(arguments);
  return text;
}

void fail(int32_t code, const std::string& message) { throw Error(code, message); }
void fail_argument(const std::string& message) { throw Error(PG_E_INVALID_ARGUMENT, message); }
void fail_support(const std::string& message) { throw Error(PG_E_NOT_SUPPORTED, message); }
std::string message_of(int32_t code, const pg_error& error) {
  std::string message(error.message, strnlen(error.message, sizeof error.message));
  return message.empty() ? format("failed with code %d and no message", code) : message;
}
void fail_as(int32_t code, const pg_error& error) {
  if (code == PG_E_RETRY) fail(PG_E_INTERNAL, "answered PG_E_RETRY, which only the host says, and only to front ends");
  throw Error(code, message_of(code, error), error.native, error.flags);
}

int32_t set_error(pg_error* error, int32_t code, const char* where, const char* message, int64_t native,
                  uint32_t flags) noexcept {
  if (error == nullptr) return code;
  error->code = code;
  error->native = native;
  error->flags = flags;
  std::snprintf(error->where, sizeof error->where, "%s", where == nullptr ? "" : where);
  std::snprintf(error->message, sizeof error->message, "%s", message == nullptr ? "" : message);
  return code;
}

int32_t set_caught(pg_error* error, const char* where) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return set_error(error, e.code, where, e.what(), e.native, e.flags);
  } catch (const std::bad_alloc&) {
    return set_error(error, PG_E_OUT_OF_MEMORY, where, "out of host memory");
  } catch (const std::exception& e) {
    return set_error(error, PG_E_INTERNAL, where, e.what());
  } catch (...) {
    return set_error(error, PG_E_INTERNAL, where, "unknown exception");
  }
}

void log(int32_t level, const std::string& message) { host->log(host->context, level, message.c_str()); }

bool deterministic() {
  bool known = PG_HAS(host, pg_host, deterministic) && host->deterministic != nullptr;
  return known && host->deterministic(host->context) != 0;
}

std::string dim_text(int64_t dimension) {
  if (!PG_DIM_IS_SYMBOLIC(dimension)) return std::to_string(dimension);
  bool known = host != nullptr && PG_HAS(host, pg_host, dim_name) && host->dim_name != nullptr;
  return known ? host->dim_name(host->context, dimension) : "?";
}

std::string shape_text(const pg_tensor& t) {
  std::string text = "[";
  for (uint32_t i = 0; i < t.rank; i++) text += (i > 0 ? ", " : "") + dim_text(t.shape[i]);
  return text + "]";
}

const char* dtype_name(uint32_t dtype) {
  switch (dtype) {
    case PG_F64: return "float64";
    case PG_F32: return "float32";
    case PG_F16: return "float16";
    case PG_BF16: return "bfloat16";
    case PG_I64: return "int64";
    case PG_I32: return "int32";
    case PG_I16: return "int16";
    case PG_I8: return "int8";
    case PG_U8: return "uint8";
    case PG_B8: return "bool";
    case PG_C64: return "complex64";
    case PG_C128: return "complex128";
    case PG_DTYPE(PG_FLOAT8_E4M3FN, 8): return "float8_e4m3fn";
    case PG_DTYPE(PG_FLOAT8_E5M2, 8): return "float8_e5m2";
    case 0: return "none";
    default: return "unknown";
  }
}

uint64_t device_native(const char* device_type, uint32_t device, const char* what, uint64_t handle) {
  pg_error error = make_error();
  uint64_t native = 0;
  if (!PG_HAS(host, pg_host, device_native)) fail(PG_E_UNIMPLEMENTED, "this Perigee is too old: no device_native");
  check(host->device_native(host->context, device_type, device, what, handle, &native, &error), error);
  return native;
}

}  // namespace pg
