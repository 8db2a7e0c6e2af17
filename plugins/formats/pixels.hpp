// SPDX-License-Identifier: Apache-2.0
// What codecs of images share: how many pixels a header may claim before there is memory for them, and what a tensor
// must be to become an image of bytes.
#pragma once

#include "perigee/data.hpp"

namespace formats {

inline void check_pixels(int64_t columns, int64_t rows, int64_t max_pixels) {
  if (columns < 1 || rows < 1) pg::fail_damaged("an image without pixels");
  if (rows > max_pixels / columns) {
    pg::fail_damaged(pg::format("%lld x %lld pixels are more than max_pixels, %lld", static_cast<long long>(columns),
                                static_cast<long long>(rows), static_cast<long long>(max_pixels)));
  }
}

// Every part of a picture takes some bits. A header that claims more is found out before memory is taken.
[[noreturn]] inline void fail_claim(uint64_t bytes, int64_t columns, int64_t rows) {
  pg::fail_damaged(pg::format("its %llu bytes cannot hold the %lld x %lld pixels that it claims",
                              static_cast<unsigned long long>(bytes), static_cast<long long>(columns),
                              static_cast<long long>(rows)));
}

// Channels of the uint8 tensor [rows, columns] or [rows, columns, channels] that a codec of bytes writes. `wanted`
// says which counts of channels it knows.
inline int64_t byte_channels(const pg::Item& item, const char* kind, const char* wanted, int64_t max_side) {
  const auto& shape = item.shape;
  const bool fits = item.dtype == PG_U8 && (shape.size() == 2 || shape.size() == 3);
  const int64_t channels = fits && shape.size() == 3 ? shape[2] : 1;
  const bool known =
      channels >= 1 && channels <= 4 && std::strchr(wanted, static_cast<char>('0' + channels)) != nullptr;
  if (!fits || !known) {
    std::string counts;
    for (const char* c = wanted; *c != 0; c++) {
      if (c != wanted) counts += c[1] == 0 ? " or " : ", ";
      counts += *c;
    }
    pg::fail_argument(
        pg::format("a %s image is a uint8 tensor [rows, columns] or [rows, columns, %s]", kind, counts.c_str()));
  }
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > max_side || shape[1] > max_side) {
    pg::fail_argument(pg::format("an image of %lld x %lld pixels cannot be written; a side of a %s image has 1 to %lld",
                                 static_cast<long long>(shape[1]), static_cast<long long>(shape[0]), kind,
                                 static_cast<long long>(max_side)));
  }
  return channels;
}

inline void check_quality(int64_t quality) {
  if (quality < 1 || quality > 100)
    pg::fail_argument(pg::format("quality must be from 1 to 100, got %lld", static_cast<long long>(quality)));
}

}  // namespace formats
