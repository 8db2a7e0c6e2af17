// SPDX-License-Identifier: Apache-2.0
#include "call/anomaly.hpp"

#include <cmath>
#include <cstring>

#include "builder/builder.hpp"
#include "tape/tape.hpp"

namespace perigee {
namespace {

struct Kinds {
  bool nan = false, infinite = false;
  int64_t first = -1;  // flat position of the first that is not finite
  void add(double value, int64_t at) {
    if (std::isfinite(value)) return;
    (std::isnan(value) ? nan : infinite) = true;
    if (first < 0) first = at;
  }
};

bool has_floats(const Tensor* t) {
  return t != nullptr && t->storage && t->meta->numel > 0 && pg::dtype_class(t->meta->dtype) == PG_M_FLOAT;
}

Kinds kinds_of(Tensor& t) {
  TensorRef wide = copy_dense(t, PG_F64);
  std::vector<double> values(static_cast<size_t>(t.meta->numel));
  to_host(*wide, values.data());
  Kinds kinds;
  for (size_t i = 0; i < values.size(); i++) kinds.add(values[i], static_cast<int64_t>(i));
  return kinds;
}

// What went in: tensors that are only read, and numbers.
Kinds kinds_of_inputs(const Op& op, Tensor* const* inputs, uint32_t count, const uint32_t* groups, const void* attrs,
                      bool in_place) {
  Kinds all;
  auto add = [&](Tensor& t) {
    Kinds one = kinds_of(t);
    all.nan |= one.nan;
    all.infinite |= one.infinite;
  };
  uint32_t flat = 0;
  for (uint32_t i = 0; i < op.info->input_count; i++) {
    uint32_t size = groups != nullptr ? groups[i] : 1;
    for (uint32_t k = 0; k < size && flat < count; k++, flat++) {
      bool written = (in_place && flat == 0) || op.mutates(i, attrs);
      if (!written && !(op.info->inputs[i]->flags & PG_INPUT_META) && has_floats(inputs[flat])) add(*inputs[flat]);
    }
  }
  for (uint32_t i = 0; i < op.info->attr_count; i++) {
    const pg_attr_info& attr = *op.info->attrs[i];
    if (attr.kind != PG_ATTR_FLOAT && attr.kind != PG_ATTR_NUMBER) continue;  // a pg_number begins with a double
    double value;
    std::memcpy(&value, static_cast<const char*>(attrs) + attr.offset, sizeof value);
    all.add(value, 0);
  }
  return all;
}

std::string position(const Tensor& t, int64_t flat) {
  std::string text;
  for (uint32_t i = t.meta->rank; i-- > 0; flat /= t.meta->shape[i])
    text = std::to_string(flat % t.meta->shape[i] + 1) + (text.empty() ? "" : ", ") + text;  // from 1, as in Lua
  return "[" + text + "]";
}

}  // namespace

void check_finite(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
                  bool in_place, const TensorRef* outputs, uint32_t output_count) {
  Scoped<bool> off(ambient().detect_anomaly, false);
  Scoped<bool> no_grad(ambient().grad_enabled, false);
  if (attrs == nullptr) attrs = op.info->defaults;
  auto check = [&](Tensor& t, const char* name) {
    Kinds made = kinds_of(t);
    if (made.first < 0) return;
    Kinds given = kinds_of_inputs(op, inputs, input_count, groups, attrs, in_place);
    bool fresh = (made.nan && !given.nan) || (made.infinite && !given.nan && !given.infinite);
    if (!fresh) return;
    throw pg::Error(
        PG_E_FAILED_PRECONDITION,
        pg::format("%s: made %s of %s: its %s %s %s has the first at %s", op.info->name, made.nan ? "NaN" : "Inf",
                   given.infinite ? "no NaN" : "finite numbers", name, pg::dtype_name(t.meta->dtype),
                   shape_text(*t.meta).c_str(), position(t, made.first).c_str()));
  };
  for (uint32_t i = 0; i < output_count; i++) {
    bool known = i < op.info->output_count;
    if (has_floats(outputs[i].get())) check(*outputs[i], known ? op.info->outputs[i]->name : "output");
  }
  uint32_t flat = 0;
  for (uint32_t i = 0; i < op.info->input_count; i++) {
    uint32_t size = groups != nullptr ? groups[i] : 1;
    for (uint32_t k = 0; k < size && flat < input_count; k++, flat++) {
      if (op.mutates(i, attrs) && has_floats(inputs[flat])) check(*inputs[flat], op.info->inputs[i]->name);
    }
  }
}

}  // namespace perigee
