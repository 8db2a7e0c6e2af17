// SPDX-License-Identifier: Apache-2.0
// csv: lines of numbers, plain or gzip, as one tensor "data" [rows, columns]. A skipped first line becomes note
// "header".
#include <zlib.h>

#include <new>

#include "csv.hpp"
#include "file.hpp"

namespace {

using formats::File, formats::parse_number, formats::trimmed;
using pg::format;

// Lines of a file that may be compressed.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path) {
    File file = File::open_to_read(path);
    int descriptor = file.release();
    stream_ = ::gzdopen(descriptor, "rb");
    if (stream_ == nullptr) {
      ::close(descriptor);
      throw std::bad_alloc();
    }
    if (path.ends_with(".gz") && ::gzdirect(stream_) != 0) {
      ::gzclose(stream_);
      pg::fail_data(path, "not gzip data: it does not begin with gzip's magic");
    }
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() { ::gzclose(stream_); }

  bool next(std::string& line) {
    line.clear();
    for (;;) {
      size_t stop = buffer_.find('\n', position_);
      if (stop != std::string::npos) {
        line.append(buffer_, position_, stop - position_);
        position_ = stop + 1;
        break;
      }
      line.append(buffer_, position_, std::string::npos);
      if (!fill()) {
        if (line.empty()) return false;
        break;
      }
    }
    if (++number_ == 1 && line.compare(0, 3, "\xef\xbb\xbf") == 0) line.erase(0, 3);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }
  int64_t number() const { return number_; }

 private:
  bool fill() {
    buffer_.resize(1 << 16);
    position_ = 0;
    int got = ::gzread(stream_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int code = Z_OK;
    const char* reason = ::gzerror(stream_, &code);
    if (got < 0 || code == Z_BUF_ERROR) {  // the second: the compressed stream stops in the middle
      pg::fail_data(path_, format("line %lld: damaged gzip data: %s", static_cast<long long>(number_ + 1), reason));
    }
    buffer_.resize(static_cast<size_t>(got));
    return got > 0;
  }

  std::string path_, buffer_;
  gzFile stream_ = nullptr;
  size_t position_ = 0;
  int64_t number_ = 0;
};

template <class T>
void read_numbers(Lines& lines, const std::string& path, char delimiter, uint32_t dtype, pg::Sink& sink) {
  std::vector<T> values;
  int64_t rows = 0, columns = 0;
  for (std::string line; lines.next(line);) {
    if (trimmed(line).empty()) continue;
    int64_t column = 0;
    for (size_t begin = 0; begin <= line.size(); column++) {
      size_t end = std::min(line.find(delimiter, begin), line.size());
      std::string_view field = trimmed(std::string_view(line).substr(begin, end - begin));
      T value{};
      if (!parse_number(field, value)) {
        pg::fail_data(path,
                      format("line %lld, column %lld: \"%.40s\" is not %s", static_cast<long long>(lines.number()),
                             static_cast<long long>(column + 1), std::string(field).c_str(),
                             std::is_integral_v<T> ? "a whole number that int64 holds" : "a number"));
      }
      values.push_back(value);
      begin = end + 1;
    }
    if (rows++ == 0) columns = column;
    if (column != columns) {
      pg::fail_data(path, format("line %lld: %lld columns, expected %lld as in the lines before",
                                 static_cast<long long>(lines.number()), static_cast<long long>(column),
                                 static_cast<long long>(columns)));
    }
  }
  void* target = sink.tensor("data", dtype, {rows, columns});
  if (!values.empty()) std::memcpy(target, values.data(), values.size() * sizeof(T));
}

struct Csv {
  static constexpr const char *name = "csv", *doc = "Lines of numbers, plain or gzip, as one tensor \"data\"",
                              *extensions = ".csv .csv.gz .tsv .tsv.gz",
                              *options = "delimiter=auto skip=0 dtype=float32";

  static void read(const std::string& path, const pg::Options& options, pg::Sink& sink) {
    std::string delimiter = options.text("delimiter"), dtype = options.text("dtype");
    if (delimiter == "auto") delimiter = path.find(".tsv") != std::string::npos ? "\t" : ",";
    if (delimiter.size() != 1) pg::fail_argument("option delimiter: expected one character, got \"" + delimiter + "\"");
    int64_t skip = options.integer("skip");
    if (skip < 0) pg::fail_argument(format("option skip: expected 0 or more, got %lld", static_cast<long long>(skip)));
    Lines lines(path);
    std::string line;
    for (int64_t i = 0; i < skip && lines.next(line); i++) {
      if (i == 0) sink.note("header", line.substr(0, line.find('\0')));
    }
    if (dtype == "float32") return read_numbers<float>(lines, path, delimiter[0], PG_F32, sink);
    if (dtype == "float64") return read_numbers<double>(lines, path, delimiter[0], PG_F64, sink);
    if (dtype == "int64") return read_numbers<int64_t>(lines, path, delimiter[0], PG_I64, sink);
    pg::fail_argument("option dtype: expected float32, float64 or int64, got \"" + dtype + "\"");
  }
};

PG_FORMAT(Csv);

}  // namespace
