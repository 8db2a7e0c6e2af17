// SPDX-License-Identifier: Apache-2.0
// uniform normal randint bernoulli dropout dropout_mask. Element i of the row-major output depends on (seed,
// offset, i) only; perigee/kernels/philox.hpp specifies how.
#include <algorithm>
#include <vector>

#include "block_loop.hpp"
#include "copy.hpp"
#include "perigee/kernels/philox.hpp"
#include "probabilities.hpp"

namespace cpu {
namespace {

struct Seed {
  explicit Seed(const pg::KernelCall& call)
      : seed(call.runtime<int64_t>("seed")), offset(call.runtime<int64_t>("offset")) {}
  pg::Runtime<int64_t> seed, offset;
};
struct Draw {
  Draw(const Seed& s, const pg_launch& launch)
      : seed(static_cast<uint64_t>(s.seed(launch))), offset(static_cast<uint64_t>(s.offset(launch))) {}
  uint64_t seed, offset;
};

// Fills the output block by block in row-major order: make(begin, end, buffer of `type`).
template <class Make>
void generate(const pg_tensor& out, void* base, Storage type, const Make& make) {
  Storage to = storage_of(out);
  int bytes = kStorageBytes[to];
  bool dense = pg::is_contiguous(out);
  int64_t count = pg::element_count(out);
  auto piece = [&](int64_t begin, int64_t end) {
    alignas(64) char buffer[kBlock * 8], converted[kBlock * 8];
    for (int64_t p = begin; p < end; p += kBlock) {
      int64_t n = std::min(kBlock, end - p);
      char* target = static_cast<char*>(base) + p * bytes;
      if (dense && to == type) {
        make(p, p + n, target);
        continue;
      }
      make(p, p + n, buffer);
      convert(type, to, buffer, dense ? target : converted, n);
      if (!dense) scatter(base, bytes, static_cast<int>(out.rank), out.shape, out.stride, p, n, converted);
    }
  };
  if (count == 0) return;
  if (count <= kGrain / 4) return piece(0, count);
  pg::parallel_for(count, kGrain / 4, piece);
}

struct Uniform final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_float(storage_of(call.out(0)))) refuse(call);
  }
  Uniform(const pg::KernelCall& call, pg::Plan&)
      : seed_(call), low_(call.runtime<double>("low")), high_(call.runtime<double>("high")) {}
  void launch(const pg_launch& launch) override {
    Draw d(seed_, launch);
    double low = low_(launch), high = high_(launch);
    Storage to = storage_of(*launch.outputs[0]);
    void* out = pg::output(launch, 0);
    if (to == sF64) {
      return generate(*launch.outputs[0], out, sF64, [=](int64_t begin, int64_t end, void* target) {
        auto* t = static_cast<double*>(target);
        simd->uniform_f64(t, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), d.seed, d.offset);
        for (int64_t i = 0; i < end - begin; i++) t[i] = pg::philox::between(t[i], low, high);
      });
    }
    float l = static_cast<float>(low), h = static_cast<float>(high);
    generate(*launch.outputs[0], out, sF32, [=](int64_t begin, int64_t end, void* target) {
      auto* t = static_cast<float*>(target);
      draw(to, t, begin, end, d);
      for (int64_t i = 0; i < end - begin; i++) t[i] = pg::philox::between(t[i], l, h);
    });
  }

 private:
  // The 16-bit types draw as many bits as they hold.
  static void draw(Storage to, float* t, int64_t begin, int64_t end, const Draw& d) {
    auto b = static_cast<uint64_t>(begin), e = static_cast<uint64_t>(end);
    if (to == sF32) return simd->uniform_f32(t, b, e, d.seed, d.offset);
    uint32_t words[kBlock];
    simd->words(words, b, e, d.seed, d.offset);
    for (int64_t i = 0; i < end - begin; i++) {
      t[i] = to == sF16 ? pg::philox::to_uniform_f16(words[i]) : pg::philox::to_uniform_bf16(words[i]);
    }
  }
  Seed seed_;
  pg::Runtime<double> low_, high_;
};
PG_KERNEL("uniform", Uniform);

struct Normal final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { Uniform::supports(call); }
  Normal(const pg::KernelCall& call, pg::Plan&)
      : seed_(call), mean_(call.runtime<double>("mean")), std_(call.runtime<double>("std")) {}
  void launch(const pg_launch& launch) override {
    Draw d(seed_, launch);
    double mean = mean_(launch), deviation = std_(launch);
    void* out = pg::output(launch, 0);
    if (storage_of(*launch.outputs[0]) == sF64) {
      return generate(*launch.outputs[0], out, sF64, [=](int64_t begin, int64_t end, void* target) {
        auto* t = static_cast<double*>(target);
        simd->normal_f64(t, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), d.seed, d.offset);
        for (int64_t i = 0; i < end - begin; i++) t[i] = pg::philox::fused(deviation, t[i], mean);
      });
    }
    float m = static_cast<float>(mean), s = static_cast<float>(deviation);
    generate(*launch.outputs[0], out, sF32, [=](int64_t begin, int64_t end, void* target) {
      auto* t = static_cast<float*>(target);
      simd->normal_f32(t, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), d.seed, d.offset);
      for (int64_t i = 0; i < end - begin; i++) t[i] = pg::philox::fused(s, t[i], m);
    });
  }

 private:
  Seed seed_;
  pg::Runtime<double> mean_, std_;
};
PG_KERNEL("normal", Normal);

struct Exponential final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { Uniform::supports(call); }
  Exponential(const pg::KernelCall& call, pg::Plan&) : seed_(call), rate_(call.runtime<double>("rate")) {}
  void launch(const pg_launch& launch) override {
    Draw d(seed_, launch);
    double rate = rate_(launch);
    if (!(rate > 0)) pg::fail_argument(pg::format("exponential: rate is %g; expected a number above 0", rate));
    void* out = pg::output(launch, 0);
    if (storage_of(*launch.outputs[0]) == sF64) {
      return generate(*launch.outputs[0], out, sF64, [=](int64_t begin, int64_t end, void* target) {
        uint64_t pairs[kBlock];
        simd->pairs(pairs, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), d.seed, d.offset);
        auto* t = static_cast<double*>(target);
        for (int64_t i = 0; i < end - begin; i++) t[i] = pg::philox::to_exponential(pairs[i], rate);
      });
    }
    generate(*launch.outputs[0], out, sF32, [=](int64_t begin, int64_t end, void* target) {
      uint32_t words[kBlock];
      simd->words(words, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), d.seed, d.offset);
      auto* t = static_cast<float*>(target);
      for (int64_t i = 0; i < end - begin; i++) t[i] = pg::philox::to_exponential(words[i], static_cast<float>(rate));
    });
  }

 private:
  Seed seed_;
  pg::Runtime<double> rate_;
};
PG_KERNEL("exponential", Exponential);

struct RandInt final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_all_dense(call); }
  RandInt(const pg::KernelCall& call, pg::Plan&)
      : seed_(call), low_(call.runtime<int64_t>("low")), high_(call.runtime<int64_t>("high")) {}
  void launch(const pg_launch& launch) override {
    Draw d(seed_, launch);
    int64_t low = low_(launch), high = high_(launch);
    if (low >= high && pg::element_count(*launch.outputs[0]) > 0) {
      pg::fail_argument(pg::format("randint: low %lld is not below high %lld", static_cast<long long>(low),
                                   static_cast<long long>(high)));
    }
    generate(*launch.outputs[0], pg::output(launch, 0), sI64, [=](int64_t begin, int64_t end, void* target) {
      auto* t = static_cast<int64_t*>(target);
      simd->pairs(reinterpret_cast<uint64_t*>(t), static_cast<uint64_t>(begin), static_cast<uint64_t>(end), d.seed,
                  d.offset);
      for (int64_t i = 0; i < end - begin; i++) t[i] = pg::philox::to_integer(static_cast<uint64_t>(t[i]), low, high);
    });
  }

 private:
  Seed seed_;
  pg::Runtime<int64_t> low_, high_;
};
PG_KERNEL("randint", RandInt);

struct Bernoulli final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_float(storage_of(call.in(0)))) refuse(call);
  }
  Bernoulli(const pg::KernelCall& call, pg::Plan&) : seed_(call) {}
  void launch(const pg_launch& launch) override {
    Draw d(seed_, launch);
    const pg_tensor& p = *launch.inputs[0];
    Storage from = storage_of(p);
    const void* chances = pg::input(launch, 0);
    check_probabilities(p, chances, "bernoulli");
    bool wide = from == sF64;
    generate(*launch.outputs[0], pg::output(launch, 0), wide ? sF64 : sF32,
             [=, &p](int64_t begin, int64_t end, void* target) {
               alignas(64) char raw[kBlock * 8], chance[kBlock * 8];
               int64_t n = end - begin;
               auto b = static_cast<uint64_t>(begin), e = static_cast<uint64_t>(end);
               gather(chances, kStorageBytes[from], static_cast<int>(p.rank), p.shape, p.stride, begin, n, raw);
               convert(from, wide ? sF64 : sF32, raw, chance, n);
               if (wide) {
                 auto* t = static_cast<double*>(target);
                 simd->uniform_f64(t, b, e, d.seed, d.offset);
                 for (int64_t i = 0; i < n; i++) t[i] = t[i] < reinterpret_cast<double*>(chance)[i] ? 1.0 : 0.0;
               } else {
                 auto* t = static_cast<float*>(target);
                 simd->uniform_f32(t, b, e, d.seed, d.offset);
                 for (int64_t i = 0; i < n; i++) t[i] = t[i] < reinterpret_cast<float*>(chance)[i] ? 1.0f : 0.0f;
               }
             });
  }

 private:
  Seed seed_;
};
PG_KERNEL("bernoulli", Bernoulli);

// y = x mask / (1 - p); the mask is kept for the gradient, where there will be one.
struct Dropout final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    Storage s = storage_of(call.in(0));
    if (!is_float(s) || storage_of(call.out(0)) != s) refuse(call);
    if (call.has_output(1) && storage_of(call.out(1)) != sBool) refuse(call);
  }
  Dropout(const pg::KernelCall& call, pg::Plan&)
      : seed_(call), p_(call.runtime<double>("p")), training_(call.runtime<bool>("training")) {}
  void launch(const pg_launch& launch) override {
    const pg_tensor &x = *launch.inputs[0], &y = *launch.outputs[0];
    bool masked = launch.outputs[1] != nullptr;
    if (pg::element_count(x) == 0) return;
    if (!training_(launch)) {
      copy_tensor(at_address(y, launch.output[0]), at_address(x, launch.input[0]));
      if (masked) fill_tensor(at_address(*launch.outputs[1], launch.output[1]), 1.0);
      return;
    }
    Draw d(seed_, launch);
    double p = p_(launch);
    if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("dropout: p is %g; expected 0 to 1", p));
    const void* from = pg::input(launch, 0);
    Storage s = storage_of(x);
    Compute compute = kComputeOf[s];
    Storage type = kStorageOf[compute];
    bool plain = s == type && pg::is_contiguous(x);
    char* mask = masked ? pg::output<char>(launch, 1) : nullptr;
    const pg_tensor* mask_tensor = masked ? launch.outputs[1] : nullptr;
    bool mask_dense = masked && pg::is_contiguous(*mask_tensor);
    generate(y, pg::output(launch, 0), type, [=, &x](int64_t begin, int64_t end, void* target) {
      alignas(64) char raw[kBlock * 8], values[kBlock * 8];
      uint8_t own[kBlock];
      int64_t n = end - begin;
      uint8_t* keep = mask_dense ? reinterpret_cast<uint8_t*>(mask + begin) : own;
      simd->keep(keep, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), d.seed, d.offset, p);
      if (masked && !mask_dense) {
        scatter(mask, 1, static_cast<int>(mask_tensor->rank), mask_tensor->shape, mask_tensor->stride, begin, n, keep);
      }
      const void* in = static_cast<const char*>(from) + begin * kStorageBytes[s];
      if (!plain) {
        gather(from, kStorageBytes[s], static_cast<int>(x.rank), x.shape, x.stride, begin, n, raw);
        convert(s, type, raw, values, n);
        in = values;
      }
      if (compute == kF64)
        scale(static_cast<const double*>(in), keep, 1 / (1 - p), static_cast<double*>(target), n);
      else
        scale(static_cast<const float*>(in), keep, static_cast<float>(1 / (1 - p)), static_cast<float*>(target), n);
    });
  }

 private:
  template <class T>
  static void scale(const T* x, const uint8_t* keep, T factor, T* y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = keep[i] != 0 ? x[i] * factor : T(0);
  }
  Seed seed_;
  pg::Runtime<double> p_;
  pg::Runtime<bool> training_;
};
PG_KERNEL("dropout", Dropout, 0, 0, 1u << 1);

// The mask alone, of a key that is a tensor.
struct DropoutMask final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_dense(call, call.in(0));
    require_dense(call, call.out(0));
    if (storage_of(call.in(0)) != sI64 || !pg::is_contiguous(call.out(0))) refuse(call);
  }
  DropoutMask(const pg::KernelCall& call, pg::Plan&)
      : p_(call.runtime<double>("p")), count_(pg::element_count(call.out(0))), step_(call.in(0).stride[0]) {}
  void launch(const pg_launch& launch) override {
    if (count_ == 0) return;
    auto* key = pg::input<const int64_t>(launch, 0);
    auto seed = static_cast<uint64_t>(key[0]), offset = static_cast<uint64_t>(key[step_]);
    auto* out = pg::output<uint8_t>(launch, 0);
    double p = p_(launch);
    if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("p is %g; expected 0 to 1", p));
    pg::parallel_for(count_, kGrain, [=](int64_t begin, int64_t end) {
      simd->keep(out + begin, static_cast<uint64_t>(begin), static_cast<uint64_t>(end), seed, offset, p);
    });
  }

 private:
  pg::Runtime<double> p_;
  int64_t count_, step_;
};
PG_KERNEL("dropout_mask", DropoutMask);

}  // namespace
}  // namespace cpu
