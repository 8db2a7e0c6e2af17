// SPDX-License-Identifier: Apache-2.0
// Half of a binary operator in its gradient: a tensor, or the Lua number that stood in for it.
#pragma once

#include <cmath>

#include "../rules.hpp"

namespace pg {

struct Operand {
  Value value;
  double number = 0;

  Operand(Value v) : value(v) {}    // NOLINT: reads as the formula it stands in
  Operand(double n) : number(n) {}  // NOLINT
  bool is_number() const { return !value; }
};

template <OpName name, class Compute>
Operand combine(const Operand& a, const Operand& b, Compute compute) {
  if (a.is_number() && b.is_number()) return compute(a.number, b.number);
  if (a.is_number()) return apply_left<name>(a.number, b.value);
  if (b.is_number()) return apply_right<name>(a.value, b.number);
  return apply<name>(a.value, b.value);
}

inline Operand operator+(const Operand& a, const Operand& b) { return combine<"add">(a, b, std::plus<double>()); }
inline Operand operator-(const Operand& a, const Operand& b) { return combine<"sub">(a, b, std::minus<double>()); }
inline Operand operator*(const Operand& a, const Operand& b) { return combine<"mul">(a, b, std::multiplies<double>()); }
inline Operand operator/(const Operand& a, const Operand& b) { return combine<"div">(a, b, std::divides<double>()); }
inline Operand operator-(const Operand& a) { return a.is_number() ? Operand(-a.number) : Operand(-a.value); }
inline Operand power(const Operand& a, const Operand& b) {
  return combine<"pow">(a, b, [](double x, double y) { return std::pow(x, y); });
}
inline Operand floor_divide(const Operand& a, const Operand& b) {
  return combine<"floor_div">(a, b, [](double x, double y) { return std::floor(x / y); });
}
inline Operand logarithm(const Operand& a) {
  return a.is_number() ? Operand(std::log(a.number)) : Operand(log(a.value));
}

// Comparisons: at least one side is a tensor.
template <OpName name>
Value compare(const Operand& a, const Operand& b) {
  if (a.is_number()) return apply_left<name>(a.number, b.value);
  if (b.is_number()) return apply_right<name>(a.value, b.number);
  return apply<name>(a.value, b.value);
}

}  // namespace pg
