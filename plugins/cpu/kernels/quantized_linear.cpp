// SPDX-License-Identifier: Apache-2.0
// quantized_linear(x [..., in], weight, scale [out, groups], bias? [out], x_scale?, x_zero_point?) -> [..., out]. Few
// rows of floats, and all rows of whole numbers, read the weight as it lies; for more rows of floats the blocked
// product widens it where it packs its panels (AVX2); else, and of float8, stretches of it are widened and multiplied
// as any other weight.
#include <algorithm>
#include <memory>

#include "linalg/isa.hpp"
#include "linalg/narrow_panels.hpp"
#include "linalg/product.hpp"
#include "narrow_numbers.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

using pg::cpu::Scratch;

// Rows of floats that read the weight as it lies: by format, with AVX2 and with AVX-512.
constexpr int64_t kMostRows[2][4] = {{16, 8, 8, 8}, {128, 128, 32, 32}};
constexpr int64_t kThread = int64_t{1} << 18;   // multiplications that are worth a thread
constexpr int64_t kStretch = int64_t{1} << 18;  // numbers of the weight that are widened at a time
constexpr int64_t kPiece = 256;                 // that are widened in float32 before they are rounded

struct Sizes {
  int64_t rows = 1, columns, depth, groups, size;
  int32_t format;
  bool four, bias, x_scale, relu;
  Activations activations;
  Storage storage;

  explicit Sizes(const pg::KernelCall& call)
      : columns(call.out(0).shape[call.out(0).rank - 1]),
        depth(call.in(0).shape[call.in(0).rank - 1]),
        groups(call.in(2).shape[1]),
        size(depth / groups),
        format(call.attr<int32_t>("format")),
        four(format == kInt4),
        bias(call.has(3)),
        x_scale(call.has(4)),
        relu(call.attr<int32_t>("activation") == 1),
        activations(static_cast<Activations>(call.attr<int32_t>("activations"))),
        storage(storage_of(call.in(0))) {
    for (uint32_t i = 0; i + 1 < call.in(0).rank; i++) rows *= call.in(0).shape[i];
  }
  int64_t row_bytes() const { return four ? depth / 2 : depth; }
  int64_t element() const { return kStorageBytes[storage]; }
};

struct Operands {
  const char *x, *weight, *scale, *bias, *x_scale, *x_zero;
  char* y;
};

// One way to compute it. run(o, scratch) takes from `scratch` what it took without addresses at prepare.
struct QuantizedWay {
  virtual ~QuantizedWay() = default;
  virtual void run(const Operands& o, Scratch& scratch) = 0;
};

float* floats(Scratch& scratch, int64_t count) {
  return static_cast<float*>(scratch.take(static_cast<uint64_t>(count) * sizeof(float)));
}

// Dense numbers as float32: as they lie, or a copy.
const float* as_floats(Storage storage, const char* data, int64_t count, Scratch& scratch) {
  if (storage == sF32) return reinterpret_cast<const float*>(data);
  float* room = floats(scratch, count);
  if (data != nullptr && room != nullptr) convert(storage, sF32, data, room, count);
  return room;
}

float number(Storage storage, const char* data) {
  float value = 0;
  convert(storage, sF32, data, &value, 1);
  return value;
}

void multiply(const NarrowLoop& loop, const NarrowRows& t) {
  const int64_t work = kNarrowColumns * t.groups * t.size * std::max<int64_t>(1, t.rows / 4);
  pg::parallel_for((t.columns + kNarrowColumns - 1) / kNarrowColumns, std::max<int64_t>(1, kThread / work),
                   [&](int64_t begin, int64_t end) { loop.multiply(t, begin, end); });
}

// What the two ways that read the weight as it lies share.
class NarrowWay : public QuantizedWay {
 protected:
  NarrowWay(const Sizes& s, const NarrowLoop& loop)
      : s_(s), loop_(loop), padded_((s.size + loop.block - 1) / loop.block * loop.block) {}
  void* laid_out(Scratch& scratch, int64_t rows) const {
    return scratch.take(static_cast<uint64_t>(rows * s_.groups * padded_ * loop_.bytes));
  }
  NarrowRows task(const Operands& o, Scratch& scratch) const {
    NarrowRows t{};
    t.bf16_scale = s_.storage == sBF16;
    const bool as_is = t.bf16_scale || s_.storage == sF32;
    t.scale =
        as_is ? static_cast<const void*>(o.scale) : as_floats(s_.storage, o.scale, s_.columns * s_.groups, scratch);
    t.weight = reinterpret_cast<const uint8_t*>(o.weight);
    t.columns = s_.columns, t.groups = s_.groups, t.size = s_.size, t.rows = s_.rows, t.padded = padded_;
    return t;
  }
  Sizes s_;
  NarrowLoop loop_;
  int64_t padded_;
};

class FloatRows final : public NarrowWay {
 public:
  explicit FloatRows(const Sizes& s) : NarrowWay(s, simd->narrow.floats[s.format]) {}
  void run(const Operands& o, Scratch& scratch) override {
    NarrowRows t = task(o, scratch);
    const float* x = as_floats(s_.storage, o.x, s_.rows * s_.depth, scratch);
    t.bias = s_.bias ? as_floats(s_.storage, o.bias, s_.columns, scratch) : nullptr;
    auto* room = static_cast<char*>(laid_out(scratch, s_.rows));
    const bool direct = s_.storage == sF32;
    t.y = direct ? reinterpret_cast<float*>(o.y) : floats(scratch, s_.rows * s_.columns);
    if (o.y == nullptr) return;
    t.x = x;
    if (padded_ != s_.size || s_.four) {
      for (int64_t g = 0; g < s_.rows * s_.groups; g++)
        loop_.lay_out(x + g * s_.size, s_.size, padded_, room + g * padded_ * loop_.bytes);
      t.x = room;
    }
    multiply(loop_, t);
    if (!direct) convert(sF32, s_.storage, t.y, o.y, s_.rows * s_.columns);
  }
};

// How each row of x becomes whole.
WholeRow whole_row(const Sizes& s, const Operands& o, const float* row) {
  WholeRow how{1, 0, -127, 127, 0};
  const bool symmetric = s.activations == kRowsInt8;
  if (!symmetric) how = {1, 0, 0, 255, 128};
  if (s.x_scale) {
    how.scale = number(s.storage, o.x_scale);
    if (!symmetric) how.zero = number(s.storage, o.x_zero);
    return how;
  }
  float low, high;
  simd->narrow.extremes(row, s.depth, &low, &high);
  how.scale = symmetric ? std::max(-low, high) / 127 : (high - low) / 255;
  if (how.scale == 0) how.scale = 1;
  if (low != low) how.scale = low;
  if (!symmetric) how.zero = std::nearbyint(-(low / how.scale));
  return how;
}

// The sums of the weight's rows, which a zero point takes away again, are those of one more row, of ones.
class WholeRows final : public NarrowWay {
 public:
  WholeRows(const Sizes& s, const NarrowLoop& loop) : NarrowWay(s, loop), extra_(s.activations == kRowsUint8 ? 1 : 0) {}
  void run(const Operands& o, Scratch& scratch) override {
    NarrowRows t = task(o, scratch);
    const int64_t rows = s_.rows + extra_;
    const float* x = as_floats(s_.storage, o.x, s_.rows * s_.depth, scratch);
    const float* bias = s_.bias ? as_floats(s_.storage, o.bias, s_.columns, scratch) : nullptr;
    auto* room = static_cast<char*>(laid_out(scratch, rows));
    auto* whole = static_cast<int8_t*>(scratch.take(static_cast<uint64_t>(rows * s_.depth)));
    auto* correction = static_cast<int32_t*>(scratch.take(static_cast<uint64_t>(rows * s_.groups) * 4));
    float *scale = floats(scratch, rows), *zero = floats(scratch, rows);
    const bool direct = s_.storage == sF32 && extra_ == 0;
    t.y = direct ? reinterpret_cast<float*>(o.y) : floats(scratch, rows * s_.columns);
    if (o.y == nullptr) return;
    t.x = room, t.correction = correction, t.x_scale = scale, t.rows = rows;
    t.bias = extra_ == 0 ? bias : nullptr;
    pg::parallel_for(rows, std::max<int64_t>(1, kGrainCostly / s_.depth), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int8_t* q = whole + i * s_.depth;
        if (i == s_.rows) {
          std::fill_n(q, s_.depth, int8_t{1}), scale[i] = 1;
        } else {
          const WholeRow how = whole_row(s_, o, x + i * s_.depth);
          simd->narrow.to_whole(x + i * s_.depth, s_.depth, how, q);
          scale[i] = how.scale, zero[i] = how.zero - how.shift;
        }
        for (int64_t g = 0; g < s_.groups; g++) {
          correction[i * s_.groups + g] =
              loop_.lay_out(q + g * s_.size, s_.size, padded_, room + (i * s_.groups + g) * padded_ * loop_.bytes);
        }
      }
    });
    multiply(loop_, t);
    if (direct) return;
    const float* ones = t.y + s_.rows * s_.columns;
    for (int64_t i = 0; i < s_.rows; i++) {
      float* y = t.y + i * s_.columns;
      if (extra_ != 0) {
        const float by = scale[i] * zero[i];
        for (int64_t j = 0; j < s_.columns; j++) y[j] += (bias != nullptr ? bias[j] : 0.0F) - by * ones[j];
      }
      convert(sF32, s_.storage, y, o.y + i * s_.columns * s_.element(), s_.columns);
    }
  }

 private:
  int64_t extra_;
};

// By products of floats: of x as it is, or of x as whole numbers times scales where there are no loops for those.
class Stretches final : public QuantizedWay {
 public:
  explicit Stretches(const Sizes& s)
      : s_(s),
        storage_(s.activations == kAsIs ? s.storage : sF32),
        step_(std::min(s.columns, std::max<int64_t>(64, kStretch / std::max<int64_t>(1, s.depth)))) {
    product_ = product(step_);
    if (s.columns % step_ != 0) last_ = product(s.columns % step_);
  }
  void run(const Operands& o, Scratch& scratch) override {
    const bool narrow = storage_ != s_.storage;
    const char* x = s_.activations == kAsIs ? o.x : made_whole(o, scratch);
    const char* bias = !s_.bias  ? nullptr
                       : !narrow ? o.bias
                                 : reinterpret_cast<const char*>(as_floats(s_.storage, o.bias, s_.columns, scratch));
    const float* scale = as_floats(s_.storage, o.scale, s_.columns * s_.groups, scratch);
    const int64_t element = kStorageBytes[storage_];
    auto* weight = static_cast<char*>(scratch.take(static_cast<uint64_t>(step_ * s_.depth * element)));
    void* workspace = scratch.take(std::max(product_->workspace(), last_ ? last_->workspace() : 0));
    char* y = narrow ? reinterpret_cast<char*>(floats(scratch, s_.rows * s_.columns)) : o.y;
    if (o.y == nullptr) return;
    for (int64_t j = 0; j < s_.columns; j += step_) {
      const int64_t count = std::min(step_, s_.columns - j);
      pg::parallel_for(
          count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s_.depth)), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++)
              widen(o.weight + (j + i) * s_.row_bytes(), scale + (j + i) * s_.groups, weight + i * s_.depth * element);
          });
      const char* own = bias == nullptr ? nullptr : bias + j * element;
      (count == step_ ? product_ : last_)->run({x, weight, own, y + j * element, workspace, nullptr});
    }
    if (narrow) convert(sF32, s_.storage, y, o.y, s_.rows * s_.columns);
  }

 private:
  std::unique_ptr<pg::cpu::Product> product(int64_t columns) const {
    pg::ProductShape p;
    p.dtype = storage_ == sF32 ? PG_F32 : storage_ == sBF16 ? PG_BF16 : PG_F16;
    p.m = s_.rows, p.n = columns, p.k = s_.depth;
    p.a = {s_.depth, 1}, p.b = {1, s_.depth}, p.c = {s_.columns, 1};
    p.bias = s_.bias, p.bias_stride = 1;
    return s_.depth == 0 ? pg::cpu::make_product(p, false) : pg::cpu::make_own_product(p, false, pg::thread_count());
  }
  void widen(const char* weight, const float* scale, char* out) const {
    const auto* from = reinterpret_cast<const uint8_t*>(weight);
    for (int64_t g = 0; g < s_.groups; g++) {
      for (int64_t p = 0; p < s_.size; p += kPiece) {
        const int64_t n = std::min(kPiece, s_.size - p), first = g * s_.size + p;
        if (storage_ == sF32) {
          widen_numbers(s_.format, from, first, n, scale[g], reinterpret_cast<float*>(out) + first);
          continue;
        }
        float piece[kPiece];
        widen_numbers(s_.format, from, first, n, scale[g], piece);
        convert(sF32, storage_, piece, out + first * kStorageBytes[storage_], n);
      }
    }
  }
  const char* made_whole(const Operands& o, Scratch& scratch) const {
    const float* x = as_floats(s_.storage, o.x, s_.rows * s_.depth, scratch);
    float* out = floats(scratch, s_.rows * s_.depth);
    auto* q = static_cast<int8_t*>(scratch.take(static_cast<uint64_t>(s_.depth)));
    if (o.y == nullptr) return nullptr;
    for (int64_t i = 0; i < s_.rows; i++) {
      const WholeRow how = whole_row(s_, o, x + i * s_.depth);
      simd->narrow.to_whole(x + i * s_.depth, s_.depth, how, q);
      const float zero = how.zero - how.shift;
      for (int64_t p = 0; p < s_.depth; p++) out[i * s_.depth + p] = (static_cast<float>(q[p]) - zero) * how.scale;
    }
    return reinterpret_cast<const char*>(out);
  }

  Sizes s_;
  Storage storage_;
  int64_t step_;
  std::unique_ptr<pg::cpu::Product> product_, last_;
};

// Floats by the blocked product, which widens the weight where it packs its panels: what that takes is shared by rows.
template <class T>
class Panels final : public QuantizedWay {
 public:
  explicit Panels(const Sizes& s) : s_(s), gemm_(s.rows, s.columns, s.depth, pg::thread_count()) {}
  void run(const Operands& o, Scratch& scratch) override {
    const float* scale = as_floats(s_.storage, o.scale, s_.columns * s_.groups, scratch);
    void* workspace = scratch.take(gemm_.workspace());
    if (o.y == nullptr) return;
    const pg::cpu::NarrowPanels weight{
        reinterpret_cast<const uint8_t*>(o.weight), scale, s_.columns, s_.row_bytes(), s_.groups, s_.size, s_.four};
    pg::cpu::Finish<T> finish;
    finish.bias = s_.bias ? reinterpret_cast<const T*>(o.bias) : nullptr;
    gemm_.run({reinterpret_cast<const T*>(o.x), s_.depth, 1}, weight.source(),
              {reinterpret_cast<T*>(o.y), s_.columns, 1}, finish, workspace);
  }

 private:
  Sizes s_;
  pg::cpu::Gemm<T> gemm_;
};

std::unique_ptr<QuantizedWay> make_panels(const Sizes& s) {
  if (s.storage == sF32) return std::make_unique<Panels<float>>(s);
  if (s.storage == sBF16) return std::make_unique<Panels<pg::cpu::BFloat16>>(s);
  return std::make_unique<Panels<pg::cpu::Half>>(s);
}

std::unique_ptr<QuantizedWay> choose(Sizes s) {
  if (s.rows * s.columns == 0) return nullptr;
  if (s.depth == 0) s.activations = kAsIs, s.groups = 1, s.size = 0;
  if (s.depth > 0 && s.activations == kAsIs) {
    const bool wide = pg::cpu::isa() == pg::cpu::Isa::kAvx512, whole = s.format <= kInt4;
    const int64_t block = simd->narrow.floats[s.format].block;
    // What lies behind a group of float8 could be NaN, which nothing that it meets takes away.
    const bool reads = s.size >= kNarrowGroup && block != 0 && (whole || s.size % block == 0);
    if (reads && s.rows <= kMostRows[wide][s.format]) return std::make_unique<FloatRows>(s);
    if (!wide && whole) return make_panels(s);
  }
  if (s.size >= kNarrowGroup && s.size <= kWholeGroup && s.activations != kAsIs) {
    const NarrowLoop *loops = simd->narrow.whole[s.four], &large = loops[1];
    const bool fits = large.block != 0 && (s.size % large.block == 0 || s.size >= 4 * large.block);
    if (loops[0].block != 0) return std::make_unique<WholeRows>(s, fits ? large : loops[0]);
  }
  return std::make_unique<Stretches>(s);
}

class QuantizedLinear final : public pg::Kernel {
 public:
  static void supports(const pg::KernelCall& call) { require_narrow_call(call); }
  QuantizedLinear(const pg::KernelCall& call, pg::Plan& plan) : way_(choose(Sizes(call))) {
    if (way_ == nullptr) return;
    const Sizes s(call);
    storage_ = s.storage, results_ = s.relu ? s.rows * s.columns : 0;
    Scratch scratch;
    way_->run({}, scratch);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (way_ == nullptr) return;
    auto in = [&](uint32_t i) { return pg::input<const char>(launch, i); };
    Scratch scratch(pg::host_pointer(launch.workspace));
    auto* y = pg::output<char>(launch, 0);
    way_->run({in(0), in(1), in(2), in(3), in(4), in(5), y}, scratch);
    if (results_ > 0) relu(y);
  }

 private:
  void relu(char* y) const {
    pg::parallel_for(results_, kGrain, [=, this](int64_t begin, int64_t end) {
      char* from = y + begin * kStorageBytes[storage_];
      if (storage_ == sF32) {
        simd->unary[pRelu][kF32](from, from, end - begin, nullptr);
        return;
      }
      auto* bits = reinterpret_cast<uint16_t*>(from);
      const uint16_t infinity = storage_ == sBF16 ? 0xff80 : 0xfc00;  // below 0; NaN is above it and stays
      for (int64_t i = 0; i < end - begin; i++) bits[i] = bits[i] >= 0x8000 && bits[i] <= infinity ? 0 : bits[i];
    });
  }

  Storage storage_ = sF32;
  int64_t results_ = 0;
  std::unique_ptr<QuantizedWay> way_;
};
PG_KERNEL("quantized_linear", QuantizedLinear);

}  // namespace
}  // namespace cpu
