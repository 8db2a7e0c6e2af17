// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <string>

#include "block_loop.hpp"
#include "copy.hpp"
#include "perigee/kernels/out_of_range.hpp"
#include "probabilities.hpp"

namespace cpu {
namespace {

// What a tensor may hold, and the text of what it may not.
struct Probabilities {
  template <class T>
  static bool holds(T p) {
    return p >= T(0) && p <= T(1);
  }
  static std::string text(double p, const std::string& place) { return pg::no_probability(p, place); }
};
struct Variances {
  template <class T>
  static bool holds(T var) {
    return !(var < T(0));
  }
  static std::string text(double var, const std::string& place) { return pg::no_variance(var, place); }
};

template <class Allowed, class T>
int64_t first_outside(const T* p, int64_t n) {
  int outside = 0;
  for (int64_t i = 0; i < n; i++) outside |= static_cast<int>(!Allowed::holds(p[i]));
  if (outside == 0) return n;
  int64_t at = 0;
  while (Allowed::holds(p[at])) at++;
  return at;
}

// Elements [begin, begin + n) as doubles or floats, in `buffer` or where they are.
const void* read_block(const pg_tensor& p, const void* data, int64_t begin, int64_t n, void* raw, void* buffer) {
  Storage from = storage_of(p), type = kStorageOf[kComputeOf[from]];
  int bytes = kStorageBytes[from];
  if (from == type && pg::is_contiguous(p)) return static_cast<const char*>(data) + begin * bytes;
  gather(data, bytes, static_cast<int>(p.rank), p.shape, p.stride, begin, n, raw);
  convert(from, type, raw, buffer, n);
  return buffer;
}

template <class Allowed>
[[noreturn]] void fail_at(const pg_tensor& p, const void* data, int64_t at, const char* op) {
  alignas(64) char raw[8], buffer[8];
  const void* found = read_block(p, data, at, 1, raw, buffer);
  double value = storage_of(p) == sF64 ? *static_cast<const double*>(found) : *static_cast<const float*>(found);
  pg::fail_argument(op + (": " + Allowed::text(value, pg::place_text(p.shape, p.rank, at))));
}

template <class Allowed>
void check(const pg_tensor& p, const void* data, const char* op) {
  int64_t count = pg::element_count(p);
  bool wide = storage_of(p) == sF64;
  std::atomic<int64_t> first = count;
  auto piece = [&](int64_t begin, int64_t end) {
    alignas(64) char raw[kBlock * 8], buffer[kBlock * 8];
    for (int64_t at = begin; at < end && at < first.load(std::memory_order_relaxed); at += kBlock) {
      int64_t n = std::min(kBlock, end - at);
      const void* block = read_block(p, data, at, n, raw, buffer);
      int64_t k = wide ? first_outside<Allowed>(static_cast<const double*>(block), n)
                       : first_outside<Allowed>(static_cast<const float*>(block), n);
      if (k == n) continue;
      for (int64_t seen = first.load(); at + k < seen && !first.compare_exchange_weak(seen, at + k);) {
      }
      return;
    }
  };
  if (count <= kGrain)
    piece(0, count);
  else
    pg::parallel_for(count, kGrain, piece);
  if (first.load() < count) fail_at<Allowed>(p, data, first.load(), op);
}

struct AsProbability final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_float(storage_of(call.in(0))) || storage_of(call.out(0)) != storage_of(call.in(0))) refuse(call);
  }
  AsProbability(const pg::KernelCall&, pg::Plan&) {}
  void launch(const pg_launch& launch) override {
    const pg_tensor &p = *launch.inputs[0], &y = *launch.outputs[0];
    check_probabilities(p, pg::input(launch, 0), "as_probability");
    if (pg::element_count(p) > 0) copy_tensor(at_address(y, launch.output[0]), at_address(p, launch.input[0]));
  }
};
PG_KERNEL("as_probability", AsProbability);

}  // namespace

void check_probabilities(const pg_tensor& p, const void* data, const char* op) { check<Probabilities>(p, data, op); }
void check_variances(const pg_tensor& var, const void* data, const char* op) { check<Variances>(var, data, op); }

}  // namespace cpu
