// SPDX-License-Identifier: Apache-2.0
// What the steps of recurrent layers share: gates side by side, and slopes of which some may be absent.
#pragma once

#include "../rules.hpp"

namespace pg::recurrent {

inline Value added(Value a, Value b) { return a && b ? a + b : a ? a : b; }
inline Value scaled(Value a, Value b) { return a ? a * b : Value{}; }
inline Value through_sigmoid(Value y, Value d) { return apply<"sigmoid_grad">(y, d); }
inline Value through_tanh(Value y, Value d) { return apply<"tanh_grad">(y, d); }

inline Value join(std::span<const Value> parts) {
  static constinit OpRef cat("cat", "axis");
  return Call(parts[0].builder, cat).inputs(parts).set(0, int64_t{1}).emit();
}

// Part `which` of x [n, count * size], whose sizes may be symbols.
inline Value part(Value x, Value like, uint32_t count, int64_t which) {
  static constinit OpRef slice("slice", "starts", "drop");
  Value apart = reshape(x, {3, {x.dim(0), count, like.dim(1)}});
  return Call(x.builder, slice).input(apart).set(0, pg_ints{2, {0, which}}).set(1, pg_ints{2, {0, 1}}).emit();
}

// [n, count * the size of input `like`].
inline void check_wide(const ShapeContext& c, uint32_t input, uint32_t like, uint32_t count) {
  c.check_rank(input, 2, 2);
  c.check_same_dtype(input, like);
  c.check_dim(input, 0, c.dim(like, 0), "the number of rows");
  c.check_dim(input, 1, Dim(count) * c.dim(like, 1), format("%u times the size of the state", count).c_str());
}

inline Shape wide(const ShapeContext& c, uint32_t like, uint32_t count) {
  return {c.dim(like, 0), Dim(count) * c.dim(like, 1)};
}

}  // namespace pg::recurrent
