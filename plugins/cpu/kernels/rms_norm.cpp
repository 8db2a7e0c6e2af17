// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm_rows.hpp"

namespace pg::cpu {

PG_KERNEL("rms_norm", NormRows<false>, 0, 0, 1u << 1);
PG_LINES("rms_norm", NormRows<false>);
PG_KERNEL("rms_norm_grad", NormRowsGrad<false>);

}  // namespace pg::cpu
