// SPDX-License-Identifier: Apache-2.0
// Pooling by the stand-in of cuDNN, against plain loops.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "cudnn/pool.hpp"
#include "fixture.hpp"
#include "vendor.hpp"

using namespace cuda::dnn;
using namespace vendor_test;

namespace {

struct Windows {
  Four full;
  int64_t kernel[2], stride[2], padding[2];
};
const Windows kWindows[] = {
    {{2, 3, 8, 6}, {2, 2}, {2, 2}, {0, 0}},
    {{1, 4, 7, 9}, {3, 3}, {2, 2}, {1, 1}},
    {{2, 1, 6, 5}, {3, 2}, {1, 3}, {1, 0}},
};

PoolingShape shape_of(const Windows& windows, PoolKind kind, uint32_t dtype) {
  PoolingShape s;
  s.kind = kind, s.dtype = dtype, s.full = windows.full, s.pooled = windows.full;
  std::copy_n(windows.kernel, 2, s.kernel), std::copy_n(windows.stride, 2, s.stride);
  std::copy_n(windows.padding, 2, s.padding);
  for (int i = 0; i < 2; i++) s.pooled[i + 2] = (s.full[i + 2] + 2 * s.padding[i] - s.kernel[i]) / s.stride[i] + 1;
  return s;
}

int64_t at(const Four& shape, int64_t plane, int64_t h, int64_t w) { return (plane * shape[2] + h) * shape[3] + w; }

struct Place {
  int64_t full, pooled;
};

// Which element lies in which window.
std::vector<Place> places_of(const PoolingShape& s) {
  std::vector<Place> places;
  for (int64_t plane = 0; plane < s.full[0] * s.full[1]; plane++) {
    for (int64_t h = 0; h < s.full[2]; h++) {
      for (int64_t w = 0; w < s.full[3]; w++) {
        for (int64_t oh = 0; oh < s.pooled[2]; oh++) {
          for (int64_t ow = 0; ow < s.pooled[3]; ow++) {
            int64_t i = h + s.padding[0] - oh * s.stride[0], j = w + s.padding[1] - ow * s.stride[1];
            if (i < 0 || j < 0 || i >= s.kernel[0] || j >= s.kernel[1]) continue;
            places.push_back({at(s.full, plane, h, w), at(s.pooled, plane, oh, ow)});
          }
        }
      }
    }
  }
  return places;
}

std::vector<double> expected(const PoolingShape& s, const Data& operand) {
  bool largest = s.kind == PoolKind::kMax;
  std::vector<Place> places = places_of(s);
  std::vector<double> counts(static_cast<size_t>(count_of(s.pooled)), 0);
  for (const Place& p : places) counts[static_cast<size_t>(p.pooled)]++;
  auto divisor = [&](int64_t window) {
    return s.kind == PoolKind::kAveragePadded ? static_cast<double>(s.kernel[0] * s.kernel[1])
                                              : counts[static_cast<size_t>(window)];
  };
  std::vector<double> result(static_cast<size_t>(count_of(s.pooled)), largest ? -INFINITY : 0);
  for (const Place& p : places) {
    double& into = result[static_cast<size_t>(p.pooled)];
    double value = operand.at(p.full);
    if (!largest)
      into += value / divisor(p.pooled);
    else if (value > into || std::isnan(value))
      into = value;
  }
  return result;
}

void check_pool(const PoolingShape& s, const Pool& pool, bool with_nan = false, int64_t skip = 0) {
  Data operand(s.dtype, count_of(s.full), 1, skip);
  Data result(s.dtype, count_of(s.pooled), 2);
  if (with_nan) operand.set(3, std::nan(""));
  Workspace workspace(pool.workspace());
  Stream stream;
  pool.run(stream.native, operand.address(), result.address(), workspace.address());
  stream.finish();
  std::vector<double> wanted = expected(s, operand);
  for (size_t i = 0; i < wanted.size(); i++) {
    double got = result.at(static_cast<int64_t>(i));
    CAPTURE(i, got, wanted[i]);
    CHECK((std::isnan(wanted[i]) ? std::isnan(got)
                                 : std::fabs(got - wanted[i]) <= tolerance(s.dtype, 9) * (1 + std::fabs(wanted[i]))));
  }
}

}  // namespace

TEST_CASE("pooling by cuDNN") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (const Windows& windows : kWindows) {
      for (PoolKind kind : {PoolKind::kMax, PoolKind::kAveragePadded, PoolKind::kAverage}) {
        CAPTURE(pg::dtype_name(dtype), static_cast<int>(kind));
        PoolingShape s = shape_of(windows, kind, dtype);
        REQUIRE(s.is_cudnns());
        auto pool = make_pool(s, 0, "pooling");
        REQUIRE(pool);
        uint64_t before = calls_of("cudnnBackendExecute");
        check_pool(s, *pool);
        check_pool(s, *pool, true);
        check_pool(s, *pool, false, 1);  // aligned to an element
        CHECK(calls_of("cudnnBackendExecute") - before == 3);
      }
    }
  }
}

TEST_CASE("windows that cuDNN has no mode for are not shown to it") {
  PoolingShape s = shape_of(kWindows[1], PoolKind::kMax, PG_F32);
  CHECK(s.is_cudnns());
  PoolingShape over = s, wide = s, none = s, large = s;
  over.pooled[2]++;  // ceil_mode
  wide.padding[0] = 3;
  none.full[0] = none.pooled[0] = 0;
  large.full[0] = large.pooled[0] = int64_t{1} << 28;
  CHECK_FALSE(over.is_cudnns());
  CHECK_FALSE(wide.is_cudnns());
  CHECK_FALSE(none.is_cudnns());
  CHECK_FALSE(large.is_cudnns());
}

TEST_CASE("pooling that cuDNN refuses is the own kernels', which is said") {
  open_host();
  standin::refuse_graphs(true);
  log_lines().clear();
  CHECK(make_pool(shape_of(kWindows[0], PoolKind::kMax, PG_F32), 0, "pooling") == nullptr);
  REQUIRE(log_lines().size() == 1);
  CHECK(log_lines()[0] == "cuDNN has no engine for pooling (no engine for the graph): own kernels compute it");
  standin::refuse_graphs(false);
}

TEST_CASE("pooling's failing execution names the call and its status") {
  open_host();
  PoolingShape s = shape_of(kWindows[0], PoolKind::kAverage, PG_F32);
  auto pool = make_pool(s, 0, "it");
  standin::fail("cudnnBackendExecute", 1, cudaErrorUnknown);
  CHECK_THROWS_WITH(check_pool(s, *pool), "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED");
}
