// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_parts.hpp"

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

}  // namespace pg::cpu
