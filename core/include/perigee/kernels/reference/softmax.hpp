// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/softmax.hpp: softmax, and the cross entropy of class numbers.
#pragma once

#include <cmath>
#include <limits>

#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// In double whatever the dtype.
inline std::vector<double> log_softmax_of(const Operand& x, int64_t axis) {
  auto values = read<double>(x);
  if (values.empty()) return values;  // of lines without elements there may be very many
  AxisSplit s(x.shape, axis);
  for (int64_t b = 0; b < s.before; b++) {
    for (int64_t a = 0; a < s.after; a++) {
      double* line = values.data() + b * s.length * s.after + a;
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < s.length; i++) most = std::max(most, line[i * s.after]);
      for (int64_t i = 0; i < s.length; i++) sum += std::exp(line[i * s.after] - most);
      for (int64_t i = 0; i < s.length; i++) line[i * s.after] -= most + std::log(sum);
    }
  }
  return values;
}

inline void log_softmax(const Operand& x, int64_t axis, const Operand& y) { write(y, log_softmax_of(x, axis)); }

// Not as exp(log_softmax): the logarithm of large inputs would lose the digits behind the point.
inline void softmax(const Operand& x, int64_t axis, const Operand& y) {
  auto values = read<double>(x);
  if (values.empty()) return;
  AxisSplit s(x.shape, axis);
  for (int64_t b = 0; b < s.before; b++) {
    for (int64_t a = 0; a < s.after; a++) {
      double* line = values.data() + b * s.length * s.after + a;
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < s.length; i++) most = std::max(most, line[i * s.after]);
      for (int64_t i = 0; i < s.length; i++) sum += line[i * s.after] = std::exp(line[i * s.after] - most);
      for (int64_t i = 0; i < s.length; i++) line[i * s.after] /= sum;
    }
  }
  write(y, values);
}

enum class Reduction { kMean, kSum, kNone };

struct CrossEntropy {
  int64_t ignore_index;
  Reduction reduction;
  double smoothing;  // this share of the target is spread evenly over all classes
};

inline int64_t class_axis(const Operand& logits) { return logits.rank() == 1 ? 0 : 1; }

// Class numbers; throws where one is out of range and not the ignored one.
inline std::vector<int64_t> read_targets(const Operand& target, int64_t classes, const CrossEntropy& options) {
  return read_index(target, classes, "cross_entropy", {"target", 0}, options.ignore_index);
}

// The mean divides by the summed weights of the targets that count.
inline double total_weight(const std::vector<int64_t>& targets, const std::vector<double>& weight,
                           const CrossEntropy& options) {
  double total = 0;
  for (int64_t t : targets) total += t == options.ignore_index ? 0 : weight[t];
  return total;
}

// Empty where there is no target to look one up for: the classes may be very many.
inline std::vector<double> class_weights(const Operand& weight, int64_t classes, const std::vector<int64_t>& targets) {
  if (targets.empty()) return {};
  return weight ? read<double>(weight) : std::vector<double>(static_cast<size_t>(classes), 1.0);
}

// loss = -(1 - smoothing) weight[t] log p[t] - smoothing / classes * sum over c of weight[c] log p[c]
inline void cross_entropy(const Operand& logits, const Operand& target, const Operand& weight,
                          const CrossEntropy& options, const Operand& loss, const Operand& log_probs) {
  AxisSplit s(logits.shape, class_axis(logits));
  auto targets = read_targets(target, s.length, options);
  auto logs = log_softmax_of(logits, class_axis(logits));
  auto weights = class_weights(weight, s.length, targets);
  std::vector<double> losses;
  double sum = 0;
  for (int64_t i = 0; i < s.before * s.after; i++) {
    const double* line = logs.data() + i / s.after * s.length * s.after + i % s.after;
    double one = 0, spread = 0;
    if (targets[i] != options.ignore_index) {
      one = -weights[targets[i]] * line[targets[i] * s.after];
      for (int64_t c = 0; c < s.length && options.smoothing != 0; c++) spread -= weights[c] * line[c * s.after];
      one = (1 - options.smoothing) * one + options.smoothing / static_cast<double>(s.length) * spread;
    }
    losses.push_back(one);
    sum += one;
  }
  if (options.reduction == Reduction::kMean) sum /= total_weight(targets, weights, options);
  write(loss, options.reduction == Reduction::kNone ? losses : std::vector<double>{sum});
  if (log_probs) write(log_probs, logs);
}

// dlogits[c] = flow (share p[c] - (1 - smoothing) weight[t] [c = t] - smoothing / classes weight[c]), where `share` is
// the sum of all factors of log p and flow the loss's gradient, divided by the total weight for the mean.
inline void cross_entropy_grad(const Operand& dloss, const Operand& log_probs, const Operand& target,
                               const Operand& weight, const CrossEntropy& options, const Operand& dlogits) {
  AxisSplit s(log_probs.shape, class_axis(log_probs));
  auto targets = read_targets(target, s.length, options);
  auto weights = class_weights(weight, s.length, targets);
  auto logs = read<double>(log_probs), flow = read<double>(dloss);
  std::vector<double> out(logs.size(), 0);
  double each = options.smoothing / static_cast<double>(s.length), all = 0;
  for (double w : weights) all += w;
  double divide = options.reduction == Reduction::kMean ? total_weight(targets, weights, options) : 1;
  for (int64_t i = 0; i < s.before * s.after; i++) {
    if (targets[i] == options.ignore_index) continue;
    double scale = flow[options.reduction == Reduction::kNone ? i : 0] / divide;
    double hit = (1 - options.smoothing) * weights[targets[i]], share = hit + each * all;
    for (int64_t c = 0; c < s.length; c++) {
      int64_t at = i / s.after * s.length * s.after + c * s.after + i % s.after;
      out[at] = scale * (share * std::exp(logs[at]) - each * weights[c] - (c == targets[i] ? hit : 0));
    }
  }
  write(dlogits, out);
}

}  // namespace pg::reference
