// SPDX-License-Identifier: Apache-2.0
// A batch as parts of a few images, each the work of one thread: what oneDNN's layouts need of a part stays in the near
// caches between the copies and the convolution, where the whole batch's would go to memory and back. Weight gradients,
// which have to be added up, are conv_gradients' work.
#include "conv/conv_gradients.hpp"
#include "conv/conv_parts.hpp"

namespace pg::cpu {
namespace {

class SplitConvolution final : public Convolution {
 public:
  // `inner`: of a part each, one for every thread.
  SplitConvolution(const ConvShape& s, int64_t images, std::vector<std::unique_ptr<Convolution>> inner)
      : inner_(std::move(inner)),
        parts_(s.n / images),
        x_step_(images * s.c * s.in_count() * dtype_bytes(s.dtype)),
        y_step_(images * s.o * s.out_count() * dtype_bytes(s.dtype)),
        result_step_(s.kind == ConvKind::kForward ? y_step_ : x_step_) {}

  uint64_t packed_bytes() const override { return inner_[0]->packed_bytes(); }
  void pack(const void* weight, void* target) override { inner_[0]->pack(weight, target); }
  bool activates() const override { return inner_[0]->activates(); }
  uint64_t workspace() const override {
    Scratch scratch;
    reserve(scratch);
    return scratch.bytes();
  }

  void run(const ConvData& d) override {
    Scratch scratch(d.workspace);
    const Pieces p = reserve(scratch);
    ConvData all = d;
    if (d.packed_weight == nullptr && p.packed != nullptr) {
      inner_[0]->pack(d.weight, p.packed);
      all.packed_weight = p.packed;
    }
    deal_out(inner_.size(), parts_, [&](size_t slot, int64_t i) {
      ConvData part = all;
      part.workspace = static_cast<char*>(p.inner) + slot * inner_bytes();
      part.x = advance(d.x, i * x_step_), part.y = advance(d.y, i * y_step_);
      part.result = static_cast<char*>(d.result) + i * result_step_;
      inner_[slot]->run(part);
    });
  }

 private:
  struct Pieces {
    void *packed, *inner;
  };
  uint64_t inner_bytes() const { return scratch_bytes(inner_[0]->workspace()); }
  Pieces reserve(Scratch& scratch) const {
    Pieces p{};
    if (packed_bytes() > 0) p.packed = scratch.take(packed_bytes());
    p.inner = scratch.take(inner_bytes() * inner_.size());
    return p;
  }

  std::vector<std::unique_ptr<Convolution>> inner_;  // a primitive's arguments serve one call at a time
  int64_t parts_, x_step_, y_step_, result_step_;
};

class SplitWeightGradient final : public Convolution {
 public:
  explicit SplitWeightGradient(std::unique_ptr<ConvGradients> gradients) : gradients_(std::move(gradients)) {}
  uint64_t workspace() const override { return gradients_->workspace(); }
  void run(const ConvData& d) override {
    ConvGradients::Data data{};
    data.dy = d.y, data.x = d.x, data.dweight = d.result, data.workspace = d.workspace;
    gradients_->run(data);
  }

 private:
  std::unique_ptr<ConvGradients> gradients_;
};

}  // namespace

std::unique_ptr<Convolution> make_split_convolution(const ConvShape& shape) {
  if (shape.kind == ConvKind::kWeightGradient) {
    auto gradients = ConvGradients::make(shape, false, false);
    return gradients ? std::make_unique<SplitWeightGradient>(std::move(gradients)) : nullptr;
  }
  const int64_t images = images_of_a_part(shape);
  if (images == 0) return nullptr;
  const ConvShape part = part_of(shape, images);
  std::vector<std::unique_ptr<Convolution>> inner;
  for (int64_t i = 0; i < std::min<int64_t>(shape.n / images, thread_count()); i++) {
    inner.push_back(make_whole_convolution(part));
    if (inner.back() == nullptr) return nullptr;
  }
  return std::make_unique<SplitConvolution>(shape, images, std::move(inner));
}

}  // namespace pg::cpu
