// SPDX-License-Identifier: Apache-2.0
// my_lines: a source in order. How many lines a file has, nobody knows before its end.
#include <perigee/data.hpp>

#include <fstream>

namespace {

struct Lines {
  const char* path = "";
  pg::Bool numbered = false;

  class Open {
   public:
    static constexpr bool in_order = true;
    explicit Open(const Lines& options) : path_(options.path), numbered_(options.numbered), stream_(path_) {
      if (!stream_) pg::fail(PG_E_NOT_FOUND, path_ + ": cannot be opened");
    }
    static int64_t count() { return PG_COUNT_UNKNOWN; }

    bool read(int64_t i, pg::FieldSink& out) {
      const auto at = static_cast<long long>(stream_.tellg());
      if (!skip(i)) return false;
      if (line_.find('\0') != std::string::npos)
        pg::fail_data(path_, pg::format("the line that begins at byte %lld is no text", at));
      out.text("text", line_);
      if (numbered_) out.number("line", static_cast<double>(i + 1));
      return true;
    }
    bool skip(int64_t) { return static_cast<bool>(std::getline(stream_, line_)); }

   private:
    const std::string path_;
    const bool numbered_;
    std::ifstream stream_;
    std::string line_;
  };
};

PG_SOURCE(Lines, "my_lines", "Lines of a text: samples { text = string }")
    .attr(&Lines::path, "path", "the file", PG_ATTR_REQUIRED)
    .attr(&Lines::numbered, "numbered", "samples have their number, from 1, as `line`");

}  // namespace
