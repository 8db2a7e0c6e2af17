// SPDX-License-Identifier: Apache-2.0
#include "perigee/emit.hpp"

#include <memory>

#include "perigee/sdk/attributes.hpp"

namespace pg {

void Value::fail_absent() { fail(PG_E_INTERNAL, "an absent value was asked for its shape or dtype"); }

bool same_dims(const pg_tensor& a, const pg_tensor& b) {
  if (a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

pg_ints make_ints(std::initializer_list<int64_t> list) {
  pg_ints out{};
  for (int64_t value : list) out.value[out.count++] = value;
  return out;
}

// Two threads may both get here: the loser's copy leaks, a few bytes at most once an operator.
const OpRef::Resolved& OpRef::resolve() const {
  auto fresh = std::make_unique<Resolved>(Resolved{host, 0, nullptr, {}});
  pg_error error = make_error();
  check(host->op_find(host->context, name_, &fresh->op, &fresh->info, &error), error);
  for (int i = 0; i < kMaxAttrs && attrs_[i] != nullptr; i++) {
    for (uint32_t k = 0; k < fresh->info->attr_count; k++)
      if (std::strcmp(fresh->info->attrs[k]->name, attrs_[i]) == 0) fresh->attrs[i] = fresh->info->attrs[k];
    if (fresh->attrs[i] == nullptr) fail_attr(*fresh->info, attrs_[i]);
  }
  const Resolved* made = fresh.release();
  resolved_.store(made, std::memory_order_release);
  return *made;
}

Call::Call(pg_builder* builder, const OpRef& op) : builder_(builder), op_(op.get()) {
  uint32_t bytes = op_.info->attr_size;
  if (bytes > sizeof inline_attrs_) {
    heap_attrs_.resize((bytes + 7) / 8);
    attrs_ = reinterpret_cast<char*>(heap_attrs_.data());
  }
  if (bytes > 0) std::memcpy(attrs_, op_.info->defaults, bytes);
}
Call::~Call() = default;

Call& Call::input(Value value) {
  push(value.id);
  add_group(1);
  return *this;
}
Call& Call::inputs(std::span<const Value> values) {
  for (const Value& value : values) push(value.id);
  add_group(static_cast<uint32_t>(values.size()));
  return *this;
}

template <class Number>
Call& Call::convert(int attr, Number number) {
  const pg_attr_info& info = *op_.attrs[attr];
  switch (info.kind) {
    case PG_ATTR_BOOL:
    case PG_ATTR_CHOICE:
    case PG_ATTR_DEVICE: return write(info.offset, static_cast<int32_t>(number));
    case PG_ATTR_INT:
    case PG_ATTR_AXIS: return write(info.offset, static_cast<int64_t>(number));
    case PG_ATTR_FLOAT: return write(info.offset, static_cast<double>(number));
    case PG_ATTR_NUMBER: return write(info.offset, make_number(number));
    case PG_ATTR_DTYPE: return write(info.offset, static_cast<uint32_t>(number));
    default: fail(PG_E_INTERNAL, format("%s.%s is not a number", op_.info->name, info.name));
  }
}
Call& Call::set_number(int attr, double number) { return convert(attr, number); }
Call& Call::set_whole(int attr, int64_t number) { return convert(attr, number); }

Call& Call::set(int attr, const pg_ints& list) {
  const pg_attr_info& info = *op_.attrs[attr];
  if (info.kind != PG_ATTR_INTS && info.kind != PG_ATTR_AXES && info.kind != PG_ATTR_DIMS)
    fail(PG_E_INTERNAL, format("%s.%s is not a list", op_.info->name, info.name));
  return write(info.offset, list);
}
Call& Call::set(int attr, const pg_number& number) {
  const pg_attr_info& info = *op_.attrs[attr];
  if (info.kind != PG_ATTR_NUMBER) return set_number(attr, number.real);
  return write(info.offset, number);
}
Call& Call::number(int attr, int input, double number, int kind) {
  const pg_attr_info& info = *op_.attrs[attr];
  write(info.offset, pg_scalar{kind, input});
  return write(info.value, make_number(number));
}

namespace {

size_t attr_bytes(uint32_t kind) {
  switch (kind) {
    case PG_ATTR_INTS:
    case PG_ATTR_AXES:
    case PG_ATTR_DIMS: return sizeof(pg_ints);
    case PG_ATTR_INT:
    case PG_ATTR_FLOAT:
    case PG_ATTR_AXIS: return 8;
    case PG_ATTR_SCALAR: return sizeof(pg_scalar);
    case PG_ATTR_NUMBER: return sizeof(pg_number);
    default: return 4;
  }
}

}  // namespace

Call& Call::copy_attrs(const pg_op_info& from, const void* attrs) {
  if (same_layout(from)) {
    if (from.attr_size > 0) std::memcpy(attrs_, attrs, from.attr_size);
    return *this;
  }
  for (uint32_t i = 0; i < op_.info->attr_count; i++)
    for (uint32_t k = 0; k < from.attr_count; k++) copy_attr(*op_.info->attrs[i], *from.attrs[k], attrs);
  return *this;
}
bool Call::same_layout(const pg_op_info& from) const {
  const pg_op_info& to = *op_.info;
  if (from.attr_count != to.attr_count || from.attr_size != to.attr_size) return false;
  for (uint32_t i = 0; i < to.attr_count; i++) {
    const pg_attr_info &a = *from.attrs[i], &b = *to.attrs[i];
    if (a.offset != b.offset || a.kind != b.kind || std::strcmp(a.name, b.name) != 0) return false;
  }
  return true;
}
void Call::copy_attr(const pg_attr_info& to, const pg_attr_info& from, const void* attrs) {
  if (to.kind != from.kind || std::strcmp(to.name, from.name) != 0) return;
  const char* source = static_cast<const char*>(attrs);
  std::memcpy(attrs_ + to.offset, source + from.offset, attr_bytes(to.kind));
}

void Call::emit(Value* outputs, uint32_t count, uint32_t flags) {
  fill_inputs();
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
Value Call::emit(uint32_t flags) {
  Value output;
  emit(&output, 1, flags);
  return output;
}

void Call::push(pg_value id) {
  if (input_count_ == capacity_) {
    std::vector<pg_value> bigger(capacity_ * 4);
    std::memcpy(bigger.data(), values_, capacity_ * sizeof id);
    heap_values_.swap(bigger);
    values_ = heap_values_.data();
    capacity_ *= 4;
  }
  values_[input_count_++] = id;
}
void Call::add_group(uint32_t size) {
  if (group_count_ == op_.info->input_count) fail_surplus();
  groups_[group_count_++] = size;
}
// What was not given: the host has its own word on inputs that must be there.
void Call::fill_inputs() {
  while (group_count_ < op_.info->input_count) {
    const bool variadic = (op_.info->inputs[group_count_]->flags & PG_INPUT_VARIADIC) != 0;
    if (!variadic) push(0);
    add_group(variadic ? 0 : 1);
  }
}
void Call::fail_surplus() const {
  const pg_op_info& info = *op_.info;
  std::string names;
  for (uint32_t i = 0; i < info.input_count; i++) names += (i > 0 ? ", " : ": ") + std::string(info.inputs[i]->name);
  fail(PG_E_INTERNAL,
       format("%s: more inputs than the %u that are declared%s", info.name, info.input_count, names.c_str()));
}

}  // namespace pg
