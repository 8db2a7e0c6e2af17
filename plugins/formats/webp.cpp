// SPDX-License-Identifier: Apache-2.0
// webp: an image as one uint8 tensor "data" [rows, columns, 3 or 4], through libwebp: red, green and blue, or these and
// opacity. It is written without loss, or as the option `quality` says. Animations are refused: they are many
// images.
#include <webp/decode.h>
#include <webp/encode.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "pixels.hpp"

namespace {

// RIFF counts its bytes in 32 bits.
constexpr uint64_t kMaxWebpBytes = (uint64_t{1} << 32) + 8;

// All of it, which is copied unless it is in memory.
class Whole {
 public:
  explicit Whole(const pg::Bytes& from) : data_(from.data()), size_(from.size()) {
    if (size_ > kMaxWebpBytes) pg::fail_damaged("longer than a WebP image can be");
    if (data_ != nullptr) return;
    copy_.resize(size_);
    from.read(0, copy_.data(), size_);
    data_ = copy_.data();
  }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
  std::vector<uint8_t> copy_;
};

bool begins_as_webp(const unsigned char* head, uint64_t count) {
  return count >= 12 && std::memcmp(head, "RIFF", 4) == 0 && std::memcmp(head + 8, "WEBP", 4) == 0;
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
WebPConfig config_of(int64_t quality) {
  WebPConfig config;
  if (WebPConfigInit(&config) == 0) pg::fail_argument("libwebp has another version than its headers");
  config.lossless = config.exact = quality == 0;
  if (quality != 0) config.quality = static_cast<float>(quality);
  return config;
}

WebPBitstreamFeatures read_features(const uint8_t* bytes, size_t count) {
  if (!begins_as_webp(bytes, count)) pg::fail_damaged("not a WebP image: it does not begin with WebP's signature");
  WebPBitstreamFeatures features;
  const VP8StatusCode found = WebPGetFeatures(bytes, count, &features);
  if (found != VP8_STATUS_OK) pg::fail_damaged(reason_of(found));
  if (features.has_animation != 0) pg::fail_damaged("an animation; only single images are read");
  return features;
}

struct Webp {
  static constexpr const char *name = "webp", *doc = "An image: one uint8 tensor [rows, columns, 3 or 4]",
                              *extensions = ".webp";
  struct DecodeOptions {};
  struct EncodeOptions {
    int64_t quality = 0;
  };

  static bool matches(const unsigned char* head, uint64_t count) { return begins_as_webp(head, count); }

  static pg::CodedInfo probe(const pg::Bytes& from) {
    std::array<uint8_t, 64> head{};
    const size_t count = std::min<size_t>(head.size(), from.size());
    from.read(0, head.data(), count);
    const WebPBitstreamFeatures features = read_features(head.data(), count);
    return {PG_U8, {features.height, features.width, features.has_alpha != 0 ? 4 : 3}};
  }

  static void decode(const pg::Bytes& from, const pg::Decode<DecodeOptions>& how, pg::Sink& sink) {
    const Whole bytes(from);
    const WebPBitstreamFeatures features = read_features(bytes.data(), bytes.size());
    formats::check_pixels(features.width, features.height, how.max_pixels);

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
    if (status != VP8_STATUS_OK) pg::fail_damaged(reason_of(status));
  }

  static void encode(const pg::Item& item, const EncodeOptions& options, const pg::Notes& notes, pg::ByteSink& to) {
    const int64_t channels = formats::byte_channels(item, "WebP", "34", WEBP_MAX_DIMENSION);
    for (const auto& [key, value] : notes) pg::fail_argument("a WebP image has no notes but quality; got " + key);
    if (options.quality != 0) formats::check_quality(options.quality);
    const WebPConfig config = config_of(options.quality);
    const auto* pixels = static_cast<const uint8_t*>(item.data);
    const int stride = static_cast<int>(item.shape[1] * channels);
    Picture picture;
    picture.raw.width = static_cast<int>(item.shape[1]);
    picture.raw.height = static_cast<int>(item.shape[0]);
    picture.raw.use_argb = config.lossless;
    const int imported = channels == 4 ? WebPPictureImportRGBA(&picture.raw, pixels, stride)
                                       : WebPPictureImportRGB(&picture.raw, pixels, stride);
    if (imported == 0 || WebPEncode(&config, &picture.raw) == 0) pg::fail_argument(reason_of(picture.raw.error_code));
    to.write(picture.writer.mem, picture.writer.size);
  }
};

PG_CODEC(Webp).encode_attr(&Webp::EncodeOptions::quality, "quality", "1 to 100; 0: without loss");

}  // namespace
