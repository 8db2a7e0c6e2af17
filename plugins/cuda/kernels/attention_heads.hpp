// SPDX-License-Identifier: Apache-2.0
// Attention as batches of matrix products over blocks of heads. Arithmetic on the host and without CUDA, so that it is
// tested where there is no GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "linalg/product.hpp"

namespace cuda {

// An operand [..., rows, columns], in elements: a matrix a head.
struct HeadOperand {
  std::vector<int64_t> lead;  // strides of the leading axes
  linalg::Strides matrix;

  HeadOperand() = default;
  explicit HeadOperand(const pg_tensor& t)
      : lead(t.stride, t.stride + t.rank - 2), matrix{t.stride[t.rank - 2], t.stride[t.rank - 1]} {}
  // A dense one.
  HeadOperand(const std::vector<int64_t>& shape, int64_t rows, int64_t columns)
      : lead(shape.size()), matrix{columns, 1} {
    int64_t step = rows * columns;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) lead[i] = step;
  }
  HeadOperand turned() const {
    HeadOperand other = *this;
    std::swap(other.matrix.row, other.matrix.column);
    return other;
  }
};

// Neighbouring heads whose scores are computed at a time: all of the inner axes and a part of the next one, as many as
// divide it.
struct HeadBlocks {
  std::vector<int64_t> shape;  // of the leading axes
  int64_t heads = 1, count = 1;
  size_t axis = 0;  // the one of which a block has `part`; those before it have one index
  int64_t part = 1;

  HeadBlocks() = default;
  HeadBlocks(std::vector<int64_t> leading, int64_t most) : shape(std::move(leading)) {
    int64_t all = 1;
    for (int64_t size : shape) all *= size;
    axis = shape.size();
    if (all == 0) {
      count = heads = 0;
      return;
    }
    while (axis > 0 && part == (axis == shape.size() ? 1 : shape[axis])) {
      int64_t size = shape[--axis];
      part = std::clamp<int64_t>(most / heads, 1, size);
      while (size % part != 0) part--;
      heads *= part;
    }
    count = all / heads;
  }

  // Where a block begins in an operand.
  int64_t offset(const HeadOperand& operand, int64_t block) const {
    int64_t head = block * heads, at = 0;
    for (size_t i = shape.size(); i-- > 0; head /= shape[i]) at += head % shape[i] * operand.lead[i];
    return at;
  }

  // c [heads, m, n] = a b, c dense.
  linalg::ProductShape product(uint32_t dtype, int64_t m, int64_t n, int64_t k, const HeadOperand& a,
                               const HeadOperand& b) const {
    linalg::ProductShape s;
    s.dtype = dtype, s.m = m, s.n = n, s.k = k;
    s.a = a.matrix, s.b = b.matrix, s.c = {std::max<int64_t>(n, 1), 1};
    HeadOperand c(shape, m, n);
    for (size_t i = axis; i < shape.size(); i++) {
      s.batch.push_back({i == axis ? part : shape[i], a.lead[i], b.lead[i], c.lead[i]});
    }
    return s;
  }
};

struct Heads {
  std::vector<int64_t> shape;  // of the leading axes
  int64_t queries, keys, width, value_width;

  Heads(const pg_tensor& q, const pg_tensor& k, const pg_tensor& v)
      : shape(q.shape, q.shape + q.rank - 2),
        queries(q.shape[q.rank - 2]),
        keys(k.shape[q.rank - 2]),
        width(q.shape[q.rank - 1]),
        value_width(v.shape[q.rank - 1]) {}

  // With about 64 MiB of scores, `bytes` each, at a time: enough work for a GPU, of which its cache holds a good part
  // until the next kernel reads it. At least a head.
  HeadBlocks blocks(int64_t bytes) const {
    constexpr int64_t kBytes = int64_t{64} << 20;
    return HeadBlocks(shape, kBytes / bytes / std::max<int64_t>(queries * keys, 1));
  }
};

}  // namespace cuda
