/* SPDX-License-Identifier: Apache-2.0
 * Nothing is wrong with this one: one operator, in plain C. */
#define OPERATOR_NAME "good_op"
#include "operator.h"

OPERATOR_PLUGIN("good", "1.2.3", "ops");
