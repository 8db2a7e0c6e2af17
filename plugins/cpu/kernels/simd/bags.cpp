// SPDX-License-Identifier: Apache-2.0
// Rows of a table picked by index and put together, a bag at a time.
#include "../../bag_rows.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

constexpr int64_t kLanes = kVectorLanes<float>, kAhead = 16;  // kAhead: indices whose rows are on their way

// Columns [column, column + kVectors vectors), or, with kVectors 0, the `rest` behind the last vector; of one bag. The
// number of indices that count; -1: one is out of range.
template <int kVectors, bool kWeighed>
[[gnu::always_inline]] inline int64_t sum_columns(const BagSums& t, int64_t bag, int64_t column, int64_t rest) {
  constexpr int64_t lines = kVectors > 0 ? (kVectors * kVectorBytes + 63) / 64 : 1;
  constexpr int vectors = kVectors > 0 ? kVectors : 1;
  Vector<float> sum[vectors] = {};
  float single[kLanes] = {};
  // What the loop reads of t, once.
  const int64_t *index = t.index, last = t.indices - 1, end = t.begin[bag + 1], skip = t.skip;
  const auto rows = static_cast<uint64_t>(t.rows), row_bytes = static_cast<uint64_t>(t.columns) * sizeof(float);
  const auto table = reinterpret_cast<uint64_t>(t.table + column);
  const float* weight = t.weight;
  int64_t count = 0;
  for (int64_t k = t.begin[bag]; k < end; k++) {
    const int64_t at = index[k];
    if (__builtin_expect(static_cast<uint64_t>(at) >= rows, 0)) return -1;
    // An index that is not one yet may lead anywhere: nothing is read there.
    const uint64_t ahead = table + static_cast<uint64_t>(index[k + kAhead < last ? k + kAhead : last]) * row_bytes;
    for (int64_t i = 0; i < lines; i++) __builtin_prefetch(reinterpret_cast<const char*>(ahead) + i * 64);
    if (__builtin_expect(at == skip, 0)) continue;
    count++;
    const auto* row = reinterpret_cast<const float*>(table + static_cast<uint64_t>(at) * row_bytes);
    const float w = kWeighed ? weight[k] : 1;
    if constexpr (kVectors > 0) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; j++) {
        const Vector<float> x = load_vector(row + j * kLanes);
        sum[j] = kWeighed ? multiply_add(w, x, sum[j]) : sum[j] + x;
      }
    } else {
      for (int64_t j = 0; j < rest; j++) single[j] += kWeighed ? w * row[j] : row[j];
    }
  }
  const float by = t.mean && count > 0 ? static_cast<float>(count) : 1.0F;
  float* out = t.out + bag * t.columns + column;
  if constexpr (kVectors > 0) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; j++) store_vector(out + j * kLanes, t.mean ? sum[j] / by : sum[j]);
  } else {
    for (int64_t j = 0; j < rest; j++) out[j] = t.mean ? single[j] / by : single[j];
  }
  return count;
}

template <bool kWeighed>
bool sums_of(const BagSums& t, int64_t first, int64_t last) {
  for (int64_t bag = first; bag < last; bag++) {
    int64_t column = 0, got = 0;
    for (; got >= 0 && column + 8 * kLanes <= t.columns; column += 8 * kLanes)
      got = sum_columns<8, kWeighed>(t, bag, column, 0);
    for (; got >= 0 && column + 4 * kLanes <= t.columns; column += 4 * kLanes)
      got = sum_columns<4, kWeighed>(t, bag, column, 0);
    for (; got >= 0 && column + kLanes <= t.columns; column += kLanes)
      got = sum_columns<1, kWeighed>(t, bag, column, 0);
    if (got >= 0 && column < t.columns) got = sum_columns<0, kWeighed>(t, bag, column, t.columns - column);
    if (got < 0) return false;
  }
  return true;
}

bool bag_sums(const BagSums& t, int64_t first, int64_t last) {
  return t.weight != nullptr ? sums_of<true>(t, first, last) : sums_of<false>(t, first, last);
}

template <class T>
void larger_row(const void* row, int64_t n, int32_t place, void* top, int32_t* at) {
  const T* x = static_cast<const T*>(row);
  T* most = static_cast<T*>(top);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) {
    const bool larger = !(x[i] <= most[i]) && most[i] == most[i];
    most[i] = larger ? x[i] : most[i];
    at[i] = larger ? place : at[i];
  }
}

}  // namespace

void fill_bags(Simd& table) {
  table.bag_sums = bag_sums;
  table.larger_row[0] = larger_row<float>;
  table.larger_row[1] = larger_row<double>;
}

}  // namespace cpu::PG_CPU_ISA
