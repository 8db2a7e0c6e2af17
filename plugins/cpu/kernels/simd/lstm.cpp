// SPDX-License-Identifier: Apache-2.0
// An LSTM's step behind its products, and its way back, in one pass: what lies between the formulas stays in registers.
#include "../../lstm_piece.hpp"
#include "perigee/kernels/math.hpp"
#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

using pg::math::sigmoid_of;
using pg::math::tanh_of;

template <class T>
[[gnu::always_inline]] inline const T* in(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
[[gnu::always_inline]] inline T* out(void* p) {
  return static_cast<T*>(p);
}

// Elements from `begin` on of a gate, and of the states behind the gates.
template <bool tangent, class T>
[[gnu::always_inline]] inline void plain_gate(const T* x, const T* hidden, T* y, int64_t begin, int64_t n) {
  PG_LOOP
  for (int64_t j = begin; j < n; j++) y[j] = tangent ? tanh_of(x[j] + hidden[j]) : sigmoid_of(x[j] + hidden[j]);
}
template <class T>
[[gnu::always_inline]] inline void plain_states(const LstmForward& t, T* const* y, int64_t begin, int64_t n) {
  const T *i = y[0], *f = y[1], *g = y[2], *o = y[3], *c = in<T>(t.c);
  T *last = y[4], *next = out<T>(t.next), *h = out<T>(t.h);
  PG_LOOP
  for (int64_t j = begin; j < n; j++) {
    const T state = f[j] * c[j] + i[j] * g[j], tangent = tanh_of(state);
    next[j] = state, last[j] = tangent, h[j] = o[j] * tangent;
  }
}

#if defined(__AVX2__)
using Floats = Vector<float>;
#if defined(__AVX512F__)
typedef uint32_t Words __attribute__((vector_size(64)));
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
[[gnu::always_inline]] inline Floats fused_minus(Floats a, Floats b, Floats c) {  // c - a b
  return (Floats)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
// The second where one is NaN.
[[gnu::always_inline]] inline Floats lesser(Floats a, Floats b) { return (Floats)_mm512_min_ps((__m512)a, (__m512)b); }
[[gnu::always_inline]] inline Floats greater(Floats a, Floats b) { return (Floats)_mm512_max_ps((__m512)a, (__m512)b); }
#else
typedef uint32_t Words __attribute__((vector_size(32)));
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
[[gnu::always_inline]] inline Floats fused_minus(Floats a, Floats b, Floats c) {
  return (Floats)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
[[gnu::always_inline]] inline Floats lesser(Floats a, Floats b) { return (Floats)_mm256_min_ps((__m256)a, (__m256)b); }
[[gnu::always_inline]] inline Floats greater(Floats a, Floats b) { return (Floats)_mm256_max_ps((__m256)a, (__m256)b); }
#endif
[[gnu::always_inline]] inline Floats all(float x) { return x - Floats{}; }

// Two vectors side by side, instruction by instruction: each waits for the other's results instead of its own.
constexpr int kPair = 2;
#define PG_PAIR _Pragma("GCC unroll 2") for (int k = 0; k < kPair; k++)

// e^z = 2^n (1 + p), the formulas of fast_math.hpp; 2^n as it is added to a float's exponent.
struct Exponentials {
  Floats p[kPair];
  Words n[kPair];
};
[[gnu::always_inline]] inline void find_exponentials(const Floats (&z)[kPair], Exponentials& e) {
  Floats whole[kPair], r[kPair], square[kPair], tail[kPair], rest[kPair];
  PG_PAIR tail[k] = z[k] * all(1.44269504f);
  PG_PAIR tail[k] = tail[k] + all(12582912.0f);
  PG_PAIR e.n[k] = (Words)tail[k] << 23;
  PG_PAIR whole[k] = tail[k] - all(12582912.0f);
  PG_PAIR r[k] = fused_minus(whole[k], all(0.693145752f), z[k]);
  PG_PAIR r[k] = fused_minus(whole[k], all(1.42860677e-6f), r[k]);
  PG_PAIR square[k] = r[k] * r[k];
  PG_PAIR tail[k] = fused(all(0.000199089087f), r[k], all(0.00139345442f));
  PG_PAIR rest[k] = fused(all(0.0083332841f), r[k], all(0.0416664568f));
  PG_PAIR tail[k] = fused(tail[k], square[k], rest[k]);
  PG_PAIR rest[k] = fused(all(0.166666668f), r[k], all(0.5f));
  PG_PAIR tail[k] = fused(tail[k], square[k], rest[k]);
  PG_PAIR e.p[k] = fused(square[k], tail[k], r[k]);
}
// Between bounds beyond which 1 + e^-x is 1, or e^-x has a reciprocal that is no normal number, one step scales it.
[[gnu::always_inline]] inline void sigmoids(Floats (&x)[kPair]) {
  Exponentials e;
  PG_PAIR x[k] = -lesser(all(87.3f), greater(all(-87.3f), x[k]));
  find_exponentials(x, e);
  PG_PAIR e.p[k] = (Floats)((Words)(e.p[k] + all(1.0f)) + e.n[k]);
  PG_PAIR x[k] = all(1.0f) / (all(1.0f) + e.p[k]);
}
[[gnu::always_inline]] inline void tangents(Floats (&x)[kPair]) {
  Exponentials e;
  Floats z[kPair], scale[kPair];
  Words sign[kPair];
  PG_PAIR sign[k] = (Words)x[k] & (Words)all(-0.0f);
  PG_PAIR z[k] = lesser(all(10.0f), (Floats)((Words)x[k] ^ sign[k]));
  PG_PAIR z[k] = z[k] + z[k];
  find_exponentials(z, e);
  PG_PAIR scale[k] = (Floats)((Words)all(1.0f) + e.n[k]);
  PG_PAIR z[k] = fused(scale[k], e.p[k], scale[k] - all(1.0f));
  PG_PAIR x[k] = (Floats)((Words)(z[k] / (z[k] + all(2.0f))) | sign[k]);
}
constexpr int64_t kPairLanes = kPair * kVectorLanes<float>;
[[gnu::always_inline]] inline void load_pair(const float* from, Floats (&to)[kPair]) {
  PG_PAIR to[k] = load_vector(from + k * kVectorLanes<float>);
}
[[gnu::always_inline]] inline void store_pair(float* to, const Floats (&from)[kPair]) {
  PG_PAIR store_vector(to + k * kVectorLanes<float>, from[k]);
}

template <bool tangent>
[[gnu::always_inline]] inline int64_t pairs_of_gate(const float* x, const float* hidden, float* y, int64_t n) {
  int64_t j = 0;
  for (; j + kPairLanes <= n; j += kPairLanes) {
    Floats sum[kPair], other[kPair];
    load_pair(x + j, sum), load_pair(hidden + j, other);
    PG_PAIR sum[k] = sum[k] + other[k];
    tangent ? tangents(sum) : sigmoids(sum);
    store_pair(y + j, sum);
  }
  return j;
}
[[gnu::always_inline]] inline int64_t pairs_of_states(const LstmForward& t, float* const* y, int64_t n) {
  int64_t j = 0;
  for (; j + kPairLanes <= n; j += kPairLanes) {
    Floats state[kPair], i[kPair], f[kPair], g[kPair], o[kPair];
    load_pair(in<float>(t.c) + j, state);
    load_pair(y[0] + j, i), load_pair(y[1] + j, f), load_pair(y[2] + j, g), load_pair(y[3] + j, o);
    PG_PAIR state[k] = f[k] * state[k] + i[k] * g[k];
    store_pair(out<float>(t.next) + j, state);
    tangents(state);
    store_pair(y[4] + j, state);
    PG_PAIR state[k] = o[k] * state[k];
    store_pair(out<float>(t.h) + j, state);
  }
  return j;
}
#undef PG_PAIR

template <bool tangent>
[[gnu::always_inline]] inline void gate(const float* x, const float* hidden, float* y, int64_t n) {
  plain_gate<tangent>(x, hidden, y, pairs_of_gate<tangent>(x, hidden, y, n), n);
}
[[gnu::always_inline]] inline void states(const LstmForward& t, float* const* y, int64_t n) {
  plain_states(t, y, pairs_of_states(t, y, n), n);
}
#endif

template <bool tangent, class T>
[[gnu::always_inline]] inline void gate(const T* x, const T* hidden, T* y, int64_t n) {
  plain_gate<tangent>(x, hidden, y, 0, n);
}
template <class T>
[[gnu::always_inline]] inline void states(const LstmForward& t, T* const* y, int64_t n) {
  plain_states(t, y, 0, n);
}

// Gate by gate: functions of all four in one loop would wait for each other.
template <class T>
void forward(const LstmForward& given, int64_t n) {
  const LstmForward t = given;  // what is written is none of its pointers
  alignas(64) T room[kLstmKept][kLstmPiece];
  T* y[kLstmKept];
  for (int k = 0; k < kLstmKept; k++) y[k] = t.gates[0] != nullptr ? out<T>(t.gates[k]) : room[k];
  gate<false>(in<T>(t.x[0]), in<T>(t.hidden[0]), y[0], n);
  gate<false>(in<T>(t.x[1]), in<T>(t.hidden[1]), y[1], n);
  gate<true>(in<T>(t.x[2]), in<T>(t.hidden[2]), y[2], n);
  gate<false>(in<T>(t.x[3]), in<T>(t.hidden[3]), y[3], n);
  states(t, y, n);
}

template <class T, bool flows_h, bool flows_y, bool flows_c>
void plain_back(const LstmBack& t, int64_t n) {
  constexpr bool flows = flows_h || flows_y;
  const pg::math::SigmoidGrad through_sigmoid;
  const pg::math::TanhGrad through_tanh;
  const T none[pg::math::kMaxParameters] = {};
  const T *dh = in<T>(t.dh), *dy = in<T>(t.dy), *dnext = in<T>(t.dnext), *c = in<T>(t.c);
  const T *yi = in<T>(t.gates[0]), *yf = in<T>(t.gates[1]), *yg = in<T>(t.gates[2]), *yo = in<T>(t.gates[3]),
          *yt = in<T>(t.gates[4]);
  T *di = out<T>(t.dx[0]), *df = out<T>(t.dx[1]), *dg = out<T>(t.dx[2]), *d_o = out<T>(t.dx[3]), *dc = out<T>(t.dc);
  PG_LOOP
  for (int64_t j = 0; j < n; j++) {
    const T i = yi[j], f = yf[j], g = yg[j], o = yo[j], last = yt[j];
    T flow = 0, d = 0;
    if constexpr (flows_h) flow = dh[j];
    if constexpr (flows_y) flow = flows_h ? flow + dy[j] : dy[j];
    if constexpr (flows) d = through_tanh(last, flow * o, none);
    if constexpr (flows_c) d = flows ? dnext[j] + d : dnext[j];
    di[j] = through_sigmoid(i, d * g, none);
    df[j] = through_sigmoid(f, d * c[j], none);
    dg[j] = through_tanh(g, d * i, none);
    d_o[j] = through_sigmoid(o, flows ? flow * last : T(0), none);
    dc[j] = d * f;
  }
}

template <class T>
void back(const LstmBack& t, int64_t n) {
  using Loop = void (*)(const LstmBack&, int64_t);
  static constexpr Loop loops[8] = {
      nullptr,
      plain_back<T, true, false, false>,
      plain_back<T, false, true, false>,
      plain_back<T, true, true, false>,
      plain_back<T, false, false, true>,
      plain_back<T, true, false, true>,
      plain_back<T, false, true, true>,
      plain_back<T, true, true, true>,
  };
  loops[(t.dh != nullptr) | (t.dy != nullptr) << 1 | (t.dnext != nullptr) << 2](t, n);
}

}  // namespace

LstmLoops make_lstm() { return {{forward<float>, forward<double>}, {back<float>, back<double>}}; }

}  // namespace cpu::PG_CPU_ISA
