// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/ctc.hpp: connectionist temporal classification (Graves, Fernandez, Gomez, Schmidhuber 2006) of one
// sequence, in logarithms of probabilities. The labels l_1 .. l_L stand between blanks: z = _ l_1 _ l_2 _ ... l_L _, of
// 2 L + 1 states; alpha[t][s] sums the paths that have come to state s with step t.
#pragma once

#include <cmath>
#include <cstdint>

namespace pg::kernels {

struct CtcSequence {
  int64_t steps, classes, length, blank;
  const double* log_probs;  // [steps][classes]
  const int64_t* labels;    // [length]

  int64_t states() const { return 2 * length + 1; }
  int64_t label(int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  // Whether a path may come to s from s - 2: not over a blank that parts equal labels.
  bool skips(int64_t s) const { return s % 2 == 1 && s >= 3 && labels[s / 2] != labels[s / 2 - 1]; }
  double log_prob(int64_t t, int64_t s) const { return log_probs[t * classes + label(s)]; }
};

inline double log_add(double a, double b) {
  double high = a > b ? a : b, low = a > b ? b : a;
  return high == -INFINITY ? high : high + std::log1p(std::exp(low - high));
}

// Fills alpha [steps][states]; the negative log likelihood of the labels, infinite where there are too few steps.
inline double ctc_alpha(const CtcSequence& q, double* alpha) {
  int64_t n = q.states();
  if (q.steps == 0) return q.length == 0 ? 0.0 : INFINITY;
  for (int64_t s = 0; s < n; s++) alpha[s] = s < 2 ? q.log_prob(0, s) : -INFINITY;
  for (int64_t t = 1; t < q.steps; t++) {
    const double* before = alpha + (t - 1) * n;
    double* now = alpha + t * n;
    for (int64_t s = 0; s < n; s++) {
      double sum = before[s];
      if (s > 0) sum = log_add(sum, before[s - 1]);
      if (q.skips(s)) sum = log_add(sum, before[s - 2]);
      now[s] = sum + q.log_prob(t, s);
    }
  }
  const double* last = alpha + (q.steps - 1) * n;
  return -(n > 1 ? log_add(last[n - 1], last[n - 2]) : last[0]);
}

// slope[t][c] = p[t][c] - the share of the paths that are at class c in step t: the gradient by what log_softmax is
// taken of. `beta`: room for 2 (2 L + 1) numbers.
inline void ctc_slope(const CtcSequence& q, const double* alpha, double nll, double* beta, double* slope) {
  int64_t n = q.states();
  double *next = beta, *now = beta + n;
  for (int64_t t = q.steps; t-- > 0;) {
    for (int64_t s = 0; s < n; s++) {
      double sum = s >= n - 2 ? 0.0 : -INFINITY;
      if (t + 1 < q.steps) {
        sum = next[s];
        if (s + 1 < n) sum = log_add(sum, next[s + 1]);
        if (s + 2 < n && q.skips(s + 2)) sum = log_add(sum, next[s + 2]);
      }
      now[s] = sum;  // without the probability of step t itself, which alpha holds
    }
    double* row = slope + t * q.classes;
    for (int64_t c = 0; c < q.classes; c++) row[c] = std::exp(q.log_probs[t * q.classes + c]);
    for (int64_t s = 0; s < n; s++) row[q.label(s)] -= std::exp(alpha[t * n + s] + now[s] + nll);
    for (int64_t s = 0; s < n; s++) next[s] = now[s] + q.log_prob(t, s);
  }
}

}  // namespace pg::kernels
