// SPDX-License-Identifier: Apache-2.0
// What may be applied to the result of a product before it is written.
#pragma once

#include "perigee/kernels/activations.hpp"
#include "perigee/kernels/product.hpp"

namespace cuda {

using pg::Activation;

// Of floats.
template <class T>
PG_HD T activate(Activation activation, T x) {
  const T* none = nullptr;
  if (activation == Activation::kRelu) return pg::math::Relu()(x, none);
  if (activation == Activation::kGeluTanh) return pg::math::GeluTanh()(x, none);
  return x;
}

}  // namespace cuda
