// SPDX-License-Identifier: Apache-2.0
// jpeg: an image (ISO/IEC 10918-1) as one uint8 tensor "data" [rows, columns, channels], through libjpeg-turbo: 1
// channel is grey, 3 are red, green and blue; what is stored as cyan, magenta, yellow and black becomes these. `scale`
// 2, 4 or 8 decodes the image at half, a quarter or an eighth of its sides, which costs a fraction of the time; of a
// part little else is decoded. The comment is the note `Comment`. The option `quality` says how well it is written.
#include <cstdio>
// jpeglib.h needs FILE from above.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "pixels.hpp"

namespace {

using pg::format;

// Each scan of a progressive image goes over all of it, however few bytes it has: real encoders make about ten.
constexpr int kMaxScans = 200;

// libjpeg calls back and, where something is wrong, leaves by longjmp: what is thrown in a callback waits here
// meanwhile.
struct Failure {
  jpeg_error_mgr manager{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> message{};
  std::exception_ptr cause;

  [[noreturn]] void leave() { std::longjmp(jump, 1); }
};

Failure& failure_of(j_common_ptr image) { return *reinterpret_cast<Failure*>(image->err); }

[[noreturn]] void on_jpeg_error(j_common_ptr image) {
  Failure& failure = failure_of(image);
  image->err->format_message(image, failure.message.data());
  failure.leave();
}

// Warnings are about data that is not what the encoder wrote, and so errors, but for those that lose nothing: bytes
// between parts, and headers of other versions.
void on_jpeg_message(j_common_ptr image, int level) {
  const int code = image->err->msg_code;
  if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR) return;
  on_jpeg_error(image);
}

jpeg_error_mgr* use_failure(Failure& failure) {
  jpeg_std_error(&failure.manager);
  failure.manager.error_exit = on_jpeg_error;
  failure.manager.emit_message = on_jpeg_message;
  return &failure.manager;
}

// Runs calls of libjpeg. `calls` must hold nothing that needs destruction, as an error jumps out of it.
template <class Calls, class Fail>
void run(Failure& failure, Calls calls, Fail fail) {
  if (setjmp(failure.jump) != 0) {
    if (failure.cause) std::rethrow_exception(failure.cause);
    fail(failure.message.data());
  }
  calls();
}

// ---- reading ----

struct Source {
  jpeg_source_mgr manager{};
  pg::Bytes from;
  uint64_t at = 0;
  std::array<JOCTET, 1 << 16> bytes;  // of what is not in memory

  explicit Source(const pg::Bytes& given) : from(given) {
    if (from.data() == nullptr) return;
    manager.next_input_byte = from.data();
    manager.bytes_in_buffer = at = from.size();
  }
};

Source& source_of(j_decompress_ptr image) { return *reinterpret_cast<Source*>(image->src); }

void begin_source(j_decompress_ptr) {}
void end_source(j_decompress_ptr) {}

boolean fill_source(j_decompress_ptr image) {
  Source& source = source_of(image);
  try {
    const uint64_t left = source.from.size() - source.at;
    // A header is short, and often all that is wanted.
    const uint64_t count = std::min<uint64_t>(left, source.at == 0 ? 4096 : source.bytes.size());
    source.from.read(source.at, source.bytes.data(), std::max<uint64_t>(count, 1));  // of nothing: says where it ends
    source.at += count;
    source.manager.next_input_byte = source.bytes.data();
    source.manager.bytes_in_buffer = count;
    return TRUE;
  } catch (...) {
    failure_of(reinterpret_cast<j_common_ptr>(image)).cause = std::current_exception();
  }
  failure_of(reinterpret_cast<j_common_ptr>(image)).leave();
}

void skip_source(j_decompress_ptr image, long count) {
  jpeg_source_mgr& source = *image->src;
  while (count > static_cast<long>(source.bytes_in_buffer)) {
    count -= static_cast<long>(source.bytes_in_buffer);
    fill_source(image);
  }
  if (count <= 0) return;
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<size_t>(count);
}

void watch_scans(j_common_ptr image) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(image);
  if (decoder->input_scan_number <= kMaxScans) return;
  Failure& failure = failure_of(image);
  std::snprintf(failure.message.data(), failure.message.size(), "more than %d scans", kMaxScans);
  failure.leave();
}

struct Decoder {
  Failure failure;
  Source source;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct image{};

  explicit Decoder(const pg::Bytes& from) : source(from) {
    image.err = use_failure(failure);
    source.manager.init_source = begin_source;
    source.manager.fill_input_buffer = fill_source;
    source.manager.skip_input_data = skip_source;
    source.manager.resync_to_restart = jpeg_resync_to_restart;
    source.manager.term_source = end_source;
    progress.progress_monitor = watch_scans;
  }
  ~Decoder() { jpeg_destroy_decompress(&image); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  template <class Calls>
  void run(Calls calls) {
    ::run(failure, calls, [](const char* message) { pg::fail_damaged(message); });
  }
};

bool begins_as_jpeg(const unsigned char* head) { return head[0] == 0xFF && head[1] == 0xD8 && head[2] == 0xFF; }

void read_jpeg_header(Decoder& decoder) {
  std::array<unsigned char, 3> signature{};
  const pg::Bytes& from = decoder.source.from;
  if (from.size() < signature.size()) pg::fail_damaged("too short for a JPEG image");
  from.read(0, signature.data(), signature.size());
  if (!begins_as_jpeg(signature.data())) {
    pg::fail_damaged("not a JPEG image: it does not begin with JPEG's signature");
  }
  decoder.run([&] {
    jpeg_create_decompress(&decoder.image);
    decoder.image.src = &decoder.source.manager;
    decoder.image.progress = &decoder.progress;
    jpeg_save_markers(&decoder.image, JPEG_COM, 0xFFFF);
    jpeg_read_header(&decoder.image, TRUE);
  });
}

// Before there is memory for the pixels. A block of 8 x 8 samples takes a bit at least, and at the coarsest sampling
// 1024 pixels have 8 blocks. Arithmetic coding has no such bound.
void check_jpeg_size(const Decoder& decoder, int64_t max_pixels) {
  const int64_t columns = decoder.image.image_width, rows = decoder.image.image_height;
  formats::check_pixels(columns, rows, max_pixels);
  const uint64_t bytes = decoder.source.from.size();
  if (decoder.image.arith_code == FALSE &&
      static_cast<uint64_t>(columns) * static_cast<uint64_t>(rows) / 1024 > bytes) {
    formats::fail_claim(bytes, columns, rows);
  }
}

// What the pixels are to be: grey as it is, all else red, green and blue. Answers whether libjpeg stops at four
// colours.
bool choose_colours(Decoder& decoder) {
  jpeg_decompress_struct& image = decoder.image;
  switch (image.jpeg_color_space) {
    case JCS_GRAYSCALE: image.out_color_space = JCS_GRAYSCALE; return false;
    case JCS_YCbCr:
    case JCS_RGB: image.out_color_space = JCS_RGB; return false;
    case JCS_CMYK:
    case JCS_YCCK: image.out_color_space = JCS_CMYK; return true;
    default: pg::fail_damaged(format("an image of %d components whose colours are not known", image.num_components));
  }
}

// a b / 255, rounded.
unsigned times(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Inks on paper, without a profile of them. Adobe's programs write how much light is left, others how much ink there
// is.
void mix_inks(const JSAMPLE* inks, unsigned char* pixels, size_t count, bool is_light) {
  for (size_t i = 0; i < count; i++, inks += 4, pixels += 3) {
    const unsigned flip = is_light ? 255 : 0, light = 255 - (inks[3] ^ flip);
    for (size_t c = 0; c < 3; c++) {
      const unsigned ink = inks[c] ^ flip;
      pixels[c] = static_cast<unsigned char>(light - times(ink, light));
    }
  }
}

void read_comment(const Decoder& decoder, pg::Sink& sink) {
  for (const jpeg_marker_struct* marker = decoder.image.marker_list; marker != nullptr; marker = marker->next) {
    if (marker->marker != JPEG_COM) continue;
    std::string text(reinterpret_cast<const char*>(marker->data), marker->data_length);
    text = text.substr(0, text.find('\0'));
    return sink.note("Comment", text);
  }
}

// What of the (scaled) picture is wanted. A height or width of 0: all from `top` or `left` on.
struct Region {
  int64_t top, left, height, width;

  Region(const std::array<int64_t, 2>& begin, const std::array<int64_t, 2>& extent, const jpeg_decompress_struct& image)
      : top(begin[0]), left(begin[1]), height(extent[0]), width(extent[1]) {
    const int64_t rows = image.output_height, columns = image.output_width;
    if (height == 0) height = rows - top;
    if (width == 0) width = columns - left;
    if (top < 0 || left < 0 || height < 1 || width < 1 || top > rows - height || left > columns - width) {
      pg::fail_argument(
          format("options top, left, height, width: %lld rows from %lld and %lld columns from %lld are "
                 "not inside of %lld x %lld pixels, rows first",
                 static_cast<long long>(height), static_cast<long long>(top), static_cast<long long>(width),
                 static_cast<long long>(left), static_cast<long long>(rows), static_cast<long long>(columns)));
    }
  }
};

// Rows above and columns beside the region are not transformed, rows below not looked at. Blocks beside it are taken
// along, as colours between two blocks are made from both: pixels are those of the whole picture.
void read_region(Decoder& decoder, const Region& region, unsigned char* pixels, size_t channels, bool has_inks) {
  jpeg_decompress_struct& image = decoder.image;
  JDIMENSION first = 0;
  const bool is_narrow = region.width < static_cast<int64_t>(image.output_width);
  if (is_narrow) {
    const int64_t block = static_cast<int64_t>(image.max_h_samp_factor) * DCTSIZE;
    const int64_t from = std::max<int64_t>(region.left - block, 0);
    const int64_t to = std::min<int64_t>(region.left + region.width + block, image.output_width);
    first = static_cast<JDIMENSION>(from);
    auto count = static_cast<JDIMENSION>(to - from);
    decoder.run([&] { jpeg_crop_scanline(&image, &first, &count); });
  }
  const size_t samples = has_inks ? 4 : channels, width = static_cast<size_t>(region.width);
  std::vector<JSAMPLE> line(has_inks || is_narrow ? image.output_width * samples : 0);
  const JSAMPLE* from = line.data() + (static_cast<size_t>(region.left) - first) * samples;
  const auto bottom = static_cast<JDIMENSION>(region.top + region.height);
  decoder.run([&] {
    if (region.top > 0) jpeg_skip_scanlines(&image, static_cast<JDIMENSION>(region.top));
    while (image.output_scanline < bottom) {
      unsigned char* row = pixels + (image.output_scanline - static_cast<size_t>(region.top)) * width * channels;
      JSAMPROW rows[1] = {line.empty() ? row : line.data()};
      jpeg_read_scanlines(&image, rows, 1);
      if (has_inks)
        mix_inks(from, row, width, image.saw_Adobe_marker == TRUE);
      else if (!line.empty())
        std::memcpy(row, from, width * channels);
    }
    if (bottom == image.output_height) jpeg_finish_decompress(&image);
  });
}

// ---- writing ----

struct Target {
  jpeg_destination_mgr manager{};
  pg::ByteSink& to;
  std::array<JOCTET, 1 << 16> bytes;

  explicit Target(pg::ByteSink& given) : to(given) {}
};

void begin_target(j_compress_ptr image) {
  auto& target = *reinterpret_cast<Target*>(image->dest);
  target.manager.next_output_byte = target.bytes.data();
  target.manager.free_in_buffer = target.bytes.size();
}

void write_target(j_compress_ptr image, size_t count) {
  auto& target = *reinterpret_cast<Target*>(image->dest);
  try {
    target.to.write(target.bytes.data(), count);
    return begin_target(image);
  } catch (...) {
    failure_of(reinterpret_cast<j_common_ptr>(image)).cause = std::current_exception();
  }
  failure_of(reinterpret_cast<j_common_ptr>(image)).leave();
}

boolean empty_target(j_compress_ptr image) {
  write_target(image, reinterpret_cast<Target*>(image->dest)->bytes.size());
  return TRUE;
}

void end_target(j_compress_ptr image) {
  auto& target = *reinterpret_cast<Target*>(image->dest);
  write_target(image, target.bytes.size() - target.manager.free_in_buffer);
}

struct Encoder {
  Failure failure;
  Target target;
  jpeg_compress_struct image{};

  explicit Encoder(pg::ByteSink& to) : target(to) {
    image.err = use_failure(failure);
    target.manager.init_destination = begin_target;
    target.manager.empty_output_buffer = empty_target;
    target.manager.term_destination = end_target;
  }
  ~Encoder() { jpeg_destroy_compress(&image); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
};

struct Jpeg {
  static constexpr const char *name = "jpeg", *doc = "A photograph: one uint8 tensor [rows, columns, 1 or 3]",
                              *extensions = ".jpg .jpeg";
  static constexpr uint32_t flags = PG_DECODE_PART | PG_DECODE_SCALE;
  struct DecodeOptions {};
  struct EncodeOptions {
    int64_t quality = 90;
  };

  static bool matches(const unsigned char* head, uint64_t count) { return count >= 3 && begins_as_jpeg(head); }

  static pg::CodedInfo probe(const pg::Bytes& from) {
    const auto decoder = std::make_unique<Decoder>(from);
    read_jpeg_header(*decoder);
    const jpeg_decompress_struct& image = decoder->image;
    return {PG_U8, {image.image_height, image.image_width, image.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3}, 0b1111};
  }

  static void decode(const pg::Bytes& from, const pg::Decode<DecodeOptions>& how, pg::Sink& sink) {
    const uint32_t scale = how.scale;
    if (scale != 1 && scale != 2 && scale != 4 && scale != 8)
      pg::fail_argument(format("option scale: expected 1, 2, 4 or 8, got %u", scale));
    const auto decoder = std::make_unique<Decoder>(from);
    jpeg_decompress_struct& image = decoder->image;
    read_jpeg_header(*decoder);
    check_jpeg_size(*decoder, how.max_pixels);
    read_comment(*decoder, sink);
    const bool has_inks = choose_colours(*decoder);
    image.scale_num = 1;
    image.scale_denom = scale;
    decoder->run([&] { jpeg_start_decompress(&image); });
    const Region region(how.begin, how.extent, image);
    const size_t channels = has_inks ? 3 : static_cast<size_t>(image.output_components);
    auto* pixels = static_cast<unsigned char*>(
        sink.tensor("data", PG_U8, {region.height, region.width, static_cast<int64_t>(channels)}));
    read_region(*decoder, region, pixels, channels, has_inks);
  }

  static void encode(const pg::Item& item, const EncodeOptions& options, const pg::Notes& notes, pg::ByteSink& to) {
    const int64_t channels = formats::byte_channels(item, "JPEG", "13", JPEG_MAX_DIMENSION);
    formats::check_quality(options.quality);
    const std::string* comment = nullptr;
    for (const auto& [key, value] : notes) {
      if (key != "Comment" || value.size() > 65533)
        pg::fail_argument("a JPEG image has notes named quality and Comment, of 65,533 bytes at most; got " + key);
      comment = &value;
    }
    const size_t row_bytes = static_cast<size_t>(item.shape[1]) * static_cast<size_t>(channels);
    auto* pixels = static_cast<unsigned char*>(const_cast<void*>(item.data));  // libjpeg does not say const

    const auto encoder = std::make_unique<Encoder>(to);
    jpeg_compress_struct& image = encoder->image;
    run(
        encoder->failure,
        [&] {
          jpeg_create_compress(&image);
          image.dest = &encoder->target.manager;
          image.image_width = static_cast<JDIMENSION>(item.shape[1]);
          image.image_height = static_cast<JDIMENSION>(item.shape[0]);
          image.input_components = static_cast<int>(channels);
          image.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
          jpeg_set_defaults(&image);
          jpeg_set_quality(&image, static_cast<int>(options.quality), TRUE);
          jpeg_start_compress(&image, TRUE);
          if (comment != nullptr) {
            jpeg_write_marker(&image, JPEG_COM, reinterpret_cast<const JOCTET*>(comment->data()),
                              static_cast<unsigned>(comment->size()));
          }
          while (image.next_scanline < image.image_height) {
            JSAMPROW row = pixels + image.next_scanline * row_bytes;
            jpeg_write_scanlines(&image, &row, 1);
          }
          jpeg_finish_compress(&image);
        },
        [](const char* message) { pg::fail_argument(message); });
  }
};

PG_CODEC(Jpeg).encode_attr(&Jpeg::EncodeOptions::quality, "quality", "1 to 100, of which 100 is nearly without loss");

}  // namespace
