// SPDX-License-Identifier: Apache-2.0
// png: an image (ISO/IEC 15948) as one tensor "data" [rows, columns, channels], through libpng: 1 channel is grey, 2
// grey and opacity, 3 red, green and blue, 4 these and opacity. Palettes, fewer than 8 bits and transparent colours are
// expanded to that; a colour behind the palette's end is black. Bytes are uint8, 16 bits int32. Notes are text chunks;
// those beyond libpng's 8 MB are left out. What was written is read as the same tensor: one of two dimensions says in a
// chunk of ours that it has two.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <exception>
#include <vector>

#include "pixels.hpp"

namespace {

using pg::format;

constexpr int64_t kMaxSide = (int64_t{1} << 31) - 1;
constexpr std::array<unsigned char, 5> kColours = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                                   PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
// Ancillary, private, safe to copy: one byte, the number of dimensions of a tensor that a grey image was.
constexpr const char* kRankChunk = "pgNd";
// Chunks that say nothing about pixels as they are read here; none is looked at.
constexpr char kIgnored[] = "cHRM\0gAMA\0iCCP\0sRGB\0sBIT\0bKGD\0hIST\0pHYs\0sPLT\0tIME\0eXIf\0oFFs\0pCAL\0sCAL";

// libpng calls back and, where something is wrong, leaves by longjmp: what is thrown in a callback waits here
// meanwhile.
struct Image {
  const pg::Bytes* from;  // NULL: it is written
  pg::ByteSink* to;
  const bool writes;
  uint64_t at = 0;
  std::array<char, 160> message{};
  std::exception_ptr cause;
  png_structp png = nullptr;
  png_infop info = nullptr;

  Image(const pg::Bytes* from, pg::ByteSink* to);
  ~Image() {
    if (writes) png_destroy_write_struct(&png, &info);
    if (!writes) png_destroy_read_struct(&png, &info, nullptr);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[noreturn]] void fail() {
    if (cause) std::rethrow_exception(cause);
    if (writes) pg::fail_argument(message.data());
    pg::fail_damaged(message.data());
  }
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto& image = *static_cast<Image*>(png_get_error_ptr(png));
  std::snprintf(image.message.data(), image.message.size(), "%s", text);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep target, size_t bytes) {
  auto& image = *static_cast<Image*>(png_get_io_ptr(png));
  try {
    image.from->read(image.at, target, bytes);
    image.at += bytes;
    return;
  } catch (...) {
    image.cause = std::current_exception();
  }
  png_error(png, "");
}

void write_bytes(png_structp png, png_bytep source, size_t bytes) {
  auto& image = *static_cast<Image*>(png_get_io_ptr(png));
  try {
    image.to->write(source, bytes);
    return;
  } catch (...) {
    image.cause = std::current_exception();
  }
  png_error(png, "");
}

void flush_nothing(png_structp) {}

Image::Image(const pg::Bytes* from, pg::ByteSink* to) : from(from), to(to), writes(from == nullptr) {
  png = writes ? png_create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning)
               : png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  info = png != nullptr ? png_create_info_struct(png) : nullptr;
  if (info == nullptr) {
    if (writes) png_destroy_write_struct(&png, &info);
    if (!writes) png_destroy_read_struct(&png, &info, nullptr);
    throw std::bad_alloc();
  }
}

// Runs calls of libpng. `calls` must hold nothing that needs destruction, as an error jumps out of it.
template <class Calls>
void run(Image& image, Calls calls) {
  if (setjmp(png_jmpbuf(image.png)) != 0) image.fail();
  calls(image.png, image.info);
}

// ---- reading ----

struct Header {
  int64_t rows, columns;
  int depth, colour, interlaced;
};

Header read_header(Image& image) {
  std::array<unsigned char, 8> signature{};
  if (image.from->size() < signature.size()) pg::fail_damaged("too short for a PNG image");
  image.from->read(0, signature.data(), signature.size());
  if (png_sig_cmp(signature.data(), 0, signature.size()) != 0) {
    pg::fail_damaged("not a PNG image: it does not begin with PNG's signature");
  }
  Header header{};
  run(image, [&](png_structp png, png_infop info) {
    png_set_read_fn(png, &image, read_bytes);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_user_limits(png, kMaxSide, kMaxSide);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, reinterpret_cast<png_const_bytep>(kIgnored),
                                sizeof kIgnored / 5);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, reinterpret_cast<png_const_bytep>(kRankChunk), 1);
    png_read_info(png, info);
    png_uint_32 columns = 0, rows = 0;
    png_get_IHDR(png, info, &columns, &rows, &header.depth, &header.colour, &header.interlaced, nullptr, nullptr);
    header.rows = rows, header.columns = columns;
  });
  return header;
}

// Before there is memory for the pixels. Deflate makes 1032 bytes of one at most.
void check_size(const Image& image, const Header& header, int64_t max_pixels) {
  const auto rows = static_cast<uint64_t>(header.rows), columns = static_cast<uint64_t>(header.columns);
  const uint64_t channels = (header.colour & PNG_COLOR_MASK_PALETTE) != 0 ? 1
                            : (header.colour & PNG_COLOR_MASK_COLOR) != 0 ? 3
                                                                          : 1;
  const uint64_t samples = channels + ((header.colour & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0);
  const double bytes =
      static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(samples) * header.depth / 8;
  if (bytes > 1032.0 * static_cast<double>(image.from->size())) {
    formats::fail_claim(image.from->size(), header.columns, header.rows);
  }
  formats::check_pixels(header.columns, header.rows, max_pixels);
}

// Has libpng expand everything to whole bytes, 16 bits in this machine's order. Answers the bytes of a row.
size_t expand(Image& image, const Header& header, int& channels) {
  size_t row_bytes = 0;
  run(image, [&](png_structp png, png_infop info) {
    if (header.colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (header.depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
    if (header.depth == 16) png_set_swap(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    channels = png_get_channels(png, info);
    row_bytes = png_get_rowbytes(png, info);
  });
  return row_bytes;
}

// Rows of `row_bytes`, each at the end of its place of `stride` bytes.
void read_rows(Image& image, const Header& header, unsigned char* pixels, size_t row_bytes, size_t stride) {
  run(image, [&](png_structp png, png_infop info) {
    const int passes = header.interlaced != PNG_INTERLACE_NONE ? PNG_INTERLACE_ADAM7_PASSES : 1;
    for (int pass = 0; pass < passes; pass++) {
      for (int64_t row = 0; row < header.rows; row++) {
        png_read_row(png, pixels + static_cast<size_t>(row) * stride + (stride - row_bytes), nullptr);
      }
    }
    png_read_end(png, info);
  });
}

// 16 bits, which stand in the second half of their row's place, to 32.
void widen(unsigned char* pixels, int64_t rows, size_t row_samples) {
  for (int64_t row = 0; row < rows; row++) {
    unsigned char* at = pixels + static_cast<size_t>(row) * row_samples * sizeof(int32_t);
    for (size_t i = 0; i < row_samples; i++) {
      uint16_t narrow = 0;
      std::memcpy(&narrow, at + row_samples * sizeof narrow + i * sizeof narrow, sizeof narrow);
      const int32_t wide = narrow;
      std::memcpy(at + i * sizeof wide, &wide, sizeof wide);
    }
  }
}

std::string utf8_of_latin1(const char* text) {
  std::string result;
  for (; *text != 0; text++) {
    const auto c = static_cast<unsigned char>(*text);
    if (c < 0x80) {
      result.push_back(*text);
    } else {
      result.push_back(static_cast<char>(0xC0 | c >> 6));
      result.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    }
  }
  return result;
}

void read_notes(const Image& image, pg::Sink& sink) {
  png_textp texts = nullptr;
  const int count = png_get_text(image.png, image.info, &texts, nullptr);
  for (int i = 0; i < count; i++) {
    const png_text& text = texts[i];
    if (text.text == nullptr) continue;
    const bool is_utf8 = text.compression >= PNG_ITXT_COMPRESSION_NONE;
    sink.note(utf8_of_latin1(text.key), is_utf8 ? text.text : utf8_of_latin1(text.text));
  }
}

bool has_rank_2(const Image& image) {
  png_unknown_chunkp chunks = nullptr;
  const int count = png_get_unknown_chunks(image.png, image.info, &chunks);
  for (int i = 0; i < count; i++) {
    const png_unknown_chunk& chunk = chunks[i];
    if (std::memcmp(chunk.name, kRankChunk, 4) == 0) return chunk.size == 1 && chunk.data[0] == 2;
  }
  return false;
}

// ---- writing ----

int64_t channels_of(const pg::Item& image) {
  const auto& shape = image.shape;
  const bool fits = (image.dtype == PG_U8 || image.dtype == PG_I32) && (shape.size() == 2 || shape.size() == 3);
  const int64_t channels = fits && shape.size() == 3 ? shape[2] : 1;
  if (!fits || channels < 1 || channels > 4) {
    pg::fail_argument("an image is a uint8 tensor [rows, columns] or [rows, columns, 1 to 4], or int32 of 16 bits");
  }
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > kMaxSide || shape[1] > kMaxSide) {
    pg::fail_argument(format("an image of %lld x %lld pixels cannot be written", static_cast<long long>(shape[0]),
                             static_cast<long long>(shape[1])));
  }
  return channels;
}

// The lower halves of 32 bits, all of which must fit.
std::vector<uint16_t> narrowed(const pg::Item& image) {
  std::vector<uint16_t> samples(image.bytes / sizeof(int32_t));
  for (size_t i = 0; i < samples.size(); i++) {
    int32_t value = 0;
    std::memcpy(&value, static_cast<const unsigned char*>(image.data) + i * sizeof value, sizeof value);
    if (value < 0 || value > 0xFFFF) pg::fail_argument(format("a pixel of 16 bits is 0 to 65535, got %d", value));
    samples[i] = static_cast<uint16_t>(value);
  }
  return samples;
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// libpng would mend a keyword that PNG does not allow; the note would be lost under its name.
void check_key(const std::string& key) {
  const bool fits = !key.empty() && key.size() <= 79 && key.front() != ' ' && key.back() != ' ' &&
                    key.find("  ") == std::string::npos &&
                    std::all_of(key.begin(), key.end(), [](char c) { return c >= 32 && c < 127; });
  if (!fits) pg::fail_argument("a note's name has 1 to 79 letters of ASCII in a PNG image, and no spaces around it");
}

std::vector<png_text> texts_of(const pg::Notes& notes) {
  std::vector<png_text> texts;
  for (const auto& [key, value] : notes) {
    check_key(key);
    png_text text{};
    text.compression = is_ascii(value) ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
    text.key = const_cast<char*>(key.c_str());  // libpng copies both
    text.text = const_cast<char*>(value.c_str());
    (text.compression == PNG_ITXT_COMPRESSION_NONE ? text.itxt_length : text.text_length) = value.size();
    texts.push_back(text);
  }
  return texts;
}

struct Png {
  static constexpr const char *name = "png", *doc = "An image: one tensor [rows, columns, channels], uint8 or 16 bits",
                              *extensions = ".png";
  struct DecodeOptions {};
  struct EncodeOptions {};

  static bool matches(const unsigned char* head, uint64_t count) { return count >= 8 && png_sig_cmp(head, 0, 8) == 0; }

  static pg::CodedInfo probe(const pg::Bytes& from) {
    Image image(&from, nullptr);
    const Header header = read_header(image);
    int channels = 0;
    expand(image, header, channels);
    std::vector<int64_t> shape = {header.rows, header.columns};
    if (channels != 1 || !has_rank_2(image)) shape.push_back(channels);
    return {header.depth == 16 ? PG_I32 : PG_U8, shape};
  }

  static void decode(const pg::Bytes& from, const pg::Decode<DecodeOptions>& how, pg::Sink& sink) {
    Image image(&from, nullptr);
    const Header header = read_header(image);
    check_size(image, header, how.max_pixels);
    int channels = 0;
    const size_t row_bytes = expand(image, header, channels);
    const bool wide = header.depth == 16, is_matrix = channels == 1 && has_rank_2(image);
    std::vector<int64_t> shape = {header.rows, header.columns};
    if (!is_matrix) shape.push_back(channels);
    const auto row_samples = static_cast<size_t>(header.columns) * static_cast<size_t>(channels);
    if (row_bytes != row_samples * (wide ? 2 : 1))
      pg::fail_damaged("its rows have another length than its header says");
    auto* pixels = static_cast<unsigned char*>(sink.tensor("data", wide ? PG_I32 : PG_U8, shape));
    read_rows(image, header, pixels, row_bytes, row_samples * (wide ? sizeof(int32_t) : 1));
    if (wide) widen(pixels, header.rows, row_samples);
    read_notes(image, sink);
  }

  static void encode(const pg::Item& item, const EncodeOptions&, const pg::Notes& notes, pg::ByteSink& to) {
    const auto channels = static_cast<size_t>(channels_of(item));
    const bool wide = item.dtype == PG_I32;
    const std::vector<uint16_t> samples = wide ? narrowed(item) : std::vector<uint16_t>();
    std::vector<png_text> texts = texts_of(notes);
    const size_t row_bytes = static_cast<size_t>(item.shape[1]) * channels * (wide ? 2 : 1);
    const auto* pixels = static_cast<const unsigned char*>(wide ? samples.data() : item.data);

    Image image(nullptr, &to);
    run(image, [&](png_structp png, png_infop info) {
      png_set_write_fn(png, &image, write_bytes, flush_nothing);
      png_set_user_limits(png, kMaxSide, kMaxSide);
      png_set_IHDR(png, info, static_cast<png_uint_32>(item.shape[1]), static_cast<png_uint_32>(item.shape[0]),
                   wide ? 16 : 8, kColours[channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                   PNG_FILTER_TYPE_DEFAULT);
      if (!texts.empty()) png_set_text(png, info, texts.data(), static_cast<int>(texts.size()));
      png_write_info(png, info);
      const png_byte rank = 2;
      if (item.shape.size() == 2) png_write_chunk(png, reinterpret_cast<png_const_bytep>(kRankChunk), &rank, 1);
      if (wide) png_set_swap(png);
      for (int64_t row = 0; row < item.shape[0]; row++) {
        png_write_row(png, pixels + static_cast<size_t>(row) * row_bytes);
      }
      png_write_end(png, info);
    });
  }
};

PG_CODEC(Png);

}  // namespace
