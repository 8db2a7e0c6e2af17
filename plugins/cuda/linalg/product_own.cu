// SPDX-License-Identifier: Apache-2.0
// The product of matrices of any dtype and strides: a block computes a tile of c, from tiles of a and b that it keeps
// in shared memory. For integers, and for what cuBLASLt lacks.
#include <cmath>

#include "activation.hpp"
#include "linalg/product.hpp"

namespace cuda::linalg {
namespace {

constexpr int kTile = 64, kDepth = 16, kEach = 4;  // a thread has kEach x kEach results
constexpr uint32_t kMaxBatch = PG_MAX_RANK;

// What sums are kept in: unsigned for integers, which wrap around.
template <class S>
using Sum =
    std::conditional_t<std::is_integral_v<S>, std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>, Compute<S>>;

struct Arguments {
  const void *a, *b, *bias;
  void* c;
  int64_t m, n, k;
  Strides as, bs, cs;
  int64_t bias_stride;
  Activation activation;
  uint32_t batch_rank;
  BatchAxis batch[kMaxBatch];
  int64_t batches, tiles_n, tiles;
};

template <class T>
__device__ __forceinline__ T multiply_add(T a, T b, T c) {
  if constexpr (std::is_same_v<T, float>)
    return fmaf(a, b, c);
  else if constexpr (std::is_same_v<T, double>)
    return fma(a, b, c);
  else
    return a * b + c;
}

// tile[x][d] or tile[d][x] of a matrix whose element (x, d) lies at x * along + d * deep. Neighbouring threads read
// along the axis that is closer together in memory.
template <class S, class T>
__device__ __forceinline__ void load_tile(T (*tile)[kTile + 1], const S* from, int64_t x0, int64_t width, int64_t along,
                                          int64_t d0, int64_t depth, int64_t deep) {
  bool by_depth = deep < along;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += static_cast<int>(kThreads)) {
    int x = by_depth ? i / kDepth : i % kTile, d = by_depth ? i % kDepth : i / kTile;
    bool inside = x0 + x < width && d0 + d < depth;
    tile[d][x] = inside ? static_cast<T>(unpack(from[(x0 + x) * along + (d0 + d) * deep])) : T(0);
  }
}

// c is of R.
template <class S, class R>
__global__ void __launch_bounds__(kThreads, 1) multiply(Arguments g) {
  using T = Sum<S>;
  __shared__ T as[kDepth][kTile + 1], bs[kDepth][kTile + 1];
  int column = static_cast<int>(threadIdx.x) % (kTile / kEach), row = static_cast<int>(threadIdx.x) / (kTile / kEach);
  for (int64_t batch = blockIdx.y; batch < g.batches; batch += gridDim.y) {
    int64_t at_a = 0, at_b = 0, at_c = 0, rest = batch;
    for (uint32_t i = g.batch_rank; i-- > 0;) {
      int64_t next = rest / g.batch[i].size, step = rest - next * g.batch[i].size;
      at_a += step * g.batch[i].a, at_b += step * g.batch[i].b, at_c += step * g.batch[i].c;
      rest = next;
    }
    auto* a = static_cast<const S*>(g.a) + at_a;
    auto* b = static_cast<const S*>(g.b) + at_b;
    auto* c = static_cast<R*>(g.c) + at_c;
    for (int64_t tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
      int64_t m0 = tile / g.tiles_n * kTile, n0 = tile % g.tiles_n * kTile;
      T sums[kEach][kEach] = {};
      for (int64_t d0 = 0; d0 < g.k; d0 += kDepth) {
        load_tile<S, T>(as, a, m0, g.m, g.as.row, d0, g.k, g.as.column);
        load_tile<S, T>(bs, b, n0, g.n, g.bs.column, d0, g.k, g.bs.row);
        __syncthreads();
#if defined(__CUDACC__)
#pragma unroll 4  // all of it would spill
#endif
        for (int d = 0; d < kDepth; d++) {
          T left[kEach], right[kEach];
          for (int i = 0; i < kEach; i++) left[i] = as[d][row + i * (kTile / kEach)];
          for (int j = 0; j < kEach; j++) right[j] = bs[d][column + j * (kTile / kEach)];
          for (int i = 0; i < kEach; i++) {
            for (int j = 0; j < kEach; j++) sums[i][j] = multiply_add(left[i], right[j], sums[i][j]);
          }
        }
        __syncthreads();
      }
      for (int i = 0; i < kEach; i++) {
        for (int j = 0; j < kEach; j++) {
          int64_t y = m0 + row + i * (kTile / kEach), x = n0 + column + j * (kTile / kEach);
          if (y >= g.m || x >= g.n) continue;
          T sum = sums[i][j];
          if (g.bias != nullptr) sum += static_cast<T>(unpack(static_cast<const S*>(g.bias)[x * g.bias_stride]));
          if constexpr (std::is_floating_point_v<T>) sum = activate(g.activation, sum);
          c[y * g.cs.row + x * g.cs.column] = pack<R>(sum);
        }
      }
    }
  }
}

class OwnProduct final : public Product {
 public:
  OwnProduct(ProductShape shape, uint32_t result) : dtype_(shape.dtype), widens_(result != shape.dtype) {
    simplify(shape);
    if (shape.batch.size() > kMaxBatch) pg::fail_support("products of more than 8 batch axes");
    Arguments& g = arguments_;
    g.m = shape.m, g.n = shape.n, g.k = shape.k;
    g.as = shape.a, g.bs = shape.b, g.cs = shape.c, g.bias_stride = shape.bias_stride;
    g.activation = shape.activation;
    g.batch_rank = static_cast<uint32_t>(shape.batch.size());
    std::copy(shape.batch.begin(), shape.batch.end(), g.batch);
    g.batches = shape.batch_count();
    g.tiles_n = divide_up(g.n, kTile), g.tiles = divide_up(g.m, kTile) * g.tiles_n;
  }

  void run(cudaStream_t stream, const ProductData& data) const override {
    Arguments g = arguments_;
    if (g.tiles == 0 || g.batches == 0) return;
    g.a = data.a, g.b = data.b, g.bias = data.bias, g.c = data.c;
    Grid grid;
    grid.x = static_cast<uint32_t>(std::min(g.tiles, kMaxBlocks));
    grid.y = static_cast<uint32_t>(std::min(g.batches, kMaxBlocksY));
    with_number(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      constexpr bool kHalf = std::is_same_v<S, f16> || std::is_same_v<S, bf16>;
      if constexpr (kHalf) {
        if (widens_) return launch(stream, grid, multiply<S, float>, g);
      }
      launch(stream, grid, multiply<S, S>, g);
    });
  }

 private:
  uint32_t dtype_;
  bool widens_;
  Arguments arguments_{};
};

}  // namespace

std::unique_ptr<Product> make_own_product(const ProductShape& shape, uint32_t result) {
  return std::make_unique<OwnProduct>(shape, result);
}

}  // namespace cuda::linalg
