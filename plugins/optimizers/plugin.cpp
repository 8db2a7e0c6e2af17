// SPDX-License-Identifier: Apache-2.0
// The plugin "optimizers": each other file registers one.
#include "perigee/optimizer.hpp"

PG_PLUGIN(pg::Provides<pg::OptimizerTable>, "optimizers", "0.1.0", "optimizers");
