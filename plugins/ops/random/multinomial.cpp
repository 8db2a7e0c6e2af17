// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_multinomial {
namespace {

PG_OP("multinomial")
    .category("random")
    .doc(
        "Categories drawn with the given probabilities, which need not add up to 1; without replacement none twice. "
        "perigee/kernels/philox.hpp says which are drawn.")
    .input("p", kFloating, "[n] or [m, n]: finite, from 0")
    .attr<int>("num_samples", 1, "how many of each row")
    .required()
    .attr<bool>("replacement", false, "a category may be drawn again")
    .random()
    .output("y", "int64 [num_samples] or [m, num_samples], from 0")
    .traits(PG_OP_NO_GRAD)
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1, 2);
      int64_t samples = c.get<int>("num_samples");
      Shape shape = c.shape(0);
      Dim n = shape[shape.rank - 1];
      c.need(samples >= 1, "num_samples is %lld; expected at least 1", static_cast<long long>(samples));
      c.need(!n.is(0), "%s has no categories", c.text(0).c_str());
      c.need(c.get<bool>("replacement") || n.symbolic() || samples <= n.value,
             "num_samples is %lld, but %s has %lld categories; expected at most as many, or replacement",
             static_cast<long long>(samples), c.text(0).c_str(), static_cast<long long>(n.value));
      shape.dims[shape.rank - 1] = samples;
      c.out(0).set(PG_I64, shape);
    });

}  // namespace
}  // namespace pg::schema_multinomial
