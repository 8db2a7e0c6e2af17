// SPDX-License-Identifier: Apache-2.0
// Products of up to four rows of floats by a b that lies column by column (a linear layer's weight): bound by reading
// b, so it is read as it is, once, and widened in registers.
#include <algorithm>

#include "linalg/lanes.hpp"
#include "linalg/product.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kMostRows = 4, kPair = 2 * kLanes;
// From columns this long on one row of float32 takes less than in oneDNN, however many they are (10 x 2048: a fifth);
// more rows by a b this large do.
constexpr int64_t kLongColumn = 64, kLeast = 1024, kWorthIt = int64_t{1} << 16;
constexpr int64_t kGrain = int64_t{1} << 18;  // elements of b that are worth a thread

// Sixteen elements of a column, and those of a row that belong to them. Two of bfloat16 share a word: taking first the
// lower ones, then the upper ones, costs an instruction each; a is laid out so once.
template <class T>
PG_AVX2_INLINE void load_pair(const T* from, Lanes& first, Lanes& second) {
  load_lanes(from, first), load_lanes(from + kLanes, second);
}
PG_AVX2_INLINE void load_pair(const BFloat16* from, Lanes& first, Lanes& second) {
  __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  first = (Lanes)_mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
  second = (Lanes)_mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}
template <class T>
int64_t place_in_row(int64_t p, int64_t k) {
  if (!std::is_same_v<T, BFloat16> || p >= k / kPair * kPair) return p;
  return p / kPair * kPair + p % 2 * kLanes + p % kPair / 2;
}

// Lays out the pairs of a dense row; answers how many elements that were.
template <class T>
PG_AVX2 int64_t lay_out_pairs(const T* row, int64_t k, float* out) {
  int64_t p = 0;
  for (; p + kPair <= k; p += kPair) {
    Lanes first, second;
    load_pair(row + p, first, second);
    store_lanes(first, out + p), store_lanes(second, out + p + kLanes);
  }
  return p;
}

// Adds to each total the lanes of its sum, from the first one on: of eight sums side by side, which gives the same
// bits.
template <int Count>
PG_AVX2_INLINE void add_up(Lanes (&sum)[Count], float (&total)[Count]) {
  if constexpr (Count == kLanes) {
    Lanes result;
    load_lanes(total, result);
    turn(sum);
#pragma GCC unroll 8
    for (int i = 0; i < kLanes; i++) result += sum[i];
    store_lanes(result, total);
  } else {
    for (int q = 0; q < Count; q++) {
      for (int64_t i = 0; i < kLanes; i++) total[q] += sum[q][i];
    }
  }
}

// Sixteen elements from one on, or what is left of them with zeros behind it.
struct Whole {
  int64_t at;
  template <class T>
  PG_AVX2_INLINE void load(const T* from, Lanes (&to)[2]) const {
    load_pair(from + at, to[0], to[1]);
  }
};
struct Rest {
  int64_t at, count;
  PG_AVX2_INLINE void load(const float* from, Lanes (&to)[2]) const {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), all = _mm256_set1_epi32(static_cast<int>(count));
    const __m256i second = _mm256_add_epi32(lanes, _mm256_set1_epi32(kLanes));
    to[0] = (Lanes)_mm256_maskload_ps(from + at, _mm256_cmpgt_epi32(all, lanes));
    to[1] = (Lanes)_mm256_maskload_ps(from + at + kLanes, _mm256_cmpgt_epi32(all, second));
  }
};

// Their products of each row by each column, on top of the sums from `part` on.
template <class T, class Pair, int Rows, int Columns, int Parts>
PG_AVX2_INLINE void add_pair(const ProductShape& s, const float* a, const T* column, Pair pair, int part,
                             Lanes (&sum)[Rows][Columns][Parts]) {
  Lanes x[Rows][2];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; r++) pair.load(a + r * s.k, x[r]);
#pragma GCC unroll 8
  for (int q = 0; q < Columns; q++) {
    Lanes y[2];
    pair.load(column + q * s.b.column, y);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; r++) {
      sum[r][q][part % Parts] += x[r][0] * y[0];
      sum[r][q][(part + 1) % Parts] += x[r][1] * y[1];
    }
  }
}

// Rows of c in columns j to j + Columns. Several columns of b are read side by side where sums of several rows do not
// already keep the processor busy: that is more of b under way from the last cache at a time.
template <class T, int Rows, int Columns>
PG_AVX2_INLINE void columns(const ProductShape& s, const float* a, const T* b, const T* bias, T* c, int64_t j) {
  // Sums that do not wait for each other.
  constexpr int kParts = Rows * Columns == 1 ? 8 : Rows * Columns == 2 ? 4 : Rows * Columns < 8 ? 2 : 1;
  constexpr int kPairs = kParts > 2 ? kParts / 2 : 1;
  const T* column = b + j * s.b.column;
  Lanes sum[Rows][Columns][kParts] = {};
  int64_t p = 0;
  for (; p + kPairs * kPair <= s.k; p += kPairs * kPair) {
#pragma GCC unroll 4
    for (int pair = 0; pair < kPairs; pair++) add_pair(s, a, column, Whole{p + pair * kPair}, 2 * pair, sum);
  }
  if constexpr (std::is_same_v<T, float>) {
    for (; p + kPair <= s.k; p += kPair) add_pair(s, a, column, Whole{p}, 0, sum);
    if (p < s.k) add_pair(s, a, column, Rest{p, s.k - p}, 0, sum);
    p = s.k;
  }
  for (int r = 0; r < Rows; r++) {
    Lanes all[Columns];
#pragma GCC unroll 8
    for (int q = 0; q < Columns; q++) {
      all[q] = sum[r][q][0];
#pragma GCC unroll 8
      for (int part = 1; part < kParts; part++) all[q] += sum[r][q][part];
    }
    float total[Columns];
#pragma GCC unroll 8
    for (int q = 0; q < Columns; q++) total[q] = bias != nullptr ? load<T>(bias[(j + q) * s.bias_stride]) : 0;
    add_up(all, total);
    for (int q = 0; q < Columns; q++) {
      for (int64_t i = p; i < s.k; i++)
        total[q] += load<T>(column[q * s.b.column + i]) * a[r * s.k + place_in_row<T>(i, s.k)];
      c[r * s.c.row + (j + q) * s.c.column] = store<T>(total[q]);
    }
  }
}

// Groups of columns: how a column is summed does not depend on where threads meet.
template <class T, int Rows>
constexpr int kColumns = Rows == 1 ? 8 : 1;
template <class T, int Rows>
PG_AVX2 void groups(const ProductShape& s, const float* a, const T* b, const T* bias, T* c, int64_t begin, int64_t end,
                    bool backwards) {
  constexpr int kWide = kColumns<T, Rows>;
  for (int64_t group = begin; group < end; group++) {
    int64_t j = (backwards ? end - 1 - (group - begin) : group) * kWide;
    if (j + kWide <= s.n) {
      columns<T, Rows, kWide>(s, a, b, bias, c, j);
    } else {
      for (; j < s.n; j++) columns<T, Rows, 1>(s, a, b, bias, c, j);
    }
  }
}

template <class T>
class FewRowsProduct final : public Product {
 public:
  explicit FewRowsProduct(const ProductShape& shape) : s_(shape) {}
  uint64_t workspace() const override { return static_cast<uint64_t>(s_.m * s_.k) * sizeof(float) + 64; }

  void run(const ProductData& data) override {
    const float* a = dense_rows(static_cast<const T*>(data.a), static_cast<float*>(Scratch(data.workspace).take(0)));
    switch (s_.m) {
      case 1: return multiply<1>(data, a);
      case 2: return multiply<2>(data, a);
      case 3: return multiply<3>(data, a);
      default: return multiply<4>(data, a);
    }
  }

 private:
  // a in float32, row by row: where it lies so already, as it is.
  const float* dense_rows(const T* a, float* room) const {
    if constexpr (std::is_same_v<T, float>) {
      if (s_.a.column == 1 && (s_.m == 1 || s_.a.row == s_.k)) return a;
    }
    for (int64_t i = 0; i < s_.m; i++) {
      const T* row = a + i * s_.a.row;
      float* out = room + i * s_.k;
      int64_t p = s_.a.column == 1 ? lay_out_pairs(row, s_.k, out) : 0;
      for (; p < s_.k; p++) out[place_in_row<T>(p, s_.k)] = load<T>(row[p * s_.a.column]);
    }
    return room;
  }

  template <int Rows>
  void multiply(const ProductData& data, const float* a) const {
    constexpr int kWide = kColumns<T, Rows>;
    auto *b = static_cast<const T*>(data.b), *bias = static_cast<const T*>(data.bias);
    auto* c = static_cast<T*>(data.c);
    parallel_for(
        (s_.n + kWide - 1) / kWide, std::max<int64_t>(1, kGrain / (s_.k * kWide)),
        [&, a](int64_t begin, int64_t end) { groups<T, Rows>(s_, a, b, bias, c, begin, end, data.backwards); });
  }
  ProductShape s_;
};

}  // namespace

std::unique_ptr<Product> make_few_rows_product(const ProductShape& s) {
  if (!s.batch.empty() || s.m > kMostRows || s.b.row != 1) return nullptr;
  if (s.dtype == PG_BF16) return std::make_unique<FewRowsProduct<BFloat16>>(s);
  if (s.dtype == PG_F16) return std::make_unique<FewRowsProduct<Half>>(s);
  const bool pays = s.m == 1 ? s.k >= kLongColumn && s.n * s.k >= kLeast : s.n * s.k >= kWorthIt;
  if (s.dtype == PG_F32 && pays) return std::make_unique<FewRowsProduct<float>>(s);
  return nullptr;
}

}  // namespace pg::cpu
