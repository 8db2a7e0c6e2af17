// SPDX-License-Identifier: Apache-2.0
// Tensors of independent random numbers: a row a distribution. How counters become numbers is specified in
// perigee/kernels/philox.hpp.
#include "../rules.hpp"

namespace pg::schema_distributions {
namespace {

OpBuilder& declare(const char* name, const char* doc, uint32_t otherwise, uint32_t classes) {
  return declare_op(name)
      .category("random")
      .doc(doc)
      .attr<Dims>("shape", {}, "the shape")
      .required()
      .attr<Dtype>("dtype", 0, "the dtype")
      .random()
      .output("y", "`shape`")
      .traits(PG_OP_CREATES | PG_OP_NO_GRAD)
      .shape([otherwise, classes](ShapeContext& c) {
        uint32_t dtype = dtype_or(c.get<Dtype>("dtype"), otherwise);
        c.need((dtype_class(dtype) & classes) != 0, "the dtype is %s; expected %s", dtype_name(dtype),
               dtype_mask_text(classes).c_str());
        c.out(0).set(dtype, Shape(c.get<Dims>("shape")));
      });
}

const bool declared = [] {
  declare("uniform", "Uniformly distributed numbers in [low, high).", PG_F32, kFloating)
      .attr<double>("low", 0, "lower end, included")
      .runtime()
      .attr<double>("high", 1, "upper end, excluded")
      .runtime();
  declare("normal", "Normally distributed numbers.", PG_F32, kFloating)
      .attr<double>("mean", 0, "mean")
      .runtime()
      .attr<double>("std", 1, "standard deviation")
      .runtime();
  declare("exponential", "Exponentially distributed numbers: of density rate exp(-rate x).", PG_F32, kFloating)
      .attr<double>("rate", 1, "above 0; 1 / mean")
      .runtime();
  declare("randint", "Uniformly distributed integers in [low, high).", PG_I64, kReal)
      .attr<int>("low", 0, "lower end, included")
      .runtime()
      .attr<int>("high", 0, "upper end, excluded")
      .runtime()
      .required();
  return true;
}();

}  // namespace
}  // namespace pg::schema_distributions
