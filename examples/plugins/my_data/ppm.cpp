// SPDX-License-Identifier: Apache-2.0
// ppm: a codec. Netpbm's raw pictures (P5 grey, P6 colours) of 8 bits, which many programs of research write.
#include <perigee/data.hpp>

#include <cstring>

namespace {

struct Header {
  int64_t rows = 0, columns = 0, channels = 0;
  uint64_t begin = 0;  // of the pixels
};

// Reads the header's words: the signature, columns, rows, the largest value; comments go from "#" to the line's end.
class HeaderReader {
 public:
  explicit HeaderReader(const pg::Bytes& from) : from_(from) {}

  Header read() {
    const char kind[2] = {next(), next()};
    if (kind[0] != 'P' || (kind[1] != '5' && kind[1] != '6')) pg::fail_damaged("not a raw PGM or PPM picture");
    Header header;
    header.channels = kind[1] == '5' ? 1 : 3;
    header.columns = number();
    header.rows = number();
    if (const int64_t largest = number(); largest != 255)
      pg::fail_damaged(pg::format("its largest value is %lld; only 255 is read", static_cast<long long>(largest)));
    header.begin = at_;
    return header;
  }

 private:
  char next() {
    char c = 0;
    from_.read(at_++, &c, 1);
    return c;
  }
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  int64_t number() {
    char c = next();
    while (is_space(c) || c == '#') {
      for (const bool comment = c == '#'; comment && c != '\n';) c = next();
      c = next();
    }
    int64_t value = 0;
    if (c < '0' || c > '9') pg::fail_damaged(pg::format("a number is missing at byte %llu", here()));
    for (; c >= '0' && c <= '9'; c = next()) {
      value = value * 10 + (c - '0');
      if (value > INT32_MAX) pg::fail_damaged(pg::format("a number is too large at byte %llu", here()));
    }
    if (!is_space(c)) pg::fail_damaged(pg::format("a number does not end at byte %llu", here()));
    return value;
  }
  unsigned long long here() const { return at_ - 1; }

  const pg::Bytes& from_;
  uint64_t at_ = 0;
};

struct Ppm {
  static constexpr const char *name = "ppm", *doc = "Netpbm's raw pictures: one uint8 tensor [rows, columns, 1 or 3]",
                              *extensions = ".ppm .pgm";
  static constexpr uint32_t flags = PG_DECODE_PART;
  struct DecodeOptions {};
  struct EncodeOptions {
    const char* comment = "";
  };

  static bool matches(const unsigned char* head, uint64_t count) {
    return count >= 3 && head[0] == 'P' && (head[1] == '5' || head[1] == '6') && (head[2] == '\n' || head[2] == ' ');
  }

  static pg::CodedInfo probe(const pg::Bytes& from) {
    const Header header = HeaderReader(from).read();
    return {PG_U8, {header.rows, header.columns, header.channels}};
  }

  static void decode(const pg::Bytes& from, const pg::Decode<DecodeOptions>& how, pg::Sink& sink) {
    const Header header = HeaderReader(from).read();
    const int64_t rows = header.rows, columns = header.columns;
    if (rows < 1 || columns < 1) pg::fail_damaged("a picture without pixels");
    if (rows > how.max_pixels / columns)
      pg::fail_damaged(pg::format("%lld x %lld pixels are more than max_pixels", static_cast<long long>(columns),
                                  static_cast<long long>(rows)));
    const auto line = static_cast<uint64_t>(columns * header.channels);
    if (from.size() - header.begin < line * static_cast<uint64_t>(rows))
      pg::fail_damaged(
          pg::format("the file ends at byte %llu, inside its pixels", static_cast<unsigned long long>(from.size())));
    const int64_t top = how.begin[0], left = how.begin[1];
    const int64_t height = how.extent[0] != 0 ? how.extent[0] : rows - top;
    const int64_t width = how.extent[1] != 0 ? how.extent[1] : columns - left;
    if (top < 0 || left < 0 || height < 1 || width < 1 || top > rows - height || left > columns - width)
      pg::fail_argument("options top, left, height, width: the part is not inside of the picture");
    auto* pixels = static_cast<unsigned char*>(sink.tensor("data", PG_U8, {height, width, header.channels}));
    const auto part = static_cast<uint64_t>(width * header.channels);
    for (int64_t row = 0; row < height; row++) {
      const uint64_t at = header.begin + static_cast<uint64_t>(top + row) * line;
      from.read(at + static_cast<uint64_t>(left * header.channels), pixels + static_cast<uint64_t>(row) * part, part);
    }
  }

  static void encode(const pg::Item& item, const EncodeOptions& options, const pg::Notes& notes, pg::ByteSink& to) {
    const auto& shape = item.shape;
    const int64_t channels = shape.size() == 3 ? shape[2] : 1;
    if (item.dtype != PG_U8 || (shape.size() != 2 && shape.size() != 3) || (channels != 1 && channels != 3))
      pg::fail_argument("a picture is a uint8 tensor [rows, columns] or [rows, columns, 1 or 3]");
    for (const auto& [key, value] : notes) pg::fail_argument("a PPM picture has no notes; got " + key);
    if (std::strchr(options.comment, '\n') != nullptr) pg::fail_argument("comment must be one line");
    std::string header = channels == 1 ? "P5\n" : "P6\n";
    if (options.comment[0] != '\0') header += std::string("# ") + options.comment + "\n";
    header += pg::format("%lld %lld\n255\n", static_cast<long long>(shape[1]), static_cast<long long>(shape[0]));
    to.write(header.data(), header.size());
    to.write(item.data, item.bytes);
  }
};

PG_CODEC(Ppm).encode_attr(&Ppm::EncodeOptions::comment, "comment", "a line of the header");

}  // namespace
