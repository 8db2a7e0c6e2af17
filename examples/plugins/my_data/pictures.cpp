// SPDX-License-Identifier: Apache-2.0
// my_pictures: a source by position. Pictures of any kind that there is a codec for, and a row of a tensor each.
#include <perigee/data.hpp>

namespace {

struct Pictures {
  const pg_texts* files = nullptr;
  const pg_field* targets = nullptr;

  void check() const {
    if (targets != nullptr && (targets->rank == 0 || targets->shape[0] != files->count))
      pg::fail_argument(pg::format("targets must have a row for each of %u files", files->count));
  }

  class Open {
   public:
    explicit Open(const Pictures& options) : files_(*options.files), targets_(options.targets) {}
    int64_t count() const { return files_.count; }

    void read(int64_t i, pg::FieldSink& out) const {
      pg::Coded file;
      file.path = files_.list[i];
      const pg::Decoded picture = out.decode("x", file);
      if (picture.shape.size() != 3) pg::fail_data(file.path, "no picture");
      out.texts("tags", {file.path, pg::format("%lld rows", static_cast<long long>(picture.shape[0]))});
      if (targets_ != nullptr) out.slice("y", *targets_, i);
    }

   private:
    const pg_texts& files_;
    const pg_field* const targets_;
  };
};

PG_SOURCE(Pictures, "my_pictures",
          "Pictures: samples { x = [rows, columns, channels], tags = strings, y = a row of targets }")
    .attr(&Pictures::files, "files", "their names", PG_ATTR_REQUIRED)
    .attr(&Pictures::targets, "targets", "a tensor of as many rows");

}  // namespace
