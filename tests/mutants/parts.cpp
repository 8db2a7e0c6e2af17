// SPDX-License-Identifier: Apache-2.0
// Two sources, a transform and a codec that are right, but for the one thing that PERIGEE_MUTANT names.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <perigee/data.hpp>
#include <thread>

namespace {

bool is(const char* name) {
  static const std::string mutant = std::getenv("PERIGEE_MUTANT") != nullptr ? std::getenv("PERIGEE_MUTANT") : "";
  return mutant == name;
}
std::atomic<int64_t> calls{0};  // what must not matter

// ---- by position ----

struct Squares {
  int64_t count = 9;
  class Open {
   public:
    explicit Open(const Squares& options) : count_(options.count) {}
    int64_t count() const { return is("negative_count") ? -1 : count_; }
    void read(int64_t i, pg::FieldSink& out) const {
      auto* x = out.tensor<float>("x", PG_F32, {is("shape_changes") && calls++ > 12 ? 4 : 3});
      x[0] = static_cast<float>(i), x[1] = static_cast<float>(i * i);
      if (!is("unfilled")) x[2] = is("remembers") ? static_cast<float>(calls++) : 1;
      out.number("n", is("number_changes") ? static_cast<double>(calls++) : 2.5);
      if (is("no_name")) out.number("", 1);
      if (is("odd_dtype")) out.tensor("z", PG_DTYPE(77, 7), {2});
    }

   private:
    const int64_t count_;
  };
};
PG_SOURCE(Squares, "squares", "Squares by position").attr(&Squares::count, "count", "how many");

// ---- in order ----

struct Steps {
  int64_t count = 7;
  class Open {
   public:
    static constexpr bool in_order = true;
    explicit Open(const Steps& options) : count_(options.count), begin_(is("goes_on") ? calls++ : 0) {}
    int64_t count() const { return is("says_more") ? count_ + 1 : PG_COUNT_UNKNOWN; }
    bool read(int64_t i, pg::FieldSink& out) {
      if (i >= count_) return is("field_at_end") && (out.number("i", 0), false);
      at_++;
      if (!is("empty_element")) out.number("i", static_cast<double>(begin_ + at_));
      return true;
    }
    bool skip(int64_t i) {
      if (i >= count_) return false;
      at_ += is("skips_little") ? 0 : 1;
      return !is("skip_ends");
    }

   private:
    const int64_t count_, begin_;
    int64_t at_ = 0;
  };
};
PG_SOURCE(Steps, "steps", "Numbers in order").attr(&Steps::count, "count", "how many");

struct Named {
  const char* path = "";
  class Open {
   public:
    explicit Open(const Named& options) : path_(options.path) {}
    int64_t count() const { return static_cast<int64_t>(path_.size()); }
    void read(int64_t i, pg::FieldSink& out) const { out.number("c", path_[static_cast<size_t>(i)]); }

   private:
    const std::string path_;
  };
};
PG_SOURCE(Named, "named", "Letters of a text").attr(&Named::path, "path", "the text", PG_ATTR_REQUIRED);

// ---- a transform ----

struct Shift {
  double by = 1;
  class Open {
   public:
    explicit Open(const Shift& options) : by_(options.by) {}
    void apply(const pg::TransformCall& call, pg::FieldSink& out) const {
      const pg_field& x = call.tensor("x");
      if (x.dtype != PG_F32) {
        if (is("silent_refusal")) throw pg::Error(PG_E_INVALID_ARGUMENT, "");
        if (is("odd_code")) pg::fail(PG_E_BUSY, "not these");
        pg::fail_argument("x must be float32");
      }
      if (is("writes_input")) static_cast<float*>(const_cast<void*>(x.data))[1] += 1;
      auto* y = out.tensor<float>("shifted", PG_F32, {x.shape[0]});
      const auto draw = static_cast<float>(is("own_draws") ? static_cast<uint64_t>(calls++) : call.raw->random % 100);
      for (int64_t i = is("unfilled_transform") ? 1 : 0; i < x.shape[0]; i++)
        y[i] = static_cast<const float*>(x.data)[i] + static_cast<float>(by_) + draw;
      if (is("shares_state")) {
        inside++;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        y[0] += static_cast<float>(inside);
        inside--;
      }
    }

   private:
    static inline std::atomic<int> inside{0};
    const double by_;
  };
};
PG_TRANSFORM(Shift, "shift", "Adds a number and a draw").attr(&Shift::by, "by", "the number");

// ---- a codec: "PMC", rows, columns, channels, then the bytes, each the difference to the one before ----

struct Plain {
  static constexpr const char *name = "plain_picture", *doc = "Pictures as differences", *extensions = ".pmc";
  static constexpr uint32_t flags = PG_DECODE_PART | PG_DECODE_SCALE;
  struct DecodeOptions {};
  struct EncodeOptions {};

  static bool matches(const unsigned char* head, uint64_t count) {
    if (is("matches_all")) return true;
    return count >= 6 && head[0] == 'P' && head[1] == 'M' && head[2] == (is("matches_none") ? 'X' : 'C');
  }
  static std::vector<int64_t> shape_of(const pg::Bytes& from) {
    unsigned char head[6];
    from.read(0, head, sizeof head);
    if (head[0] != 'P' || head[1] != 'M' || head[2] != 'C')
      pg::fail(is("noise_code") ? PG_E_INVALID_ARGUMENT : PG_E_DATA_LOSS, is("noise_silent") ? "" : "it is no picture");
    for (int i = 3; i < 6; i++)
      if (head[i] == 0) pg::fail(PG_E_DATA_LOSS, "a side is 0");
    return {head[3], head[4], head[5]};
  }
  static pg::CodedInfo probe(const pg::Bytes& from) {
    std::vector<int64_t> shape = shape_of(from);
    if (is("probe_lies")) shape[0]++;
    return {PG_U8, shape, is("no_scale_one") ? 2u : 3u};
  }
  static void decode(const pg::Bytes& from, const pg::Decode<DecodeOptions>& how, pg::Sink& sink) {
    const std::vector<int64_t> shape = shape_of(from);
    const int64_t rows = shape[0], columns = shape[1], channels = shape[2], scale = how.scale;
    if (is("odd_refusal") && channels > 4) pg::fail(PG_E_INTERNAL, "so many channels");
    if (!is("no_limit") && rows * columns > how.max_pixels) pg::fail(PG_E_DATA_LOSS, "it has too many pixels");
    if (scale != 1 && scale != 2 && !is("any_scale")) pg::fail_argument("scale must be 1 or 2");
    std::vector<unsigned char> bytes(static_cast<size_t>(rows * columns * channels));
    uint64_t there = bytes.size();
    if (is("takes_short") && from.size() < 6 + there) there = from.size() - 6;
    from.read(6, bytes.data(), there);
    for (size_t i = 1; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(bytes[i] + bytes[i - 1]);
    const int64_t high = is("scale_cuts") ? rows / scale : (rows + scale - 1) / scale,
                  wide = (columns + scale - 1) / scale;
    const int64_t top = how.begin[0], left = how.begin[1];
    const int64_t height = how.extent[0] > 0 ? how.extent[0] : high - top;
    const int64_t width = how.extent[1] > 0 ? how.extent[1] : is("part_is_all") ? wide : wide - left;
    if (!is("any_part") && (top + height > high || left + width > wide)) pg::fail_argument("the part is not inside");
    auto* to = static_cast<unsigned char*>(
        sink.tensor(is("other_name") ? "picture" : "data", PG_U8, {height, width, channels}));
    for (int64_t r = 0; r < height; r++)
      for (int64_t c = 0; c < width; c++)
        for (int64_t k = 0; k < channels; k++) {
          const int64_t row = std::min((top + r) * scale, rows - 1), column = std::min((left + c) * scale, columns - 1);
          if (is("unfilled_codec") && r + 1 == height && c + 1 == width && k + 1 == channels) continue;
          to[(r * width + c) * channels + k] = bytes[static_cast<size_t>((row * columns + column) * channels + k)];
        }
    if (is("decodes_anew")) to[0] = static_cast<unsigned char>(calls++);
  }
  static void encode(const pg::Item& what, const EncodeOptions&, const pg::Notes&, pg::ByteSink& to) {
    if (what.shape.size() != 3 || what.dtype != PG_U8) {
      if (is("encode_silent")) throw pg::Error(PG_E_INVALID_ARGUMENT, "");
      pg::fail_argument("expected a picture of bytes");
    }
    if (is("encodes_nothing")) return;
    const unsigned char head[] = {'P',
                                  'M',
                                  'C',
                                  static_cast<unsigned char>(what.shape[0]),
                                  static_cast<unsigned char>(what.shape[1]),
                                  static_cast<unsigned char>(what.shape[2])};
    to.write(head, sizeof head);
    const auto* x = static_cast<const unsigned char*>(what.data);
    for (uint64_t i = 0; i < what.bytes; i++) {
      const auto difference = static_cast<unsigned char>(i == 0 ? x[0] : x[i] - x[i - 1]);
      to.write(&difference, 1);
    }
  }
};
PG_CODEC(Plain);

}  // namespace

PG_PLUGIN(pg::Provides<pg::DataTable>, "parts", "1.0.0", "data");
