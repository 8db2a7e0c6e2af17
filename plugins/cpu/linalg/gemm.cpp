// SPDX-License-Identifier: Apache-2.0
// Panels of b (k x NR, L1) times panels of a (MR x k, L2), as in Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication". One template; the microkernel is compiled for three instruction sets and chosen at run time.
#include "linalg/gemm.hpp"

#include <algorithm>
#include <cstring>

#include "linalg/numbers.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kRows = 6, kPanelBytes = 128;  // microtile: 6 rows of two 64-byte vectors
constexpr int64_t kBlockRows = 768, kBlockColumns = 1024, kBlockDepth = 256, kTileRows = 96;

template <class A>
constexpr int64_t kColumns = kPanelBytes / static_cast<int64_t>(sizeof(A));

int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// Sums that are wider than what is stored cannot be parked in c between depth blocks: those types take k in one block.
template <class T>
int64_t depth_block(int64_t k) {
  return std::is_same_v<T, Accumulator<T>> ? std::min(k, kBlockDepth) : k;
}

// tile[MR][NR] += a panel x b panel. The tile's columns are done in vectors of `Width` bytes, two at a time, so that
// the accumulators stay in registers whatever the instruction set.
template <class A, int Width>
[[gnu::always_inline]] inline void multiply(int64_t k, const A* a, const A* b, A* tile) {
  typedef A Vector __attribute__((vector_size(Width), aligned(sizeof(A)), may_alias));
  constexpr int64_t lanes = Width / static_cast<int64_t>(sizeof(A)), columns = kColumns<A>;
  for (int64_t j = 0; j < columns; j += 2 * lanes) {
    Vector sum[kRows][2];
#pragma GCC unroll 6
    for (int i = 0; i < kRows; i++) {
      sum[i][0] = *reinterpret_cast<const Vector*>(tile + i * columns + j);
      sum[i][1] = *reinterpret_cast<const Vector*>(tile + i * columns + j + lanes);
    }
    for (int64_t p = 0; p < k; p++) {
      Vector b0 = *reinterpret_cast<const Vector*>(b + p * columns + j);
      Vector b1 = *reinterpret_cast<const Vector*>(b + p * columns + j + lanes);
#pragma GCC unroll 6
      for (int i = 0; i < kRows; i++) {
        sum[i][0] += a[p * kRows + i] * b0;
        sum[i][1] += a[p * kRows + i] * b1;
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < kRows; i++) {
      *reinterpret_cast<Vector*>(tile + i * columns + j) = sum[i][0];
      *reinterpret_cast<Vector*>(tile + i * columns + j + lanes) = sum[i][1];
    }
  }
}

template <class A>
void multiply_baseline(int64_t k, const A* a, const A* b, A* tile) {
  multiply<A, 16>(k, a, b, tile);
}
template <class A>
__attribute__((target("avx2,fma"))) void multiply_avx2(int64_t k, const A* a, const A* b, A* tile) {
  multiply<A, 32>(k, a, b, tile);
}
template <class A>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma"))) void multiply_avx512(int64_t k, const A* a,
                                                                                       const A* b, A* tile) {
  multiply<A, 64>(k, a, b, tile);
}

template <class A>
using Microkernel = void (*)(int64_t, const A*, const A*, A*);

template <class A>
Microkernel<A> choose_microkernel() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    return multiply_avx512<A>;
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? multiply_avx2<A> : multiply_baseline<A>;
}

// Panels of `width` rows (a) or columns (b), each depth-major, zero-filled at the edge.
template <class T>
void pack_panels(const T* data, int64_t across, int64_t along, int64_t count, int64_t depth, int64_t width,
                 Accumulator<T>* target) {
  int64_t panels = (count + width - 1) / width;
  parallel_for(panels, std::max<int64_t>(1, 16384 / (depth * width + 1)), [=](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; panel++) {
      const T* source = data + panel * width * across;
      Accumulator<T>* out = target + panel * width * depth;
      int64_t filled = std::min(width, count - panel * width);
      for (int64_t p = 0; p < depth; p++, out += width) {
        for (int64_t i = 0; i < filled; i++) out[i] = load<T>(source[i * across + p * along]);
        for (int64_t i = filled; i < width; i++) out[i] = 0;
      }
    }
  });
}

// One depth block of one block of c.
template <class T>
struct Block {
  int64_t rows, columns, depth;
  const Accumulator<T>*a, *b;
  Matrix<T> c;
  Start<T> start;

  void tile(Microkernel<Accumulator<T>> kernel, int64_t i, int64_t j) const {
    using A = Accumulator<T>;
    constexpr int64_t width = kColumns<A>;
    alignas(64) A sums[kRows * width];
    int64_t height = std::min(kRows, rows - i), breadth = std::min(width, columns - j);
    for (int64_t r = 0; r < kRows; r++) {
      for (int64_t s = 0; s < width; s++) {
        bool inside = r < height && s < breadth;
        A sum = start.bias != nullptr && inside ? load<T>(start.bias[(j + s) * start.bias_stride]) : A(0);
        if (start.add && inside) sum = load<T>(c.data[(i + r) * c.row + (j + s) * c.column]);
        sums[r * width + s] = sum;
      }
    }
    kernel(depth, a + i * depth, b + j * depth, sums);
    for (int64_t r = 0; r < height; r++) {
      for (int64_t s = 0; s < breadth; s++)
        c.data[(i + r) * c.row + (j + s) * c.column] = store<T>(sums[r * width + s]);
    }
  }

  void run(Microkernel<Accumulator<T>> kernel) const {
    constexpr int64_t width = kColumns<Accumulator<T>>;
    int64_t down = (rows + kTileRows - 1) / kTileRows, across = (columns + width - 1) / width;
    int64_t work = kTileRows * width * depth;
    parallel_for(down * across, std::max<int64_t>(1, 100000 / work), [=, this](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; task++) {
        int64_t top = task / across * kTileRows, j = task % across * width;
        for (int64_t i = top; i < std::min(rows, top + kTileRows); i += kRows) tile(kernel, i, j);
      }
    });
  }
};

}  // namespace

template <class T>
uint64_t gemm_workspace(int64_t m, int64_t n, int64_t k) {
  using A = Accumulator<T>;
  int64_t rows = round_up(std::min(m, kBlockRows), kRows), columns = round_up(std::min(n, kBlockColumns), kColumns<A>);
  return static_cast<uint64_t>((rows + columns) * depth_block<T>(k)) * sizeof(A) + 64;
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, Start<T> start,
          void* scratch) {
  using A = Accumulator<T>;
  static const Microkernel<A> kernel = choose_microkernel<A>();
  int64_t deep = depth_block<T>(k);
  auto* panels_b = static_cast<A*>(scratch);
  auto* panels_a = panels_b + round_up(std::min(n, kBlockColumns), kColumns<A>) * deep;
  for (int64_t j = 0; j < n; j += kBlockColumns) {
    int64_t columns = std::min(kBlockColumns, n - j);
    for (int64_t p = 0; p < k; p += deep) {
      int64_t depth = std::min(deep, k - p);
      pack_panels(b.data + p * b.row + j * b.column, b.column, b.row, columns, depth, kColumns<A>, panels_b);
      for (int64_t i = 0; i < m; i += kBlockRows) {
        int64_t rows = std::min(kBlockRows, m - i);
        pack_panels(a.data + i * a.row + p * a.column, a.row, a.column, rows, depth, kRows, panels_a);
        Matrix<T> part{c.data + i * c.row + j * c.column, c.row, c.column};
        Start<T> part_start = p == 0 ? start : Start<T>{nullptr, 1, true};
        if (part_start.bias != nullptr) part_start.bias += j * start.bias_stride;
        Block<T>{rows, columns, depth, panels_a, panels_b, part, part_start}.run(kernel);
      }
    }
  }
}

#define PG_GEMM(T)                                                \
  template uint64_t gemm_workspace<T>(int64_t, int64_t, int64_t); \
  template void gemm<T>(int64_t, int64_t, int64_t, Matrix<const T>, Matrix<const T>, Matrix<T>, Start<T>, void*);
PG_GEMM(float)
PG_GEMM(double)
PG_GEMM(BFloat16)
PG_GEMM(Half)
PG_GEMM(int64_t)
PG_GEMM(int32_t)
PG_GEMM(int16_t)
PG_GEMM(int8_t)
PG_GEMM(uint8_t)

}  // namespace pg::cpu
