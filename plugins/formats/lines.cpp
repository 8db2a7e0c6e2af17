// SPDX-License-Identifier: Apache-2.0
// lines: a source. The lines of a text, one after the other, without what ends them ("\n" or "\r\n"); a file of any
// size is read in blocks. A line may be as long as `max_bytes`.
#include <algorithm>
#include <vector>

#include "file.hpp"
#include "perigee/data.hpp"

namespace {

struct TextLines {
  const char* path = "";
  const char* field = "text";
  int64_t max_bytes = 1 << 24;

  void check() const {
    if (max_bytes < 1)
      pg::fail_argument(pg::format("max_bytes must be 1 or more, got %lld", static_cast<long long>(max_bytes)));
    if (field[0] == '\0') pg::fail_argument("field must be a name");
  }

  class Open {
   public:
    static constexpr bool in_order = true;
    explicit Open(const TextLines& options)
        : file_(formats::File::open_to_read(options.path)),
          field_(options.field),
          max_bytes_(static_cast<uint64_t>(options.max_bytes)) {}
    static int64_t count() { return PG_COUNT_UNKNOWN; }

    bool read(int64_t, pg::FieldSink& out) {
      if (!next_line()) return false;
      out.text(field_.c_str(), line_);
      return true;
    }
    bool skip(int64_t) { return next_line(); }

   private:
    bool next_line() {
      line_.clear();
      const uint64_t begin = read_ - (block_.size() - at_);
      if (begin == file_.size()) return false;
      while (true) {
        const auto rest = block_.begin() + static_cast<std::ptrdiff_t>(at_);
        const auto end = std::find(rest, block_.end(), '\n');
        line_.append(rest, end);
        if (line_.size() > max_bytes_ + 1)  // one may be "\r"
          fail_long(begin);
        at_ = static_cast<size_t>(end - block_.begin());
        if (end != block_.end()) {
          at_++;
          break;
        }
        if (read_ == file_.size()) break;
        block_.resize(std::min<uint64_t>(file_.size() - read_, kBlock));
        at_ = 0;
        file_.read(read_, block_.data(), block_.size());
        read_ += block_.size();
      }
      if (!line_.empty() && line_.back() == '\r') line_.pop_back();
      if (line_.size() > max_bytes_) fail_long(begin);
      return true;
    }
    [[noreturn]] void fail_long(uint64_t begin) const {
      pg::fail_data(file_.path(),
                    pg::format("the line that begins at byte %llu is longer than max_bytes, %llu",
                               static_cast<unsigned long long>(begin), static_cast<unsigned long long>(max_bytes_)));
    }

    static constexpr uint64_t kBlock = 1 << 16;
    const formats::File file_;
    const std::string field_;
    const uint64_t max_bytes_;
    std::vector<char> block_;
    size_t at_ = 0;      // in the block
    uint64_t read_ = 0;  // of the file: the block ends here
    std::string line_;
  };
};

PG_SOURCE(TextLines, "lines", "Lines of a text: samples { text = string }")
    .attr(&TextLines::path, "path", "the file", PG_ATTR_REQUIRED)
    .attr(&TextLines::field, "field", "what samples call them")
    .attr(&TextLines::max_bytes, "max_bytes", "a longer line is an error");

}  // namespace
