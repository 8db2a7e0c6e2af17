// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/scalar.hpp: scalar expressions (perigee/scalar.hpp), a step at a time over whole tensors.
#pragma once

#include <cmath>

#include "perigee/kernels/math.hpp"
#include "perigee/kernels/parameters.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

// A call of an expression: what its operands stand for.
struct ScalarArguments {
  std::vector<Operand> inputs;     // by declared input; absent where a number stands in
  std::vector<pg_number> numbers;  // by step and operand: 3 a step
  std::vector<double> parameters;  // by step: kMaxParameters a step
};

namespace scalar_parts {

// One primitive over whole tensors in the type C; false where it is not for C.
template <class F, math::Form form, int types, class C>
bool apply(const std::vector<C> (&x)[3], const C* p, std::vector<C>& z) {
  if constexpr ((types & (is_float<C> ? math::kOfFloats : math::kWhole)) == 0) {
    return false;
  } else {
    for (size_t i = 0; i < z.size(); i++) {
      if constexpr (form == math::kUnary) z[i] = static_cast<C>(F()(x[0][i], p));
      if constexpr (form == math::kBinary) z[i] = static_cast<C>(F()(x[0][i], x[1][i]));
      if constexpr (form == math::kSlope) z[i] = static_cast<C>(F()(x[0][i], x[1][i], p));
      if constexpr (form == math::kTernary) z[i] = static_cast<C>(F()(x[0][i], x[1][i], x[2][i], p));
      if constexpr (form == math::kChoice) z[i] = x[0][i] != C(0) ? x[1][i] : x[2][i];
    }
    return true;
  }
}

template <class C>
bool apply(math::Primitive primitive, const std::vector<C> (&x)[3], const C* p, std::vector<C>& z) {
  switch (primitive) {
#define PG_ROW(number, Op, form, parameters, types, ...) \
  case math::p##Op: return apply<math::Op, math::form, math::types, C>(x, p, z);
    PG_PRIMITIVES(PG_ROW)
#undef PG_ROW
  }
  return false;
}

// Integers divide by no zero and have no negative powers.
template <class C>
void check(math::Checks checks, const std::vector<C>& y) {
  if (is_float<C> || checks == math::kNothing) return;
  for (C value : y) {
    if (checks == math::kDivides && value == C(0)) fail_argument("integer division by zero");
    if (checks == math::kPower && value < C(0)) fail_argument("integers cannot be raised to a negative integer power");
  }
}

template <class W>
W number_as(const pg_number& number) {
  return is_float<W> ? static_cast<W>(number.real) : static_cast<W>(whole_of(number));
}

// As if it had been written into a tensor of that dtype and read again.
template <class W>
W rounded(uint32_t dtype, W x) {
  W out = x;
  with_storage(dtype, [&](auto tag) { out = narrow<W>(widen(narrow<decltype(tag)>(x))); });
  return out;
}

template <class W>
class Evaluation {
 public:
  Evaluation(const ScalarProgram& program, uint32_t dtype, const ScalarArguments& arguments, const Dims& shape)
      : program_(program),
        dtype_(dtype),
        arguments_(arguments),
        shape_(shape),
        count_(static_cast<size_t>(product(shape))) {}

  std::vector<W> run() {
    for (int i = 0; i < program_.count; i++) {
      if (program_.step[i].of_truth)
        compute<int64_t>(i);
      else
        compute<W>(i);
    }
    return value<W>(program_.result, -1, 0);
  }

 private:
  template <class C>
  std::vector<C> value(const ScalarOperand& from, int step, int k) {
    if (from.kind == ScalarOperand::kStep) return {results_[from.index].begin(), results_[from.index].end()};
    if (from.kind == ScalarOperand::kInput && arguments_.inputs[from.index])
      return read<C>(broadcast(arguments_.inputs[from.index], shape_));
    C number = number_as<C>(arguments_.numbers[static_cast<size_t>(step * 3 + k)]);
    if (math::info(program_.step[step].primitive).form == math::kChoice) number = rounded(dtype_, number);
    return std::vector<C>(count_, number);
  }

  template <class C>
  void compute(int i) {
    const ScalarStep& step = program_.step[i];
    std::vector<C> x[3], z(count_);
    for (int k = 0; k < step.operands; k++) x[k] = value<C>(step.operand[k], i, k);
    C p[math::kMaxParameters] = {};
    for (int k = 0; k < step.parameters; k++)
      p[k] = narrow<C>(arguments_.parameters[static_cast<size_t>(i * math::kMaxParameters + k)]);
    const math::PrimitiveInfo& info = math::info(step.primitive);
    if (info.checks != math::kNothing) check(info.checks, x[1]);
    if (!apply(step.primitive, x, p, z)) fail_support(format("%s does not take %s", info.name, dtype_name(dtype_)));
    std::vector<W>& result = results_.emplace_back(count_);
    for (size_t at = 0; at < count_; at++)
      result[at] = static_cast<W>(step.truth ? static_cast<C>(z[at] != C(0)) : rounded(dtype_, z[at]));
  }

  const ScalarProgram& program_;
  uint32_t dtype_;
  const ScalarArguments& arguments_;
  const Dims& shape_;
  size_t count_;
  std::vector<std::vector<W>> results_;
};

}  // namespace scalar_parts

// y = the expression of a call whose operands have the dtype.
inline void scalar(const ScalarProgram& program, uint32_t dtype, const ScalarArguments& arguments, const Operand& y) {
  with_compute(dtype, [&](auto tag) {
    write(y, scalar_parts::Evaluation<decltype(tag)>(program, dtype, arguments, y.shape).run());
  });
}

}  // namespace pg::reference
