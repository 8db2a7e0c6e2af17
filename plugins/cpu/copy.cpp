// SPDX-License-Identifier: Apache-2.0
#include "copy.hpp"

#include <algorithm>

#include "block_loop.hpp"

namespace cpu {
namespace {

char* start(const pg_tensor& t) { return reinterpret_cast<char*>(t.buffer + t.offset); }

void require_known(const pg_tensor& t, const char* what) {
  if (t.class_id != PG_CLASS_DENSE || t.layout != 0 || storage_of(t) == kStorageCount) {
    pg::fail_support(pg::format("%s on cpu does not take %s", what, pg::dtype_name(pg::dtype_of(t))));
  }
}

void copy_bytes(char* target, const char* source, int64_t bytes) {
  bool stream = bytes >= kStreamBytes;
  auto piece = [=](int64_t begin, int64_t end) {
    if (stream) {
      simd->stream_copy(target + begin, source + begin, end - begin);
      simd->stream_fence();
    } else {
      std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
    }
  };
  if (bytes <= kGrain * 4)
    std::memcpy(target, source, static_cast<size_t>(bytes));
  else
    pg::parallel_for(bytes, kGrain * 4, piece);
}

// target[r * target_stride + c] = source[r + c * source_stride], in tiles that fit the L1 cache.
template <class E>
void transpose(E* target, const E* source, int64_t rows, int64_t columns, int64_t target_stride,
               int64_t source_stride) {
  constexpr int64_t kTile = 16;
  E tile[kTile][kTile];
  for (int64_t c = 0; c < columns; c += kTile) {
    int64_t width = std::min(kTile, columns - c);
    for (int64_t r = 0; r < rows; r += kTile) {
      int64_t height = std::min(kTile, rows - r);
      if (height == kTile && width == kTile) {
        for (int64_t j = 0; j < kTile; j++) {
          for (int64_t i = 0; i < kTile; i++) tile[i][j] = source[r + i + (c + j) * source_stride];
        }
        for (int64_t i = 0; i < kTile; i++) {
          std::memcpy(target + (r + i) * target_stride + c, tile[i], sizeof tile[i]);
        }
        continue;
      }
      for (int64_t i = 0; i < height; i++) {
        for (int64_t j = 0; j < width; j++)
          target[(r + i) * target_stride + c + j] = source[r + i + (c + j) * source_stride];
      }
    }
  }
}

// The dimension along which the source is dense while the target is dense along the last one; -1: this is no transpose.
int transposed_dimension(const pg::Nest<2>& nest) {
  int last = nest.rank - 1;
  if (nest.rank < 2 || nest.stride[0][last] != 1 || nest.shape[last] < 4) return -1;
  if (nest.stride[1][last] == 1 || nest.stride[1][last] == 0) return -1;
  for (int i = 0; i < last; i++) {
    if (nest.stride[1][i] == 1 && nest.shape[i] >= 4) return i;
  }
  return -1;
}

template <class E>
void copy_transposed(const pg::Nest<2>& nest, int dense, E* target, const E* source) {
  int last = nest.rank - 1;
  int64_t rows = nest.shape[dense], columns = nest.shape[last];
  int64_t strip = std::max<int64_t>(16, (16384 / columns + 15) / 16 * 16);  // rows a piece of work has
  int64_t strips = (rows + strip - 1) / strip, outer = nest.count / (rows * columns);
  auto piece = [&](int64_t begin, int64_t end) {
    for (int64_t work = begin; work < end; work++) {
      int64_t rest = work / strips, first = work % strips * strip, to = 0, from = 0;
      for (int i = last - 1; i >= 0; i--) {
        if (i == dense) continue;
        int64_t index = rest % nest.shape[i];
        rest /= nest.shape[i];
        to += index * nest.stride[0][i];
        from += index * nest.stride[1][i];
      }
      transpose(target + to + first * nest.stride[0][dense], source + from + first, std::min(strip, rows - first),
                columns, nest.stride[0][dense], nest.stride[1][last]);
    }
  };
  int64_t grain = std::max<int64_t>(1, kGrain / (std::min(strip, rows) * columns));
  pg::parallel_for(outer * strips, grain, piece);
}

}  // namespace

void copy_tensor(const pg_tensor& target, const pg_tensor& source) {
  require_known(target, "copy");
  require_known(source, "copy");
  Storage to = storage_of(target), from = storage_of(source);
  BlockLoop<2> loop({{&target, to}, {&source, from}});
  const pg::Nest<2>& nest = loop.nest();
  if (nest.count == 0) return;
  char *out = start(target), *in = start(source);
  int bytes = kStorageBytes[to];
  if (from == to && nest.linear(0) && nest.linear(1)) return copy_bytes(out, in, nest.count * bytes);
  if (int dense = transposed_dimension(nest); from == to && dense >= 0) {
    return visit_bytes(bytes, [&](auto zero) {
      using E = decltype(zero);
      copy_transposed(nest, dense, reinterpret_cast<E*>(out), reinterpret_cast<const E*>(in));
    });
  }
  if (from == to && nest.in_order(0)) {
    auto piece = [&](int64_t begin, int64_t end) {
      if (nest.count * bytes < kStreamBytes)
        return gather(in, bytes, nest.rank, nest.shape, nest.stride[1], begin, end - begin, out + begin * bytes);
      alignas(64) char block[kBlock * 8];
      for (int64_t p = begin; p < end; p += kBlock) {
        int64_t n = std::min(kBlock, end - p);
        gather(in, bytes, nest.rank, nest.shape, nest.stride[1], p, n, block);
        simd->stream_copy(out + p * bytes, block, n * bytes);
      }
      simd->stream_fence();
    };
    if (nest.count <= kGrain) return piece(0, nest.count);
    return pg::parallel_for(nest.count, kGrain, piece);
  }
  void* base[2] = {out, in};
  loop.run(base, [=](void* const* p, int64_t n) { convert(from, to, p[1], p[0], n); });
}

void fill_tensor(const pg_tensor& target, const pg_number& value) {
  require_known(target, "fill");
  Storage to = storage_of(target);
  int bytes = kStorageBytes[to];
  alignas(8) char element[8] = {};
  put_number(to, value, element);
  char* out = start(target);
  int64_t count = pg::element_count(target);
  bool zero = true;
  for (int i = 0; i < bytes; i++) zero = zero && element[i] == 0;
  if (count > 0 && zero && pg::is_contiguous(target)) {
    auto piece = [=](int64_t begin, int64_t end) { std::memset(out + begin, 0, static_cast<size_t>(end - begin)); };
    if (count * bytes <= kGrain * 4) return piece(0, count * bytes);
    return pg::parallel_for(count * bytes, kGrain * 4, piece);
  }
  void* base[1] = {out};
  BlockLoop<1>({{&target, to}}).run(base, [&](void* const* p, int64_t n) { fill_elements(p[0], element, bytes, n); });
}

pg_tensor at_address(const pg_tensor& t, pg_address address) {
  pg_tensor copy = t;
  copy.buffer = address.buffer;
  copy.offset = address.offset;
  return copy;
}

}  // namespace cpu
