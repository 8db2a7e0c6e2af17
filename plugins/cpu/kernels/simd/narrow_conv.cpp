// SPDX-License-Identifier: Apache-2.0
// Convolutions of whole numbers: products of unsigned bytes by signed ones where the processor has them (VNNI), else of
// pairs of 16-bit numbers.
#include "narrow_conv.hpp"

namespace cpu::PG_CPU_ISA {

void add_narrow_winograd(NarrowConvLoop& loop);  // narrow_winograd.cpp

namespace {

#if defined(__AVX2__)
// t.room[block][i][j]: results of `kWindows` windows from `first` on by `kBlocks` blocks of filters.
template <class Way, int kWindows, int kBlocks>
[[gnu::always_inline]] inline void windows(const NarrowConvTile& t, int64_t first, const char* weight,
                                           const Finish* finish, float* room) {
  typename Way::Sums sums[kBlocks][kWindows];
  for (int64_t r = 0; r < t.runs; r++) {
    const char* x[kWindows];
#pragma GCC unroll 16
    for (int i = 0; i < kWindows; i++) x[i] = t.x + t.window[first + i] + t.run[r];
    for (int64_t u = 0; u < t.units; u++, weight += kConvUnits) {
      const typename Way::Filters low(weight), high(weight + (kBlocks - 1) * t.block_bytes);
#pragma GCC unroll 16
      for (int i = 0; i < kWindows; i++) {
        const typename Way::Unit unit = Way::unit(unit_at(x[i] + 4 * u));
        sums[0][i].add(unit, low);
        if constexpr (kBlocks == 2) sums[1][i].add(unit, high);
      }
    }
  }
#pragma GCC unroll 2
  for (int b = 0; b < kBlocks; b++) {
#pragma GCC unroll 16
    for (int i = 0; i < kWindows; i++) {
      sums[b][i].finish(finish[b], room + (b * kConvChunk + first + i) * kConvFilters);
    }
  }
}

template <class Way, int kBlocks>
[[gnu::always_inline]] inline void all_windows(const NarrowConvTile& t, const char* weight, const Finish* finish,
                                               float* room, int64_t filters, const float* y) {
  side_by_side<Way::kWindows>(
      t.kept, [&](auto count, int64_t i) __attribute__((always_inline)) {
        // Where results go, which are many places at once: nothing else fetches them in time.
        for (int64_t j = 0; j < filters; j++) __builtin_prefetch(y + j * t.step + i, 0, 2);
        windows<Way, decltype(count)::value, kBlocks>(t, i, weight, finish, room);
      });
}

template <class Way>
void multiply(const NarrowConvTile& t) {
  float scale[Way::kBlocks * kConvFilters], bias[Way::kBlocks * kConvFilters];
  alignas(64) float room[Way::kBlocks * kConvChunk * kConvFilters + kPutSlack];
  int32_t away[Way::kBlocks * kConvFilters];
  Finish finish[Way::kBlocks];
  const char* weight = t.weight;
  for (int64_t first = 0; first < t.filters; first += Way::kBlocks * kConvFilters) {
    const int64_t left = t.filters - first;
    for (int64_t j = 0; j < Way::kBlocks * kConvFilters; j++) {
      const bool there = j < left;
      scale[j] = there ? t.scale[first + j] * t.x_scale : 0;
      bias[j] = there && t.bias != nullptr ? t.bias[first + j] : 0;
      away[j] = there ? t.zero * t.sum[first + j] : 0;
    }
    for (int b = 0; b < Way::kBlocks; b++) {
      finish[b] = {away + b * kConvFilters, scale + b * kConvFilters, bias + b * kConvFilters, t.relu};
    }
    const float* y = t.y + first * t.step;
    if (Way::kBlocks == 2 && left > kConvFilters)
      all_windows<Way, Way::kBlocks>(t, weight, finish, room, left < 32 ? left : 32, y);
    else
      all_windows<Way, 1>(t, weight, finish, room, left < 16 ? left : 16, y);
    weight += Way::kBlocks * t.block_bytes;
    for (int64_t at = first, b = 0; b < Way::kBlocks && at < t.filters; b++, at += kConvFilters) {
      const int64_t count = t.filters - at < kConvFilters ? t.filters - at : kConvFilters;
      put(room + b * kConvChunk * kConvFilters, t.kept, count, t.step, t.y + at * t.step);
    }
  }
}

// ---- images ----

// A line's floats as whole numbers, and such numbers of four lines side by side.
#if defined(__AVX512F__)
struct Line {
  static constexpr int64_t kPixels = 16;
  using Whole = __m512i;
  __m512 scale, low, high;
  __m512i zero, nan;
  Line(const WholeRow& how, int32_t plus)
      : scale(_mm512_set1_ps(how.scale)),
        low(_mm512_set1_ps(how.low - how.zero)),
        high(_mm512_set1_ps(how.high - how.zero)),
        zero(_mm512_set1_epi32(static_cast<int32_t>(how.zero) + plus)),
        nan(_mm512_set1_epi32(plus)) {}
  [[gnu::always_inline]] Whole take(const float* p, int64_t n) const {
    const auto there = static_cast<__mmask16>(n >= kPixels ? 0xffff : (1 << n) - 1);
    __m512 x = _mm512_div_ps(_mm512_maskz_loadu_ps(there, p), scale);
    x = _mm512_min_ps(high, _mm512_max_ps(low, x));  // the second where one is NaN
    return _mm512_mask_add_epi32(nan, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), _mm512_cvtps_epi32(x), zero);
  }
  static Whole none() { return _mm512_setzero_si512(); }
  static Whole join_bytes(Whole a, Whole b, Whole c, Whole d) {
    a = _mm512_or_si512(a, _mm512_slli_epi32(b, 8)), c = _mm512_or_si512(c, _mm512_slli_epi32(d, 8));
    return _mm512_or_si512(a, _mm512_slli_epi32(c, 16));
  }
  static Whole join_shorts(Whole a, Whole b) {
    return _mm512_mask_blend_epi16(0xaaaaaaaa, a, _mm512_slli_epi32(b, 16));
  }
  static Whole low32(Whole a, Whole b) { return _mm512_unpacklo_epi32(a, b); }
  static Whole high32(Whole a, Whole b) { return _mm512_unpackhi_epi32(a, b); }
  static Whole low64(Whole a, Whole b) { return _mm512_unpacklo_epi64(a, b); }
  static Whole high64(Whole a, Whole b) { return _mm512_unpackhi_epi64(a, b); }
};
#else
struct Line {
  static constexpr int64_t kPixels = 8;
  using Whole = __m256i;
  __m256 scale, low, high;
  __m256i zero, nan;
  Line(const WholeRow& how, int32_t plus)
      : scale(_mm256_set1_ps(how.scale)),
        low(_mm256_set1_ps(how.low - how.zero)),
        high(_mm256_set1_ps(how.high - how.zero)),
        zero(_mm256_set1_epi32(static_cast<int32_t>(how.zero) + plus)),
        nan(_mm256_set1_epi32(plus)) {}
  [[gnu::always_inline]] Whole take(const float* p, int64_t n) const {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 all =
        n >= kPixels ? _mm256_loadu_ps(p)
                     : _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)), lanes));
    __m256 x = _mm256_div_ps(all, scale);
    x = _mm256_min_ps(high, _mm256_max_ps(low, x));  // the second where one is NaN
    const __m256i number = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_ORD_Q));
    return _mm256_blendv_epi8(nan, _mm256_add_epi32(_mm256_cvtps_epi32(x), zero), number);
  }
  static Whole none() { return _mm256_setzero_si256(); }
  static Whole join_bytes(Whole a, Whole b, Whole c, Whole d) {
    a = _mm256_or_si256(a, _mm256_slli_epi32(b, 8)), c = _mm256_or_si256(c, _mm256_slli_epi32(d, 8));
    return _mm256_or_si256(a, _mm256_slli_epi32(c, 16));
  }
  static Whole join_shorts(Whole a, Whole b) { return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa); }
  static Whole low32(Whole a, Whole b) { return _mm256_unpacklo_epi32(a, b); }
  static Whole high32(Whole a, Whole b) { return _mm256_unpackhi_epi32(a, b); }
  static Whole low64(Whole a, Whole b) { return _mm256_unpacklo_epi64(a, b); }
  static Whole high64(Whole a, Whole b) { return _mm256_unpackhi_epi64(a, b); }
};
#endif

// `n` pixels of 16 bytes each, or of as many channels as there are: pixel i is in lane i / 4 of vector i % 4.
struct Pixels {
  alignas(64) Line::Whole vector[4];
  [[gnu::always_inline]] explicit Pixels(const Line::Whole (&q)[4]) {
    const Line::Whole a = Line::low32(q[0], q[1]), b = Line::high32(q[0], q[1]);
    const Line::Whole c = Line::low32(q[2], q[3]), d = Line::high32(q[2], q[3]);
    vector[0] = Line::low64(a, c), vector[1] = Line::high64(a, c);
    vector[2] = Line::low64(b, d), vector[3] = Line::high64(b, d);
  }
  [[gnu::always_inline]] const char* pixel(int64_t i) const {
    return reinterpret_cast<const char*>(vector + i % 4) + i / 4 * 16;
  }
};

// `count` channels from one on, 16 bytes of them or fewer, of `n` pixels that are neighbours in x, pixel i of them from
// out[place[i]] on. Nothing from out[end] on is written: there are rows that another thread may have written.
template <class T>
[[gnu::always_inline]] inline void lay_out_pixels(const NarrowImage& t, int64_t count, const Line& line, const float* x,
                                                  const int64_t* place, int64_t n, T* out, int64_t end) {
  constexpr int64_t kAll = 16 / sizeof(T), kJoined = kAll / 4;
  for (int64_t at = 0; at < n; at += Line::kPixels) {
    const int64_t left = n - at;
    auto take = [&](int64_t c) { return c < count ? line.take(x + c * t.line + at, left) : Line::none(); };
    Line::Whole joined[4];
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; k++) {
      const int64_t c = k * kJoined;
      if constexpr (kJoined == 4)
        joined[k] = Line::join_bytes(take(c), take(c + 1), take(c + 2), take(c + 3));
      else
        joined[k] = Line::join_shorts(take(c), take(c + 1));
    }
    const Pixels pixels(joined);
    // What is written behind a pixel's channels is written again by the next ones.
    if (left >= Line::kPixels && place[at + Line::kPixels - 1] + kAll <= end) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < Line::kPixels; i++) __builtin_memcpy(out + place[at + i], pixels.pixel(i), 16);
      continue;
    }
    const int64_t here = left < Line::kPixels ? left : Line::kPixels;
    for (int64_t i = 0; i < here; i++) {
      if (count == kAll)
        __builtin_memcpy(out + place[at + i], pixels.pixel(i), 16);
      else
        __builtin_memcpy(out + place[at + i], pixels.pixel(i), static_cast<size_t>(count) * sizeof(T));
    }
  }
}

// So many pixels at a time, whose channels are read to the end of each stretch: rows that are neighbours are one. The
// channels that do not fill 16 bytes come first: they are written with others behind them.
template <class T>
void lay_out(const NarrowImage& image) {
  constexpr int64_t kAll = 16 / sizeof(T), kPiece = 1024;
  const NarrowImage t = image;
  const Line line(t.how, t.plus);
  const int64_t whole = t.channels / kAll * kAll, pixels = t.rows * t.width;
  const int64_t stretch = t.x_row == t.width ? pixels : t.width;
  int64_t place[kPiece];
  for (int64_t at = 0, n = 0; at < pixels; at += n) {
    const int64_t left = stretch - at % stretch;
    n = left < kPiece ? left : kPiece;
    int64_t column = at % t.width, to = at / t.width * t.row + column * t.channels;
    for (int64_t i = 0; i < n; i++) {
      place[i] = to, to += t.channels;
      if (++column == t.width) column = 0, to += t.row - t.width * t.channels;
    }
    const float* x = t.x + at / t.width * t.x_row + at % t.width;
    auto* out = static_cast<T*>(t.out);
    const int64_t end = (t.rows - 1) * t.row + t.width * t.channels;  // behind the last pixel
    if (whole < t.channels) {
      lay_out_pixels(t, t.channels - whole, line, x + whole * t.line, place, n, out + whole, end - whole);
    }
    for (int64_t c = 0; c < whole; c += kAll) lay_out_pixels(t, kAll, line, x + c * t.line, place, n, out + c, end - c);
  }
}
#endif

}  // namespace

NarrowConvLoop make_narrow_conv() {
#if defined(__AVX512F__)
  if (has_vnni()) return {Bytes::kUnit, 1, multiply<Bytes>, lay_out<uint8_t>};
#endif
#if defined(__AVX2__)
  NarrowConvLoop loop{AnyPairs::kUnit, kConvUnits / kVectorBytes, multiply<AnyPairs>, lay_out<int16_t>};
  add_narrow_winograd(loop);
  return loop;
#else
  return {};
#endif
}

}  // namespace cpu::PG_CPU_ISA
