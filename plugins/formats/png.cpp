// SPDX-License-Identifier: Apache-2.0
// png: one tensor of bytes [rows, columns] (grey) or [rows, columns, 1, 3 or 4] (grey, red green blue, and opacity) as
// an image (ISO/IEC 15948). Notes become text chunks. Written only.
#include <zlib.h>
#include <new>

#include <array>
#include <vector>

#include "file.hpp"

namespace {

using formats::File;
using pg::format;
using Bytes = std::vector<unsigned char>;

constexpr int64_t kMaxSide = (int64_t{1} << 31) - 1;
constexpr uint64_t kMaxBytes = uint64_t{1} << 31;
constexpr std::array<unsigned char, 5> kColourTypes = {0, 0, 0, 2, 6};  // by channels

void put(Bytes& bytes, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<unsigned char>(number >> shift));
}

void write_chunk(File& file, const char* type, const Bytes& data) {
  Bytes chunk;
  put(chunk, static_cast<uint32_t>(data.size()));
  chunk.insert(chunk.end(), type, type + 4);
  chunk.insert(chunk.end(), data.begin(), data.end());
  put(chunk, static_cast<uint32_t>(crc32(0, chunk.data() + 4, static_cast<uInt>(chunk.size() - 4))));
  file.write(chunk.data(), chunk.size());
}

// Rows behind the number of their filter: each byte less the one above it, which is 0 where little changes.
Bytes filtered(const unsigned char* pixels, size_t rows, size_t row_bytes) {
  constexpr unsigned char kUp = 2;
  Bytes result;
  result.reserve(rows * (row_bytes + 1));
  for (size_t row = 0; row < rows; row++) {
    result.push_back(kUp);
    for (size_t i = 0; i < row_bytes; i++) {
      const unsigned char above = row == 0 ? 0 : pixels[(row - 1) * row_bytes + i];
      result.push_back(static_cast<unsigned char>(pixels[row * row_bytes + i] - above));
    }
  }
  return result;
}

Bytes compressed(const Bytes& data) {
  uLongf size = compressBound(static_cast<uLong>(data.size()));
  Bytes result(size);
  if (compress2(result.data(), &size, data.data(), static_cast<uLong>(data.size()), Z_DEFAULT_COMPRESSION) != Z_OK) {
    throw std::bad_alloc();
  }
  result.resize(size);
  return result;
}

int64_t channels_of(const pg::Item& image) {
  const auto& shape = image.shape;
  const bool fits = image.dtype == PG_U8 && (shape.size() == 2 || shape.size() == 3);
  const int64_t channels = fits && shape.size() == 3 ? shape[2] : 1;
  if (!fits || (channels != 1 && channels != 3 && channels != 4)) {
    pg::fail_argument("an image is a uint8 tensor [rows, columns] or [rows, columns, 1, 3 or 4]");
  }
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > kMaxSide || shape[1] > kMaxSide || image.bytes > kMaxBytes) {
    pg::fail_argument(format("an image of %lld x %lld pixels cannot be written", static_cast<long long>(shape[0]),
                             static_cast<long long>(shape[1])));
  }
  return channels;
}

struct Png {
  static constexpr const char *name = "png", *doc = "An image: one uint8 tensor [rows, columns, channels]",
                              *extensions = ".png", *options = "";

  static void read(const std::string& path, const pg::Options&, pg::Sink&) {
    pg::fail_support(path + ": PNG images are only written");
  }

  static void write(const std::string& path, const pg::Items& items, const pg::Notes& notes) {
    if (items.size() != 1) pg::fail_argument(format("an image is one tensor, got %zu", items.size()));
    const pg::Item& image = items[0];
    const int64_t channels = channels_of(image);
    const auto rows = static_cast<size_t>(image.shape[0]), columns = static_cast<size_t>(image.shape[1]);

    File file = File::open_to_write(path);
    constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    file.write(kSignature.data(), kSignature.size());
    Bytes header;
    put(header, static_cast<uint32_t>(columns));
    put(header, static_cast<uint32_t>(rows));
    header.insert(header.end(), {8, kColourTypes[static_cast<size_t>(channels)], 0, 0, 0});
    write_chunk(file, "IHDR", header);
    for (const auto& [key, value] : notes) {
      if (key.empty() || key.size() > 79) pg::fail_argument("a note's name has 1 to 79 bytes in a PNG image");
      Bytes text(key.begin(), key.end());
      text.push_back(0);
      text.insert(text.end(), value.begin(), value.end());
      write_chunk(file, "tEXt", text);
    }
    const auto* pixels = static_cast<const unsigned char*>(image.data);
    write_chunk(file, "IDAT", compressed(filtered(pixels, rows, columns * static_cast<size_t>(channels))));
    write_chunk(file, "IEND", {});
    file.finish();
  }
};

PG_FORMAT(Png);

}  // namespace
