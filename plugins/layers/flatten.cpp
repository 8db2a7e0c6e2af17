// SPDX-License-Identifier: Apache-2.0
#include "perigee/functions.hpp"
#include "perigee/layer.hpp"

namespace {

struct Flatten {
  int64_t first = 1, last = -1;

  void parameters(pg::Params&) {}
  pg::Value build(const pg::LayerCall& c) const {
    const pg_tensor& x = c.input().meta();
    int64_t begin = place(first, x, "first"), end = place(last, x, "last");
    if (begin > end) pg::fail_argument("first lies behind last for an input " + pg::shape_text(x));
    pg_ints shape{};
    int64_t merged = 1;
    for (int64_t i = 0; i < x.rank; i++) {
      if (i < begin || i > end) {
        shape.value[shape.count++] = x.shape[i];
        continue;
      }
      merged = pg::dim_mul(merged, x.shape[i]);
      if (i == end) shape.value[shape.count++] = merged;
    }
    return pg::reshape(c.input(), shape);
  }

 private:
  static int64_t place(int64_t axis, const pg_tensor& x, const char* name) {
    int64_t at = axis < 0 ? axis + x.rank : axis;
    if (at < 0 || at >= x.rank) {
      pg::fail_argument(pg::format("axis %s is out of range for an input %s", name, pg::shape_text(x).c_str()));
    }
    return at;
  }
};

PG_LAYER(Flatten, "Flatten",
         "Merges the axes from `first` to `last` into one: with first=2, [N, C, H, W] to [N, C H W].")
    .axis(&Flatten::first, "first", "first axis to merge")
    .axis(&Flatten::last, "last", "last axis to merge");

}  // namespace
