// SPDX-License-Identifier: Apache-2.0
// webp: an image as one uint8 tensor "data" [rows, columns, 3 or 4], through libwebp: red, green and blue, or these and
// opacity. It is written without loss, or as the note `quality`, 1 to 100, says. Animations are refused: they are many
// images.
#include <webp/decode.h>
#include <webp/encode.h>

#include <vector>

#include "file.hpp"
#include "pixels.hpp"

namespace {

using formats::File;
using pg::format;

// RIFF counts its bytes in 32 bits.
constexpr uint64_t kMaxWebpBytes = (uint64_t{1} << 32) + 8;

std::vector<uint8_t> read_whole(const File& file) {
  if (file.size() > kMaxWebpBytes) pg::fail_data(file.path(), "longer than a WebP image can be");
  std::vector<uint8_t> bytes(file.size());
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

const char* reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY: return "there is no memory to decode it";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "it has a feature that is not known";
    case VP8_STATUS_NOT_ENOUGH_DATA: return "the file ends inside its data";
    default: return "its data is damaged";
  }
}

const char* reason_of(WebPEncodingError error) {
  switch (error) {
    case VP8_ENC_ERROR_OUT_OF_MEMORY:
    case VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY: return "there is no memory to encode the image";
    case VP8_ENC_ERROR_PARTITION0_OVERFLOW:
    case VP8_ENC_ERROR_PARTITION_OVERFLOW:
    case VP8_ENC_ERROR_FILE_TOO_BIG: return "the image is too large for WebP at this quality";
    default: return "libwebp cannot encode the image";
  }
}

struct Picture {
  WebPPicture raw{};
  WebPMemoryWriter writer{};

  Picture() {
    if (WebPPictureInit(&raw) == 0) pg::fail_argument("libwebp has another version than its headers");
    WebPMemoryWriterInit(&writer);
    raw.writer = WebPMemoryWrite;
    raw.custom_ptr = &writer;
  }
  ~Picture() {
    WebPPictureFree(&raw);
    WebPMemoryWriterClear(&writer);
  }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;
};

// Without a quality: every sample as it is, also behind what is fully transparent.
WebPConfig config_of(const pg::Notes& notes) {
  WebPConfig config;
  if (WebPConfigInit(&config) == 0) pg::fail_argument("libwebp has another version than its headers");
  config.lossless = config.exact = 1;
  for (const auto& [key, value] : notes) {
    if (key != "quality") pg::fail_argument("a WebP image has no notes but quality; got " + key);
    config.lossless = config.exact = 0;
    config.quality = static_cast<float>(formats::quality_of(value));
  }
  return config;
}

struct Webp {
  static constexpr const char *name = "webp", *doc = "An image: one uint8 tensor [rows, columns, 3 or 4]",
                              *extensions = ".webp", *options = "max_pixels=268435456";

  static void read(const std::string& path, const pg::Options& options, pg::Sink& sink) {
    const int64_t max_pixels = formats::max_pixels_of(options);
    const File file = File::open_to_read(path);
    const std::vector<uint8_t> bytes = read_whole(file);
    if (bytes.size() < 12 || std::memcmp(bytes.data(), "RIFF", 4) != 0 || std::memcmp(&bytes[8], "WEBP", 4) != 0) {
      pg::fail_data(path, "not a WebP image: it does not begin with WebP's signature");
    }
    WebPBitstreamFeatures features;
    const VP8StatusCode found = WebPGetFeatures(bytes.data(), bytes.size(), &features);
    if (found != VP8_STATUS_OK) pg::fail_data(path, reason_of(found));
    if (features.has_animation != 0) pg::fail_data(path, "an animation; only single images are read");
    formats::check_pixels(path, features.width, features.height, max_pixels);

    const int64_t channels = features.has_alpha != 0 ? 4 : 3;
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0) pg::fail_argument("libwebp has another version than its headers");
    const size_t stride = static_cast<size_t>(features.width) * static_cast<size_t>(channels);
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.size = stride * static_cast<size_t>(features.height);
    config.output.u.RGBA.stride = static_cast<int>(stride);
    config.output.u.RGBA.rgba =
        static_cast<uint8_t*>(sink.tensor("data", PG_U8, {features.height, features.width, channels}));
    const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
    WebPFreeDecBuffer(&config.output);
    if (status != VP8_STATUS_OK) pg::fail_data(path, reason_of(status));
  }

  static void write(const std::string& path, const pg::Items& items, const pg::Notes& notes) {
    const int64_t channels = formats::byte_channels(items, "WebP", "34", WEBP_MAX_DIMENSION);
    const WebPConfig config = config_of(notes);
    const pg::Item& item = items[0];
    const auto* pixels = static_cast<const uint8_t*>(item.data);
    const int stride = static_cast<int>(item.shape[1] * channels);
    Picture picture;
    picture.raw.width = static_cast<int>(item.shape[1]);
    picture.raw.height = static_cast<int>(item.shape[0]);
    picture.raw.use_argb = config.lossless;
    const int imported = channels == 4 ? WebPPictureImportRGBA(&picture.raw, pixels, stride)
                                       : WebPPictureImportRGB(&picture.raw, pixels, stride);
    if (imported == 0 || WebPEncode(&config, &picture.raw) == 0) pg::fail_argument(reason_of(picture.raw.error_code));
    File file = File::open_to_write(path);
    file.write(picture.writer.mem, picture.writer.size);
    file.finish();
  }
};

PG_FORMAT(Webp);

}  // namespace
