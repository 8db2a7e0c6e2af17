/* SPDX-License-Identifier: Apache-2.0
 * Nothing is wrong with this one either; tests load it by its path, with manifests of their own. */
#define OPERATOR_NAME "named_op"
#include "../operator.h"

OPERATOR_PLUGIN("named", "1.0.0", "ops");
