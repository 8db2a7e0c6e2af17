// SPDX-License-Identifier: Apache-2.0
// The plugin: the sum of what the other files register.
#include <perigee/kernel.hpp>
#include <perigee/op.hpp>
#include <perigee/optimizer.hpp>

using MyLayer = pg::Provides<pg::OpTable, pg::KernelTable<"cpu">, pg::LayerTable, pg::OptimizerTable>;
PG_PLUGIN(MyLayer, "my_layer", "1.0.0", "ops,kernels,layers,optimizers");
