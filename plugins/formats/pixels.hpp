// SPDX-License-Identifier: Apache-2.0
// What formats of images share: how many pixels a file may claim before there is memory for them, and what an item must
// be to become an image of bytes.
#pragma once

#include <charconv>

#include "perigee/format.hpp"

namespace formats {

// The option max_pixels, which all of them have.
inline int64_t max_pixels_of(const pg::Options& options) {
  const int64_t max = options.integer("max_pixels");
  if (max < 1) {
    pg::fail_argument(pg::format("option max_pixels: expected 1 or more, got %lld", static_cast<long long>(max)));
  }
  return max;
}

inline void check_pixels(const std::string& path, int64_t columns, int64_t rows, int64_t max_pixels) {
  if (columns < 1 || rows < 1) pg::fail_data(path, "an image without pixels");
  if (rows > max_pixels / columns) {
    pg::fail_data(path, pg::format("%lld x %lld pixels are more than max_pixels, %lld", static_cast<long long>(columns),
                                   static_cast<long long>(rows), static_cast<long long>(max_pixels)));
  }
}

// Every part of a picture takes some bits. A header that claims more is found out before memory is taken.
[[noreturn]] inline void fail_claim(const std::string& path, uint64_t bytes, int64_t columns, int64_t rows) {
  pg::fail_data(path, pg::format("its %llu bytes cannot hold the %lld x %lld pixels that it claims",
                                 static_cast<unsigned long long>(bytes), static_cast<long long>(columns),
                                 static_cast<long long>(rows)));
}

// Channels of the one uint8 item [rows, columns] or [rows, columns, channels] that a lossy format writes. `wanted`
// says which counts of channels it knows.
inline int64_t byte_channels(const pg::Items& items, const char* kind, const char* wanted, int64_t max_side) {
  if (items.size() != 1) pg::fail_argument(pg::format("an image is one tensor, got %zu", items.size()));
  const auto& shape = items[0].shape;
  const bool fits = items[0].dtype == PG_U8 && (shape.size() == 2 || shape.size() == 3);
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

// How well to write: the note `quality`, 1 to 100; `otherwise` without it.
inline int quality_of(const std::string& text) {
  int quality = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), quality);
  if (code != std::errc() || end != text.data() + text.size() || quality < 1 || quality > 100) {
    pg::fail_argument("the note quality must be a whole number from 1 to 100, got \"" + text + "\"");
  }
  return quality;
}

}  // namespace formats
