// SPDX-License-Identifier: Apache-2.0
// npy: one array of NumPy's.
#include "npy.hpp"

#include <cstring>
#include <vector>

#include "file.hpp"

namespace formats {
namespace {

using pg::format;

struct Kind {
  const char* descr;  // behind the byte order
  uint32_t dtype;
};
constexpr Kind kKinds[] = {{"f8", PG_F64}, {"f4", PG_F32}, {"f2", PG_F16},  {"i8", PG_I64},
                           {"i4", PG_I32}, {"i2", PG_I16}, {"i1", PG_I8},   {"u1", PG_U8},
                           {"b1", PG_B8},  {"c8", PG_C64}, {"c16", PG_C128}};

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

// A Python dictionary of the three entries that the format names, and of nothing else.
class Parser {
 public:
  Parser(const std::string& where, const std::string& text) : where_(where), text_(text) {}

  Header parse() {
    Header header;
    bool seen[3] = {};
    expect('{');
    while (!take('}')) {
      std::string key = quoted();
      expect(':');
      int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0 || seen[which]) fail("unexpected entry '" + key + "'");
      seen[which] = true;
      if (which == 0) header.descr = quoted();
      if (which == 1) header.fortran = boolean();
      if (which == 2) header.shape = tuple();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!seen[0] || !seen[1] || !seen[2]) fail("descr, fortran_order and shape are not all there");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { pg::fail_data(where_, "header: " + what); }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) at_++;
  }
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(format("expected '%c' at byte %zu", c, at_));
  }
  std::string quoted() {
    blanks();
    char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote == '[') fail("structured arrays are not read");
    if (quote != '\'' && quote != '"') fail(format("expected a string at byte %zu", at_));
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail("a string has no end");
    std::string value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    blanks();
    for (bool value : {true, false}) {
      const char* word = value ? "True" : "False";
      if (text_.compare(at_, std::strlen(word), word) != 0) continue;
      at_ += std::strlen(word);
      return value;
    }
    fail("fortran_order is neither True nor False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!take(')')) {
      blanks();
      int64_t value = 0;
      size_t begin = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; at_++) {
        if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
            __builtin_add_overflow(value, text_[at_] - '0', &value))
          fail("a dimension is too large");
      }
      if (at_ == begin) fail(format("expected a number at byte %zu", at_));
      values.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::string& where_;
  const std::string& text_;
  size_t at_ = 0;
};

uint32_t dtype_of(const Source& source, const Header& header) {
  if (header.descr.size() >= 3) {
    for (const Kind& kind : kKinds) {
      if (header.descr.compare(1, std::string::npos, kind.descr) == 0) return kind.dtype;
    }
  }
  pg::fail_support(source.where + ": dtype '" + header.descr + "' is not read");
}

// Numbers of the other byte order; of complex ones each half.
void swap_bytes(char* data, uint64_t bytes, uint64_t width) {
  for (uint64_t i = 0; i + width <= bytes; i += width) std::reverse(data + i, data + i + width);
}

// From first axis fastest to last axis fastest.
void turn(const char* from, char* to, const std::vector<int64_t>& shape, uint64_t width, uint64_t count) {
  std::vector<int64_t> index(shape.size(), 0);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = 0, step = 1;
    for (size_t d = 0; d < shape.size(); d++) {
      at += static_cast<uint64_t>(index[d]) * step;
      step *= static_cast<uint64_t>(shape[d]);
    }
    std::memcpy(to + i * width, from + at * width, width);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

// The header's text, and where the data begin.
std::string header_text(const Source& source, uint64_t* data) {
  unsigned char lead[12] = {};
  if (source.size < 10)
    pg::fail_data(source.where, format("%llu bytes are no .npy file", static_cast<unsigned long long>(source.size)));
  source.read(lead, 10);
  if (std::memcmp(lead, "\x93NUMPY", 6) != 0)
    pg::fail_data(source.where, "not a .npy file: it does not begin with one's magic");
  if (lead[6] < 1 || lead[6] > 3)
    pg::fail_support(format("%s: version %d of the format is not read", source.where.c_str(), lead[6]));
  uint64_t begin = lead[6] == 1 ? 10 : 12, length = lead[8] | lead[9] << 8;
  if (lead[6] > 1) {
    if (source.size < 12) pg::fail_data(source.where, "the file ends inside its header");
    source.read(lead + 10, 2);
    length |= static_cast<uint64_t>(lead[10]) << 16 | static_cast<uint64_t>(lead[11]) << 24;
  }
  if (length > source.size - begin || length > (1u << 20))
    pg::fail_data(source.where, "the header is longer than the file, or than 1 MiB");
  std::string text(length, ' ');
  source.read(text.data(), length);
  *data = begin + length;
  return text;
}

}  // namespace

void read_npy(const Source& source, const std::string& name, pg::Sink& sink) {
  uint64_t begin = 0;
  std::string text = header_text(source, &begin);
  Header header = Parser(source.where, text).parse();
  uint32_t dtype = dtype_of(source, header);
  uint64_t width = static_cast<uint64_t>(pg::dtype_bytes(dtype)), bytes = width, count = 1;
  bool empty = false;
  for (int64_t d : header.shape) empty |= d == 0;
  for (int64_t d : header.shape) {
    if (!empty && (__builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes) || bytes > source.size))
      bytes = UINT64_MAX;
    if (bytes == UINT64_MAX) break;
    count *= static_cast<uint64_t>(d);
  }
  if (empty) bytes = 0, count = 0;
  if (bytes != source.size - begin) {
    pg::fail_data(source.where, format("%llu bytes of data; the header asks for %s",
                                       static_cast<unsigned long long>(source.size - begin),
                                       bytes == UINT64_MAX ? "more than there are" : std::to_string(bytes).c_str()));
  }
  auto* target = static_cast<char*>(sink.tensor(name, dtype, header.shape));
  if (bytes == 0) return;
  if (header.fortran && header.shape.size() > 1) {
    std::vector<char> raw(bytes);
    source.read(raw.data(), bytes);
    turn(raw.data(), target, header.shape, width, count);
  } else {
    source.read(target, bytes);
  }
  if (header.descr[0] == '>' && width > 1) swap_bytes(target, bytes, header.descr[1] == 'c' ? width / 2 : width);
  if (dtype == PG_B8) {
    for (uint64_t i = 0; i < bytes; i++) target[i] = target[i] != 0;
  }
}

std::string npy_header(const pg::Item& item) {
  const char* descr = nullptr;
  for (const Kind& kind : kKinds) {
    if (kind.dtype == item.dtype) descr = kind.descr;
  }
  if (descr == nullptr) {
    pg::fail_support(
        format("NumPy has no %s; use t:to(\"float32\") or a .safetensors file", pg::dtype_name(item.dtype)));
  }
  std::string text = format("{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                            pg::dtype_bytes(item.dtype) > 1 ? '<' : '|', descr);
  for (size_t i = 0; i < item.shape.size(); i++) text += (i > 0 ? ", " : "") + std::to_string(item.shape[i]);
  text += item.shape.size() == 1 ? ",), }" : "), }";
  text += std::string(64 - (10 + text.size() + 1) % 64, ' ') + "\n";  // so that the data are aligned
  std::string lead("\x93NUMPY\x01\x00", 8);
  lead += static_cast<char>(text.size() & 255);
  lead += static_cast<char>(text.size() >> 8);
  return lead + text;
}

}  // namespace formats

namespace {

struct Npy {
  static constexpr const char *name = "npy", *doc = "an array of NumPy's, as tensor \"data\"", *extensions = ".npy";
  static constexpr const char* options = "";

  static void read(const std::string& path, const pg::Options&, pg::Sink& sink) {
    formats::File file = formats::File::open_to_read(path);
    uint64_t at = 0;
    auto next = [&](void* target, uint64_t bytes) {
      file.read(at, target, bytes);
      at += bytes;
    };
    formats::read_npy({path, file.size(), next}, "data", sink);
  }
  static void write(const std::string& path, const pg::Items& items, const pg::Notes&) {
    if (items.size() != 1) pg::fail_argument(pg::format("a .npy file holds one tensor, got %zu", items.size()));
    std::string header = formats::npy_header(items[0]);
    formats::File file = formats::File::open_to_write(path);
    file.write(header.data(), header.size());
    file.write(items[0].data, items[0].bytes);
    file.finish();
  }
};
PG_FORMAT(Npy);

}  // namespace
