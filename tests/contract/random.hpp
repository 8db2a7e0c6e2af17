// SPDX-License-Identifier: Apache-2.0
// Random shapes, layouts and numbers, the same in every run.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "host.hpp"

namespace contract {

constexpr uint32_t kDtypes[] = {PG_F32, PG_F16, PG_BF16, PG_F64, PG_I64, PG_I32, PG_I16, PG_I8, PG_U8, PG_B8};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }

  // Up to `rank` dimensions below `size`; now and then none, a long one, or an empty one.
  Shape shape(int64_t rank, int64_t size, bool empties = true) {
    Shape out(static_cast<size_t>(below(rank + 1)));
    for (int64_t& d : out) d = 1 + below(size);
    if (!out.empty() && chance(10)) out[static_cast<size_t>(below(static_cast<int64_t>(out.size())))] = 70;
    if (!out.empty() && empties && chance(8)) out[static_cast<size_t>(below(static_cast<int64_t>(out.size())))] = 0;
    return out;
  }

  // The same tensor somewhere else: axes in another order in memory, gaps, an offset; broadcast where that may be.
  Tensor layout(Tensor t, bool broadcast) {
    int kind = static_cast<int>(below(4));
    if (kind == 0 || t.shape.empty()) return t;
    std::vector<size_t> order(t.shape.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    if (kind >= 2) std::shuffle(order.begin(), order.end(), engine_);
    int64_t step = kind == 3 ? 1 + below(3) : 1;
    for (size_t i = order.size(); i-- > 0;) {
      t.stride[order[i]] = step;
      step *= std::max<int64_t>(t.shape[order[i]], 1) + (kind == 3 ? below(2) : 0);
    }
    if (broadcast && t.values.empty() && chance(20)) t.stride[0] = 0;
    t.offset = kind == 3 ? below(5) : 0;
    return t;
  }

  // Multiples of 1/8 in [-3, 3], exact in all floats; small whole numbers in integers; special values now and then.
  Tensor fill(Tensor t, bool positive = false, bool special = true) {
    bool floats = pg::dtype_class(t.dtype) == PG_M_FLOAT;
    t.values.clear();
    for (int64_t i = 0; i < t.count(); i++) {
      double value = positive ? 1 + below(4) : below(t.dtype == PG_U8 ? 6 : 11) - (t.dtype == PG_U8 ? 0 : 5);
      if (t.dtype == PG_B8) value = below(2);
      if (floats) value = positive ? (1 + below(24)) / 8.0 : (below(49) - 24) / 8.0;
      if (floats && special && chance(4)) value = std::array<double, 4>{NAN, INFINITY, -INFINITY, -0.0}[below(4)];
      t.values.push_back(value);
    }
    return t;
  }
  Tensor tensor(uint32_t dtype, Shape shape, bool positive = false, bool special = false) {
    return fill(layout(Tensor(dtype, std::move(shape)), false), positive, special);
  }
  Tensor indices(Shape shape, int64_t limit) {
    Tensor t(PG_I64, std::move(shape));
    for (int64_t i = 0; i < t.count(); i++) t.values.push_back(static_cast<double>(below(limit)));
    return t;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace contract
