// SPDX-License-Identifier: Apache-2.0
// Perigee's float32 matrix product against oneDNN called directly (the better of dnnl_sgemm and the matmul primitive),
// taking turns in one run. Prints medians and the ratio of times; 1.00 is "as fast as oneDNN".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dnnl.hpp>
#include <unordered_map>

#include "../cpu_onednn/harness.hpp"

namespace {

using Clock = std::chrono::steady_clock;

template <class Body>
double seconds(Body&& body) {
  auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Direct {  // the matmul primitive over plain row-major operands
  Direct(int64_t m, int64_t n, int64_t k, bool transpose, void* a, void* b, void* c)
      : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    using Memory = dnnl::memory;
    Memory::desc left({m, k}, Memory::data_type::f32, Memory::format_tag::ab);
    Memory::desc right({k, n}, Memory::data_type::f32, transpose ? Memory::format_tag::ba : Memory::format_tag::ab);
    Memory::desc result({m, n}, Memory::data_type::f32, Memory::format_tag::ab);
    dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(left, right, result), engine);
    primitive = dnnl::matmul(pd);
    arguments = {{DNNL_ARG_SRC, Memory(left, engine, a)},
                 {DNNL_ARG_WEIGHTS, Memory(right, engine, b)},
                 {DNNL_ARG_DST, Memory(result, engine, c)}};
  }
  void run() { primitive.execute(stream, arguments); }
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::matmul primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

void compare(int64_t m, int64_t n, int64_t k, bool transpose) {
  harness::Tensor x(PG_F32, {m, k}), y(PG_F32, transpose ? harness::Dims{n, k} : harness::Dims{k, n}),
      z(PG_F32, {m, n});
  x.random(), y.random();
  auto* a = reinterpret_cast<float*>(x.storage.data());
  auto* b = reinterpret_cast<float*>(y.storage.data());
  auto* c = reinterpret_cast<float*>(z.storage.data());
  harness::Prepared own("matmul",
                        {harness::Attr::flag("transpose_x", false), harness::Attr::flag("transpose_y", transpose)},
                        {&x, &y}, {&z});
  Direct direct(m, n, k, transpose, a, b, c);
  std::vector<double> ours, sgemm, primitive;
  int64_t work = m * n * k, turns = std::clamp<int64_t>(4000000000 / work, 9, 301), inner = work < 100000 ? 100 : 1;
  auto repeat = [&](auto&& body) {
    return seconds([&] {
             for (int64_t i = 0; i < inner; i++) body();
           }) /
           inner;
  };
  for (int64_t turn = 0; turn < turns + 2; turn++) {
    double t0 = repeat([&] { own.launch(); });
    double t1 =
        repeat([&] { dnnl_sgemm('N', transpose ? 'T' : 'N', m, n, k, 1, a, k, b, transpose ? k : n, 0, c, n); });
    double t2 = repeat([&] { direct.run(); });
    if (turn >= 2) ours.push_back(t0), sgemm.push_back(t1), primitive.push_back(t2);
  }
  double best = std::min(median(sgemm), median(primitive)), flops = 2.0 * static_cast<double>(work);
  std::printf(
      "%5ld x %5ld x %5ld %s  perigee %9.1f us (%5.0f GFLOP/s)  sgemm %9.1f us  primitive %9.1f us  ratio %.3f\n", m, n,
      k, transpose ? "y^T" : "y  ", median(ours) * 1e6, flops / median(ours) / 1e9, median(sgemm) * 1e6,
      median(primitive) * 1e6, median(ours) / best);
}

}  // namespace

int main() {
  for (bool transpose : {false, true}) {
    for (int64_t size : {256, 512, 1024, 2048}) compare(size, size, size, transpose);
    compare(64, 2048, 784, transpose);
    compare(2, 8, 4, transpose);
    compare(8, 8, 8, transpose);
    compare(10, 10, 10, transpose);
    compare(12, 12, 12, transpose);
    for (int64_t n : {16, 20, 24, 32, 48}) compare(n, n, n, transpose);
  }
}
