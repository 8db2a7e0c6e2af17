// SPDX-License-Identifier: Apache-2.0
// files: a source. Names of files, in the order that they are given in.
#include "perigee/data.hpp"

namespace {

struct Files {
  const pg_texts* paths = nullptr;

  class Open {
   public:
    explicit Open(const Files& options) : paths_(*options.paths) {}
    int64_t count() const { return paths_.count; }
    void read(int64_t i, pg::FieldSink& out) const { out.text("path", paths_.list[i]); }

   private:
    const pg_texts& paths_;
  };
};

PG_SOURCE(Files, "files", "Names of files: samples { path = string }")
    .attr(&Files::paths, "paths", "the names", PG_ATTR_REQUIRED);

}  // namespace
