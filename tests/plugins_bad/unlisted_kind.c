/* SPDX-License-Identifier: Apache-2.0
 * It has operators, which its kinds do not say: nobody who looks for one would load it. */
#define OPERATOR_NAME "unlisted_op"
#include "operator.h"

OPERATOR_PLUGIN("unlisted_kind", "1.0.0", "kernels");
