// SPDX-License-Identifier: Apache-2.0
// unscale_all, total_norm, scale_all, clamp_all and all_finite: one pass over the gradients of a model.
#include <atomic>
#include <bit>
#include <cmath>

#include "linalg/isa.hpp"
#include "multi_tensor.hpp"

namespace cpu {
namespace {

using pg::cpu::call_avx2;
using pg::cpu::Isa;

void require_float_group(const pg::KernelCall& call) {
  for (uint32_t i = 0; i < call.group(0); i++) {
    require_dense(call, call.in(i));
    if (!is_float(storage_of(call.in(i)))) refuse(call);
  }
}

MultiTensor<1> first_group(const pg::KernelCall& call) {
  return MultiTensor<1>({call.raw->inputs, call.raw->inputs + call.group(0)}, call.group(0));
}

struct Address {
  const pg_launch& launch;
  void* operator()(int, size_t i) const { return pg::host_pointer(launch.input[i]); }
};

// A loop over one dense block, compiled for AVX2 too.
template <class Body>
void vectorised(int64_t n, const Body& body) {
  call_avx2(body, 0, n);
}

// The exponent bits are all ones in infinities and NaN only.
template <class T>
bool any_infinite(const T* x, int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kExponent = sizeof(T) == 4 ? static_cast<Bits>(0x7f800000u) : static_cast<Bits>(0x7ff0000000000000u);
  Bits found = 0;
  vectorised(
      n, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
        Bits any = 0;
        for (int64_t i = begin; i < end; i++) any |= (std::bit_cast<Bits>(x[i]) & kExponent) == kExponent ? 1 : 0;
        found |= any;
      });
  return found != 0;
}

template <class T>
void multiply(T* x, int64_t n, T factor) {
  vectorised(
      n, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
        for (int64_t i = begin; i < end; i++) x[i] *= factor;
      });
}

struct UnscaleAll final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_float_group(call); }
  UnscaleAll(const pg::KernelCall& call, pg::Plan&)
      : factor_(call.runtime<double>("inv_scale")), tensors_(first_group(call)) {}

  void launch(const pg_launch& launch) override {
    double factor = factor_(launch);
    std::atomic<bool> found{false};
    tensors_.run(Address{launch}, [&](Storage type, char* const* p, int64_t n) {
      bool any = type == sF64 ? step(reinterpret_cast<double*>(p[0]), n, factor)
                              : step(reinterpret_cast<float*>(p[0]), n, static_cast<float>(factor));
      if (any) found.store(true, std::memory_order_relaxed);
    });
    *pg::output<uint8_t>(launch, 0) = found.load() ? 1 : 0;
  }

 private:
  // Both while a stretch is in the cache.
  template <class T>
  static bool step(T* x, int64_t count, T factor) {
    bool any = false;
    for (int64_t begin = 0; begin < count; begin += 4 * kBlock) {
      int64_t n = std::min(count - begin, 4 * kBlock);
      any |= any_infinite(x + begin, n);
      if (factor != 1) multiply(x + begin, n, factor);
    }
    return any;
  }
  pg::Runtime<double> factor_;
  MultiTensor<1> tensors_;
};
PG_KERNEL("unscale_all", UnscaleAll);

struct ScaleAll final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_float_group(call);
    if (!is_float(storage_of(call.in(call.group(0))))) refuse(call);
  }
  ScaleAll(const pg::KernelCall& call, pg::Plan&)
      : factor_(storage_of(call.in(call.group(0)))), at_(call.group(0)), tensors_(first_group(call)) {}

  void launch(const pg_launch& launch) override {
    double factor;
    convert(factor_, sF64, pg::input(launch, at_), &factor, 1);
    if (factor == 1) return;
    tensors_.run(Address{launch}, [&](Storage type, char* const* p, int64_t n) {
      if (type == sF64) return multiply(reinterpret_cast<double*>(p[0]), n, factor);
      multiply(reinterpret_cast<float*>(p[0]), n, static_cast<float>(factor));
    });
  }

 private:
  Storage factor_;
  uint32_t at_;
  MultiTensor<1> tensors_;
};
PG_KERNEL("scale_all", ScaleAll);

struct ClampAll final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_float_group(call); }
  ClampAll(const pg::KernelCall& call, pg::Plan&)
      : min_(call.runtime<double>("min")), max_(call.runtime<double>("max")), tensors_(first_group(call)) {}

  void launch(const pg_launch& launch) override {
    double low = min_(launch), high = max_(launch);
    tensors_.run(Address{launch}, [&](Storage type, char* const* p, int64_t n) {
      if (type == sF64) return clamp(reinterpret_cast<double*>(p[0]), n, low, high);
      clamp(reinterpret_cast<float*>(p[0]), n, static_cast<float>(low), static_cast<float>(high));
    });
  }

 private:
  template <class T>
  static void clamp(T* x, int64_t n, T low, T high) {
    vectorised(
        n, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t i = begin; i < end; i++) {
            T v = x[i] < low ? low : x[i];
            x[i] = v > high ? high : v;
          }
        });
  }
  pg::Runtime<double> min_, max_;
  MultiTensor<1> tensors_;
};
PG_KERNEL("clamp_all", ClampAll);

// Sums of the parts, kept in double and added in their order: the same for any number of threads.
struct TotalNorm final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_float_group(call); }
  TotalNorm(const pg::KernelCall& call, pg::Plan& plan)
      : p_(call.attr<double>("p")), result_(storage_of(call.out(0))), tensors_(first_group(call)) {
    plan.workspace = static_cast<uint64_t>(std::max<int64_t>(tensors_.parts(), 1)) * sizeof(double);
  }

  void launch(const pg_launch& launch) override {
    auto* sums = pg::host_pointer<double>(launch.workspace);
    std::fill_n(sums, tensors_.parts(), 0.0);
    tensors_.read(Address{launch}, [&](int64_t part, Storage type, char* const* p, int64_t n) {
      double more =
          type == sF64 ? sum(reinterpret_cast<const double*>(p[0]), n) : sum(reinterpret_cast<const float*>(p[0]), n);
      sums[part] = std::isinf(p_) ? larger(sums[part], more) : sums[part] + more;
    });
    double total = 0;
    for (int64_t i = 0; i < tensors_.parts(); i++) total = std::isinf(p_) ? larger(total, sums[i]) : total + sums[i];
    if (p_ == 2) total = std::sqrt(total);
    if (p_ != 2 && p_ != 1 && !std::isinf(p_)) total = std::pow(total, 1 / p_);
    put_number(result_, total, pg::output(launch, 0));
  }

 private:
  static double larger(double a, double b) { return b > a || b != b ? b : a; }  // NaN wins

  template <class T>
  double sum(const T* x, int64_t n) const {
    constexpr int kLanes = 8;
    double lanes[kLanes] = {};
    if (p_ == 2) {
      vectorised(
          n / kLanes, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
            for (int64_t i = begin; i < end; i++)
              for (int k = 0; k < kLanes; k++) {
                double v = static_cast<double>(x[i * kLanes + k]);
                lanes[k] += v * v;
              }
          });
    }
    double total = 0;
    for (double lane : lanes) total += lane;
    for (int64_t i = p_ == 2 ? n / kLanes * kLanes : 0; i < n; i++) {
      double v = std::fabs(static_cast<double>(x[i]));
      if (std::isinf(p_)) {
        total = larger(total, v);
      } else {
        total += p_ == 2 ? v * v : p_ == 1 ? v : std::pow(v, p_);
      }
    }
    return total;
  }

  double p_;
  Storage result_;
  MultiTensor<1> tensors_;
};
PG_KERNEL("total_norm", TotalNorm);

struct AllFinite final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_float_group(call); }
  AllFinite(const pg::KernelCall& call, pg::Plan&) : tensors_(first_group(call)) {}

  void launch(const pg_launch& launch) override {
    std::atomic<bool> found{false};
    tensors_.read(Address{launch}, [&](int64_t, Storage type, char* const* p, int64_t n) {
      bool any = type == sF64 ? any_infinite(reinterpret_cast<const double*>(p[0]), n)
                              : any_infinite(reinterpret_cast<const float*>(p[0]), n);
      if (any) found.store(true, std::memory_order_relaxed);
    });
    *pg::output<uint8_t>(launch, 0) = found.load() ? 0 : 1;
  }

 private:
  MultiTensor<1> tensors_;
};
PG_KERNEL("all_finite", AllFinite);

}  // namespace
}  // namespace cpu
