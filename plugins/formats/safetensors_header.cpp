// SPDX-License-Identifier: Apache-2.0
#include "safetensors_header.hpp"

#include <istream>
#include <nlohmann/json.hpp>
#include <set>
#include <streambuf>
#include <string_view>

namespace formats {

namespace {

using nlohmann::json;
using pg::format;

// The header's bytes for the parser, which keeps a text or a number until it ends: too long ones stop here.
class HeaderBytes : public std::streambuf {
 public:
  HeaderBytes(const File& file, uint64_t length) : file_(file), end_(8 + length), piece_(1 << 16) {}

 protected:
  int_type underflow() override {
    if (at_ == end_) return traits_type::eof();
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(piece_.size(), end_ - at_));
    file_.read(at_, piece_.data(), bytes);
    at_ += bytes;
    for (size_t i = 0; i < bytes; i++) measure(piece_[i]);
    setg(piece_.data(), piece_.data(), piece_.data() + bytes);
    return traits_type::to_int_type(piece_[0]);
  }

 private:
  void measure(char c) {
    constexpr size_t kMaxWord = 64;  // a number or a literal
    if (in_text_) {
      if (!escaped_ && c == '"') in_text_ = false, length_ = 0;
      escaped_ = !escaped_ && c == '\\';
      if (++length_ > kMaxText) pg::fail_data(file_.path(), format("header: a text of more than %zu bytes", kMaxText));
      return;
    }
    const bool in_word =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '+' || c == 'E';
    length_ = in_word ? length_ + 1 : 0;
    in_text_ = c == '"';
    if (length_ > kMaxWord) pg::fail_data(file_.path(), format("header: a number of more than %zu bytes", kMaxWord));
  }

  const File& file_;
  uint64_t at_ = 8, end_;
  std::vector<char> piece_;
  bool in_text_ = false, escaped_ = false;
  size_t length_ = 0;
};

// Follows the parser through the header. The names of its functions are the JSON library's.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, uint64_t data_bytes, pg::Sink& sink)
      : path_(path), data_bytes_(data_bytes), sink_(sink) {}

  std::vector<Entry> entries;

  bool start_object(size_t) {
    switch (at_) {
      case At::file: at_ = At::tensors; return true;
      case At::tensors: return start_named();
      case At::other: return deeper();
      default: return value(Value::object);
    }
  }
  bool end_object() {
    switch (at_) {
      case At::other: leave(); break;
      case At::tensor:
        check_entry();
        at_ = At::tensors;
        break;
      case At::tensors: at_ = At::end; break;
      default: at_ = At::tensors; break;  // of notes
    }
    return true;
  }
  bool start_array(size_t) {
    if (at_ == At::other) return deeper();
    if (at_ == At::tensor && key_ == "shape") return at_ = At::shape, true;
    if (at_ == At::tensor && key_ == "data_offsets") return at_ = At::offsets, true;
    return value(Value::list);
  }
  bool end_array() {
    if (at_ == At::offsets && offset_count_ != 2) fail(offsets_text());
    if (at_ == At::other)
      leave();
    else
      at_ = At::tensor;
    return true;
  }
  bool key(std::string& text) {
    if (at_ == At::other) return true;
    if (at_ == At::tensors) check_name(text);
    if (at_ == At::notes) check_note_name(text);
    if (at_ == At::tensor) check_field(text);
    key_ = text;
    return true;
  }
  bool string(std::string& text) {
    if (at_ == At::notes) return note(text);
    if (at_ == At::tensor && key_ == "dtype") return entry().dtype = dtype_from(text), true;
    return value(Value::other);
  }
  bool number_unsigned(uint64_t number) {
    if (at_ == At::shape) return dimension(number);
    if (at_ == At::offsets) {
      if (offset_count_ < 2) (offset_count_ == 0 ? entry().begin : entry().end) = number;
      offset_count_++;
      return true;
    }
    return value(Value::other);
  }
  bool null() { return value(Value::other); }
  bool boolean(bool) { return value(Value::other); }
  bool number_integer(int64_t) { return value(Value::other); }
  bool number_float(double, const std::string&) { return value(Value::other); }
  bool binary(std::vector<uint8_t>&) { return value(Value::other); }
  bool parse_error(size_t byte, const std::string&, const json::exception& error) {
    if (dynamic_cast<const json::out_of_range*>(&error) != nullptr)
      pg::fail_data(path_, "header: a number is too large");
    pg::fail_data(path_, format("header: not valid JSON at byte %zu", byte + 7));
  }

 private:
  // Inside of what the parser is.
  enum class At { file, tensors, notes, tensor, shape, offsets, other, end };
  enum class Value { object, list, other };

  Entry& entry() { return entries.back(); }
  [[noreturn]] void fail(const std::string& what) {
    pg::fail_data(path_, "tensor \"" + entry().name.substr(0, 80) + "\": " + what);
  }
  static const char* offsets_text() { return "data_offsets is not a pair of whole numbers"; }

  // A value where no other function knows a use for it.
  bool value(Value kind) {
    switch (at_) {
      case At::tensors:
        if (metadata_now_) pg::fail_data(path_, "header: __metadata__ is not an object");
        fail("expected an object");
      case At::notes: pg::fail_data(path_, "header: __metadata__ \"" + key_.substr(0, 80) + "\" is not a string");
      case At::tensor:
        if (key_ == "dtype") fail("dtype is not a string");
        if (key_ == "shape") fail("shape is not a list");
        if (key_ == "data_offsets") fail(offsets_text());
        return kind == Value::other || deeper();
      case At::shape: fail("a dimension is not a whole number of 0 or more");
      case At::offsets: fail(offsets_text());
      default: return true;
    }
  }
  // A field that the format does not name is passed over.
  bool deeper() {
    constexpr int kMaxDepth = 8;
    at_ = At::other;
    if (++other_depth_ > kMaxDepth) pg::fail_data(path_, "header: nested too deeply");
    return true;
  }
  void leave() {
    if (--other_depth_ == 0) at_ = At::tensor;
  }

  bool start_named() {
    if (metadata_now_) return at_ = At::notes, true;
    at_ = At::tensor;
    fields_ = 0, offset_count_ = 0;
    return true;
  }
  void check_name(const std::string& name) {
    metadata_now_ = name == kMetadata;
    if (metadata_now_) {
      if (metadata_seen_) fail_twice(name);
      metadata_seen_ = true;
      return;
    }
    if (entries.size() == kMaxTensors)
      pg::fail_support(format("%s: more than %zu tensors", path_.c_str(), kMaxTensors));
    count_name(name);
    entries.push_back({name, 0, {}, 0, 0});
    if (name.find('\0') != std::string::npos) fail("the name holds a NUL");
  }
  void check_note_name(const std::string& name) {
    if (note_names_.size() == kMaxNotes) pg::fail_support(format("%s: more than %zu notes", path_.c_str(), kMaxNotes));
    count_name(name);
    if (!note_names_.insert(name).second) fail_twice(name);
    check_note_text(name, name);
  }
  void count_name(const std::string& name) {
    names_bytes_ += name.size();
    if (names_bytes_ > kMaxNames)
      pg::fail_support(format("%s: names of more than %zu bytes together", path_.c_str(), kMaxNames));
  }
  [[noreturn]] void fail_twice(const std::string& name) {
    pg::fail_data(path_, "header: \"" + name.substr(0, 80) + "\" stands there twice");
  }
  // The sink takes texts that end with a NUL: what is behind one would be lost.
  void check_note_text(const std::string& name, const std::string& text) {
    if (text.find('\0') == std::string::npos) return;
    pg::fail_data(path_, "header: __metadata__ \"" + name.substr(0, 80) + "\" holds a NUL");
  }
  bool note(const std::string& text) {
    check_note_text(key_, text);
    sink_.note(key_, text);
    return true;
  }

  void check_field(const std::string& name) {
    const unsigned field = name == "dtype" ? 1 : name == "shape" ? 2 : name == "data_offsets" ? 4 : 0;
    if ((fields_ & field) != 0) fail_twice(name);
    fields_ |= field;
  }
  uint32_t dtype_from(const std::string& name) {
    for (const DtypeName& known : kDtypes) {
      if (name != known.name) continue;
      if (known.dtype == 0)
        pg::fail_support(path_ + ": tensor \"" + entry().name.substr(0, 80) + "\": dtype " + name +
                         " is not supported");
      return known.dtype;
    }
    fail("unknown dtype \"" + name.substr(0, 80) + "\"");
  }
  bool dimension(uint64_t number) {
    if (number > static_cast<uint64_t>(INT64_MAX)) return value(Value::other);
    if (entry().shape.size() == PG_MAX_RANK)
      pg::fail_support(
          format("%s: tensor \"%.80s\" has more than %d dimensions", path_.c_str(), entry().name.c_str(), PG_MAX_RANK));
    entry().shape.push_back(static_cast<int64_t>(number));
    return true;
  }
  void check_entry() {
    if ((fields_ & 1) == 0) fail("dtype is missing");
    if ((fields_ & 2) == 0) fail("shape is missing");
    if ((fields_ & 4) == 0) fail("data_offsets is missing");
    const Entry& e = entry();
    auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    if (e.begin > e.end) fail("data_offsets end before they begin");
    if (e.end > data_bytes_) fail(format("data_offsets reach byte %llu of %llu", number(e.end), number(data_bytes_)));
    int64_t bytes = pg::dtype_bytes(e.dtype);
    for (int64_t d : e.shape) {
      if (__builtin_mul_overflow(bytes, d, &bytes)) fail("the shape overflows");
    }
    if (static_cast<uint64_t>(bytes) != e.end - e.begin)
      fail(format("dtype and shape need %llu bytes, data_offsets give %llu", number(static_cast<uint64_t>(bytes)),
                  number(e.end - e.begin)));
  }

  const std::string& path_;
  const uint64_t data_bytes_;
  pg::Sink& sink_;
  At at_ = At::file;
  int other_depth_ = 0, offset_count_ = 0;
  unsigned fields_ = 0;
  bool metadata_now_ = false, metadata_seen_ = false;
  size_t names_bytes_ = 0;
  std::string key_;
  std::set<std::string> note_names_;
};

}  // namespace

std::vector<Entry> read_header(const File& file, uint64_t length, pg::Sink& sink) {
  HeaderBytes bytes(file, length);
  if (length == 0 || bytes.sgetc() != '{') pg::fail_data(file.path(), "header: expected a JSON object at byte 8");
  std::istream stream(&bytes);
  HeaderReader reader(file.path(), file.size() - 8 - length, sink);
  json::sax_parse(stream, &reader);
  std::vector<std::string_view> names;
  for (const Entry& entry : reader.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    pg::fail_data(file.path(), format("header: \"%.80s\" stands there twice", std::string(*twice).c_str()));
  return std::move(reader.entries);
}

}  // namespace formats
