// SPDX-License-Identifier: Apache-2.0
// perigee/emit.hpp: emitting operators into the builder that a callback received. Gradient rules, decompositions,
// layers and optimizers are all written with it. Values live until the callback returns, and are used on its thread.
//
//   static constinit pg::OpRef op("softmax", "axis");        // the operator, and the attributes that are set below
//   pg::Value y = pg::Call(x.builder, op).input(x).set(0, -1).emit();      // 0: the first attribute named in the OpRef
//
// LayerCall, OptimizerStep, GradContext and ExpandContext have `call`, which knows the builder. functions.hpp has the
// common operators as functions.
#pragma once

#include <atomic>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "perigee/plugin.hpp"

namespace pg {

// A tensor inside a callback; may be absent, and then has no meta, rank, dim, dtype or device: test it first.
struct Value {
  pg_builder* builder = nullptr;
  pg_value id = 0;

  explicit operator bool() const { return id != 0; }
  const pg_tensor& meta() const {
    if (id == 0) fail_absent();
    return *host->describe(builder, id);
  }
  uint32_t rank() const { return meta().rank; }
  int64_t dim(uint32_t axis) const { return meta().shape[axis]; }
  uint32_t dtype() const { return dtype_of(meta()); }
  int32_t device() const { return host->device_of(builder, id); }
  [[noreturn]] static void fail_absent();
};

// Same rank and the same numbers: equal for sure. False may still mean equal where symbols are involved.
bool same_dims(const pg_tensor& a, const pg_tensor& b);

// An operator and those of its attributes that a caller sets, looked up once per host. Meant to be a function-local
// `static constinit`: then a call costs one load and one compare.
class OpRef {
 public:
  static constexpr int kMaxAttrs = 14;
  struct Resolved {
    const pg_host* host;
    uint32_t op;
    const pg_op_info* info;
    const pg_attr_info* attrs[kMaxAttrs];
  };

  template <class... Attrs>
  constexpr explicit OpRef(const char* name, Attrs... attrs) : name_(name), attrs_{attrs...} {
    static_assert(sizeof...(Attrs) <= kMaxAttrs);
  }

  const Resolved& get() const {
    const Resolved* known = resolved_.load(std::memory_order_acquire);
    if (known != nullptr && known->host == host) return *known;
    return resolve();
  }

 private:
  const Resolved& resolve() const;

  const char* name_;
  const char* attrs_[kMaxAttrs];
  mutable std::atomic<const Resolved*> resolved_{nullptr};
};

// One emission: inputs in declared order, attributes by their position in the OpRef, then emit. Inputs that are left
// out behind the given ones are absent, or of no tensors where they are variadic.
class Call {
 public:
  Call(pg_builder* builder, const OpRef& op);
  Call(const Call&) = delete;
  ~Call();
  Call& operator=(const Call&) = delete;

  // The next declared input; an absent value for an optional one.
  Call& input(Value value);
  // The next declared input, a variadic one.
  Call& inputs(std::span<const Value> values);

  // A number of any type, converted to that of the attribute.
  template <class Number>
  requires std::is_arithmetic_v<Number> Call& set(int attr, Number number) {
    if constexpr (std::is_floating_point_v<Number>) {
      return set_number(attr, static_cast<double>(number));
    } else {
      return set_whole(attr, static_cast<int64_t>(number));
    }
  }
  Call& set(int attr, const pg_ints& list);
  Call& set(int attr, const pg_number& number);
  // A number in place of declared input `input`, through the attribute of kind PG_ATTR_SCALAR.
  Call& number(int attr, int input, double number, int kind = PG_SCALAR_FLOAT);
  // All attributes that both operators have, by name.
  Call& copy_attrs(const pg_op_info& from, const void* attrs);

  // The first `count` outputs; hidden ones come last. (nullptr, 0) for an operator that only writes into its inputs.
  // flags: PG_EMIT_IN_PLACE
  void emit(Value* outputs, uint32_t count, uint32_t flags = 0);
  Value emit(uint32_t flags = 0);

 private:
  template <class T>
  Call& write(uint32_t offset, const T& value) {
    std::memcpy(attrs_ + offset, &value, sizeof value);
    return *this;
  }
  template <class Number>
  Call& convert(int attr, Number number);
  Call& set_number(int attr, double number);
  Call& set_whole(int attr, int64_t number);
  void push(pg_value id);
  void add_group(uint32_t size);
  void fill_inputs();
  [[noreturn]] void fail_surplus() const;
  bool same_layout(const pg_op_info& from) const;
  void copy_attr(const pg_attr_info& to, const pg_attr_info& from, const void* attrs);

  pg_builder* builder_;
  const OpRef::Resolved& op_;
  uint32_t input_count_ = 0, capacity_ = 16, group_count_ = 0;
  static constexpr uint32_t kMaxGroups = 64;  // the host's bound of declared inputs
  uint32_t groups_[kMaxGroups];
  pg_value inline_values_[16];
  pg_value* values_ = inline_values_;
  alignas(8) char inline_attrs_[512];
  char* attrs_ = inline_attrs_;
  std::vector<pg_value> heap_values_;
  std::vector<uint64_t> heap_attrs_;
};

pg_ints make_ints(std::initializer_list<int64_t> list);

}  // namespace pg
