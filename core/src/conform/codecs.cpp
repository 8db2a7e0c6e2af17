// SPDX-License-Identifier: Apache-2.0
// Codecs of a plugin: what they encode comes back, parts and scales are what they are said to be, and bytes that nobody
// encoded are turned away with a reason.
#include <algorithm>
#include <cstring>

#include "conform/parts.hpp"
#include "data/codec.hpp"

namespace perigee::conform {
namespace {

using Bytes = std::vector<unsigned char>;
constexpr int64_t kPixels = int64_t{1} << 20;  // that decode may make here

int32_t append(void* context, const void* bytes, uint64_t count, pg_error*) {
  auto* to = static_cast<Bytes*>(context);
  const auto* from = static_cast<const unsigned char*>(bytes);
  to->insert(to->end(), from, from + count);
  return PG_OK;
}

// What decode makes: one tensor, named "data".
class Decoded {
 public:
  explicit Decoded(Poison poison) : poison_(poison) {}
  Decoded(const Decoded&) = delete;
  pg_sink sink() { return {PG_SIZE(pg_sink, note), 0, this, give, note}; }
  uint64_t bytes() const { return bytes_; }
  bool operator==(const Decoded& other) const {
    return dtype == other.dtype && shape == other.shape && std::memcmp(words_.data(), other.words_.data(), bytes_) == 0;
  }
  uint32_t dtype = 0;
  std::vector<int64_t> shape;
  int given = 0;
  std::string problem;

 private:
  static void* give(void* context, const char* name, uint32_t dtype, uint32_t rank, const int64_t* shape,
                    pg_error* error) {
    auto& made = *static_cast<Decoded*>(context);
    made.given++;
    made.dtype = dtype;
    uint64_t count = 1;
    made.shape.clear();
    for (uint32_t i = 0; i < rank && i < PG_MAX_RANK; i++) {
      made.shape.push_back(shape[i]);
      count *= static_cast<uint64_t>(std::max<int64_t>(shape[i], 0));
    }
    if (std::strcmp(name, "data") != 0) made.problem = std::string("its tensor is called \"") + name + "\"";
    if (rank > PG_MAX_RANK || pg::dtype_class(dtype) == 0 ||
        std::any_of(made.shape.begin(), made.shape.end(), [](int64_t n) { return n < 0; }))
      made.problem = "its tensor has a dtype or shape that cannot be";
    made.bytes_ = (count * (dtype & 0xffff) + 7) / 8;
    if (made.bytes_ > (uint64_t{1} << 30)) made.problem = "it wants more than a gigabyte";
    if (!made.problem.empty()) {
      error->code = PG_E_INVALID_ARGUMENT;
      return nullptr;
    }
    made.words_.resize(made.bytes_ / 8 + 1);
    std::memset(made.words_.data(), static_cast<int>(made.poison_), made.words_.size() * 8);
    return made.bytes_ == 0 ? nullptr : made.words_.data();
  }
  static int32_t note(void*, const char*, const char*, pg_error*) { return PG_OK; }
  Poison poison_;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> words_;
};

// Bytes in memory, or `behind` a function alone, as those of a file are.
struct From {
  From(const unsigned char* data, size_t count, bool behind = false) : all(bytes_in_memory(data, count)), raw(all) {
    raw.context = all.context = &all;
    if (behind) raw.data = nullptr;
  }
  explicit From(const Bytes& bytes, bool behind = false) : From(bytes.data(), bytes.size(), behind) {}
  From(const From&) = delete;
  pg_bytes all, raw;
};

class CodecChecks {
 public:
  CodecChecks(const pg_codec_info& codec, std::vector<Finding>& found)
      : codec_(codec), checks_(found, "codecs", codec.name) {}

  void run() {
    checks_.check("it has an extension, and says what it takes", [&] { described(); });
    checks_.check("bytes of no kind are turned away", [&] { strange_bytes(); });
    if (codec_.encode == nullptr) return checks_.not_asked("it only decodes: there are no bytes to decode here");
    if (!encode_some()) return;
    for (size_t i = 0; i < samples_.size(); i++) {
      const Bytes& bytes = samples_[i];
      if (!checks_.check(("what it encodes, it knows and decodes: " + names_[i]).c_str(), [&] { round_trip(bytes); }))
        continue;
      checks_.check(("from memory, behind a function and on threads the same: " + names_[i]).c_str(),
                    [&] { same_everywhere(bytes); });
      checks_.check(("scales and parts are as large as they are said to be: " + names_[i]).c_str(),
                    [&] { scales_and_parts(bytes); });
      checks_.check(("too many pixels are refused before there is memory for them: " + names_[i]).c_str(),
                    [&] { limit(bytes); });
      checks_.check(("bytes that end early are damaged: " + names_[i]).c_str(), [&] { truncated(bytes); });
      checks_.check(("changed bytes are refused with a reason, or are what they say: " + names_[i]).c_str(),
                    [&] { changed(bytes); });
    }
  }

 private:
  void described() {
    need(codec_.extensions != nullptr && codec_.extensions[0] == '.', "its extensions do not begin with a point");
    need((codec_.flags & ~(PG_DECODE_PART | PG_DECODE_SCALE)) == 0, "it has flags that have no name");
  }

  void strange_bytes() {
    Bytes noise(300);
    uint32_t state = 1;
    for (unsigned char& byte : noise) byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
    need(codec_.matches(codec_.user, noise.data(), 0) == 0, "nothing at all is of its kind");
    for (size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{300}}) {
      const From from(noise.data(), count);
      pg_coded_info coded{};
      coded.size = PG_SIZE(pg_coded_info, shape);
      need_refused(pg::format("probe of %zu bytes of noise", count), PG_E_DATA_LOSS, codec_.probe, codec_.user,
                   &from.raw, &coded);
      Decoded made(Poison::first);
      const pg_sink sink = made.sink();
      const pg_decode how = whole();
      need_refused(pg::format("decode of %zu bytes of noise", count), PG_E_DATA_LOSS, codec_.decode, codec_.user,
                   &from.raw, &how, &sink);
    }
  }

  // Pictures of bytes, and rows of numbers for codecs of other things: what it refuses, it need not take.
  bool encode_some() {
    struct Sample {
      const char* name;
      uint32_t dtype;
      std::vector<int64_t> shape;
    };
    const Sample list[] = {
        {"a picture of 13 x 9 x 3", PG_U8, {13, 9, 3}}, {"a picture of 16 x 40 x 1", PG_U8, {16, 40, 1}},
        {"a picture of 5 x 7 x 4", PG_U8, {5, 7, 4}},   {"a picture of 1 x 1 x 3", PG_U8, {1, 1, 3}},
        {"12 numbers of float32", PG_F32, {12}},        {"3 x 4 numbers of int64", PG_I64, {3, 4}}};
    std::string why;
    checks_.check("it encodes something, and refuses the rest with a reason", [&] {
      for (const Sample& sample : list) {
        int64_t count = 1;
        for (int64_t n : sample.shape) count *= n;
        std::vector<uint64_t> words(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; i++) {
          if (sample.dtype == PG_U8) reinterpret_cast<uint8_t*>(words.data())[i] = static_cast<uint8_t>(i * 29 % 256);
          if (sample.dtype == PG_F32) reinterpret_cast<float*>(words.data())[i] = static_cast<float>(i) / 3;
          if (sample.dtype == PG_I64) words[static_cast<size_t>(i)] = static_cast<uint64_t>(i * 5 - 9);
        }
        std::vector<int64_t> stride(sample.shape.size());
        int64_t step = 1;
        for (size_t i = stride.size(); i-- > 0; step *= sample.shape[i]) stride[i] = step;
        const View what(sample.dtype, sample.shape, stride, reinterpret_cast<uint64_t>(words.data()));
        Bytes bytes;
        const pg_byte_sink sink{PG_SIZE(pg_byte_sink, write), 0, &bytes, append};
        pg_error error = pg::make_error();
        const int32_t code = codec_.encode(codec_.user, &what.t, codec_.encode_defaults, 0, nullptr, &sink, &error);
        if (code != PG_OK) {
          need(error.message[0] != '\0', std::string("it refuses ") + sample.name + " without a message");
          need(code == PG_E_INVALID_ARGUMENT || code == PG_E_NOT_SUPPORTED,
               pg::format("it refuses %s with code %d: %s", sample.name, code, error.message));
          why = error.message;
          continue;
        }
        need(!bytes.empty(), std::string("it makes no bytes of ") + sample.name);
        names_.push_back(sample.name);
        samples_.push_back(std::move(bytes));
      }
    });
    if (samples_.empty()) checks_.not_asked("it encodes none of what it is asked with: " + why);
    return !samples_.empty();
  }

  static pg_decode whole() {
    pg_decode how{};
    how.size = PG_SIZE(pg_decode, attrs);
    how.scale = 1;
    how.max_pixels = kPixels;
    return how;
  }

  pg_coded_info probe(const Bytes& bytes) const {
    const From from(bytes);
    pg_coded_info coded{};
    coded.size = PG_SIZE(pg_coded_info, shape);
    call("probe", codec_.probe, codec_.user, &from.raw, &coded);
    return coded;
  }
  int32_t try_decode(const pg_bytes& from, pg_decode how, Decoded& into, pg_error& error) const {
    how.attrs = codec_.decode_defaults;
    const pg_sink sink = into.sink();
    const int32_t code = codec_.decode(codec_.user, &from, &how, &sink, &error);
    need(into.problem.empty(), into.problem);
    return code;
  }
  void decode(const pg_bytes& from, const pg_decode& how, Decoded& into) const {
    pg_error error = pg::make_error();
    const int32_t code = try_decode(from, how, into, error);
    if (code != PG_OK) wrong("decode fails: " + pg::message_of(code, error));
    need(into.given == 1, pg::format("decode gives %d tensors", into.given));
  }

  void round_trip(const Bytes& bytes) {
    need(codec_.matches(codec_.user, bytes.data(), std::min<uint64_t>(bytes.size(), 64)) == 1,
         "what it encodes is not of its kind");
    const pg_coded_info coded = probe(bytes);
    need((coded.scales & 1u) != 0, "scale 1 is not among its scales");
    need((coded.flags & ~codec_.flags) == 0, "probe names flags that the codec has not");
    need((coded.flags & PG_DECODE_SCALE) != 0 || coded.scales == 1, "it has scales, and no flag that says so");
    Decoded made(Poison::first), again(Poison::second);
    const From from(bytes);
    decode(from.raw, whole(), made);
    decode(from.raw, whole(), again);
    need(made == again, "decoded again it is another, or not all of it is filled");
    need(made.dtype == coded.dtype && made.shape == std::vector(coded.shape, coded.shape + coded.rank),
         "decode makes another dtype or shape than probe says");
  }

  void same_everywhere(const Bytes& bytes) {
    Decoded made(Poison::first);
    decode(From(bytes).raw, whole(), made);
    const From behind(bytes, true);
    Decoded other(Poison::second);
    decode(behind.raw, whole(), other);
    need(made == other, "bytes that are behind a function are decoded to something else");
    on_threads([&](int) {
      for (int k = 0; k < 8; k++) {
        Decoded again(Poison::second);
        decode(From(bytes).raw, whole(), again);
        need(made == again, "on threads at one time it is decoded to something else");
      }
    });
  }

  void scales_and_parts(const Bytes& bytes) {
    const pg_coded_info coded = probe(bytes);
    const From from(bytes);
    if ((codec_.flags & PG_DECODE_SCALE) != 0) {
      for (uint32_t k = 0; k < 6; k++) {
        pg_decode how = whole();
        how.scale = 1u << k;
        Decoded made(Poison::first);
        if ((coded.scales >> k & 1u) != 0) {
          decode(from.raw, how, made);
          for (uint32_t i = 0; i < 2 && i < coded.rank; i++)
            need(made.shape[i] == (coded.shape[i] + how.scale - 1) / how.scale,
                 pg::format("at scale %u a side of %lld becomes %lld", how.scale,
                            static_cast<long long>(coded.shape[i]), static_cast<long long>(made.shape[i])));
          continue;
        }
        pg_error error = pg::make_error();
        const int32_t code = try_decode(from.raw, how, made, error);
        need(code == PG_E_INVALID_ARGUMENT && std::strstr(error.message, "scale") != nullptr,
             pg::format("scale %u, which it has not, is answered with code %d: %s", how.scale, code, error.message));
      }
    }
    if ((coded.flags & PG_DECODE_PART) == 0) return;
    Decoded all(Poison::first);
    decode(from.raw, whole(), all);
    pg_decode how = whole();
    how.begin[0] = coded.shape[0] / 3, how.begin[1] = coded.shape[1] / 2;
    how.extent[0] = std::max<int64_t>(coded.shape[0] / 2, 1), how.extent[1] = 0;  // 0: all that is left
    Decoded part(Poison::first), again(Poison::second);
    decode(from.raw, how, part);
    decode(from.raw, how, again);
    need(part == again, "a part is another each time, or not all of it is filled");
    need(part.shape[0] == how.extent[0] && part.shape[1] == coded.shape[1] - how.begin[1] && part.dtype == all.dtype,
         "a part is of another size than it was asked for");
    how.extent[0] = coded.shape[0] + 1;
    Decoded beyond(Poison::first);
    pg_error error = pg::make_error();
    need(try_decode(from.raw, how, beyond, error) == PG_E_INVALID_ARGUMENT,
         "a part that is not inside is answered otherwise than by PG_E_INVALID_ARGUMENT");
    need(error.message[0] != '\0', "a part that is not inside is refused without a message");
  }

  void limit(const Bytes& bytes) {
    const pg_coded_info coded = probe(bytes);
    int64_t pixels = 1;
    for (uint32_t i = 0; i < coded.rank && (i < 2 || coded.rank != 3); i++) pixels *= coded.shape[i];
    pg_decode how = whole();
    how.max_pixels = pixels - 1;
    Decoded made(Poison::first);
    pg_error error = pg::make_error();
    const int32_t code = try_decode(From(bytes).raw, how, made, error);
    need(code == PG_E_DATA_LOSS, pg::format("more pixels than max_pixels are answered with code %d", code));
    need(made.given == 0, "it asks for the memory of more pixels than max_pixels");
  }

  void truncated(const Bytes& bytes) {
    const size_t step = std::max<size_t>(1, bytes.size() / 64);
    for (size_t count = 0; count < bytes.size() / 2; count += step) {
      // A copy of its own, so that memory checkers see what is read behind it.
      const Bytes less(bytes.begin(), bytes.begin() + static_cast<int64_t>(count));
      const std::string what = pg::format("what ends at byte %zu of %zu", count, bytes.size());
      Decoded made(Poison::first);
      pg_error error = pg::make_error();
      const int32_t code = try_decode(From(less).raw, whole(), made, error);
      need(code == PG_E_DATA_LOSS, pg::format("%s is answered with code %d", what.c_str(), code));
      need(error.message[0] != '\0', what + " is refused without a message");
    }
  }

  void changed(const Bytes& bytes) {
    uint32_t state = 7;
    auto random = [&](size_t n) { return static_cast<size_t>((state = state * 1664525 + 1013904223) >> 8) % n; };
    for (int k = 0; k < 200; k++) {
      Bytes other = bytes;
      for (size_t i = 1 + random(3); i > 0; i--)
        other[random(other.size())] ^= static_cast<unsigned char>(1 + random(255));
      const From from(other);
      pg_coded_info coded{};
      coded.size = PG_SIZE(pg_coded_info, shape);
      pg_error error = pg::make_error();
      const int32_t code = codec_.probe(codec_.user, &from.raw, &coded, &error);
      Decoded made(Poison::first);
      pg_error why = pg::make_error();
      const int32_t result = try_decode(from.raw, whole(), made, why);
      need(result == PG_OK || result == PG_E_DATA_LOSS,
           pg::format("changed bytes are answered with code %d: %s", result, why.message));
      need(result == PG_OK || why.message[0] != '\0', "changed bytes are refused without a message");
      need(result != PG_OK || code == PG_OK, "changed bytes are decoded, though probe refuses them");
      need(result != PG_OK || (made.given == 1 && made.dtype == coded.dtype &&
                               made.shape == std::vector(coded.shape, coded.shape + coded.rank)),
           "changed bytes are decoded to another shape than probe says");
    }
  }

  const pg_codec_info& codec_;
  PartChecks checks_;
  std::vector<std::string> names_;
  std::vector<Bytes> samples_;
};

}  // namespace

void check_codec(const pg_codec_info& codec, std::vector<Finding>& found) { CodecChecks(codec, found).run(); }

}  // namespace perigee::conform
