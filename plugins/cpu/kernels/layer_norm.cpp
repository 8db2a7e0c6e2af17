// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm_rows.hpp"

namespace pg::cpu {

PG_KERNEL("layer_norm", NormRows<true>, 0, 0, 1u << 1 | 1u << 2);
PG_LINES("layer_norm", NormRows<true>);
PG_KERNEL("layer_norm_grad", NormRowsGrad<true>);

}  // namespace pg::cpu
