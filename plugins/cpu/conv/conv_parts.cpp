// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_parts.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kWholeBytes = int64_t{4} << 20;                                   // batches below are near enough
constexpr int64_t kLeastBytes = int64_t{256} << 10, kMostBytes = int64_t{4} << 20;  // of a part, in float32
constexpr int64_t kFewParts = 4;                                                    // where none is worth it in itself
constexpr int64_t kPartTiles = 192;  // of Winograd's: transforming the filters takes as long as 30

}  // namespace

// Under deterministic=true threads have no say, and parts are the only way to more than one of them: then batches are
// cut that gain little by it.
int64_t images_of_a_part(const ConvShape& s) {
  const bool fixed = deterministic();
  auto by_images = [&](const ConvOperand& t) { return t.dense() || (fixed && t.channels_last()); };
  if (s.alone || s.n < 2 || !by_images(s.x) || !by_images(s.y)) return 0;
  if (s.kind == ConvKind::kWeightGradient && !s.weight.dense()) return 0;
  const int64_t image = (s.c * s.in_count() + s.o * s.out_count()) * static_cast<int64_t>(sizeof(float));
  const int64_t weight = s.weight.count() * static_cast<int64_t>(sizeof(float));
  if (s.n * image < (fixed ? 2 * kLeastBytes : kWholeBytes)) return 0;
  for (int64_t images = 1; s.n / images >= (fixed ? 2 : std::max(2, thread_count())); images++) {
    if (images * image > kMostBytes) break;
    bool worth = images * image >= std::max(weight, kLeastBytes);
    if (s.suits_winograd() && images * s.image_tiles() < kPartTiles) worth = false;
    if (worth && s.n % images == 0) return images;
  }
  if (!fixed) return 0;
  int64_t parts = std::min(s.n, kFewParts);
  while (s.n % parts != 0) parts++;
  return s.n / parts;
}

ConvShape part_of(const ConvShape& shape, int64_t images) {
  ConvShape part = shape;
  part.alone = true;
  part.n = part.x.shape[0] = part.y.shape[0] = images;
  return part;
}

}  // namespace pg::cpu
