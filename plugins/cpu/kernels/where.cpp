// SPDX-License-Identifier: Apache-2.0
// where and masked_fill: one of two values by a condition. Elements are moved, not looked at.
#include "block_loop.hpp"

namespace cpu {
namespace {

SelectFn select_of(int bytes) { return simd->select[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3]; }

struct Where final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call), refuse_turned(call);
    Storage s = storage_of(call.out(0));
    if (storage_of(call.in(0)) != sBool) refuse(call);
    for (uint32_t i = 1; i <= 2; i++) {
      if (call.has(i) && storage_of(call.in(i)) != s) refuse(call);
    }
  }
  Where(const pg::KernelCall& call, pg::Plan&) : type_(storage_of(call.out(0))) {
    const pg_tensor* x = call.has(1) ? &call.in(1) : nullptr;
    const pg_tensor* y = call.has(2) ? &call.in(2) : nullptr;
    if (x == nullptr || y == nullptr) number_ = x == nullptr ? 2 : 3, value_ = call.scalar_value();
    loop_ = BlockLoop<4>({{&call.out(0), type_}, {&call.in(0), sBool}, {x, type_}, {y, type_}});
  }
  void launch(const pg_launch& launch) override {
    void* base[4] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 0)),
                     const_cast<void*>(pg::input(launch, 1)), const_cast<void*>(pg::input(launch, 2))};
    alignas(8) char number[8];
    if (number_ > 0) {
      put_number(type_, value_(launch), number);
      base[number_] = number;
    }
    SelectFn select = select_of(kStorageBytes[type_]);
    loop_.run(base,
              [select](void* const* p, int64_t n) { select(static_cast<const uint8_t*>(p[1]), p[2], p[3], p[0], n); });
  }

 private:
  Storage type_;
  int number_ = 0;  // which operand of the loop is a number; 0: none
  pg::Runtime<pg_number> value_;
  BlockLoop<4> loop_;
};
PG_KERNEL("where", Where);

struct MaskedFill final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call), refuse_turned(call);
    if (storage_of(call.in(1)) != sBool || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  MaskedFill(const pg::KernelCall& call, pg::Plan&)
      : type_(storage_of(call.out(0))), value_(call.runtime<double>("value")) {
    loop_ = BlockLoop<4>({{&call.out(0), type_}, {&call.in(1), sBool}, {nullptr, type_}, {&call.in(0), type_}});
  }
  void launch(const pg_launch& launch) override {
    alignas(8) char number[8];
    put_number(type_, value_(launch), number);
    void* base[4] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 1)), number,
                     const_cast<void*>(pg::input(launch, 0))};
    SelectFn select = select_of(kStorageBytes[type_]);
    loop_.run(base,
              [select](void* const* p, int64_t n) { select(static_cast<const uint8_t*>(p[1]), p[2], p[3], p[0], n); });
  }

 private:
  Storage type_;
  pg::Runtime<double> value_;
  BlockLoop<4> loop_;
};
PG_KERNEL("masked_fill", MaskedFill);

}  // namespace
}  // namespace cpu
