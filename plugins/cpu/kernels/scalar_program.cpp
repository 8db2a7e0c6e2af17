// SPDX-License-Identifier: Apache-2.0
// Scalar expressions of several primitives: computed tile by tile, so that what lies between two primitives stays in
// the nearest cache, by the loops that the operators themselves have.
//
// What a step gives is rounded to the dtype of the call at once, and truth values are bytes: the bits are those of the
// operators one after another.
#include <algorithm>
#include <memory>
#include <vector>

#include "elementwise.hpp"

namespace cpu::scalar_program {
namespace {

using pg::ScalarOperand;
using pg::ScalarProgram;

constexpr int64_t kTile = 512;  // elements
constexpr const char* kDivision = "integer division by zero";
constexpr const char* kNegativePower = "integers cannot be raised to a negative integer power";

// Where a step finds an operand, and in what.
struct Source {
  bool step = false;  // a step's result, else an operand of the loop
  int index = 0;      // of the step's slot, of the loop's operand
  bool truth = false;
  int number = -1;  // which number of the call it is
};

struct Work {
  Primitive primitive;
  Compute compute;
  Storage rounded;     // what the result is rounded to
  bool truth = false;  // the result is one
  int operands = 0, slot = 0;
  Source from[3];
  ParameterBlock parameters;
};

// An operand of the loop that is no tensor. `moved`: as Select wants it, rounded to the call's dtype.
struct Number {
  ScalarOperand operand;
  bool moved = false;
  pg::ScalarNumber value;
};

// What steps are made of before there is a loop.
class Steps {
 public:
  Steps(const pg::KernelCall& call, const ScalarCall& scalar);

  std::vector<Work> work;
  std::vector<uint32_t> tensors;  // inputs of the call: operands 1 and up of the loop
  std::vector<bool> truths;       // of these
  std::vector<Number> numbers;    // operands behind them
  Storage dtype, type;            // of the call, and what it is computed in
  Source result;
  bool checked = false, costly = false;
  int slots = 0;

 private:
  Source source(const pg::KernelCall& call, const ScalarProgram& program, const ScalarOperand& operand, bool moved) {
    Source from;
    if (operand.kind == ScalarOperand::kStep) {
      from.step = true, from.index = program.step[operand.index].slot, from.truth = operand.truth;
    } else if (operand.uniform() || !call.has(operand.index)) {
      auto same = [&](const Number& n) { return n.operand == operand && n.moved == moved; };
      from.number = static_cast<int>(std::find_if(numbers.begin(), numbers.end(), same) - numbers.begin());
      if (from.number == static_cast<int>(numbers.size())) {
        numbers.push_back({operand, moved, pg::ScalarNumber(call, operand)});
      }
    } else {
      from.truth = operand.truth;
      auto at = std::find(tensors.begin(), tensors.end(), operand.index);
      from.index = static_cast<int>(at - tensors.begin()) + 1;
      if (at == tensors.end()) tensors.push_back(operand.index), truths.push_back(operand.truth);
    }
    return from;
  }
};

Steps::Steps(const pg::KernelCall& call, const ScalarCall& scalar)
    : dtype(storage_of(scalar.dtype)), type(kStorageOf[kComputeOf[dtype]]), slots(scalar.program.slots) {
  const ScalarProgram& program = scalar.program;
  for (int i = 0; i < program.count; i++) {
    const ScalarStep& step = program.step[i];
    const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
    Work& w = work.emplace_back();
    w.primitive = step.primitive;
    const Storage of = step.of_truth ? sBool : dtype;
    w.compute = kComputeOf[of];
    w.rounded = step.truth ? sBool : of;
    w.truth = step.truth;
    w.operands = step.operands;
    w.slot = step.slot;
    w.parameters = ParameterBlock(call, step, step.of_truth ? PG_B8 : scalar.dtype);
    for (int k = 0; k < step.operands; k++)
      w.from[k] = source(call, program, step.operand[k], info.form == pg::math::kChoice);
    checked = checked || (info.checks != pg::math::kNothing && w.compute >= kI64);
    costly = costly || info.cost != pg::math::kCheap;
  }
  result = source(call, program, program.result, false);
  // Numbers stand behind the tensors.
  auto place = [this](Source& from) {
    if (from.number >= 0) from.index = static_cast<int>(tensors.size()) + 1 + from.number;
  };
  for (Work& w : work)
    for (Source& from : w.from) place(from);
  place(result);
}

// The loop of a step's primitive in the type it computes in.
bool has_loop(const Work& w) {
  switch (pg::math::info(w.primitive).form) {
    case pg::math::kUnary: return simd->unary[w.primitive][w.compute] != nullptr;
    case pg::math::kBinary: return simd->binary[w.primitive][w.compute] != nullptr;
    case pg::math::kSlope: return simd->slope[w.primitive][w.compute] != nullptr;
    case pg::math::kTernary: return simd->ternary[w.primitive][w.compute] != nullptr;
    case pg::math::kChoice: return true;
  }
  return false;
}

template <class T>
bool any_bad(const void* values, int64_t n, bool divides) {
  const T* y = static_cast<const T*>(values);
  bool bad = false;
  for (int64_t i = 0; i < n; i++) bad |= divides ? y[i] == 0 : y[i] < 0;
  return bad;
}

// One launch of a program: its numbers are known.
class Run {
 public:
  Run(const Steps& steps, bool rounds_last, const pg_launch& launch) : steps_(steps), rounds_last_(rounds_last) {
    for (size_t i = 0; i < steps.work.size(); i++) parameters_[i] = steps.work[i].parameters(launch);
    for (size_t i = 0; i < steps.numbers.size(); i++) put(steps.numbers[i], launch, numbers_[i].bytes, powers_[i]);
  }
  void* number(size_t i) { return numbers_[i].bytes; }
  // What integers were refused for; NULL: nothing.
  const char* fault() const { return fault_ == 0 ? nullptr : fault_ == 1 ? kDivision : kNegativePower; }

  // A block of the loop: p[0] is where the results go.
  void operator()(void* const* p, int64_t n) const {
    const int bytes = kStorageBytes[steps_.type];
    for (int64_t begin = 0; begin < n; begin += kTile) {
      Tile tile(*this, p, begin, std::min(kTile, n - begin));
      if (steps_.work.empty()) {
        const int size = steps_.result.truth ? 1 : bytes;
        std::memmove(static_cast<char*>(p[0]) + begin * size,
                     tile.operand(steps_.result, steps_.result.truth, steps_.type, 0),
                     static_cast<size_t>(tile.count * size));
      }
      for (size_t i = 0; i < steps_.work.size(); i++) tile.step(i, i + 1 == steps_.work.size());
    }
  }

 private:
  // Temporaries of one tile.
  struct Tile {
    Tile(const Run& run, void* const* p, int64_t begin, int64_t count) : run(run), p(p), begin(begin), count(count) {}
    const Run& run;
    void* const* p;
    int64_t begin, count;
    alignas(64) char slot[pg::kMaxScalarSteps][kTile * 8];
    alignas(64) char turned[3][kTile * 8], raw[kTile * 8];

    // In the type of the step's arithmetic, or as a byte each where `as_truth`.
    const void* operand(const Source& from, bool as_truth, Storage type, int k) {
      const Steps& steps = run.steps_;
      const int bytes = from.truth ? 1 : kStorageBytes[steps.type];
      const void* data = from.step ? slot[from.index] : static_cast<const char*>(p[from.index]) + begin * bytes;
      if (from.number >= 0) data = p[from.index];  // the same everywhere: the loop has filled a block with it
      if (from.truth == as_truth) return data;
      convert(sBool, type, data, turned[k], count);  // a truth value beside numbers
      return turned[k];
    }

    void step(size_t i, bool last) {
      const Steps& steps = run.steps_;
      const Work& w = steps.work[i];
      const Storage type = kStorageOf[w.compute];
      // The last step's result is the call's: the loop converts it to the output's dtype.
      char* to = last ? static_cast<char*>(p[0]) + begin * (w.truth ? 1 : kStorageBytes[steps.type]) : slot[w.slot];
      const bool predicate = pg::math::info(w.primitive).result == pg::math::kTruth;
      const bool narrows = w.truth && !predicate;  // of truth values: computed in int32, kept as bytes
      compute(i, w, type, narrows ? raw : to);
      if (narrows) return convert(type, sBool, raw, to, count);
      if (w.truth || w.rounded == type || (last && !run.rounds_last_)) return;
      convert(type, w.rounded, to, raw, count);
      convert(w.rounded, type, raw, to, count);
    }

    void compute(size_t i, const Work& w, Storage type, char* to) {
      const pg::math::Form form = pg::math::info(w.primitive).form;
      const void* x[3] = {};
      const void* with = run.parameters_[i].data();
      for (int k = 0; k < w.operands; k++) x[k] = operand(w.from[k], form == pg::math::kChoice && k == 0, type, k);
      switch (form) {
        case pg::math::kUnary: return simd->unary[w.primitive][w.compute](x[0], to, count, with);
        case pg::math::kBinary: return binary(w, x, to);
        case pg::math::kSlope: return simd->slope[w.primitive][w.compute](x[0], x[1], to, count, with);
        case pg::math::kTernary: return simd->ternary[w.primitive][w.compute](x[0], x[1], x[2], to, count, with);
        case pg::math::kChoice:
          return simd->select[kStorageBytes[type] == 4 ? 2 : 3](static_cast<const uint8_t*>(x[0]), x[1], x[2], to,
                                                                count);
      }
    }

    void binary(const Work& w, const void* const (&x)[3], char* to) {
      if (pg::math::info(w.primitive).checks != pg::math::kNothing && w.compute >= kI64) check(w, x[1]);
      if (w.primitive == pPow && w.from[1].number >= 0 && power(w, x[0], to)) return;
      simd->binary[w.primitive][w.compute](x[0], x[1], to, count);
    }
    // As the operator pow computes powers by some numbers.
    bool power(const Work& w, const void* x, char* to) {
      const double exponent = run.powers_[w.from[1].number];
      BinaryFn mul = simd->binary[pMul][w.compute];
      if (exponent == 2) return mul(x, x, to, count), true;
      if (exponent == 3) return mul(x, x, raw, count), mul(raw, x, to, count), true;
      if (w.compute > kF64 || (exponent != 0.5 && exponent != -0.5)) return false;
      simd->unary[exponent > 0 ? pSqrt : pRsqrt][w.compute](x, to, count, nullptr);
      return true;
    }
    void check(const Work& w, const void* y) {
      const bool divides = w.primitive != pPow;
      const bool bad = w.compute == kI64 ? any_bad<int64_t>(y, count, divides) : any_bad<int32_t>(y, count, divides);
      if (bad) __atomic_store_n(&run.fault_, divides ? 1 : 2, __ATOMIC_RELAXED);
    }
  };

  void put(const Number& number, const pg_launch& launch, void* to, double& plain) const {
    pg_number value = number.value(launch);
    plain = value.real;
    alignas(8) char stored[8];
    if (number.moved) {
      put_number(steps_.dtype, value, stored);
      convert(steps_.dtype, steps_.type, stored, to, 1);
    } else {
      put_number(steps_.type, value, to);
    }
  }

  struct Bytes {
    alignas(8) char bytes[8];
  };
  const Steps& steps_;
  ParameterBlock::Packed parameters_[pg::kMaxScalarSteps];
  Bytes numbers_[pg::kMaxScalarSteps * 3];
  double powers_[pg::kMaxScalarSteps * 3];
  bool rounds_last_;  // the output has another dtype than the call
  mutable int fault_ = 0;
};

// N: operands of the loop, the output among them. Those that are left over are numbers that nobody reads.
template <int N>
class ProgramKernel final : public pg::Kernel {
 public:
  ProgramKernel(const pg::KernelCall& call, Steps steps) : steps_(std::move(steps)) {
    const bool truth = steps_.work.empty() ? steps_.result.truth : steps_.work.back().truth;
    LoopOperand operands[N];
    for (LoopOperand& operand : operands) operand = {nullptr, steps_.type};
    operands[0] = {&call.out(0), truth ? sBool : steps_.type};
    for (size_t i = 0; i < steps_.tensors.size(); i++)
      operands[i + 1] = {&call.in(steps_.tensors[i]), steps_.truths[i] ? sBool : steps_.type};
    loop_ = BlockLoop<N>(operands);
    rounds_last_ = !truth && storage_of(call.out(0)) != steps_.dtype;
    if (steps_.costly || steps_.work.size() > 2) loop_.set_grain(kGrainCostly);
  }

  void launch(const pg_launch& launch) override {
    Run run(steps_, rounds_last_, launch);
    alignas(8) char unused[8] = {};
    void* base[N];
    std::fill_n(base, N, static_cast<void*>(unused));
    base[0] = pg::output(launch, 0);
    size_t at = 1;
    for (uint32_t input : steps_.tensors) base[at++] = const_cast<void*>(pg::input(launch, input));
    for (size_t i = 0; i < steps_.numbers.size(); i++) base[at++] = run.number(i);
    loop_.run(base, [&run](void* const* p, int64_t n) { run(p, n); });
    if (const char* fault = run.fault()) pg::fail_argument(fault);
  }

 private:
  Steps steps_;
  bool rounds_last_ = false;
  BlockLoop<N> loop_;
};

constexpr size_t kMostOperands = 16;

void supports(const pg::KernelCall& call, const ScalarCall& scalar) {
  const Steps steps(call, scalar);
  for (const Work& w : steps.work) {
    const pg::math::PrimitiveInfo& info = pg::math::info(w.primitive);
    const bool bools = w.rounded == sBool && w.compute == kI32 && info.result == pg::math::kSame;
    if (!has_loop(w) || (bools && (info.types & pg::math::kOfBooleans) == 0)) {
      pg::fail_support(pg::format("%s, of the scalar expression of %s, does not take (%s)", info.name, call.op(),
                                  pg::describe(call).c_str()));
    }
  }
  if (steps.tensors.size() + steps.numbers.size() >= kMostOperands)
    pg::fail_support(
        pg::format("the scalar expression of %s has more than %zu tensors and numbers", call.op(), kMostOperands - 1));
}

pg::Kernel* prepare(const pg::KernelCall& call, const ScalarCall& scalar) {
  Steps steps(call, scalar);
  const size_t operands = 1 + steps.tensors.size() + steps.numbers.size();
  if (operands <= 2) return new ProgramKernel<2>(call, std::move(steps));
  if (operands <= 3) return new ProgramKernel<3>(call, std::move(steps));
  if (operands <= 4) return new ProgramKernel<4>(call, std::move(steps));
  if (operands <= 6) return new ProgramKernel<6>(call, std::move(steps));
  return new ProgramKernel<kMostOperands>(call, std::move(steps));
}

}  // namespace
}  // namespace cpu::scalar_program

namespace cpu {

const ElementwiseForm kProgramForm = {scalar_program::supports, scalar_program::prepare};

}  // namespace cpu
