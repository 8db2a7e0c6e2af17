// SPDX-License-Identifier: Apache-2.0
// pictures: a source. Files of pictures, decoded by whichever codec there is as uint8 [rows, columns, channels], each
// with a number of a list. `for_size` lets a codec decode a picture smaller, where both sides are still as large: then
// `rows` and `columns` say what part of what came is the picture.
#include "picture.hpp"

namespace {

struct PictureFiles {
  const pg_texts* paths = nullptr;
  const pg_field* numbers = nullptr;
  int64_t channels = 3;
  pg_ints for_size{};
  pg::Bool numbered = false;

  void check() const {
    if (numbers->dtype != PG_I64 || numbers->rank != 1 || numbers->shape[0] != paths->count)
      pg::fail_argument(pg::format("numbers must be %u of int64", paths->count));
    if (channels < 1 || channels > 4)
      pg::fail_argument(pg::format("channels must be 1, 2, 3 or 4, got %lld", static_cast<long long>(channels)));
    if (for_size.count != 0 && for_size.count != 2) pg::fail_argument("for_size must be rows and columns");
  }

  class Open {
   public:
    explicit Open(const PictureFiles& options)
        : paths_(*options.paths),
          numbers_(static_cast<const int64_t*>(options.numbers->data)),
          channels_(options.channels),
          for_size_(options.for_size),
          numbered_(options.numbered) {}
    int64_t count() const { return paths_.count; }

    void read(int64_t i, pg::FieldSink& out) const {
      pg::Coded file;
      file.path = paths_.list[i];
      if (for_size_.count == 2) choose_scale(file, out);
      const pg::Decoded picture = out.decode("x", file);
      formats::place_picture("x", file.path + ": ", picture, channels_, out);
      out.number("y", static_cast<double>(numbers_[i]));
      if (numbered_) out.number("sample", static_cast<double>(i + 1));
    }

   private:
    void choose_scale(pg::Coded& file, pg::FieldSink& out) const {
      const pg::CodedInfo info = out.probe(file);
      if (info.shape.size() < 2) return;
      for (const int scale : {8, 4, 2}) {
        const double rows = static_cast<double>(info.shape[0]) / scale,
                     columns = static_cast<double>(info.shape[1]) / scale;
        if ((info.scales & static_cast<uint32_t>(scale)) == 0 || rows < static_cast<double>(for_size_.value[0]) ||
            columns < static_cast<double>(for_size_.value[1]))
          continue;
        file.options = pg::format("scale=%d", scale);
        out.number("rows", rows), out.number("columns", columns);
        return;
      }
    }

    const pg_texts& paths_;
    const int64_t* const numbers_;
    const int64_t channels_;
    const pg_ints for_size_;
    const bool numbered_;
  };
};

PG_SOURCE(PictureFiles, "pictures", "Pictures: samples { x = uint8 [rows, columns, channels], y = a number of a list }")
    .attr(&PictureFiles::paths, "paths", "the files", PG_ATTR_REQUIRED)
    .attr(&PictureFiles::numbers, "numbers", "int64, one for each", PG_ATTR_REQUIRED)
    .attr(&PictureFiles::channels, "channels", "of all: 1, 2, 3 or 4")
    .attr(&PictureFiles::for_size, "for_size", "rows and columns that they will be resized to: a codec may decode less")
    .attr(&PictureFiles::numbered, "numbered", "samples have their number, from 1, as `sample`");

}  // namespace
