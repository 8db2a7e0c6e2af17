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
    if (id == 0) fail(PG_E_INTERNAL, "an absent value was asked for its shape or dtype");
    return *host->describe(builder, id);
  }
  uint32_t rank() const { return meta().rank; }
  int64_t dim(uint32_t axis) const { return meta().shape[axis]; }
  uint32_t dtype() const { return dtype_of(meta()); }
  int32_t device() const { return host->device_of(builder, id); }
};

// Same rank and the same numbers: equal for sure. False may still mean equal where symbols are involved.
inline bool same_dims(const pg_tensor& a, const pg_tensor& b) {
  if (a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

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
  // Two threads may both get here: the loser's copy leaks, a few bytes at most once an operator.
  const Resolved& resolve() const {
    auto* fresh = new Resolved{host, 0, nullptr, {}};
    pg_error error = make_error();
    check(host->op_find(host->context, name_, &fresh->op, &fresh->info, &error), error);
    for (int i = 0; i < kMaxAttrs && attrs_[i] != nullptr; i++) {
      for (uint32_t k = 0; k < fresh->info->attr_count; k++)
        if (std::strcmp(fresh->info->attrs[k]->name, attrs_[i]) == 0) fresh->attrs[i] = fresh->info->attrs[k];
      if (fresh->attrs[i] == nullptr) fail(PG_E_INTERNAL, format("%s has no attribute '%s'", name_, attrs_[i]));
    }
    resolved_.store(fresh, std::memory_order_release);
    return *fresh;
  }

  const char* name_;
  const char* attrs_[kMaxAttrs];
  mutable std::atomic<const Resolved*> resolved_{nullptr};
};

// One emission: inputs in declared order (at most 16), attributes by their position in the OpRef, then emit.
class Call {
 public:
  Call(pg_builder* builder, const OpRef& op) : builder_(builder), op_(op.get()) {
    uint32_t bytes = op_.info->attr_size;
    if (bytes > sizeof inline_attrs_) {
      heap_attrs_.resize((bytes + 7) / 8);
      attrs_ = reinterpret_cast<char*>(heap_attrs_.data());
    }
    if (bytes > 0) std::memcpy(attrs_, op_.info->defaults, bytes);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // The next declared input; an absent value for an optional one.
  Call& input(Value value) {
    push(value.id);
    add_group(1);
    return *this;
  }
  // The next declared input, a variadic one.
  Call& inputs(std::span<const Value> values) {
    for (const Value& value : values) push(value.id);
    add_group(static_cast<uint32_t>(values.size()));
    return *this;
  }

  template <class Number>
  requires std::is_arithmetic_v<Number> Call& set(int attr, Number number) {
    const pg_attr_info& info = *op_.attrs[attr];
    switch (info.kind) {
      case PG_ATTR_BOOL:
      case PG_ATTR_CHOICE:
      case PG_ATTR_DEVICE: return write(info.offset, static_cast<int32_t>(number));
      case PG_ATTR_INT:
      case PG_ATTR_AXIS: return write(info.offset, static_cast<int64_t>(number));
      case PG_ATTR_FLOAT: return write(info.offset, static_cast<double>(number));
      case PG_ATTR_DTYPE: return write(info.offset, static_cast<uint32_t>(number));
      default: fail(PG_E_INTERNAL, format("%s.%s is not a number", op_.info->name, info.name));
    }
  }
  Call& set(int attr, const pg_ints& list) {
    const pg_attr_info& info = *op_.attrs[attr];
    if (info.kind != PG_ATTR_INTS && info.kind != PG_ATTR_AXES && info.kind != PG_ATTR_DIMS)
      fail(PG_E_INTERNAL, format("%s.%s is not a list", op_.info->name, info.name));
    return write(info.offset, list);
  }
  // A number in place of declared input `input`, through the attribute of kind PG_ATTR_SCALAR.
  Call& number(int attr, int input, double number, int kind = PG_SCALAR_FLOAT) {
    const pg_attr_info& info = *op_.attrs[attr];
    write(info.offset, pg_scalar{kind, input});
    return write(info.value, number);
  }
  // All attributes that both operators have, by name.
  Call& copy_attrs(const pg_op_info& from, const void* attrs) {
    if (same_layout(from)) {
      if (from.attr_size > 0) std::memcpy(attrs_, attrs, from.attr_size);
      return *this;
    }
    for (uint32_t i = 0; i < op_.info->attr_count; i++)
      for (uint32_t k = 0; k < from.attr_count; k++) copy_attr(*op_.info->attrs[i], *from.attrs[k], attrs);
    return *this;
  }

  // The first `count` outputs; hidden ones come last. (nullptr, 0) for an operator that only writes into its inputs.
  // flags: PG_EMIT_IN_PLACE
  void emit(Value* outputs, uint32_t count, uint32_t flags = 0) {
    std::vector<pg_value> heap;
    pg_value few[8] = {};
    pg_value* ids = few;
    if (count > 8) {
      heap.resize(count);
      ids = heap.data();
    }
    pg_error error;
    error.size = PG_SIZE(pg_error, message);
    error.code = 0;
    error.native = 0;
    error.flags = error.device = 0;
    error.where[0] = error.message[0] = '\0';
    check(host->emit(builder_, op_.op, values_, groups_, input_count_, attrs_, flags, ids, count, &error), error);
    for (uint32_t i = 0; i < count; i++) outputs[i] = Value{builder_, ids[i]};
  }
  Value emit(uint32_t flags = 0) {
    Value output;
    emit(&output, 1, flags);
    return output;
  }

 private:
  template <class T>
  Call& write(uint32_t offset, const T& value) {
    std::memcpy(attrs_ + offset, &value, sizeof value);
    return *this;
  }
  void push(pg_value id) {
    if (input_count_ == capacity_) {
      std::vector<pg_value> bigger(capacity_ * 4);
      std::memcpy(bigger.data(), values_, capacity_ * sizeof id);
      heap_values_.swap(bigger);
      values_ = heap_values_.data();
      capacity_ *= 4;
    }
    values_[input_count_++] = id;
  }
  void add_group(uint32_t size) {
    if (group_count_ == kMaxGroups) fail(PG_E_INTERNAL, format("%s: more inputs than are declared", op_.info->name));
    groups_[group_count_++] = size;
  }
  static size_t attr_bytes(uint32_t kind) {
    switch (kind) {
      case PG_ATTR_INTS:
      case PG_ATTR_AXES:
      case PG_ATTR_DIMS: return sizeof(pg_ints);
      case PG_ATTR_INT:
      case PG_ATTR_FLOAT:
      case PG_ATTR_AXIS: return 8;
      case PG_ATTR_SCALAR: return sizeof(pg_scalar);
      default: return 4;
    }
  }
  bool same_layout(const pg_op_info& from) const {
    const pg_op_info& to = *op_.info;
    if (from.attr_count != to.attr_count || from.attr_size != to.attr_size) return false;
    for (uint32_t i = 0; i < to.attr_count; i++) {
      const pg_attr_info &a = *from.attrs[i], &b = *to.attrs[i];
      if (a.offset != b.offset || a.kind != b.kind || std::strcmp(a.name, b.name) != 0) return false;
    }
    return true;
  }
  void copy_attr(const pg_attr_info& to, const pg_attr_info& from, const void* attrs) {
    if (to.kind != from.kind || std::strcmp(to.name, from.name) != 0) return;
    const char* source = static_cast<const char*>(attrs);
    std::memcpy(attrs_ + to.offset, source + from.offset, attr_bytes(to.kind));
  }

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

inline pg_ints make_ints(std::initializer_list<int64_t> list) {
  pg_ints out{};
  for (int64_t value : list) out.value[out.count++] = value;
  return out;
}

}  // namespace pg
