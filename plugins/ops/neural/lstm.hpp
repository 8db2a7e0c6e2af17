// SPDX-License-Identifier: Apache-2.0
// The formulas of a step of an LSTM, and of its way back.
#pragma once

#include "recurrent.hpp"

namespace pg::recurrent::lstm {

inline constexpr uint32_t kGates = 4, kKept = 5;

struct Step {
  Value i, f, g, o, t, next;  // t: tanh(next)
};
inline Step step(Value sums, Value c) {
  Step s;
  s.i = sigmoid(part(sums, c, kGates, 0)), s.f = sigmoid(part(sums, c, kGates, 1));
  s.g = tanh(part(sums, c, kGates, 2)), s.o = sigmoid(part(sums, c, kGates, 3));
  s.next = s.f * c + s.i * s.g;
  s.t = tanh(s.next);
  return s;
}

// What flows into the sums and into c. `kept`: what flows into the gates and t themselves; any may be absent, not all.
struct Slopes {
  Value sums, c;
};
inline Slopes back(const Step& s, Value c, Value dh, Value dnext, const Value (&kept)[kKept]) {
  Value dt = added(scaled(dh, s.o), kept[4]);
  Value d = added(dnext, dt ? through_tanh(s.t, dt) : Value{});
  auto or_zero = [&](Value v) { return v ? v : zeros_like(c); };
  Value gates[kGates] = {through_sigmoid(s.i, or_zero(added(scaled(d, s.g), kept[0]))),
                         through_sigmoid(s.f, or_zero(added(scaled(d, c), kept[1]))),
                         through_tanh(s.g, or_zero(added(scaled(d, s.i), kept[2]))),
                         through_sigmoid(s.o, or_zero(added(scaled(dh, s.t), kept[3])))};
  return {join(gates), or_zero(scaled(d, s.f))};
}

}  // namespace pg::recurrent::lstm
