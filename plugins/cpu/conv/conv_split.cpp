// SPDX-License-Identifier: Apache-2.0
// A batch as parts of a few images, each the work of one thread: what oneDNN's layouts need of a part stays in the near
// caches between the copies and the convolution, where the whole batch's would go to memory and back.
#include <atomic>

#include "conv/conv_onednn.hpp"
#include "conv/conv_parts.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kWholeBytes = int64_t{4} << 20;                                   // batches below are near enough
constexpr int64_t kLeastBytes = int64_t{256} << 10, kMostBytes = int64_t{4} << 20;  // of a part, in float32
constexpr int64_t kPartTiles = 192;  // of Winograd's: transforming the filters takes as long as 30

}  // namespace

int64_t images_of_a_part(const ConvShape& s) {
  if (s.alone || s.n < 2 || !s.x.dense() || !s.y.dense()) return 0;
  if (s.kind == ConvKind::kWeightGradient && !s.weight.dense()) return 0;
  const int64_t image = (s.c * s.in_count() + s.o * s.out_count()) * static_cast<int64_t>(sizeof(float));
  const int64_t weight = s.weight.count() * static_cast<int64_t>(sizeof(float));
  if (s.n * image < kWholeBytes) return 0;
  for (int64_t images = 1; s.n / images >= std::max(2, thread_count()); images++) {
    if (images * image > kMostBytes) return 0;
    bool worth = images * image >= std::max(weight, kLeastBytes);
    if (s.suits_winograd() && images * s.image_tiles() < kPartTiles) worth = false;
    if (worth && s.n % images == 0) return images;
  }
  return 0;
}

ConvShape part_of(const ConvShape& shape, int64_t images) {
  ConvShape part = shape;
  part.alone = true;
  part.n = part.x.shape[0] = part.y.shape[0] = images;
  return part;
}

void add_groups(const float* sums, int64_t groups, int64_t step, int64_t count, uint32_t dtype, void* result) {
  with_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    parallel_for(count, ::cpu::kGrain / groups, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float sum = 0;
        for (int64_t group = 0; group < groups; group++) sum += sums[group * step + i];
        static_cast<T*>(result)[i] = store<T>(static_cast<Accumulator<T>>(sum));
      }
    });
  });
}

namespace {

class SplitConvolution final : public Convolution {
 public:
  // `inner`: of a part each, one for every thread.
  SplitConvolution(const ConvShape& s, int64_t images, std::vector<std::unique_ptr<Convolution>> inner)
      : inner_(std::move(inner)),
        kind_(s.kind),
        dtype_(s.dtype),
        parts_(s.n / images),
        groups_(kind_ == ConvKind::kWeightGradient ? std::min(parts_, kMostGroups) : parts_),
        weight_(s.weight.count()),
        x_step_(images * s.c * s.in_count() * dtype_bytes(s.dtype)),
        y_step_(images * s.o * s.out_count() * dtype_bytes(s.dtype)) {}

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
    const void* packed = d.packed_weight;
    if (packed == nullptr && p.packed != nullptr) {
      inner_[0]->pack(d.weight, p.packed);
      packed = p.packed;
    }
    std::atomic<int64_t> taken{0};  // groups: whoever the system holds up does not hold up the others
    parallel_for(static_cast<int64_t>(inner_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; slot++) {
        for (int64_t group; (group = taken.fetch_add(1, std::memory_order_relaxed)) < groups_;)
          run_group(d, p, packed, slot, group);
      }
    });
    if (kind_ == ConvKind::kWeightGradient) add_groups(p.sums, groups_, weight_, weight_, dtype_, d.result);
  }

 private:
  struct Pieces {
    void *packed, *inner;
    float *sums, *more;  // of the weight gradient, by group and by thread
  };
  uint64_t inner_bytes() const { return scratch_bytes(inner_[0]->workspace()); }
  Pieces reserve(Scratch& scratch) const {
    Pieces p{};
    if (kind_ == ConvKind::kWeightGradient) {
      p.sums = floats(scratch, groups_ * weight_);
      p.more = floats(scratch, static_cast<int64_t>(inner_.size()) * weight_);
    } else if (packed_bytes() > 0) {
      p.packed = scratch.take(packed_bytes());
    }
    p.inner = scratch.take(inner_bytes() * inner_.size());
    return p;
  }
  static float* floats(Scratch& scratch, int64_t count) {
    return static_cast<float*>(scratch.take(static_cast<uint64_t>(count) * sizeof(float)));
  }

  // A group's parts, one after the other, by the convolution of a thread.
  void run_group(const ConvData& d, const Pieces& p, const void* packed, int64_t slot, int64_t group) {
    ConvData part = d;
    part.packed_weight = packed;
    part.workspace = static_cast<char*>(p.inner) + static_cast<uint64_t>(slot) * inner_bytes();
    const int64_t first = parts_ * group / groups_, last = parts_ * (group + 1) / groups_;
    const bool adds = kind_ == ConvKind::kWeightGradient;
    float *sums = adds ? p.sums + group * weight_ : nullptr, *more = adds ? p.more + slot * weight_ : nullptr;
    for (int64_t i = first; i < last; i++) {
      part.x = advance(d.x, i * x_step_), part.y = advance(d.y, i * y_step_);
      switch (kind_) {
        case ConvKind::kForward: part.result = static_cast<char*>(d.result) + i * y_step_; break;
        case ConvKind::kInputGradient: part.result = static_cast<char*>(d.result) + i * x_step_; break;
        case ConvKind::kWeightGradient: part.result = i == first ? sums : more; break;
      }
      inner_[static_cast<size_t>(slot)]->run(part);
      for (int64_t k = 0; adds && i > first && k < weight_; k++) sums[k] += more[k];
    }
  }

  std::vector<std::unique_ptr<Convolution>> inner_;  // a primitive's arguments serve one call at a time
  ConvKind kind_;
  uint32_t dtype_;
  int64_t parts_, groups_, weight_, x_step_, y_step_;
};

}  // namespace

std::unique_ptr<Convolution> make_split_convolution(const ConvShape& shape) {
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
