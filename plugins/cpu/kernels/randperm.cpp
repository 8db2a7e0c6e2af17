// SPDX-License-Identifier: Apache-2.0
// randperm: numbers are dealt out to buckets of about a cache's size, and each bucket is shuffled there;
// perigee/kernels/philox.hpp specifies how.
#include <algorithm>
#include <numeric>
#include <utility>

#include "block_loop.hpp"
#include "perigee/kernels/philox.hpp"

namespace cpu {
namespace {

// What each word of a block says, by the shift that leaves a bucket's number of it: functions of their own, whose
// numbers stay in registers. Two pieces by turns: a place that has just been written waits for nobody that way, and it
// takes half the time.
struct Pair {
  int64_t first[2], count[2];  // of elements; the first piece has as many as the second, or more
};
void count_words(const uint32_t* words, const Pair& of, int shift, int64_t* a, int64_t* b) {
  const uint32_t *x = words + of.first[0], *y = words + of.first[1];
  for (int64_t k = 0; k < of.count[1]; k++) a[x[k] >> shift]++, b[y[k] >> shift]++;
  for (int64_t k = of.count[1]; k < of.count[0]; k++) a[x[k] >> shift]++;
}
template <class T>
void deal_words(const uint32_t* words, const Pair& of, int shift, int64_t* a, int64_t* b, T* numbers) {
  const uint32_t *x = words + of.first[0], *y = words + of.first[1];
  for (int64_t k = 0; k < of.count[1]; k++) {
    numbers[a[x[k] >> shift]++] = static_cast<T>(of.first[0] + k);
    numbers[b[y[k] >> shift]++] = static_cast<T>(of.first[1] + k);
  }
  for (int64_t k = of.count[1]; k < of.count[0]; k++) numbers[a[x[k] >> shift]++] = static_cast<T>(of.first[0] + k);
}

class RandPerm final : public pg::Kernel {
 public:
  static void supports(const pg::KernelCall& call) { require_all_dense(call); }

  RandPerm(const pg::KernelCall& call, pg::Plan& plan)
      : seed_(call.runtime<int64_t>("seed")),
        offset_(call.runtime<int64_t>("offset")),
        count_(pg::element_count(call.out(0))),
        bits_(pg::philox::bucket_bits(static_cast<uint64_t>(count_))),
        wide_(count_ > INT32_MAX) {
    if (bits_ == 0) return;
    // Numbers are dealt out two pieces at a time, on several threads; which piece a number is in does not show in the
    // result.
    const int64_t pairs = std::min(kMostPairs, (count_ + kPair - 1) / kPair);
    pieces_ = 2 * pairs;
    piece_ = (count_ + pieces_ - 1) / pieces_;
    auto bytes = [&](size_t each) { return (static_cast<uint64_t>(count_) * each + 63) / 64 * 64; };
    words_ = bytes(wide_ ? sizeof(int64_t) : sizeof(int32_t));
    places_ = words_ + bytes(sizeof(uint32_t));
    plan.workspace = places_ + static_cast<uint64_t>(pieces_ << bits_) * sizeof(int64_t);
  }

  void launch(const pg_launch& launch) override {
    if (count_ == 0) return;
    wide_ ? run<int64_t>(launch) : run<int32_t>(launch);
  }

 private:
  static constexpr int64_t kMostPairs = 8, kPair = 1 << 17;
  struct Draw {
    uint64_t seed, offset;
  };

  template <class T>
  void run(const pg_launch& launch) const {
    Draw d{static_cast<uint64_t>(seed_(launch)), static_cast<uint64_t>(offset_(launch))};
    const pg_tensor& y = *launch.outputs[0];
    void* out = pg::output(launch, 0);
    if (bits_ == 0) {
      T all[pg::philox::kBucket];
      std::iota(all, all + count_, T(0));
      return finish(all, 0, count_, d, y, out);
    }
    char* room = pg::host_pointer<char>(launch.workspace);
    auto* numbers = reinterpret_cast<T*>(room);
    auto* next = reinterpret_cast<int64_t*>(room + places_);
    deal(numbers, reinterpret_cast<uint32_t*>(room + words_), next, d);
    // The last piece's next place in a bucket is the bucket's end.
    const int64_t* ends = next + ((pieces_ - 1) << bits_);
    pg::parallel_for(int64_t{1} << bits_, kGrain / static_cast<int64_t>(pg::philox::kBucket),
                     [=, this, &y](int64_t begin, int64_t end) {
                       for (int64_t b = begin; b < end; b++) {
                         int64_t first = b == 0 ? 0 : ends[b - 1];
                         finish(numbers + first, first, ends[b] - first, d, y, out);
                       }
                     });
  }

  // Numbers into buckets, in order: each piece counts what it has for each bucket, learns where to put it, and does.
  template <class T>
  void deal(T* numbers, uint32_t* words, int64_t* next, Draw d) const {
    auto each = [=, this](auto&& body) {
      pg::parallel_for(pieces_ / 2, 1, [=, this](int64_t begin, int64_t end) {
        for (int64_t pair = begin; pair < end; pair++) {
          Pair of;
          for (int i = 0; i < 2; i++) {
            of.first[i] = std::min(count_, (2 * pair + i) * piece_);
            of.count[i] = std::min(count_, of.first[i] + piece_) - of.first[i];
          }
          body(of, next + (2 * pair << bits_), next + ((2 * pair + 1) << bits_));
        }
      });
    };
    int shift = 32 - bits_;  // as bucket_of has it; bits_ is above 0 here
    std::fill_n(next, pieces_ << bits_, 0);
    each([=](const Pair& of, int64_t* a, int64_t* b) {
      for (int64_t i = 0; i < of.count[0]; i += kBlock) {  // while the words are in the first cache
        Pair block;
        for (int k = 0; k < 2; k++) {
          block.first[k] = of.first[k] + i;
          block.count[k] = std::clamp<int64_t>(of.count[k] - i, 0, kBlock);
          if (block.count[k] > 0)
            simd->words(words + block.first[k], static_cast<uint64_t>(block.first[k]),
                        static_cast<uint64_t>(block.first[k] + block.count[k]), d.seed, d.offset);
        }
        count_words(words, block, shift, a, b);
      }
    });
    int64_t place = 0;
    for (int64_t b = 0; b < int64_t{1} << bits_; b++) {
      for (int64_t piece = 0; piece < pieces_; piece++) {
        int64_t& slot = next[(piece << bits_) + b];
        place += std::exchange(slot, place);
      }
    }
    each([=](const Pair& of, int64_t* a, int64_t* b) { deal_words(words, of, shift, a, b, numbers); });
  }

  // Shuffles the bucket at position `first` and writes it out.
  template <class T>
  static void finish(T* bucket, int64_t first, int64_t count, Draw d, const pg_tensor& y, void* out) {
    constexpr bool kWide = sizeof(T) == sizeof(int64_t);
    if constexpr (kWide)
      simd->shuffle_i64(bucket, static_cast<uint64_t>(first), static_cast<uint64_t>(count), d.seed, d.offset);
    else
      simd->shuffle_i32(bucket, static_cast<uint64_t>(first), static_cast<uint64_t>(count), d.seed, d.offset);
    Storage from = kWide ? sI64 : sI32, to = storage_of(y);
    int bytes = kStorageBytes[to];
    if (y.stride[0] == 1) return convert(from, to, bucket, static_cast<char*>(out) + first * bytes, count);
    alignas(64) char block[kBlock * 8];
    for (int64_t p = 0; p < count; p += kBlock) {
      int64_t n = std::min(kBlock, count - p);
      convert(from, to, bucket + p, block, n);
      scatter(out, bytes, 1, y.shape, y.stride, first + p, n, block);
    }
  }

  pg::Runtime<int64_t> seed_, offset_;
  int64_t count_, piece_ = 0, pieces_ = 0;
  uint64_t words_ = 0, places_ = 0;  // where in the workspace the words and the next places stand, behind the numbers
  int bits_;
  bool wide_;
};
PG_KERNEL("randperm", RandPerm);

}  // namespace
}  // namespace cpu
