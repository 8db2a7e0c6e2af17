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
// are the key (PG_KEY_SHAPES, PG_KEY_CLASS) and the mask of inputs that it may want packed.
// A plugin is, or has in its pg::Provides, a pg::KernelTable<"device type">: its own device's, or another plugin's. On
// the processor ("cpu"), and wherever PG_DEVICE_HOST_VISIBLE is set, pg::input gives addresses; what the handles of
// other devices stand for is asked of their plugins (pg::device_native).
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "perigee/plugin.hpp"

namespace pg {

// ---- attributes, by name ----

inline const pg_attr_info& find_attr(const pg_op_info& op, const char* name) {
  for (uint32_t i = 0; i < op.attr_count; i++) {
    if (std::strcmp(op.attrs[i]->name, name) == 0) return *op.attrs[i];
  }
  fail(PG_E_INTERNAL, format("operator %s has no attribute \"%s\"", op.name, name));
}

template <class T>
T read_at(const void* base, uint32_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

[[noreturn]] inline void fail_attr_kind(const char* as) {
  fail(PG_E_INTERNAL, std::string("an attribute was read as ") + as + ", which it is not");
}

// An attribute's value as T: any number kind as any arithmetic T; lists as pg_ints; a scalar operand as pg_scalar.
template <class T>
T read_attr(const void* attrs, uint32_t kind, uint32_t offset) {
  if constexpr (std::is_arithmetic_v<T>) {
    switch (kind) {
      case PG_ATTR_FLOAT: return static_cast<T>(read_at<double>(attrs, offset));
      case PG_ATTR_INT:
      case PG_ATTR_AXIS: return static_cast<T>(read_at<int64_t>(attrs, offset));
      case PG_ATTR_DTYPE: return static_cast<T>(read_at<uint32_t>(attrs, offset));
      case PG_ATTR_INTS:
      case PG_ATTR_AXES:
      case PG_ATTR_DIMS:
      case PG_ATTR_SCALAR: fail_attr_kind("a number");
      default: return static_cast<T>(read_at<int32_t>(attrs, offset));  // bool, choice, device
    }
  } else {
    constexpr bool is_list = std::is_same_v<T, pg_ints>;
    static_assert(is_list || std::is_same_v<T, pg_scalar>, "attributes are numbers, pg_ints or pg_scalar");
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
    if (!has(i)) fail(PG_E_INTERNAL, format("%s: input %u is absent", op(), i));
    return *raw->inputs[i];
  }
  const pg_tensor& out(uint32_t i) const {
    if (i >= raw->output_count) fail(PG_E_INTERNAL, format("%s: output %u is absent", op(), i));
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
  std::vector<int64_t> list(const char* name) const {
    auto ints = attr<pg_ints>(name);
    return {ints.value, ints.value + ints.count};
  }

  // Refusals, for `supports`: each says what was expected and what came. `need` takes printf's arguments.
  template <class... Args>
  void need(bool condition, const char* pattern, Args... args) const {
    if (condition) return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fail_support(format(pattern, args...) + "; got " + arguments());
#pragma GCC diagnostic pop
  }
  // Every tensor, in or out, has one of these dtypes.
  void need_dtypes(std::initializer_list<uint32_t> dtypes) const {
    each([&](const pg_tensor& t) {
      for (uint32_t dtype : dtypes)
        if (dtype_of(t) == dtype) return;
      std::string names;
      for (uint32_t dtype : dtypes) names += (names.empty() ? "" : ", ") + std::string(dtype_name(dtype));
      need(false, "takes %s", names.c_str());
    });
  }
  // Every tensor is row-major without gaps. A host that holds another kind asks again with a dense copy.
  void need_dense() const {
    each([&](const pg_tensor& t) {
      need(t.class_id == PG_CLASS_DENSE && t.layout == 0 && t.bit_offset == 0, "takes tensors in plain layouts");
      need(is_dense(t), "takes dense tensors");
    });
  }
  // "float32[2, 3], int64[4], none": what was asked for.
  std::string arguments() const {
    std::string text;
    for (uint32_t i = 0; i < input_count(); i++) {
      if (i > 0) text += ", ";
      text += has(i) ? dtype_name(dtype_of(in(i))) + shape_text(in(i)) : std::string("none");
    }
    return text;
  }

  // An axis attribute in 0 .. rank - 1 (0 for a 0-dim tensor).
  int64_t axis(const char* name, uint32_t rank) const {
    int64_t axis = attr<int64_t>(name), dims = rank == 0 ? 1 : rank;
    if (axis < -dims || axis >= dims) {
      fail_argument(format("%s: axis %lld is out of range for rank %u", op(), static_cast<long long>(axis), rank));
    }
    return axis < 0 ? axis + dims : axis;
  }
  // Bit i: axis i is named by the list; an empty list names all.
  uint32_t axis_mask(const char* name, uint32_t rank) const {
    auto axes = attr<pg_ints>(name);
    if (axes.count == 0) return (1u << rank) - 1;
    uint32_t mask = 0;
    for (int64_t i = 0; i < axes.count; i++) {
      int64_t axis = axes.value[i] < 0 ? axes.value[i] + rank : axes.value[i];
      if (rank > 0 && (axis < 0 || axis >= rank)) fail_argument(format("%s: axis out of range", op()));
      if (rank > 0) mask |= 1u << axis;
    }
    return mask;
  }
  // The number that stands in for an input (attribute "scalar"): kind is PG_SCALAR_NONE where there is none.
  pg_scalar scalar() const {
    for (uint32_t i = 0; i < raw->op->attr_count; i++) {
      const pg_attr_info& info = *raw->op->attrs[i];
      if (info.kind == PG_ATTR_SCALAR) return read_at<pg_scalar>(raw->attrs, info.offset);
    }
    return {PG_SCALAR_NONE, -1};
  }
  Runtime<double> scalar_value() const {
    for (uint32_t i = 0; i < raw->op->attr_count; i++) {
      if (raw->op->attrs[i]->kind == PG_ATTR_SCALAR) return {PG_ATTR_FLOAT, raw->op->attrs[i]->value};
    }
    return {};
  }

 private:
  template <class Body>
  void each(Body&& body) const {
    for (uint32_t i = 0; i < input_count(); i++)
      if (has(i)) body(in(i));
    for (uint32_t i = 0; i < output_count(); i++) body(out(i));
  }
};

inline std::string describe(const KernelCall& call) { return call.arguments(); }

// What prepare asks of the host.
struct Plan {
  uint64_t workspace = 0;       // bytes, in launch.workspace
  uint64_t pack_bytes[8] = {};  // by declared input: bytes of its private layout, which `pack` writes; 0: none
};

// A prepared kernel. It may be destroyed while its last launches are still queued on a stream.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void launch(const pg_launch& launch) = 0;
  virtual void pack(uint32_t input, const pg_launch& launch, pg_address target) {
    (void)input, (void)launch, (void)target;
    fail(PG_E_UNIMPLEMENTED, "this kernel packs nothing");
  }
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
  std::unique_ptr<Kernel> (*prepare)(const KernelCall& call, Plan& plan);
};

inline std::vector<KernelEntry>& kernel_entries() {
  static auto* entries = new std::vector<KernelEntry>();  // never destroyed: tables point into it
  return *entries;
}

template <class Type>
int add_kernel(const char* op, uint32_t key = PG_KEY_SHAPES, uint64_t packs = 0) {
  kernel_entries().push_back({{PG_SIZE(pg_kernel_info, packs), key, op, packs},
                              [](const KernelCall& call) { Type::supports(call); },
                              [](const KernelCall& call, Plan& plan) -> std::unique_ptr<Kernel> {
                                return std::make_unique<Type>(call, plan);
                              }});
  return 0;
}

namespace detail {

inline int32_t kernel_supports(void*, uint32_t index, const pg_call* call, pg_error* why) noexcept {
  const KernelEntry& entry = kernel_entries()[index];
  return guard(why, entry.info.op, [&] { entry.supports(KernelCall(call)); });
}
inline int32_t kernel_prepare(void*, uint32_t index, const pg_call* call, pg_prepared* out, pg_error* error) noexcept {
  const KernelEntry& entry = kernel_entries()[index];
  return guard(error, entry.info.op, [&] {
    Plan plan;
    std::unique_ptr<Kernel> kernel = entry.prepare(KernelCall(call), plan);
    out->workspace = plan.workspace;
    std::memcpy(out->pack_bytes, plan.pack_bytes, sizeof plan.pack_bytes);
    out->kernel = kernel.release();
  });
}
inline int32_t kernel_launch(void*, uint32_t index, void* kernel, const pg_launch* launch, pg_error* error) noexcept {
  // The common case is one virtual call: the name is looked up only when something was thrown.
  int32_t code = guard(error, nullptr, [&] { static_cast<Kernel*>(kernel)->launch(*launch); });
  if (code != PG_OK && error != nullptr && error->where[0] == '\0') {
    std::snprintf(error->where, sizeof error->where, "%s", kernel_entries()[index].info.op);
  }
  return code;
}
inline void kernel_release(void*, uint32_t, void* kernel) noexcept { delete static_cast<Kernel*>(kernel); }
inline int32_t kernel_pack(void*, uint32_t index, void* kernel, uint32_t input, const pg_launch* launch,
                           pg_address target, pg_error* error) noexcept {
  return guard(error, kernel_entries()[index].info.op,
               [&] { static_cast<Kernel*>(kernel)->pack(input, *launch, target); });
}

}  // namespace detail

// The plugin's table of all kernels registered so far. One per plugin: for one device type.
inline const pg_kernels* kernel_table(const char* device_type) {
  static auto* infos = new std::vector<const pg_kernel_info*>();
  static pg_kernels table{};
  infos->clear();
  for (const KernelEntry& entry : kernel_entries()) infos->push_back(&entry.info);
  table = {PG_SIZE(pg_kernels, pack),
           static_cast<uint32_t>(infos->size()),
           device_type,
           infos->data(),
           detail::kernel_supports,
           detail::kernel_prepare,
           detail::kernel_launch,
           detail::kernel_release,
           detail::kernel_pack};
  return &table;
}

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
// PG_KERNEL("softmax", Softmax); PG_KERNEL("linear", Linear, PG_KEY_SHAPES, 1u << 1);
#define PG_KERNEL(op, Type, ...)                                         \
  [[maybe_unused]] static const int PG_CONCAT(pg_kernel_, __COUNTER__) = \
      pg::add_kernel<Type>(op __VA_OPT__(, ) __VA_ARGS__)
