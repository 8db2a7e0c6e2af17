// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "harness.hpp"

namespace harness {

void run(const std::string& op, std::vector<Attr> attrs, std::vector<Tensor*> inputs, std::vector<Tensor*> outputs) {
  Prepared kernel(op, std::move(attrs), std::move(inputs), outputs);
  kernel.launch();
  if (!kernel.packs()) return;
  std::vector<Tensor> before;
  for (Tensor* t : outputs) before.push_back(*t);
  kernel.pack();
  kernel.launch();
  for (size_t i = 0; i < outputs.size(); i++) {
    for (int64_t j = 0; j < outputs[i]->size(); j++) {
      if (std::fabs(outputs[i]->get(j) - before[i].get(j)) > 1e-3 * (1 + std::fabs(before[i].get(j)))) {
        FAIL(op << ": packed and plain launches differ at " << j);
      }
    }
  }
}

double tolerance(uint32_t dtype, int64_t terms) {
  double scale = std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
  switch (dtype) {
    case PG_F64: return 1e-13 * scale;
    case PG_F32: return 1e-6 * scale;
    case PG_BF16: return 1.0 / 128;
    case PG_F16: return 1.0 / 1024;
    default: return 0;
  }
}

void check_close(const Tensor& got, const std::vector<double>& expected, double tolerance, const std::string& what) {
  REQUIRE(static_cast<size_t>(got.size()) == expected.size());
  for (int64_t i = 0; i < got.size(); i++) {
    double g = got.get(i), e = expected[static_cast<size_t>(i)];
    if (std::isnan(g) && std::isnan(e)) continue;
    if (g == e || std::fabs(g - e) <= tolerance * (1 + std::fabs(e))) continue;
    FAIL(what << " " << pg::dtype_name(got.dtype) << ": element " << i << " is " << g << ", expected " << e);
  }
  SUCCEED();
}

}  // namespace harness
