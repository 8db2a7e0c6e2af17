// SPDX-License-Identifier: Apache-2.0
// uniform normal exponential randint bernoulli dropout dropout_mask. Element i of the row-major output depends on
// (seed, offset, i) only, bit for bit as perigee/kernels/philox.hpp specifies. A packet begins at a multiple of its
// width, so that it is (a part of) one block of random words.
#include "../copy.hpp"
#include "../elementwise.cuh"
#include "random.cuh"

namespace cuda::elementwise {
namespace {

using pg::philox::Block;

// The V words from element `at` on.
template <int V>
__device__ __forceinline__ void draw_words(Draw d, int64_t at, uint32_t (&word)[V]) {
  static_assert(V <= 4);
  Block b = pg::philox::block(d.seed, d.offset, static_cast<uint64_t>(at) >> 2);
  if constexpr (V == 4) {
#pragma unroll
    for (int i = 0; i < 4; i++) word[i] = b.word[i];
  } else {
    bool upper = (at & 2) != 0;
    uint32_t even = upper ? b.word[2] : b.word[0], odd = upper ? b.word[3] : b.word[1];
    if constexpr (V == 2)
      word[0] = even, word[1] = odd;
    else
      word[0] = (at & 1) != 0 ? odd : even;
  }
}
// The V pairs of words from element `at` on.
template <int V>
__device__ __forceinline__ void draw_pairs(Draw d, int64_t at, uint64_t (&pair)[V]) {
  static_assert(V <= 2);
  Block b = pg::philox::block(d.seed, d.offset, static_cast<uint64_t>(at) >> 1);
  uint64_t even = pg::philox::join(b.word[0], b.word[1]), odd = pg::philox::join(b.word[2], b.word[3]);
  if constexpr (V == 2)
    pair[0] = even, pair[1] = odd;
  else
    pair[0] = (at & 1) != 0 ? odd : even;
}

template <class T>
constexpr uint32_t kRandomWidths = sizeof(T) == 8 ? 2 : 4;

template <class T>
struct Uniforms : Function<T, T> {
  static constexpr int kInputs = 0;
  static constexpr uint32_t kWidths = kRandomWidths<T>;
  Draw d;
  Storage storage;  // the 16-bit types draw as many bits as they hold
  T low, high;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&)[1][V], T (&y)[V]) const {
    using namespace pg::philox;
    if constexpr (std::is_same_v<T, double>) {
      uint64_t pair[V];
      draw_pairs(d, at, pair);
#pragma unroll
      for (int i = 0; i < V; i++) y[i] = between(to_uniform(pair[i]), low, high);
    } else {
      uint32_t word[V];
      draw_words(d, at, word);
#pragma unroll
      for (int i = 0; i < V; i++) {
        float u = storage == sF32   ? to_uniform(word[i])
                  : storage == sF16 ? to_uniform_f16(word[i])
                                    : to_uniform_bf16(word[i]);
        y[i] = between(u, low, high);
      }
    }
  }
};

template <class T>
struct Normals : Function<T, T> {
  static constexpr int kInputs = 0;
  static constexpr uint32_t kWidths = kRandomWidths<T>;
  Draw d;
  T mean, deviation;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&)[1][V], T (&y)[V]) const {
    using namespace pg::philox;
    constexpr bool kWide = std::is_same_v<T, double>;
    Block b = block(d.seed, d.offset, static_cast<uint64_t>(at) >> (kWide ? 1 : 2));
    T z[4];
    if constexpr (kWide) {
      normal_pair(join(b.word[0], b.word[1]), join(b.word[2], b.word[3]), &z[0], &z[1]);
      if (V == 1 && (at & 1) != 0) z[0] = z[1];
    } else if constexpr (V == 4) {
      normal_pair(b.word[0], b.word[1], &z[0], &z[1]);
      normal_pair(b.word[2], b.word[3], &z[2], &z[3]);
    } else {
      bool upper = (at & 2) != 0;
      normal_pair(upper ? b.word[2] : b.word[0], upper ? b.word[3] : b.word[1], &z[0], &z[1]);
      if ((at & 1) != 0) z[0] = z[1];
    }
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = fused(deviation, z[i], mean);
  }
};

template <class T>
struct Exponentials : Function<T, T> {
  static constexpr int kInputs = 0;
  static constexpr uint32_t kWidths = kRandomWidths<T>;
  Draw d;
  T rate;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&)[1][V], T (&y)[V]) const {
    if constexpr (std::is_same_v<T, double>) {
      uint64_t pair[V];
      draw_pairs(d, at, pair);
#pragma unroll
      for (int i = 0; i < V; i++) y[i] = pg::philox::to_exponential(pair[i], rate);
    } else {
      uint32_t word[V];
      draw_words(d, at, word);
#pragma unroll
      for (int i = 0; i < V; i++) y[i] = pg::philox::to_exponential(word[i], rate);
    }
  }
};

struct Integers : Function<int64_t, int64_t> {
  static constexpr int kInputs = 0;
  static constexpr bool kAnyOutput = true;
  Draw d;
  int64_t low, high;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const int64_t (&)[1][V], int64_t (&y)[V]) const {
    uint64_t pair[V];
    draw_pairs(d, at, pair);
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = pg::philox::to_integer(pair[i], low, high);
  }
};

// Notes the first of a packet that is no probability. What a packet lacks is 0.
template <class T, int V>
__device__ __forceinline__ void check_chances(const FaultSite& fault, int64_t at, const T (&p)[V]) {
#pragma unroll
  for (int i = 0; i < V; i++) {
    if (p[i] >= T(0) && p[i] <= T(1)) continue;
    auto value = static_cast<double>(p[i]);
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    note_fault(fault, bits, at + i);
    return;
  }
}

template <class T>
struct Checked : Function<T, T> {
  static constexpr uint32_t kWidths = 0;
  static constexpr bool kRenewed = false;
  FaultSite fault;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&p)[1][V], T (&y)[V]) const {
    check_chances(fault, at, p[0]);
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = p[0][i];
  }
};

template <class T>
struct Chances : Function<T, T> {
  static constexpr uint32_t kWidths = kRandomWidths<T>;
  static constexpr bool kRenewed = false;
  Draw d;
  FaultSite fault;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&p)[1][V], T (&y)[V]) const {
    using namespace pg::philox;
    check_chances(fault, at, p[0]);
    if constexpr (std::is_same_v<T, double>) {
      uint64_t pair[V];
      draw_pairs(d, at, pair);
#pragma unroll
      for (int i = 0; i < V; i++) y[i] = to_uniform(pair[i]) < p[0][i] ? 1.0 : 0.0;
    } else {
      uint32_t word[V];
      draw_words(d, at, word);
#pragma unroll
      for (int i = 0; i < V; i++) y[i] = to_uniform(word[i]) < p[0][i] ? 1.0f : 0.0f;
    }
  }
};

// y = x mask / (1 - p)
template <class T>
struct Drop : Function<T, T> {
  static constexpr int kOutputs = 2;
  static constexpr uint32_t kWidths = kRandomWidths<T>;
  Draw d;
  float p;
  T scale;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const T (&x)[1][V], T (&y)[V], Truth (&mask)[V]) const {
    uint32_t word[V];
    draw_words(d, at, word);
#pragma unroll
    for (int i = 0; i < V; i++) {
      bool keep = pg::philox::to_uniform(word[i]) >= p;
      mask[i] = keep;
      y[i] = keep ? x[0][i] * scale : T(0);
    }
  }
};

// The mask alone, of a key that is a tensor.
struct Keeps : Function<int64_t, int64_t> {
  static constexpr int kInputs = 0;
  static constexpr bool kAnyOutput = true;
  const int64_t* key;
  int64_t step;
  float p;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t at, const int64_t (&)[1][V], int64_t (&y)[V]) const {
    uint32_t word[V];
    draw_words({static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[step])}, at, word);
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = pg::philox::to_uniform(word[i]) >= p;
  }
};

// float64 computes in double, all else in float: body(Tag<T>()).
template <class Body>
void with_width(bool wide, Body&& body) {
  if (wide)
    body(Tag<double>());
  else
    body(Tag<float>());
}
constexpr uint32_t widths(bool wide) { return wide ? kRandomWidths<double> : kRandomWidths<float>; }

class Uniform final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kFloats); }
  Uniform(const pg::KernelCall& call, pg::Plan&)
      : seed_(call),
        low_(call.runtime<double>("low")),
        high_(call.runtime<double>("high")),
        storage_(storage_of(call.out(0))),
        loop_({typed(call.out(0))}, widths(storage_ == sF64), 1, true) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    with_width(storage_ == sF64, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Uniforms<T> f;
      f.d = seed_(launch);
      f.storage = storage_;
      f.low = static_cast<T>(low_(launch.raw));
      f.high = static_cast<T>(high_(launch.raw));
      elementwise::run(launch.native(), loop_, {launch.out(0)}, f);
    });
  }

 private:
  Seed seed_;
  pg::Runtime<double> low_, high_;
  Storage storage_;
  Loop<1> loop_;
};
PG_KERNEL("uniform", Uniform);

class Normal final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kFloats); }
  Normal(const pg::KernelCall& call, pg::Plan&)
      : seed_(call),
        mean_(call.runtime<double>("mean")),
        deviation_(call.runtime<double>("std")),
        wide_(pg::dtype_of(call.out(0)) == PG_F64),
        loop_({typed(call.out(0))}, widths(wide_), 1, true) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    with_width(wide_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Normals<T> f;
      f.d = seed_(launch);
      f.mean = static_cast<T>(mean_(launch.raw));
      f.deviation = static_cast<T>(deviation_(launch.raw));
      elementwise::run(launch.native(), loop_, {launch.out(0)}, f);
    });
  }

 private:
  Seed seed_;
  pg::Runtime<double> mean_, deviation_;
  bool wide_;
  Loop<1> loop_;
};
PG_KERNEL("normal", Normal);

class Exponential final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kFloats); }
  Exponential(const pg::KernelCall& call, pg::Plan&)
      : seed_(call),
        rate_(call.runtime<double>("rate")),
        wide_(pg::dtype_of(call.out(0)) == PG_F64),
        loop_({typed(call.out(0))}, widths(wide_), 1, true) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    double rate = rate_(launch.raw);
    if (!(rate > 0)) pg::fail_argument(pg::format("exponential: rate is %g; expected a number above 0", rate));
    with_width(wide_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Exponentials<T> f;
      f.d = seed_(launch);
      f.rate = static_cast<T>(rate);
      elementwise::run(launch.native(), loop_, {launch.out(0)}, f);
    });
  }

 private:
  Seed seed_;
  pg::Runtime<double> rate_;
  bool wide_;
  Loop<1> loop_;
};
PG_KERNEL("exponential", Exponential);

class RandInt final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kAny); }
  RandInt(const pg::KernelCall& call, pg::Plan&)
      : seed_(call),
        low_(call.runtime<int64_t>("low")),
        high_(call.runtime<int64_t>("high")),
        loop_({typed(call.out(0))}, Integers::kWidths, 1, true) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    Integers f;
    f.d = seed_(launch);
    f.low = low_(launch.raw);
    f.high = high_(launch.raw);
    if (f.low >= f.high && loop_.count() > 0) {
      pg::fail_argument(pg::format("randint: low %lld is not below high %lld", static_cast<long long>(f.low),
                                   static_cast<long long>(f.high)));
    }
    elementwise::run(launch.native(), loop_, {launch.out(0)}, f);
  }

 private:
  Seed seed_;
  pg::Runtime<int64_t> low_, high_;
  Loop<1> loop_;
};
PG_KERNEL("randint", RandInt);

class Bernoulli final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("bernoulli: p and y differ in dtype");
  }
  Bernoulli(const pg::KernelCall& call, pg::Plan&)
      : seed_(call),
        wide_(pg::dtype_of(call.in(0)) == PG_F64),
        loop_({typed(call.out(0)), typed(call.in(0))}, widths(wide_), 1, true) {}
  void run(const Launch& launch) override {
    with_width(wide_, [&](auto tag) {
      Chances<typename decltype(tag)::type> f;
      f.d = seed_(launch);
      f.fault = launch.fault_site(FaultKind::kProbability, 0, *launch.raw.outputs[0]);
      elementwise::run(launch.native(), loop_, {launch.out(0), const_cast<void*>(launch.in(0))}, f);
    });
  }

 private:
  Seed seed_;
  bool wide_;
  Loop<2> loop_;
};
PG_KERNEL("bernoulli", Bernoulli);

class AsProbability final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.out(0))) pg::fail_support("as_probability: p and y differ");
  }
  AsProbability(const pg::KernelCall& call, pg::Plan&)
      : wide_(pg::dtype_of(call.in(0)) == PG_F64), loop_({typed(call.out(0)), typed(call.in(0))}, 0, 1, true) {}
  void run(const Launch& launch) override {
    with_width(wide_, [&](auto tag) {
      Checked<typename decltype(tag)::type> f;
      f.fault = launch.fault_site(FaultKind::kProbability, 0, *launch.raw.outputs[0]);
      elementwise::run(launch.native(), loop_, {launch.out(0), const_cast<void*>(launch.in(0))}, f);
    });
  }

 private:
  bool wide_;
  Loop<2> loop_;
};
PG_KERNEL("as_probability", AsProbability);

class Dropout final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    uint32_t dtype = pg::dtype_of(call.in(0));
    check_dtypes(call, kFloats | PG_M_BOOL);
    if (pg::dtype_class(dtype) != PG_M_FLOAT || pg::dtype_of(call.out(0)) != dtype ||
        (call.has_output(1) && pg::dtype_of(call.out(1)) != PG_B8)) {
      pg::fail_support(pg::format("dropout on cuda does not take (%s)", pg::describe(call).c_str()));
    }
  }
  Dropout(const pg::KernelCall& call, pg::Plan&)
      : seed_(call),
        p_(call.runtime<double>("p")),
        training_(call.runtime<bool>("training")),
        wide_(pg::dtype_of(call.in(0)) == PG_F64),
        masked_(call.has_output(1)),
        loop_({typed(call.out(0)), masked_ ? typed(call.out(1)) : number(), typed(call.in(0))}, widths(wide_), 2,
              true) {}

  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    if (loop_.count() == 0) return;
    if (!training_(launch.raw)) return keep_all(launch);
    double p = p_(launch.raw);
    if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("dropout: p is %g; expected 0 to 1", p));
    void* const data[3] = {launch.out(0), masked_ ? launch.out(1) : nullptr, const_cast<void*>(launch.in(0))};
    with_width(wide_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Drop<T> f;
      f.d = seed_(launch);
      f.p = static_cast<float>(p);
      f.scale = static_cast<T>(1 / (1 - p));
      elementwise::run(launch.native(), loop_, data, f);
    });
  }

 private:
  void keep_all(const Launch& launch) const {
    const pg_launch& raw = launch.raw;
    copy_tensor(launch.native(), at_address(*raw.outputs[0], raw.output[0]), at_address(*raw.inputs[0], raw.input[0]));
    if (masked_) fill_tensor(launch.native(), at_address(*raw.outputs[1], raw.output[1]), pg::make_number(int64_t{1}));
  }

  Seed seed_;
  pg::Runtime<double> p_;
  pg::Runtime<bool> training_;
  bool wide_, masked_;
  Loop<3> loop_;
};
PG_KERNEL("dropout", Dropout, 0, 0, 1u << 1);

class DropoutMask final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    if (pg::dtype_of(call.in(0)) != PG_I64 || pg::dtype_of(call.out(0)) != PG_B8) {
      pg::fail_support(pg::format("dropout_mask on cuda does not take (%s)", pg::describe(call).c_str()));
    }
  }
  DropoutMask(const pg::KernelCall& call, pg::Plan&)
      : p_(call.runtime<double>("p")),
        step_(call.in(0).stride[0]),
        loop_({typed(call.out(0))}, Keeps::kWidths, 1, true) {}
  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    if (loop_.count() == 0) return;
    double p = p_(launch.raw);
    if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("p is %g; expected 0 to 1", p));
    Keeps f;
    f.key = launch.in<int64_t>(0);
    f.step = step_;
    f.p = static_cast<float>(p);
    elementwise::run(launch.native(), loop_, {launch.out(0)}, f);
  }

 private:
  pg::Runtime<double> p_;
  int64_t step_;
  Loop<1> loop_;
};
PG_KERNEL("dropout_mask", DropoutMask);

}  // namespace
}  // namespace cuda::elementwise
