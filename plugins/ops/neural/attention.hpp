// SPDX-License-Identifier: Apache-2.0
// Attention as primitives, for devices without a fused kernel and for derivatives of second order. With S the scaled
// and masked scores, P = softmax(S), M the dropout mask over 1 - p: out = (P M) v. Everything is computed in the dtype
// of the statistics, and everything emitted is differentiable again.
#pragma once

#include <cmath>

#include "normalise.hpp"

namespace pg {

class Attention {
 public:
  // q [..., L, E], k [..., S, E], v [..., S, V]; mask and key may be absent.
  Attention(const AttrReader& attrs, Value q, Value k, Value v, Value mask, Value key)
      : mask_(mask),
        key_(key),
        causal_(attrs.get<bool>("is_causal")),
        drop_(attrs.get<double>("dropout_p")),
        scale_(attrs.get<double>("scale")) {
    if (key_ && !(drop_ >= 0 && drop_ <= 1)) fail_argument(format("dropout_p is %g; expected 0 to 1", drop_));
    uint32_t dtype = statistics_dtype(q.dtype());
    q_ = cast(q, dtype), k_ = cast(k, dtype), v_ = cast(v, dtype);
    if (scale_ != 0) return;
    int64_t width = q.dim(q.rank() - 1);
    if (PG_DIM_IS_SYMBOLIC(width)) fail_argument("the width of q must be known, or a scale given");
    scale_ = width > 0 ? 1 / std::sqrt(static_cast<double>(width)) : 1;
  }

  Value scores() const {
    Value s = matmul(q_, k_, false, true) * scale_;
    if (mask_ && mask_.dtype() == PG_B8) s = where(mask_, s, -HUGE_VAL);
    if (mask_ && mask_.dtype() != PG_B8) s = s + cast(mask_, s.dtype());
    return causal_ ? where(seen(s), s, -HUGE_VAL) : s;
  }

  // Rows of which nothing may be seen are 0, and the logarithm of their sum is infinite.
  Value softmax(Value s, Value* lse = nullptr) const {
    pg_ints last = make_ints({-1});
    bool empty = s.dim(s.rank() - 1) == 0;  // no keys: no largest score either
    Value top = empty ? sum(s, last, true) : maximum(amax(s, last, true), -3e38);
    Value power = exp(s - top), total = sum(power, last, true);
    Value blind = eq(total, 0.0);
    if (lse != nullptr) *lse = squeeze(where(blind, HUGE_VAL, top + log(where(blind, 1.0, total))), last);
    return power / where(blind, 1.0, total);
  }

  // v M, the dropout of something in the shape of the scores.
  Value drop(Value v) const {
    if (!key_) return v;
    static constinit OpRef op("dropout_mask", "p");
    Value keep = Call(v.builder, op).input(key_).input(v).set(0, drop_).emit();
    return where(keep, v * (drop_ < 1 ? 1 / (1 - drop_) : 0), 0.0);
  }

  Value q() const { return q_; }
  Value k() const { return k_; }
  Value v() const { return v_; }
  double scale() const { return scale_; }

 private:
  // Whether query i sees key j: [L, S], the same for all heads. Numbered by sums of ones, as sizes may be symbols.
  static Value seen(Value s) {
    const uint32_t rank = s.rank();
    for (uint32_t i = 0; i < rank; i++) {
      if (s.dim(i) == 0) return ge(s, s);  // of nothing
    }
    auto number = [&](uint32_t axis) {
      static constinit OpRef op("slice", "starts", "drop");
      pg_ints starts{}, drop{};
      starts.count = drop.count = rank;
      for (uint32_t i = 0; i < rank; i++) drop.value[i] = i != axis;
      return cumsum(ones_like(Call(s.builder, op).input(s).set(0, starts).set(1, drop).emit()), 0);
    };
    return ge(unsqueeze(number(rank - 2), 1), number(rank - 1));
  }

  Value q_, k_, v_, mask_, key_;
  bool causal_;
  double drop_, scale_;
};

// Of a softmax p along the last axis: the cotangent of its argument.
inline Value softmax_slope(Value p, Value dp) { return p * (dp - sum(p * dp, make_ints({-1}), true)); }

}  // namespace pg
