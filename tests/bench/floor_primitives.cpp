// SPDX-License-Identifier: Apache-2.0
#include "floor_primitives.hpp"

#include <emmintrin.h>
#include <omp.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dnnl.hpp>
#include <limits>
#include <string>
#include <unordered_map>

namespace bench {
namespace {

using dnnl::memory;
using Type = memory::data_type;
using Tag = memory::format_tag;
using Arguments = std::unordered_map<int, memory>;

const dnnl::engine& engine() {
  static const dnnl::engine shared(dnnl::engine::kind::cpu, 0);
  return shared;
}

double now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

using Maker = Primitives::Maker;

struct Best {
  double seconds = kNever;
  Maker maker;
};

// What counts as fast: the time on the clock, or with one thread the processor's, which neighbours disturb less.
double worth(Seconds s) { return omp_get_max_threads() > 1 ? s.wall : s.cpu; }

// The best of at least `least` runs, after one that fills caches.
template <class Body>
Seconds best_of(const Body& body, int least) {
  constexpr double kEnough = 0.02;
  body();
  Seconds best{kNever, kNever};
  double spent = 0;
  for (int runs = 0; runs < least || spent < kEnough; runs++) {
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    body();
    wall = now(CLOCK_MONOTONIC) - wall, cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    best = {std::min(best.wall, wall), std::min(best.cpu, cpu)};
    spent += wall;
  }
  return best;
}

// Filled with bytes that are an ordinary number in float32 and in bfloat16.
memory filled(const memory::desc& desc) {
  memory m(desc, engine());
  if (desc.get_size() > 0) std::memset(m.get_data_handle(), 0x3f, desc.get_size());
  return m;
}

// Makes the body that runs it, with tensors of its own.
Maker runner(const dnnl::primitive& primitive, const std::vector<std::pair<int, memory::desc>>& descs) {
  return [primitive, descs]() -> Body {
    Arguments arguments;
    for (const auto& [id, desc] : descs) arguments.emplace(id, filled(desc));
    return [primitive, arguments] {
      dnnl::stream stream(engine());
      primitive.execute(stream, arguments);
      stream.wait();
    };
  };
}

void consider(Best& best, const Maker& maker) {
  double seconds = worth(best_of(maker(), 1));
  if (seconds < best.seconds) best = {seconds, maker};
}

// oneDNN's iterator over implementations reads the description it began with: it lives as long as the process.
template <class T>
const T& kept(T value) {
  static std::deque<T> all;
  return all.emplace_back(std::move(value));
}

template <class Description>
bool is_reference(const Description& pd) {
  return std::string(pd.impl_info_str()).find("ref") != std::string::npos;
}

// Considers runner_of(pd) for all implementations of what `make` describes; nothing where oneDNN has none.
template <class Make, class RunnerOf>
void try_all(Best& best, const Make& make, const RunnerOf& runner_of) {
  try {
    auto pd = make();
    do {
      if (!is_reference(pd)) consider(best, runner_of(pd));
    } while (pd.next_impl());
  } catch (const dnnl::error&) {  // unimplemented: no such way
  }
}

memory::desc any(const memory::dims& dims, Type type) { return {dims, type, Tag::any}; }

Best best_product(int64_t batch, int64_t m, int64_t n, int64_t k, Type type) {
  Best best;
  auto dims = [&](int64_t rows, int64_t columns) {
    return batch > 1 ? memory::dims{batch, rows, columns} : memory::dims{rows, columns};
  };
  try_all(
      best,
      [&] {
        dnnl::matmul::desc desc(any(dims(m, k), type), any(dims(k, n), type), any(dims(m, n), type));
        return dnnl::matmul::primitive_desc(kept(desc), engine());
      },
      [&](const dnnl::matmul::primitive_desc& pd) {
        return runner(
            dnnl::matmul(pd),
            {{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}});
      });
  if (batch > 1) return best;
  try_all(
      best,
      [&] {
        dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference, any({m, k}, type), any({n, k}, type),
                                               any({m, n}, type));
        return dnnl::inner_product_forward::primitive_desc(kept(desc), engine());
      },
      [&](const dnnl::inner_product_forward::primitive_desc& pd) {
        return runner(
            dnnl::inner_product_forward(pd),
            {{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}});
      });
  if (type != Type::f32) return best;
  for (char left : {'N', 'T'}) {
    for (char right : {'N', 'T'}) {
      consider(best, [=]() -> Body {
        memory a = filled({{m, k}, type, Tag::ab}), b = filled({{k, n}, type, Tag::ab}),
               c = filled({{m, n}, type, Tag::ab});
        return [=] {
          auto data = [](const memory& x) { return static_cast<float*>(x.get_data_handle()); };
          dnnl_sgemm(left, right, m, n, k, 1, data(a), left == 'N' ? k : m, data(b), right == 'N' ? n : k, 0, data(c),
                     n);
        };
      });
    }
  }
  return best;
}

struct Geometry {
  memory::dims x, y, weight, stride, padding;
  explicit Geometry(const Convolution& c)
      : x{c.n, c.c, c.side, c.side},
        weight{c.o, c.c, c.kernel, c.kernel},
        stride{c.stride, c.stride},
        padding{c.padding, c.padding} {
    int64_t out = (c.side + 2 * c.padding - c.kernel) / c.stride + 1;
    y = {c.n, c.o, out, out};
    // What no window reaches is cut off on the right: oneDNN wants sizes that fit exactly.
    int64_t rest = (out - 1) * c.stride + c.kernel - c.side - c.padding;
    after = {rest, rest};
  }
  memory::dims after;
};

Best best_convolution(const Convolution& c, Pass pass, Type type) {
  Best best;
  Geometry g(c);
  using Forward = dnnl::convolution_forward;
  using Data = dnnl::convolution_backward_data;
  using Weights = dnnl::convolution_backward_weights;
  memory::desc x = any(g.x, type), y = any(g.y, type), weight = any(g.weight, type);
  for (auto algorithm : {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd}) {
    auto forward = [&] {
      Forward::desc desc(dnnl::prop_kind::forward_training, algorithm, x, weight, y, g.stride, g.padding, g.after);
      return Forward::primitive_desc(kept(desc), engine());
    };
    if (pass == Pass::kForward) {
      try_all(best, forward, [&](const Forward::primitive_desc& pd) {
        return runner(
            Forward(pd),
            {{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}});
      });
    } else if (pass == Pass::kData) {
      try_all(
          best,
          [&] {
            Data::desc desc(algorithm, x, weight, y, g.stride, g.padding, g.after);
            return Data::primitive_desc(kept(desc), engine(), kept(forward()));
          },
          [&](const Data::primitive_desc& pd) {
            return runner(Data(pd), {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                     {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                     {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()}});
          });
    } else {
      try_all(
          best,
          [&] {
            Weights::desc desc(algorithm, x, weight, y, g.stride, g.padding, g.after);
            return Weights::primitive_desc(kept(desc), engine(), kept(forward()));
          },
          [&](const Weights::primitive_desc& pd) {
            return runner(Weights(pd), {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                        {DNNL_ARG_SRC, pd.src_desc()},
                                        {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()}});
          });
    }
  }
  return best;
}

// The layouts worth trying where an operator does not choose one itself.
std::vector<memory::desc> layouts(const memory::dims& dims, Type type) {
  if (dims[2] * dims[3] == 1) return {{{dims[0], dims[1]}, type, Tag::ab}};
  std::vector<memory::desc> list = {{dims, type, Tag::nChw16c}, {dims, type, Tag::nhwc}, {dims, type, Tag::nchw}};
  // Of bfloat16, oneDNN 2.6 with AVX-512 normalises 16 channels at a time where there are 8, and writes past the end.
  if (type == Type::f32) list.emplace_back(dims, type, Tag::nChw8c);
  return list;
}

Best best_batch_norm(const memory::dims& dims, bool training, bool backward, Type type) {
  Best best;
  using Forward = dnnl::batch_normalization_forward;
  using Backward = dnnl::batch_normalization_backward;
  auto flags = dnnl::normalization_flags::use_scale_shift;
  if (!training) flags |= dnnl::normalization_flags::use_global_stats;
  auto kind = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  memory::desc vector({dims[1]}, Type::f32, Tag::a), pair({2, dims[1]}, Type::f32, Tag::nc);
  for (const memory::desc& x : layouts(dims, type)) {
    auto forward = [&] { return Forward::primitive_desc(kept(Forward::desc(kind, x, 1e-5f, flags)), engine()); };
    if (!backward) {
      try_all(best, forward, [&](const Forward::primitive_desc& pd) {
        return runner(Forward(pd), {{DNNL_ARG_SRC, x},
                                    {DNNL_ARG_DST, x},
                                    {DNNL_ARG_MEAN, vector},
                                    {DNNL_ARG_VARIANCE, vector},
                                    {DNNL_ARG_SCALE_SHIFT, pair}});
      });
      continue;
    }
    try_all(
        best,
        [&] {
          Backward::desc desc(dnnl::prop_kind::backward, x, x, 1e-5f, flags);
          return Backward::primitive_desc(kept(desc), engine(), kept(forward()));
        },
        [&](const Backward::primitive_desc& pd) {
          return runner(Backward(pd), {{DNNL_ARG_SRC, x},
                                       {DNNL_ARG_DIFF_DST, x},
                                       {DNNL_ARG_DIFF_SRC, x},
                                       {DNNL_ARG_MEAN, vector},
                                       {DNNL_ARG_VARIANCE, vector},
                                       {DNNL_ARG_SCALE_SHIFT, pair},
                                       {DNNL_ARG_DIFF_SCALE_SHIFT, pair}});
        });
  }
  return best;
}

Best best_max_pool(const Convolution& window, bool training, bool backward, Type type) {
  Best best;
  using Forward = dnnl::pooling_forward;
  using Backward = dnnl::pooling_backward;
  Geometry g(window);
  memory::dims kernel{window.kernel, window.kernel};
  auto kind = training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  auto from = layouts(g.x, type), to = layouts(g.y, type);
  for (size_t i = 0; i < from.size(); i++) {
    auto forward = [&] {
      Forward::desc desc(kind, dnnl::algorithm::pooling_max, from[i], to[i], g.stride, kernel, g.padding, g.after);
      return Forward::primitive_desc(kept(desc), engine());
    };
    if (!backward) {
      try_all(best, forward, [&](const Forward::primitive_desc& pd) {
        return runner(Forward(pd),
                      {{DNNL_ARG_SRC, from[i]}, {DNNL_ARG_DST, to[i]}, {DNNL_ARG_WORKSPACE, pd.workspace_desc()}});
      });
      continue;
    }
    try {  // the places of the maxima come from a forward pass: bytes that are none are no fair test
      Forward::primitive_desc first = forward();
      Backward::desc desc(dnnl::algorithm::pooling_max, from[i], to[i], g.stride, kernel, g.padding, g.after);
      Backward::primitive_desc pd(kept(desc), engine(), first);
      if (is_reference(pd)) continue;
      Backward primitive(pd);
      memory::desc source = from[i], result = to[i];
      consider(best, [=]() -> Body {
        dnnl::stream stream(engine());
        memory x = filled(source), y = filled(result), places = filled(first.workspace_desc());
        Forward(first).execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, places}});
        Arguments arguments = {{DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_WORKSPACE, places}};
        return [=] {
          dnnl::stream another(engine());
          primitive.execute(another, arguments);
          another.wait();
        };
      });
    } catch (const dnnl::error&) {
    }
  }
  return best;
}

}  // namespace

// The best over the dtypes that count, found when first asked for.
template <class Find>
Body Primitives::known(const std::vector<int64_t>& key, const Find& find) {
  auto place = known_.find(key);
  if (place != known_.end()) return place->second();
  Best best = find(Type::f32);
  if (low_) {
    Best low = find(Type::bf16);
    if (low.seconds < best.seconds) best = low;
  }
  if (!best.maker) {
    std::fprintf(stderr, "oneDNN has no implementation of a primitive of the model\n");
    std::exit(1);
  }
  known_[key] = best.maker;
  return best.maker();
}

Body Primitives::product(int64_t batch, int64_t m, int64_t n, int64_t k) {
  return known({0, batch, m, n, k}, [&](Type type) { return best_product(batch, m, n, k, type); });
}

Body Primitives::convolution(const Convolution& c, Pass pass) {
  return known({1, static_cast<int64_t>(pass), c.n, c.c, c.o, c.side, c.kernel, c.stride, c.padding},
               [&](Type type) { return best_convolution(c, pass, type); });
}

Body Primitives::batch_norm(int64_t n, int64_t c, int64_t side, bool training, bool backward) {
  return known({2, n, c, side, training, backward}, [&](Type type) {
    return best_batch_norm({n, c, side, side}, training, backward, type);
  });
}

Body Primitives::max_pool(const Convolution& w, bool training, bool backward) {
  return known({3, w.n, w.c, w.side, w.kernel, w.stride, training, backward},
               [&](Type type) { return best_max_pool(w, training, backward, type); });
}

Seconds time_chain(const std::vector<Body>& chain) {
  constexpr double kLong = 1.5;
  auto all = [&] {
    for (const Body& body : chain) body();
  };
  all();
  double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID), begin = wall;
  int64_t runs = 0;
  for (; runs < 2 || now(CLOCK_MONOTONIC) - begin < kLong; runs++) all();
  wall = now(CLOCK_MONOTONIC) - wall, cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  return Seconds{wall, cpu} * (1.0 / static_cast<double>(runs));
}

Seconds seconds_a_byte() {
  constexpr int64_t kCount = 16777216;
  auto make_array = [] {
    void* p = mmap(nullptr, kCount * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::exit(1);
    madvise(p, kCount * sizeof(float), MADV_HUGEPAGE);
    auto* x = static_cast<float*>(p);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < kCount; i++) x[i] = 1;
    return x;
  };
  const float *a = make_array(), *b = make_array();
  float* c = make_array();
  auto add = [&] {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < kCount; i += 4) _mm_stream_ps(c + i, _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i)));
  };
  return best_of(add, 3) * (1.0 / (12.0 * kCount));
}

}  // namespace bench
