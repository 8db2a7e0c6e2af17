// SPDX-License-Identifier: Apache-2.0
// mnist: a source by position. Pictures and labels from two IDX files of bytes (LeCun et al., 1998), which stay in
// memory.
#include <cstring>

#include "contents.hpp"
#include "labels.hpp"
#include "perigee/data.hpp"

namespace {

using pg::format;

// An array of bytes: two zeros, the kind (8), the count of axes, their sizes (the high byte first), elements.
struct Idx {
  std::vector<int64_t> shape;
  std::vector<unsigned char> bytes;

  Idx(const std::string& path, uint32_t axes) {
    formats::File opened = formats::File::open_to_read(path);
    const bool packed = formats::is_gzip(opened);
    const formats::FileContents file(std::move(opened), packed);
    const uint64_t head_bytes = 4 + 4 * axes;
    unsigned char head[16] = {};
    if (file.size() >= head_bytes) file.read(0, head, head_bytes);
    if (file.size() < head_bytes || head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] != axes)
      pg::fail_data(path,
                    format("it does not begin as an IDX file of bytes with %u ax%s", axes, axes == 1 ? "is" : "es"));
    double expected = 1;
    for (uint32_t i = 0; i < axes; i++) {
      const unsigned char* side = head + 4 + 4 * i;
      shape.push_back(static_cast<int64_t>(side[0]) << 24 | side[1] << 16 | side[2] << 8 | side[3]);
      expected *= static_cast<double>(shape[i]);
    }
    expected += static_cast<double>(head_bytes);
    if (static_cast<double>(file.size()) != expected)
      pg::fail_data(
          path, format("%llu bytes, but its header says %.0f", static_cast<unsigned long long>(file.size()), expected));
    bytes.resize(file.size() - head_bytes);
    file.read(head_bytes, bytes.data(), bytes.size());
  }
};

struct Mnist {
  const char *pictures = "", *labels = "";

  class Open {
   public:
    explicit Open(const Mnist& options) : pictures_(options.pictures, 3), labels_(options.labels, 1) {
      if (pictures_.shape[0] != labels_.shape[0])
        pg::fail_data(options.labels,
                      format("%lld labels, but there are %lld pictures in %s", static_cast<long long>(labels_.shape[0]),
                             static_cast<long long>(pictures_.shape[0]), options.pictures));
      for (unsigned char label : labels_.bytes) formats::check_class(options.labels, label);
      bytes_ = static_cast<size_t>(pictures_.shape[1] * pictures_.shape[2]);
    }
    int64_t count() const { return pictures_.shape[0]; }
    void read(int64_t i, pg::FieldSink& out) const {
      put_picture(i, out.tensor("x", PG_U8, {pictures_.shape[1], pictures_.shape[2], 1}));
      *out.tensor<int64_t>("y", PG_I64, {}) = labels_.bytes[static_cast<size_t>(i)];
    }
    void gather(const int64_t* positions, uint64_t count, pg::FieldSink& out) const {
      const auto n = static_cast<int64_t>(count);
      auto* x = out.tensor<unsigned char>("x", PG_U8, {n, pictures_.shape[1], pictures_.shape[2], 1});
      for (uint64_t k = 0; k < count; k++) put_picture(positions[k], x + k * bytes_);
      auto* y = out.tensor<int64_t>("y", PG_I64, {n});
      for (uint64_t k = 0; k < count; k++) y[k] = labels_.bytes[static_cast<size_t>(positions[k])];
    }

   private:
    void put_picture(int64_t i, void* target) const {
      if (bytes_ != 0) std::memcpy(target, pictures_.bytes.data() + static_cast<size_t>(i) * bytes_, bytes_);
    }

    const Idx pictures_, labels_;
    size_t bytes_;  // of a picture
  };
};

PG_SOURCE(Mnist, "mnist", "Pictures of ten classes from IDX files: samples { x = uint8 [rows, columns, 1], y = int64 }")
    .attr(&Mnist::pictures, "pictures", "the file, plain or gzip", PG_ATTR_REQUIRED)
    .attr(&Mnist::labels, "labels", "the file, plain or gzip", PG_ATTR_REQUIRED);

}  // namespace
