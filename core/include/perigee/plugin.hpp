// SPDX-License-Identifier: Apache-2.0
// perigee/plugin.hpp: what every C++ plugin needs: the entry, errors, and the host's services.
//
// What need not be seen by the compiler at every use is defined in sdk/*.cpp, which perigee_add_plugin compiles once
// and links to the plugin; a build without it adds those files to the plugin's own.
//
// The other SDK headers build on it. Each begins with an example:
//   device.hpp     a device: memory, streams, copies          kernel.hpp     kernels of operators on a device
//   op.hpp         operators: schema, shape rule, gradient    layer.hpp      layers
//   optimizer.hpp  optimizers                                 format.hpp     files of tensors
//   scalar.hpp     scalar expressions, which elementwise operators state in place of kernels
//   emit.hpp, functions.hpp  emitting operators, which gradients, layers and optimizers do
//   kernels/       arithmetic that all devices share: math, float16, strided, philox; reference/ defines all operators
//
// A plugin with operators and layers, whole (the other sources register themselves; CMake: perigee_add_plugin):
//
//   #include "perigee/layer.hpp"
//   #include "perigee/op.hpp"
//   using Mine = pg::Provides<pg::OpTable, pg::LayerTable>;
//   PG_PLUGIN(Mine, "mine", "1.0.0", "ops,layers");
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "perigee/plugin.h"

namespace pg {

// Thrown inside a plugin; the trampolines below turn it into a code and a pg_error.
class Error : public std::exception {
 public:
  Error(int32_t code, std::string message, int64_t native = 0, uint32_t flags = 0);
  ~Error() override;
  const char* what() const noexcept override;
  int32_t code;
  int64_t native;
  uint32_t flags;

 private:
  std::string message_;
};

// printf-style text.
__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...);
std::string format_list(const char* pattern, va_list arguments);

[[noreturn]] void fail(int32_t code, const std::string& message);
[[noreturn]] void fail_argument(const std::string& message);
[[noreturn]] void fail_support(const std::string& message);

// Fills `error` (which may be NULL) and returns the code. Truncates what does not fit; never throws.
int32_t set_error(pg_error* error, int32_t code, const char* where, const char* message, int64_t native = 0,
                  uint32_t flags = 0) noexcept;
// The same from the exception in flight: for a `catch (...)`.
int32_t set_caught(pg_error* error, const char* where) noexcept;

inline pg_error make_error() {
  pg_error error{};
  error.size = PG_SIZE(pg_error, message);
  return error;
}

// Runs `body` and catches all that it throws: the trampoline of every function a plugin hands to the host.
// `body` may return nothing, or a code of its own.
template <class Body>
int32_t guard(pg_error* error, const char* where, Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return PG_OK;
    } else {
      return body();
    }
  } catch (...) {
    return set_caught(error, where);
  }
}

// What the other side said; where it said nothing, its code.
std::string message_of(int32_t code, const pg_error& error);
// Throws what the other side reported.
[[noreturn]] void fail_as(int32_t code, const pg_error& error);
inline void check(int32_t code, const pg_error& error) {
  if (code != PG_OK) fail_as(code, error);
}

// The host's table: one per plugin library, set when it is opened. NULL before, so not for constructors of statics.
inline const pg_host* host = nullptr;

void log(int32_t level, const std::string& message);
inline int thread_count() { return host->thread_count(host->context); }
// Whether no result may depend on the number of threads, devices or workers; false from a host that cannot say.
bool deterministic();

// body(begin, end) over [0, count) on the process's one thread runtime. body must not throw.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  auto call = [](void* argument, int64_t begin, int64_t end) {
    (*static_cast<std::decay_t<Body>*>(argument))(begin, end);
  };
  std::decay_t<Body> copy(std::forward<Body>(body));
  host->parallel_for(host->context, count, grain, call, &copy);
}

// Dimensions: plain numbers or the host's symbols.
inline bool dim_equal(int64_t a, int64_t b) { return a == b || host->dim_equal(host->context, a, b) != 0; }
inline int64_t dim_add(int64_t a, int64_t b) { return host->dim_add(host->context, a, b); }
inline int64_t dim_sub(int64_t a, int64_t b) { return dim_add(a, host->dim_mul(host->context, b, -1)); }
inline int64_t dim_mul(int64_t a, int64_t b) { return host->dim_mul(host->context, a, b); }
inline int64_t dim_div(int64_t a, int64_t b) { return host->dim_div(host->context, a, b); }
inline int64_t dim_max(int64_t a, int64_t b) { return host->dim_max(host->context, a, b); }

// "3", or the symbol's name; "?" where the host cannot tell.
std::string dim_text(int64_t dimension);

// "[2, 3]"
std::string shape_text(const pg_tensor& t);

inline uint32_t dtype_of(const pg_tensor& t) { return PG_DTYPE(t.dtype_code, t.dtype_bits); }
inline int64_t dtype_bits(uint32_t dtype) { return dtype & 0xffffu; }
inline int64_t dtype_bytes(uint32_t dtype) { return (dtype_bits(dtype) + 7) / 8; }

// "float32"; "none" for 0.
const char* dtype_name(uint32_t dtype);

// The PG_M_* class of a dtype; 0: of none.
inline uint32_t dtype_class(uint32_t dtype) {
  switch (dtype >> 16) {
    case PG_FLOAT:
    case PG_BFLOAT: return PG_M_FLOAT;
    case PG_FLOAT8_E4M3FN:
    case PG_FLOAT8_E5M2: return PG_M_FLOAT8;
    case PG_BOOL: return PG_M_BOOL;
    case PG_INT:
    case PG_UINT: return PG_M_INT;
    case PG_COMPLEX: return PG_M_COMPLEX;
    default: return 0;
  }
}

inline pg_number make_number(double real) { return {real, 0, 0, PG_SCALAR_FLOAT, 0}; }
inline pg_number make_number(int64_t whole) { return {static_cast<double>(whole), 0, whole, PG_SCALAR_INT, 0}; }
inline pg_number make_complex(double real, double imaginary) { return {real, imaginary, 0, PG_SCALAR_COMPLEX, 0}; }
inline bool is_whole(const pg_number& n) { return n.kind == PG_SCALAR_INT || n.kind == PG_SCALAR_BOOL; }

inline int64_t element_count(const pg_tensor& t) {
  int64_t count = 1;
  for (uint32_t i = 0; i < t.rank; i++) count *= t.shape[i];
  return count;
}

// Whether the elements lie row-major without gaps, as those of a fresh tensor do. Axes of one element may have any
// stride, and an empty tensor is dense.
inline bool is_dense(const pg_tensor& t) {
  bool dense = true;
  int64_t step = 1;
  for (uint32_t i = t.rank; i-- > 0; step *= t.shape[i]) dense = dense && (t.shape[i] == 1 || t.stride[i] == step);
  return dense || step == 0;
}

inline bool same_shape(const pg_tensor& a, const pg_tensor& b) {
  return a.rank == b.rank && (a.rank == 0 || std::memcmp(a.shape, b.shape, a.rank * sizeof a.shape[0]) == 0);
}

// A name as a template argument: of an operator, of a device type.
template <size_t N>
struct OpName {
  char text[N];
  constexpr OpName(const char (&name)[N]) {
    for (size_t i = 0; i < N; i++) text[i] = name[i];
  }
};

// What another plugin's device says a handle stands for: its vendor's stream, the address of a buffer. For kernels on
// devices that are not the plugin's own, once a launch:
//   auto* base = reinterpret_cast<char*>(pg::device_native("tiny", launch.device, "buffer", launch.input[0].buffer));
uint64_t device_native(const char* device_type, uint32_t device, const char* what, uint64_t handle);

// What PG_PLUGIN expects of its argument: a type with these members. `iface` returns NULL for ids it does not have.
//   struct Cpu { Cpu(); ~Cpu(); const void* iface(const char* id); };
// The constructor runs in open (what it throws is why the plugin is unavailable), the destructor in close; `busy()` is
// optional and makes close answer PG_E_BUSY. Where there is nothing to do but to provide parts, Provides is such a
// type.
template <class Plugin>
struct Entry {
  static inline Plugin* instance = nullptr;  // between open and close

  static int32_t open(const pg_host* table, void** self, pg_error* error) noexcept {
    return guard(error, "open", [&] {
      host = table;
      *self = instance = new Plugin();
    });
  }
  static const void* iface(void* self, const char* id) noexcept {
    try {
      return static_cast<Plugin*>(self)->iface(id);
    } catch (...) {
      return nullptr;
    }
  }
  static int32_t close(void* self, pg_error* error) noexcept {
    return guard(error, "close", [&]() -> int32_t {
      auto* plugin = static_cast<Plugin*>(self);
      if constexpr (requires { plugin->busy(); }) {
        if (plugin->busy()) return set_error(error, PG_E_BUSY, "close", "objects of this plugin are alive");
      }
      instance = nullptr;
      delete plugin;
      return PG_OK;
    });
  }
};

// A plugin that is the sum of its parts: OpTable (op.hpp), DeviceTable<MyDevice> (device.hpp), KernelTable<"my"> or
// KernelTable<"cpu"> (kernel.hpp), LayerTable, OptimizerTable, FormatTable. To be named with `using`, not derived from.
template <class... Parts>
class Provides : public Parts... {
 public:
  const void* iface(const char* id) {
    const void* table = nullptr;
    ((std::strcmp(id, Parts::id) == 0 ? void(table = Parts::template table<Provides>()) : void()), ...);
    return table;
  }
};

}  // namespace pg

// Defines the one exported symbol. Once per plugin, at namespace scope:
//   PG_PLUGIN(cpu::Plugin, "cpu", "0.1.0", "device,kernels");
// A plugin that cannot do without what a later minor of plugin.h brought says which: older hosts then refuse it.
//   PG_PLUGIN(Mine, "mine", "1.0.0", "ops,layers", 2);
#define PG_PLUGIN(Type, name, version, kinds, ...)                                                              \
  extern "C" PG_EXPORT const pg_plugin pg_plugin_v1;                                                            \
  const pg_plugin pg_plugin_v1 = {                                                                              \
      PG_MAGIC, PG_SIZE(pg_plugin, close), PG_ABI_MINOR,           __VA_OPT__(__VA_ARGS__ +) 0u, name, version, \
      kinds,    pg::Entry<Type>::open,     pg::Entry<Type>::iface, pg::Entry<Type>::close}
