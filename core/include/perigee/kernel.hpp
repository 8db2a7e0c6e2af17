// SPDX-License-Identifier: Apache-2.0
// perigee/kernel.hpp: how kernels are written.
//
// clang-format off
//   struct Scale : pg::Kernel {                           // of an operator "scale" with the runtime attribute "factor"
//     static void supports(const pg::KernelCall& call) {    // returns when a launch will succeed
//       call.need_dtypes({PG_F32});
//       call.need_dense();                                  // refused, the host asks again with a dense copy
//     }
//     Scale(const pg::KernelCall& call, pg::Plan&)          // prepare: look at shapes and attributes, once
//         : count(pg::element_count(call.in(0))), factor(call.runtime<double>("factor")) {}
//     void launch(const pg_launch& launch) override {       // addresses are known now: run, allocate nothing
//       const float* x = pg::input<const float>(launch, 0); // NULL where the tensor is empty
//       float* y = pg::output<float>(launch, 0);
//       float k = static_cast<float>(factor(launch));
//       pg::parallel_for(count, 4096, [=](int64_t begin, int64_t end) {
//         for (int64_t i = begin; i < end; i++) y[i] = x[i] * k;
//       });
//     }
//     int64_t count;
//     pg::Runtime<double> factor;
//   };
//   PG_KERNEL("scale", Scale);                              // the file registers itself
// clang-format on
//
// Inputs come with any strides (0 where broadcast, as gradients often are); outputs are dense, but in place output 0
// has the address and strides of input 0. The KernelCall lives until supports or the constructor returns: keep numbers,
// not pointers into it. A kernel serves all threads at once: launch changes no member without a lock.
//
// One class may serve several operators: PG_KERNEL per name, and call.op() tells which. PG_KERNEL's optional arguments
// are flags (PG_KERNEL_*), the mask of inputs that it may want packed, and the mask of hidden outputs
// that it can leave out: in a call whose hidden outputs nobody reads, call.has_output(i) is false then and
// pg::output(launch, i) NULL.
// A plugin is, or has in its pg::Provides, a pg::KernelTable<"device type">: its own device's, or another plugin's. On
// the processor ("cpu"), and wherever PG_DEVICE_HOST_VISIBLE is set, pg::input gives addresses; what the handles of
// other devices stand for is asked of their plugins (pg::device_native).
#pragma once

#include <initializer_list>
#include <vector>

#include "perigee/plugin.hpp"

namespace pg {

// ---- attributes, by name ----

const pg_attr_info& find_attr(const pg_op_info& op, const char* name);

template <class T>
T read_at(const void* base, uint32_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

[[noreturn]] void fail_attr_kind(const char* as);

// An attribute's value as T: any number kind as any arithmetic T, or as pg_number; lists as pg_ints; a scalar operand
// as pg_scalar.
template <class T>
T read_attr(const void* attrs, uint32_t kind, uint32_t offset) {
  if constexpr (std::is_arithmetic_v<T>) {
    switch (kind) {
      case PG_ATTR_FLOAT: return static_cast<T>(read_at<double>(attrs, offset));
      case PG_ATTR_INT:
      case PG_ATTR_AXIS: return static_cast<T>(read_at<int64_t>(attrs, offset));
      case PG_ATTR_DTYPE: return static_cast<T>(read_at<uint32_t>(attrs, offset));
      case PG_ATTR_NUMBER: {
        auto number = read_at<pg_number>(attrs, offset);
        return std::is_integral_v<T> && is_whole(number) ? static_cast<T>(number.integer) : static_cast<T>(number.real);
      }
      case PG_ATTR_INTS:
      case PG_ATTR_AXES:
      case PG_ATTR_DIMS:
      case PG_ATTR_SCALAR: fail_attr_kind("a number");
      default: return static_cast<T>(read_at<int32_t>(attrs, offset));  // bool, choice, device
    }
  } else if constexpr (std::is_same_v<T, pg_number>) {
    if (kind != PG_ATTR_NUMBER) return make_number(read_attr<double>(attrs, kind, offset));
    return read_at<pg_number>(attrs, offset);
  } else {
    constexpr bool is_list = std::is_same_v<T, pg_ints>;
    static_assert(is_list || std::is_same_v<T, pg_scalar>, "attributes are numbers, pg_number, pg_ints or pg_scalar");
    if (is_list && kind != PG_ATTR_INTS && kind != PG_ATTR_AXES && kind != PG_ATTR_DIMS) fail_attr_kind("a list");
    if (!is_list && kind != PG_ATTR_SCALAR) fail_attr_kind("a scalar operand");
    return read_at<T>(attrs, offset);
  }
}

// Where a runtime attribute lies: found at prepare, read at launch.
template <class T>
struct Runtime {
  uint32_t kind = 0, offset = 0;
  T operator()(const pg_launch& launch) const { return read_attr<T>(launch.attrs, kind, offset); }
};

// ---- a call, as supports and prepare see it ----

// Inputs are addressed by flat position, which is the declared position unless the operator has variadic inputs.
class KernelCall {
 public:
  explicit KernelCall(const pg_call* raw) : raw(raw) {}
  const pg_call* const raw;

  const char* op() const { return raw->op->name; }
  bool is(const char* name) const { return std::strcmp(raw->op->name, name) == 0; }
  uint32_t input_count() const { return raw->input_count; }
  uint32_t output_count() const { return raw->output_count; }
  bool has(uint32_t i) const { return i < raw->input_count && raw->inputs[i] != nullptr; }
  const pg_tensor& in(uint32_t i) const {
    if (!has(i)) fail_absent("input", i);
    return *raw->inputs[i];
  }
  // False where the call leaves the output out, which only a kernel that can do without it is asked for.
  bool has_output(uint32_t i) const { return i < raw->output_count && raw->outputs[i] != nullptr; }
  const pg_tensor& out(uint32_t i) const {
    if (!has_output(i)) fail_absent("output", i);
    return *raw->outputs[i];
  }
  // Tensors in the declared input, and the flat position of its first.
  uint32_t group(uint32_t declared) const { return raw->groups == nullptr ? 1 : raw->groups[declared]; }
  uint32_t group_begin(uint32_t declared) const {
    uint32_t begin = 0;
    for (uint32_t i = 0; i < declared; i++) begin += group(i);
    return begin;
  }

  template <class T>
  T attr(const char* name) const {
    const pg_attr_info& info = find_attr(*raw->op, name);
    return read_attr<T>(raw->attrs, info.kind, info.offset);
  }
  template <class T>
  Runtime<T> runtime(const char* name) const {
    const pg_attr_info& info = find_attr(*raw->op, name);
    return {info.kind, info.offset};
  }
  // The numbers of a list attribute.
  std::vector<int64_t> list(const char* name) const;

  // Refusals, for `supports`: each says what was expected and what came. `need` takes printf's arguments.
  template <class... Args>
  void need(bool condition, const char* pattern, Args... args) const {
    if (!condition) refuse(pattern, args...);
  }
  // Every tensor that is there, in or out, has one of these dtypes.
  void need_dtypes(std::initializer_list<uint32_t> dtypes) const;
  // Every tensor is row-major without gaps. A host that holds another kind asks again with a dense copy.
  void need_dense() const;
  // "float32[2, 3], int64[4], none": what was asked for.
  std::string arguments() const;

  // An axis attribute in 0 .. rank - 1 (0 for a 0-dim tensor).
  int64_t axis(const char* name, uint32_t rank) const;
  // Bit i: axis i is named by the list; an empty list names all.
  uint32_t axis_mask(const char* name, uint32_t rank) const;
  // The number that stands in for an input (attribute "scalar"): kind is PG_SCALAR_NONE where there is none.
  pg_scalar scalar() const;
  Runtime<pg_number> scalar_value() const;

 private:
  template <class Body>
  void each(Body&& body) const;
  [[noreturn]] void fail_absent(const char* what, uint32_t i) const;
  [[noreturn]] void refuse(const char* pattern, ...) const;
};

std::string describe(const KernelCall& call);

// What prepare asks of the host.
struct Plan {
  uint64_t workspace = 0;       // bytes, in launch.workspace
  uint64_t pack_bytes[8] = {};  // by declared input: bytes of its private layout, which `pack` writes; 0: none
};

// A prepared kernel. It may be destroyed while its last launches are still queued on a stream.
class Kernel {
 public:
  virtual ~Kernel();
  virtual void launch(const pg_launch& launch) = 0;
  virtual void pack(uint32_t input, const pg_launch& launch, pg_address target);
};

// ---- addresses on host-visible devices; NULL where a tensor is absent or empty ----

template <class T = void>
T* host_pointer(pg_address address) {
  return address.buffer == 0 ? nullptr : reinterpret_cast<T*>(address.buffer + address.offset);
}
template <class T = const void>
T* input(const pg_launch& launch, uint32_t i) {
  return host_pointer<T>(launch.input[i]);
}
template <class T = void>
T* output(const pg_launch& launch, uint32_t i) {
  return host_pointer<T>(launch.output[i]);
}

// ---- registration ----

struct KernelEntry {
  pg_kernel_info info;
  void (*supports)(const KernelCall& call);
  Kernel* (*prepare)(const KernelCall& call, Plan& plan);  // owned by the caller
};

// All kernels that this plugin has registered.
std::vector<KernelEntry>& kernel_entries();
int add_kernel(const KernelEntry& entry);

template <class Type>
int add_kernel(const char* op, uint32_t flags = 0, uint64_t packs = 0, uint64_t spares = 0) {
  return add_kernel({{PG_SIZE(pg_kernel_info, spares), flags, op, packs, spares},
                     [](const KernelCall& call) { Type::supports(call); },
                     [](const KernelCall& call, Plan& plan) -> Kernel* { return new Type(call, plan); }});
}

// The plugin's table of all kernels registered so far. One per plugin: for one device type.
const pg_kernels* kernel_table(const char* device_type);

template <OpName device_type>
struct KernelTable {
  static constexpr const char* id = PG_IFACE_KERNELS;
  template <class Plugin>
  const void* table() const {
    static constexpr OpName type = device_type;  // outlives the call
    return kernel_table(type.text);
  }
};

}  // namespace pg

#define PG_CONCAT_(a, b) a##b
#define PG_CONCAT(a, b) PG_CONCAT_(a, b)
// PG_KERNEL("softmax", Softmax); PG_KERNEL("linear", Linear, 0, 1u << 1);
// PG_KERNEL("max_pool2d", MaxPool, 0, 0, 1u << 1);
#define PG_KERNEL(op, Type, ...)                                         \
  [[maybe_unused]] static const int PG_CONCAT(pg_kernel_, __COUNTER__) = \
      pg::add_kernel<Type>(op __VA_OPT__(, ) __VA_ARGS__)
