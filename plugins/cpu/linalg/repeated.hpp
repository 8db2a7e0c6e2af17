// SPDX-License-Identifier: Apache-2.0
// Products by a b that one after another takes, as a recurrent layer's steps do: packed once, whatever that costs
// beside one of them.
#pragma once

#include "linalg/product.hpp"

namespace pg::cpu {

// b may lie in any way. NULL: what make_product makes is as good.
std::unique_ptr<Product> make_repeated_product(const ProductShape& shape);

// Of up to four rows, in product_panels.cpp. NULL: another shape.
std::unique_ptr<Product> make_panel_product(const ProductShape& shape);

}  // namespace pg::cpu
