// SPDX-License-Identifier: Apache-2.0
// The plugin "layers": each other file registers a layer, or a family of them.
#include "perigee/layer.hpp"

PG_PLUGIN(pg::Provides<pg::LayerTable>, "layers", "0.1.0", "layers");
