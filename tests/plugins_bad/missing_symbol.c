/* SPDX-License-Identifier: Apache-2.0
 * A library, but no plugin. */
#include "common.h"

PG_EXPORT int not_a_plugin;
