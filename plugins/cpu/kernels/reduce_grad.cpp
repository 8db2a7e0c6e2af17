// SPDX-License-Identifier: Apache-2.0
// extreme_grad and prod_grad of many short lines, a tile at a time. All else is decomposed: passes over long lines are
// about as fast.
#include <algorithm>

#include "block_loop.hpp"

namespace cpu {
namespace {

class ReduceGrad final : public pg::Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    Storage s = storage_of(call.in(0));
    if (!is_float(s) || storage_of(call.out(0)) != s) refuse(call);
    Lines l(call);
    if (l.length < 1 || l.length > kShortLine || l.count < 4) pg::fail_support("lines that are not many and short");
    call.need_dense();
    for (uint32_t i = 1; i < call.input_count(); i++) {
      if (storage_of(call.in(i)) != s || pg::element_count(call.in(i)) != l.count) refuse(call);
    }
  }
  ReduceGrad(const pg::KernelCall& call, pg::Plan&)
      : lines_(call), storage_(storage_of(call.in(0))), extreme_(call.is("extreme_grad")) {}

  void launch(const pg_launch& launch) override { storage_ == sF64 ? run<double>(launch) : run<float>(launch); }

 private:
  // x as lines of its last axes, which are the reduced ones; of length 0 where they are not.
  struct Lines {
    int64_t count = 1, length = 1;
    explicit Lines(const pg::KernelCall& call) {
      const pg_tensor& x = call.in(0);
      uint32_t mask = call.axis_mask("axes", x.rank);
      bool last = true;
      for (uint32_t i = x.rank; i-- > 0;) {
        bool in = (mask >> i & 1u) != 0;
        if (in && !last) length = 0;
        last = last && in;
        (in ? length : count) *= x.shape[i];
      }
    }
  };

  template <class T>
  struct Room {
    alignas(64) T x[kShortLine * kLines<T>], turned[kShortLine * kLines<T>], y[kLines<T>], dy[kLines<T>];
  };

  template <class T>
  void run(const pg_launch& launch) const {
    constexpr bool kWide = sizeof(T) == 8;
    constexpr Storage type = kWide ? sF64 : sF32;
    const char *x = pg::input<const char>(launch, 0), *dy = pg::input<const char>(launch, extreme_ ? 2 : 1);
    const char* y = extreme_ ? pg::input<const char>(launch, 1) : dy;
    char* dx = pg::output<char>(launch, 0);
    int bytes = kStorageBytes[storage_];
    int64_t n = lines_.length;
    auto slope = extreme_ ? simd->extreme_grad[kWide] : simd->prod_grad[kWide];
    auto piece = [=, this](int64_t begin, int64_t end) {
      Room<T> room{};
      for (int64_t i = begin; i < end; i += kLines<T>) {
        int64_t count = std::min(kLines<T>, end - i);
        const void* lines = x + i * n * bytes;
        char* target = dx + i * n * bytes;
        if (storage_ != type) {
          convert(storage_, type, lines, room.x, count * n);
          lines = room.x;
        }
        convert(storage_, type, y + i * bytes, room.y, count);
        convert(storage_, type, dy + i * bytes, room.dy, count);
        simd->turn_in[kWide](lines, count, n, room.turned);
        slope(room.turned, room.y, room.dy, room.turned, n);
        simd->turn_out[kWide](room.turned, count, n, storage_ == type ? static_cast<void*>(target) : room.x);
        if (storage_ != type) convert(type, storage_, room.x, target, count * n);
      }
    };
    if (lines_.count * n <= kGrain) return piece(0, lines_.count);
    pg::parallel_for(lines_.count, std::max<int64_t>(1, kGrain / n), piece);
  }

  Lines lines_;
  Storage storage_;
  bool extreme_;
};
PG_KERNEL("extreme_grad", ReduceGrad);
PG_KERNEL("prod_grad", ReduceGrad);

}  // namespace
}  // namespace cpu
