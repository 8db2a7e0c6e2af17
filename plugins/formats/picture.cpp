// SPDX-License-Identifier: Apache-2.0
#include "picture.hpp"

#include <cstring>

namespace formats {

namespace {

// `count` pixels of `has` channels as bytes of `wanted` channels: grey, grey and opacity, three colours, or these and
// opacity. Numbers of 16 bits are rounded; a colour's grey is its luma by ITU-R 601.
template <class Number>
void convert(const Number* from, unsigned char* to, int64_t count, int64_t has, int64_t wanted) {
  const auto byte = [](Number v) {
    return static_cast<unsigned char>(sizeof(Number) == 1 ? v : (static_cast<int64_t>(v) + 128) / 257);
  };
  for (int64_t i = 0; i < count; i++, from += has, to += wanted) {
    if (has == wanted) {
      for (int64_t k = 0; k < has; k++) to[k] = byte(from[k]);
      continue;
    }
    const unsigned char opacity = has == 2 || has == 4 ? byte(from[has - 1]) : 255;
    if (wanted <= 2) {
      const int64_t grey = has <= 2
                               ? byte(from[0])
                               : (byte(from[0]) * 19595 + byte(from[1]) * 38470 + byte(from[2]) * 7471 + 32768) / 65536;
      to[0] = static_cast<unsigned char>(grey);
    } else {
      for (int64_t k = 0; k < 3; k++) to[k] = byte(from[has <= 2 ? 0 : k]);
    }
    if (wanted == 2 || wanted == 4) to[wanted - 1] = opacity;
  }
}

}  // namespace

void place_picture(const char* name, const std::string& where, const pg::Decoded& picture, int64_t channels,
                   pg::FieldSink& out) {
  const size_t rank = picture.shape.size();
  if ((rank != 2 && rank != 3) || (picture.dtype != PG_U8 && picture.dtype != PG_I32))
    pg::fail_support(where + "no picture: a " + pg::dtype_name(picture.dtype) +
                     pg::format(" tensor of %zu axes", rank));
  const int64_t rows = picture.shape[0], columns = picture.shape[1], has = rank == 3 ? picture.shape[2] : 1;
  if (has < 1) pg::fail_support(where + "a picture without channels");
  if (channels == 0) channels = has;
  if (rank == 3 && picture.dtype == PG_U8 && has == channels) return;
  const auto count = static_cast<size_t>(rows * columns * channels);
  std::vector<unsigned char> made(count);
  if (picture.dtype == PG_U8)
    convert(static_cast<const unsigned char*>(picture.data), made.data(), rows * columns, has, channels);
  else
    convert(static_cast<const int32_t*>(picture.data), made.data(), rows * columns, has, channels);
  void* memory = out.tensor(name, PG_U8, {rows, columns, channels});
  if (count != 0) std::memcpy(memory, made.data(), count);
}

}  // namespace formats
