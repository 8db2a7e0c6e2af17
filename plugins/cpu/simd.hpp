// SPDX-License-Identifier: Apache-2.0
// The inner loops, compiled once per instruction set from kernels/simd/*.cpp; the table of the best one that this
// processor has is chosen when the plugin opens. Everything else in the plugin is compiled for the baseline.
//
// Loops work on dense blocks of a compute type; converting, gathering and threading are their callers' work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bag_rows.hpp"
#include "image_rows.hpp"
#include "narrow_rows.hpp"
#include "perigee/kernels/losses.hpp"
#include "perigee/kernels/math.hpp"
#include "perigee/kernels/optimizer.hpp"
#include "resample_row.hpp"

namespace cpu {

// What arithmetic is done in. The 16-bit floats compute in f32, bool and the smaller integers in i32.
enum Compute : uint8_t { kF32, kF64, kI64, kI32, kComputeCount };

// Storage dtypes, densely numbered. Nothing computes with the last two: their elements are moved and converted.
enum Storage : uint8_t { sF64, sF32, sF16, sBF16, sI64, sI32, sI16, sI8, sU8, sBool, sE4M3FN, sE5M2, kStorageCount };

using BinaryFn = void (*)(const void* a, const void* b, void* out, int64_t n);
using UnaryFn = void (*)(const void* x, void* out, int64_t n, const void* params);
using TernaryFn = void (*)(const void* a, const void* b, const void* c, void* out, int64_t n, const void* params);
using SlopeFn = void (*)(const void* x, const void* d, void* out, int64_t n, const void* params);
// Of losses.hpp: the sum of what n elements cost; their slopes times `scale`. What each costs is a TernaryFn.
using LossSumFn = double (*)(const void* x, const void* y, const void* a, int64_t n, const void* params);
using LossSlopeFn = void (*)(const void* x, const void* y, const void* a, void* out, int64_t n, double scale,
                             const void* params);
using ConvertFn = void (*)(const void* source, void* target, int64_t n);
// Chooses between x and y by byte-sized conditions; by element size.
using SelectFn = void (*)(const uint8_t* condition, const void* x, const void* y, void* out, int64_t n);

// A running reduction of one output element. f: floating accumulations, i: integer ones; which is used depends on the
// operator and the compute type. `count` elements have gone in.
struct Acc {
  double f = 0, m2 = 0;
  int64_t i = 0, count = 0;
};
// Takes n dense elements, of which the first has position `base` in the reduced axis.
using ReduceFn = void (*)(const void* x, int64_t n, int64_t base, Acc* acc);
// acc[j] = acc[j] op x[i * stride + j] for rows i and columns j, in the compute type.
using ColumnFn = void (*)(const void* x, int64_t stride, int64_t rows, int64_t columns, void* acc);

using enum pg::math::Primitive;
using pg::math::kPrimitiveCount;
using pg::math::Primitive;

#define PG_ROW(name, ...) l##name,
enum LossOp : uint8_t { PG_MATH_LOSS(PG_ROW) kLossCount };
#undef PG_ROW
enum ReduceOp : uint8_t {
  rSum,
  rProd,
  rAmax,
  rAmin,
  rAny,
  rAll,
  rArgmax,
  rArgmin,
  rVar,
  rLogsumexp,
  // Sums, and extremes, of functions of the elements.
  rNumbers,     // 0 for NaN
  rNonzeros,    // 1, and 0 for 0
  rMagnitudes,  // |x|
  rSquares,
  rAbsMax,
  rAbsMin,
  kReduceCount
};

// Rules of perigee/kernels/optimizer.hpp.
enum UpdateRule : uint8_t {
#define PG_ROW(name, Rule) r##Rule##Step,
  PG_UPDATE_RULES(PG_ROW)
#undef PG_ROW
      kUpdateCount
};
// p: a pointer an operand, NULL where it is absent; rule: the rule's struct.
using UpdateFn = void (*)(char* const* p, int64_t n, const void* rule);

struct AttentionPass;  // attention_pass.hpp
using AttentionFn = void (*)(const AttentionPass& pass);
// target[j][i] = source[i][j]: `rows` rows of `columns` elements; the rest of the target's rows of kAttentionKeys is 0.
using TurnFn = void (*)(const void* source, int64_t step, int64_t rows, int64_t columns, void* target);

// Lines that are worked on side by side: 128 bytes of them.
template <class T>
constexpr int64_t kLines = 128 / static_cast<int64_t>(sizeof(T));
constexpr int64_t kMostLines = kLines<float>;
constexpr int64_t kShortLine = 64;  // elements: lines up to here are turned and worked on together
using RowFn = void (*)(const void* x, void* y, int64_t n);
using LinesFn = void (*)(const void* x, int64_t x_step, void* y, int64_t y_step, int64_t n, int64_t width);
using RowGradFn = void (*)(const void* y, const void* dy, void* dx, int64_t n);
using LinesGradFn = void (*)(const void* y, int64_t y_step, const void* dy, int64_t dy_step, void* dx, int64_t dx_step,
                             int64_t n, int64_t width);
// `count` (at most kLines) dense lines of n elements into a tile, or back: element c of line r lies at tile[c * kLines
// + r]. Lines that are not there are 0.
using TurnInFn = void (*)(const void* lines, int64_t count, int64_t n, void* tile);
using TurnOutFn = void (*)(const void* tile, int64_t count, int64_t n, void* lines);
// The way back through amax and amin (y: the extremes) or prod (y unused), of a tile of lines; y and dy a number a
// line.
using ShortGradFn = void (*)(const void* x, const void* y, const void* dy, void* dx, int64_t n);
// Normalisation of a tile's lines of n elements (norm_rows.hpp has the formulas); `centred`: layer_norm, else rms_norm,
// which has no bias and no mean. All of one type: weight and bias have n elements, mean and invstd a number a line.
using NormLinesFn = void (*)(const void* x, int64_t n, bool centred, double eps, const void* weight, const void* bias,
                             void* y, void* mean, void* invstd);
// dweight and dbias are tiles to which each line adds what it gives.
using NormGradLinesFn = void (*)(const void* dy, const void* x, int64_t n, bool centred, const void* mean,
                                 const void* invstd, const void* weight, void* dx, void* dweight, void* dbias);
// The reduction of each of `count` dense lines of n elements, 0 < n <= kShortLine: as many results of the lines' type,
// int64_t for positions.
using ShortFn = void (*)(const void* lines, int64_t count, int64_t n, void* results);
// `rows` elements, `step` apart, each of them `times` over.
using RepeatFn = void (*)(const void* source, int64_t step, int64_t rows, int64_t times, void* target);

struct Simd {
  const char* name;
  // By primitive, those of other forms being empty.
  BinaryFn binary[kPrimitiveCount][kComputeCount];  // NULL: not defined for the type
  // The same, written past the caches; stream_fence as for stream_copy. NULL: not worth it.
  BinaryFn binary_stream[kPrimitiveCount][kComputeCount];
  UnaryFn unary[kPrimitiveCount][kComputeCount];
  TernaryFn ternary[kPrimitiveCount][kComputeCount];
  SlopeFn slope[kPrimitiveCount][kComputeCount];
  TernaryFn loss[kLossCount][2];  // float, double
  LossSumFn loss_sum[kLossCount][2];
  LossSlopeFn loss_slope[kLossCount][2];
  // Of bools, a byte each, without blocks of int32 in between. NULL: not there.
  UnaryFn unary_bool[kPrimitiveCount];
  BinaryFn binary_bool[kPrimitiveCount];
  // Of dense bfloat16, without blocks of float32 in between; parameters are float32. NULL: not worth it.
  UnaryFn unary_bf16[kPrimitiveCount];
  BinaryFn binary_bf16[kPrimitiveCount];
  TernaryFn ternary_bf16[kPrimitiveCount];
  SlopeFn slope_bf16[kPrimitiveCount];
  SelectFn select[4];  // elements of 1, 2, 4, 8 bytes
  RepeatFn repeat[4];
  ConvertFn f16_to_f32, f32_to_f16, bf16_to_f32, f32_to_bf16, e4m3fn_to_f32, f32_to_e4m3fn, e5m2_to_f32, f32_to_e5m2;
  ReduceFn reduce[kReduceCount][kComputeCount];
  ColumnFn column[kReduceCount][kComputeCount];
  ColumnFn column_bf16[kReduceCount];  // of bfloat16, into float32. NULL: not there
  // Writes past the caches; `target` need not be aligned. Call stream_fence when a thread is done.
  void (*stream_copy)(void* target, const void* source, int64_t bytes);
  void (*stream_fence)();
  // By log (0: softmax, 1: its logarithm) and float or double: a line of n elements, or up to kLines lines that lie
  // side by side, elements a step apart; and the gradient, of y and dy. The result may lie where an argument does.
  RowFn softmax_row[2][2];
  LinesFn softmax_lines[2][2];
  RowGradFn softmax_grad_row[2][2];
  LinesGradFn softmax_grad_lines[2][2];
  TurnInFn turn_in[2];  // float, double
  TurnOutFn turn_out[2];
  ShortFn short_lines[kReduceCount][2];  // NULL: not there
  ShortGradFn extreme_grad[2], prod_grad[2];
  NormLinesFn norm_lines[2];
  NormGradLinesFn norm_grad_lines[2];
  // Elements [begin, end) of the random sequence (seed, offset); see perigee/kernels/philox.hpp.
  void (*words)(uint32_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset);
  void (*pairs)(uint64_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset);
  void (*uniform_f32)(float* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset);
  void (*uniform_f64)(double* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset);
  void (*normal_f32)(float* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset);
  void (*normal_f64)(double* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset);
  // A bucket of a permutation whose first place is `first`.
  void (*shuffle_i32)(int32_t* bucket, uint64_t first, uint64_t count, uint64_t seed, uint64_t offset);
  void (*shuffle_i64)(int64_t* bucket, uint64_t first, uint64_t count, uint64_t seed, uint64_t offset);
  void (*keep)(uint8_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset, double p);
  UpdateFn update[kUpdateCount][2];             // float, double
  AttentionFn attention[2], attention_grad[2];  // float, double
  TurnFn turn_block[2];
  int32_t resample_width;  // floats of a vector; 0: resample_row is not there
  ResampleRowFn resample_row;
  CombineRowsFn combine_rows[2];  // float, double
  BagSumsFn bag_sums;
  LargerRowFn larger_row[2];  // float, double
  PixelRowsFn pixel_rows;
  PixelColumnFn pixel_column;
  PixelPlanesFn pixel_planes;
  ByteFloatsFn byte_floats;
  NarrowLoops narrow;
};

// The table in use. Set by choose_simd.
extern const Simd* simd;
// Picks the table; returns the reason where the processor has none of the instruction sets. PERIGEE_CPU_ISA=avx2 picks
// a lesser one (for tests).
const char* choose_simd();
// Whether the processor multiplies bytes, and PERIGEE_CPU_ISA=avx512 does not want to do without.
bool has_vnni();

}  // namespace cpu
