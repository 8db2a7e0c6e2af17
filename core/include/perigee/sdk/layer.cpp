// SPDX-License-Identifier: Apache-2.0
#include "perigee/layer.hpp"

#include "perigee/sdk/declared.hpp"

namespace pg {

pg_attr_info& AttrList::add(uint32_t offset, uint32_t kind, const char* name, const char* doc, uint32_t flags) {
  auto* info = new pg_attr_info{PG_SIZE(pg_attr_info, value), kind, flags, offset, name, doc, nullptr, 0, 0};
  raw_.push_back(info);
  return *info;
}

Params::Params(const char* layer, const pg_tensor* input, pg_param* const* params, uint32_t count)
    : layer(layer), input(input), params_(params), count_(count) {
  for (uint32_t i = 0; i < count; i++) params_[i]->present = 0;
}

void Params::infer(int64_t& value, const char* name, int axis) const {
  if (value == 0 && input != nullptr) {
    int64_t rank = input->rank, at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) fail_argument(std::string("an input ") + shape_text(*input) + " has too few axes");
    value = input->shape[at];
    if (PG_DIM_IS_SYMBOLIC(value)) fail_argument(format("%s cannot be inferred from a symbolic size", name));
  }
  positive(value, name);
}
void Params::positive(int64_t value, const char* name) {
  if (value <= 0) fail_argument(format("%s must be positive, got %lld", name, static_cast<long long>(value)));
}
void Params::positive(const pg_ints& list, const char* name) {
  for (int64_t i = 0; i < list.count; i++) positive(list.value[i], name);
}
void Params::not_negative(const pg_ints& list, const char* name) {
  for (int64_t i = 0; i < list.count; i++) {
    if (list.value[i] < 0) {
      fail_argument(format("%s must not be negative, got %lld", name, static_cast<long long>(list.value[i])));
    }
  }
}

void Params::uniform(uint32_t index, const pg_ints& shape, double bound) {
  set(index, shape, PG_INIT_UNIFORM, -bound, bound);
}
void Params::normal(uint32_t index, const pg_ints& shape, double mean, double std) {
  set(index, shape, PG_INIT_NORMAL, mean, std);
}
void Params::constant(uint32_t index, const pg_ints& shape, double value) {
  set(index, shape, PG_INIT_CONSTANT, value, 0);
}
void Params::buffer(uint32_t index, const pg_ints& shape, double value) {
  constant(index, shape, value);
  params_[index]->buffer = 1;
}
void Params::set(uint32_t index, const pg_ints& shape, uint32_t init, double a, double b) {
  if (index >= count_) fail(PG_E_INTERNAL, format("%s has no parameter %u", layer, index));
  pg_param& p = *params_[index];
  p.buffer = 0, p.present = 1, p.dtype = 0;
  p.rank = static_cast<uint32_t>(shape.count);
  p.init = init, p.a = a, p.b = b;
  std::memcpy(p.shape, shape.value, sizeof p.shape);
}

// ---- registration ----

void add_layer(const pg_layer_info& info) { declared<pg_layer_info>().push_back(&info); }

const pg_layers* layer_table() {
  static pg_layers table{};
  auto& entries = declared<pg_layer_info>();
  table = {PG_SIZE(pg_layers, layers), static_cast<uint32_t>(entries.size()), entries.data()};
  return &table;
}

}  // namespace pg
