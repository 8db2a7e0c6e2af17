// SPDX-License-Identifier: Apache-2.0
// One of two values by a condition, either of which may be a number. Elements are moved, not looked at.
#include "elementwise.hpp"

namespace cpu {
namespace {

SelectFn select_of(int bytes) { return simd->select[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3]; }

struct Choice final : pg::Kernel {
  static void supports(const pg::KernelCall&, const ScalarCall&) {}
  Choice(const pg::KernelCall& call, const ScalarCall& scalar) : type_(storage_of(call.out(0))) {
    for (int i = 0; i < 3; i++) operand_[i] = LoopInput(call, scalar.program.step[0].operand[i]);
    loop_ = BlockLoop<4>({{&call.out(0), type_},
                          {operand_[0].tensor(), sBool},
                          {operand_[1].tensor(), type_},
                          {operand_[2].tensor(), type_}});
  }
  void launch(const pg_launch& launch) override {
    alignas(8) char number[8];
    void* base[4] = {pg::output(launch, 0), operand_[0].address(launch, sBool, number),
                     operand_[1].address(launch, type_, number), operand_[2].address(launch, type_, number)};
    SelectFn select = select_of(kStorageBytes[type_]);
    loop_.run(base,
              [select](void* const* p, int64_t n) { select(static_cast<const uint8_t*>(p[1]), p[2], p[3], p[0], n); });
  }

 private:
  Storage type_;
  LoopInput operand_[3];
  BlockLoop<4> loop_;
};

}  // namespace

const ElementwiseForm kChoiceForm = elementwise_form<Choice>();

}  // namespace cpu
