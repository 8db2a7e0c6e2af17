// SPDX-License-Identifier: Apache-2.0
// A convolution or one of its gradients by own loops of Winograd's way, in blocks of eight channels or with channels
// last as they lie. 16-bit floats become float32 in the copies.
#include "conv/conv_onednn.hpp"
#include "conv/winograd_tiles.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

using onednn::Copy;
using onednn::DataType;
using onednn::Desc;

class WinogradConvolution final : public WholeConvolution {
 public:
  WinogradConvolution(const ConvShape& s, const Winograd& winograd)
      : winograd_(winograd), dtype_(s.dtype), weights_(s.weight), alone_(s.alone), relu_(s.relu) {
    const bool forward = s.kind == ConvKind::kForward;
    const ConvOperand &from = forward ? s.x : s.y, &to = forward ? s.y : s.x;
    channels_ = s.bias ? to.shape[1] : 0;
    onednn::OneThread guard(alone_);
    const DataType own = onednn::data_type(s.dtype);
    from_ = operand_desc(from, own), to_ = operand_desc(to, own);
    if (own == DataType::f32 && from.channels_last() && to.channels_last()) {
      winograd_.take_channels_last();
      wanted_from_ = from_, wanted_to_ = to_;
    } else {
      wanted_from_ = Desc(from_.dims(), DataType::f32, onednn::Tag::aBcd8b);
      wanted_to_ = Desc(to_.dims(), DataType::f32, onednn::Tag::aBcd8b);
      in_ = Copy(from_, wanted_from_), out_ = Copy(wanted_to_, to_, s.relu, s.alone);
    }
  }

  uint64_t workspace() const override {
    Scratch scratch;
    reserve(scratch);
    return scratch.bytes();
  }
  uint64_t packed_bytes() const override { return winograd_.weight_bytes(); }
  void pack(const void* weight, void* target) override {
    std::vector<float> plain(reads_plainly() ? 0 : static_cast<size_t>(weights_.count()));
    transform(weight, plain.data(), static_cast<float*>(target));
  }
  bool activates() const override { return !copies() || out_.activates(); }

  uint64_t dy_bytes() const override { return copies() ? wanted_from_.get_size() : 0; }
  const Desc& wanted_dy() const override { return wanted_from_; }
  void pack_dy(const void* dy, const void* y, void* target) override {
    const auto scratch = std::make_unique<std::byte[]>(in_.workspace());
    in_.run(dy, target, scratch.get(), y);
  }
  bool masks_dy() const override { return copies() && in_.masks(); }

  void run(const ConvData& d) override {
    onednn::OneThread guard(alone_);
    Scratch scratch(d.workspace);
    const Rooms r = reserve(scratch);
    const void* from = d.y == nullptr ? d.x : d.y;
    Winograd::Call call{};
    call.workspace = r.tiles;
    call.x = static_cast<const float*>(from), call.y = static_cast<float*>(d.result);
    if (copies()) {
      if (d.packed_dy == nullptr) in_.run(from, r.from, r.copies);
      call.x = d.packed_dy != nullptr ? static_cast<const float*>(d.packed_dy) : r.from;
      call.y = r.to;
    }
    call.weight = static_cast<const float*>(d.packed_weight);
    if (call.weight == nullptr) {
      transform(d.weight, r.plain, r.weight);
      call.weight = r.weight;
    }
    if (channels_ > 0) call.bias = read_bias(d.bias, r.bias);
    call.relu = relu_ && !copies();
    winograd_.run(call);
    if (copies()) out_.run(r.to, d.result, r.copies);
  }

 private:
  struct Rooms {
    void *tiles, *copies;
    float *from, *to, *weight, *plain, *bias;
  };
  Rooms reserve(Scratch& scratch) const {
    auto floats = [&](uint64_t bytes) { return static_cast<float*>(scratch.take(bytes)); };
    Rooms r{};
    r.tiles = scratch.take(winograd_.workspace());
    if (copies()) {
      r.copies = scratch.take(std::max(in_.workspace(), out_.workspace()));
      r.from = floats(wanted_from_.get_size()), r.to = floats(wanted_to_.get_size());
    }
    r.weight = floats(winograd_.weight_bytes());
    if (!reads_plainly()) r.plain = floats(static_cast<uint64_t>(weights_.count()) * sizeof(float));
    if (dtype_ != PG_F32) r.bias = floats(static_cast<uint64_t>(channels_) * sizeof(float));
    return r;
  }
  bool copies() const { return from_ != wanted_from_ || to_ != wanted_to_; }
  bool reads_plainly() const { return dtype_ == PG_F32 && weights_.dense(); }

  // plain: room for the filters in rows, where they do not lie so.
  void transform(const void* weight, float* plain, float* to) const {
    const auto* rows = static_cast<const float*>(weight);
    if (!reads_plainly()) {
      with_float(dtype_, [&](auto tag) {
        gather(weights_.rank, weights_.shape, weights_.stride, static_cast<const typename decltype(tag)::type*>(weight),
               plain);
      });
      rows = plain;
    }
    winograd_.transform(rows, to);
  }
  const float* read_bias(const void* bias, float* room) const {
    if (dtype_ == PG_F32) return static_cast<const float*>(bias);
    with_float(dtype_, [&](auto tag) {
      const auto* b = static_cast<const typename decltype(tag)::type*>(bias);
      for (int64_t i = 0; i < channels_; i++) room[i] = static_cast<float>(load(b[i]));
    });
    return room;
  }

  Winograd winograd_;
  uint32_t dtype_;
  ConvOperand weights_;
  bool alone_, relu_;
  int64_t channels_ = 0;  // of the bias
  Desc from_, to_, wanted_from_, wanted_to_;
  Copy in_, out_;
};

class WinogradWeightGradient final : public WholeConvolution {
 public:
  WinogradWeightGradient(const ConvShape& s, const WinogradSlopes& slopes)
      : slopes_(slopes), result_(s.alone ? PG_F32 : s.dtype), count_(s.weight.count()), alone_(s.alone), bias_(s.bias) {
    onednn::OneThread guard(alone_);
    const DataType own = onednn::data_type(s.dtype);
    x_ = operand_desc(s.x, own), y_ = operand_desc(s.y, own);
    if (own == DataType::f32 && s.x.channels_last() && s.y.channels_last()) {
      slopes_.take_channels_last();
      wanted_x_ = x_, wanted_y_ = y_;
    } else {
      wanted_x_ = Desc(x_.dims(), DataType::f32, onednn::Tag::aBcd8b);
      wanted_y_ = Desc(y_.dims(), DataType::f32, onednn::Tag::aBcd8b);
      copy_x_ = Copy(x_, wanted_x_), copy_y_ = Copy(y_, wanted_y_);
    }
  }

  uint64_t workspace() const override {
    Scratch scratch;
    reserve(scratch);
    return scratch.bytes();
  }
  uint64_t dy_bytes() const override { return copies() ? wanted_y_.get_size() : 0; }
  const Desc& wanted_dy() const override { return wanted_y_; }
  void pack_dy(const void* dy, const void* y, void* target) override {
    const auto scratch = std::make_unique<std::byte[]>(copy_y_.workspace());
    copy_y_.run(dy, target, scratch.get(), y);
  }
  bool masks_dy() const override { return copies() && copy_y_.masks(); }

  void run(const ConvData& d) override {
    onednn::OneThread guard(alone_);
    Scratch scratch(d.workspace);
    const Rooms r = reserve(scratch);
    WinogradSlopes::Call call{};
    call.x = static_cast<const float*>(d.x), call.dy = static_cast<const float*>(d.y);
    if (copies()) {
      copy_x_.run(d.x, r.x, r.copies);
      if (d.packed_dy == nullptr) copy_y_.run(d.y, r.dy, r.copies);
      call.x = r.x, call.dy = d.packed_dy != nullptr ? static_cast<const float*>(d.packed_dy) : r.dy;
    }
    call.dweight = result_ == PG_F32 ? static_cast<float*>(d.result) : r.sums;
    if (bias_) call.dbias = static_cast<float*>(d.dbias);
    call.workspace = r.tiles;
    slopes_.run(call);
    if (result_ == PG_F32) return;
    with_float(result_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < count_; i++)
        static_cast<T*>(d.result)[i] = store<T>(static_cast<Accumulator<T>>(r.sums[i]));
    });
  }

 private:
  struct Rooms {
    void *tiles, *copies;
    float *x, *dy, *sums;
  };
  Rooms reserve(Scratch& scratch) const {
    auto floats = [&](uint64_t bytes) { return static_cast<float*>(scratch.take(bytes)); };
    Rooms r{};
    r.tiles = scratch.take(slopes_.workspace());
    if (copies()) {
      r.copies = scratch.take(std::max(copy_x_.workspace(), copy_y_.workspace()));
      r.x = floats(wanted_x_.get_size()), r.dy = floats(wanted_y_.get_size());
    }
    if (result_ != PG_F32) r.sums = floats(static_cast<uint64_t>(count_) * sizeof(float));
    return r;
  }
  bool copies() const { return x_ != wanted_x_; }

  WinogradSlopes slopes_;
  uint32_t result_;
  int64_t count_;
  bool alone_, bias_;
  Desc x_, y_, wanted_x_, wanted_y_;
  Copy copy_x_, copy_y_;
};

}  // namespace

std::unique_ptr<WholeConvolution> make_winograd_convolution(const ConvShape& s) {
  try {
    if (s.kind == ConvKind::kWeightGradient) {
      if (const auto slopes = WinogradSlopes::make(s)) return std::make_unique<WinogradWeightGradient>(s, *slopes);
    } else if (const auto winograd = Winograd::make(s, false)) {
      return std::make_unique<WinogradConvolution>(s, *winograd);
    }
  } catch (const dnnl::error& e) {  // no copy from how a view lies, of 16-bit floats
    if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments) throw;
  }
  return nullptr;
}

}  // namespace pg::cpu
