// SPDX-License-Identifier: Apache-2.0
// All optimizer steps, over all tensors of a model at once. Their arithmetic: perigee/kernels/optimizer.hpp.
#include "multi_tensor.hpp"

namespace cpu {
namespace {

// Tensors to update are floats, in one group an operand; the flag behind them is a boolean.
void require_floats(const pg::KernelCall& call, uint32_t operands) {
  uint32_t end = call.group_begin(operands);
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (!call.has(i)) continue;
    require_dense(call, call.in(i));
    if (i < end ? !is_float(storage_of(call.in(i))) : storage_of(call.in(i)) != sBool) refuse(call);
  }
}

// The operands of all tensors, group after group; groups may be empty.
template <int N>
MultiTensor<N> all_tensors(const pg::KernelCall& call) {
  size_t count = call.group(0);
  std::vector<const pg_tensor*> tensors(N * count, nullptr);
  for (uint32_t k = 0; k < N; k++) {
    if (call.group(k) != 0 && call.group(k) != count) {
      pg::fail_argument(pg::format("%s: group %u has %u tensors; expected %zu", call.op(), k, call.group(k), count));
    }
    for (uint32_t i = 0; i < call.group(k); i++) tensors[k * count + i] = call.raw->inputs[call.group_begin(k) + i];
  }
  return MultiTensor<N>(tensors, count);
}

template <template <class> class Rule, UpdateRule Index>
struct Update final : pg::Kernel {
  static constexpr int kOperands = Rule<float>::kOperands;

  static void supports(const pg::KernelCall& call) { require_floats(call, kOperands); }
  Update(const pg::KernelCall& call, pg::Plan&) : tensors_(all_tensors<kOperands>(call)) {
    pg::Runtime<double>* next = attrs_;
    for (const char* name : Rule<float>::kAttrs) *next++ = call.runtime<double>(name);
    for (int k = 0; k < kOperands; k++) begin_[k] = call.group_begin(static_cast<uint32_t>(k));
    found_ = call.group_begin(kOperands);
    conditional_ = call.has(found_);
  }

  void launch(const pg_launch& launch) override {
    if (conditional_ && *pg::input<const uint8_t>(launch, found_) != 0) return;
    double values[pg::update::kMaxAttrs];
    for (size_t i = 0; i < std::size(Rule<float>::kAttrs); i++) values[i] = attrs_[i](launch);
    const Rule<float> narrow(values);
    const Rule<double> wide(values);
    auto address = [&](int k, size_t i) { return pg::host_pointer(launch.input[begin_[k] + i]); };
    tensors_.run(address, [&](Storage type, char* const* p, int64_t n) {
      const void* rule = type == sF64 ? static_cast<const void*>(&wide) : &narrow;
      simd->update[Index][type == sF64](p, n, rule);
    });
  }

 private:
  pg::Runtime<double> attrs_[pg::update::kMaxAttrs];
  uint32_t begin_[kOperands] = {}, found_ = 0;
  bool conditional_ = false;
  MultiTensor<kOperands> tensors_;
};

#define PG_ROW(name, Rule)                                    \
  using Rule##Step = Update<pg::update::Rule, r##Rule##Step>; \
  PG_KERNEL(name, Rule##Step);
PG_UPDATE_RULES(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cpu
