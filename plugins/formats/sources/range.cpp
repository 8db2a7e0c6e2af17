// SPDX-License-Identifier: Apache-2.0
// range: a source. The numbers 0 .. n - 1.
#include "perigee/data.hpp"

namespace {

struct Range {
  int64_t n = 0;

  void check() const {
    if (n < 0 || n == PG_COUNT_UNKNOWN)
      pg::fail_argument(pg::format("n must be 0 or more, got %lld", static_cast<long long>(n)));
  }

  class Open {
   public:
    explicit Open(const Range& options) : n_(options.n) {}
    int64_t count() const { return n_; }
    static void read(int64_t i, pg::FieldSink& out) { out.number("value", static_cast<double>(i)); }

   private:
    const int64_t n_;
  };
};

PG_SOURCE(Range, "range", "The numbers 0 .. n - 1: samples { value = number }")
    .attr(&Range::n, "n", "how many", PG_ATTR_REQUIRED);

}  // namespace
