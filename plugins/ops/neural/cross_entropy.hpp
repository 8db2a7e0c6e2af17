// SPDX-License-Identifier: Apache-2.0
// Cross entropy as primitives. For a position i with target t, class weights w and smoothing e, the loss is linear in
// the log-probabilities l: loss_i = -v_i sum_c q_ic l_ic with q_ic = (1 - e) w_t [c = t] + e / C w_c, v_i = 0 where
// ignored. reduction mean divides the sum by W = sum_i v_i w_t.
#pragma once

#include "../rules.hpp"

namespace pg {

enum Reduction { kMean = 0, kSum = 1, kNone = 2 };

class CrossEntropy {
 public:
  // log_probs [N, C, ...] or [C]; target [N, ...] or []; weight [C] or absent.
  CrossEntropy(const AttrReader& attrs, Value log_probs, Value target, Value weight)
      : target_(target),
        weight_(weight),
        axis_(log_probs.rank() == 1 ? 0 : 1),
        smoothing_(attrs.get<double>("label_smoothing")),
        reduction_(attrs.get<Choice>("reduction")) {
    double ignore = static_cast<double>(attrs.get<int>("ignore_index"));
    valid_ = ne(target, ignore);
    Value safe = where(valid_, target, 0.0);
    column_ = unsqueeze(safe, axis_);
    dtype_ = log_probs.dtype();
    if (!weight) {
      picked_weight_ = cast(valid_, dtype_);
      return;
    }
    Value chosen = reshape_like(gather(weight, flat(safe), 0), safe);
    picked_weight_ = where(valid_, chosen, 0.0);
    class_weights_ = per_class(weight, log_probs.rank());
  }

  // -v_i sum_c q_ic l_ic, reduced.
  Value loss(Value l) const {
    Value picked = where(valid_, squeeze(gather(l, column_, axis_), make_ints({axis_})), 0.0);
    Value each = -(picked * picked_weight_);
    if (smoothing_ > 0) {
      Value weighted = class_weights_ ? l * class_weights_ : l;
      Value smooth = where(valid_, -mean(weighted, make_ints({axis_})), 0.0);
      each = each * (1 - smoothing_) + smooth * smoothing_;
    }
    if (reduction_ == kNone) return each;
    return reduction_ == kSum ? sum(each) : sum(each) / sum(picked_weight_);
  }

  // -v_i k_i sum_c q_ic [N, 1, ...], where k is the loss's cotangent spread over the positions.
  Value total(Value dloss) const {
    Value q = picked_weight_;
    if (smoothing_ > 0) {
      q = q * (1 - smoothing_);
      Value classes = cast(valid_, dtype_) * smoothing_;
      q = q + (class_weights_ ? classes * mean(class_weights_) : classes);
    }
    return unsqueeze(-(q * spread(dloss)), axis_);
  }

  // The cotangent of the log-probabilities, in the shape of `like`.
  Value slope(Value dloss, Value like) const {
    static constinit OpRef scatter("gather_grad", "axis");
    Value k = spread(dloss);
    Value at_target = unsqueeze(-(picked_weight_ * k), axis_);
    if (smoothing_ > 0) at_target = at_target * (1 - smoothing_);
    Value out = Call(like.builder, scatter).input(at_target).input(column_).input(like).set(0, axis_).emit();
    if (smoothing_ > 0) {
      Value even = unsqueeze(-k, axis_);
      even = divide_by_classes(even * smoothing_, like);
      out = out + (class_weights_ ? even * class_weights_ : even);
    }
    return out;
  }

  int64_t axis() const { return axis_; }

 private:
  // 0 where the target is ignored: of nothing else, the mean's is infinite.
  Value spread(Value dloss) const {
    Value k = dloss;
    if (reduction_ == kMean) k = dloss / sum(picked_weight_);
    return where(valid_, expand_like(k, target_), 0.0);
  }
  Value flat(Value v) const { return v.rank() == 1 ? v : reshape(v, make_ints({-1})); }
  Value per_class(Value weight, uint32_t rank) const {
    if (rank <= 2) return weight;
    pg_ints shape = make_ints({weight.dim(0)});
    while (shape.count < static_cast<int64_t>(rank) - 1) shape.value[shape.count++] = 1;
    return reshape(weight, shape);
  }
  Value divide_by_classes(Value v, Value like) const {
    int64_t classes = like.dim(static_cast<uint32_t>(axis_));
    if (!PG_DIM_IS_SYMBOLIC(classes)) return v / static_cast<double>(classes);
    return v / sum(ones_like(like), make_ints({axis_}), true);
  }

  Value target_, weight_, valid_, column_, picked_weight_, class_weights_;
  int64_t axis_;
  double smoothing_;
  int32_t reduction_;
  uint32_t dtype_ = 0;
};

}  // namespace pg
