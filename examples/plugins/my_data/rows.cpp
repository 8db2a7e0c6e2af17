// SPDX-License-Identifier: Apache-2.0
// my_rows: a source by position. A file of records of one size, each a label and so many bytes, as CIFAR-10's are.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <perigee/data.hpp>

#include <cerrno>
#include <cstring>

namespace {

struct Rows {
  const char* path = "";
  int64_t bytes = 1;

  class Open {
   public:
    explicit Open(const Rows& options)
        : path_(options.path), bytes_(options.bytes), file_(::open(options.path, O_RDONLY | O_CLOEXEC)) {
      if (bytes_ < 1) pg::fail_argument("bytes must be 1 or more");
      if (file_.number < 0) pg::fail(PG_E_NOT_FOUND, path_ + ": " + std::strerror(errno));
      struct stat info {};
      if (::fstat(file_.number, &info) != 0 || info.st_size % (bytes_ + 1) != 0)
        pg::fail_data(path_, pg::format("its %lld bytes are no records of %lld", static_cast<long long>(info.st_size),
                                        static_cast<long long>(bytes_ + 1)));
      count_ = info.st_size / (bytes_ + 1);
    }
    int64_t count() const { return count_; }

    void read(int64_t i, pg::FieldSink& out) const {
      const int64_t at = i * (bytes_ + 1);
      unsigned char label = 0;
      read_at(at, &label, 1);
      read_at(at + 1, out.tensor("x", PG_U8, {bytes_}), bytes_);
      out.number("y", label);
    }

   private:
    struct File {
      explicit File(int opened) : number(opened) {}
      ~File() {
        if (number >= 0) ::close(number);
      }
      File(const File&) = delete;
      File& operator=(const File&) = delete;
      const int number;
    };
    void read_at(int64_t at, void* target, int64_t count) const {
      if (::pread(file_.number, target, static_cast<size_t>(count), at) != count)
        pg::fail_data(path_, pg::format("cannot read at byte %lld", static_cast<long long>(at)));
    }
    const std::string path_;
    const int64_t bytes_;
    const File file_;
    int64_t count_ = 0;
  };
};

PG_SOURCE(Rows, "my_rows", "Records of one size: samples { x = uint8 [bytes], y = label }")
    .attr(&Rows::path, "path", "the file", PG_ATTR_REQUIRED)
    .attr(&Rows::bytes, "bytes", "of x; a record has one more, the label");

}  // namespace
