// SPDX-License-Identifier: Apache-2.0
// Checks of what an operator's plugin answers. One that breaks a promise of plugin.h gets an error that names the
// output (callers name the operator), where it would otherwise read and write memory that is not its own. They are
// asked once a signature or a recorded node, those of dynamic outputs and compositions once a run of such an operator.
#pragma once

#include "builder/builder.hpp"

namespace perigee {

// The declared output that a flat one belongs to, quoted.
std::string output_text(const Op& op, const uint32_t* groups, uint32_t flat);
// What the shape rule said of outputs: each has a dtype, and only views look like one.
void check_described(const Op& op, const uint32_t* groups, const pg_meta* metas, uint32_t count);
// Of a view: `m`, what the shape rule said of it, stays within what input 0 (NULL: absent) reaches.
void check_view(const Op& op, const uint32_t* groups, uint32_t flat, const pg_meta& m, const Meta* x);
// Of a dynamic output: the extents that the kernel published are within the bounds.
void check_extents(const Op& op, const uint32_t* groups, uint32_t flat, const Meta& bound, const int64_t* extents);
// Of a composition: it gave what the shape rule says.
void check_part(const Op& op, const uint32_t* groups, uint32_t flat, const Meta& part, const Meta& described);

}  // namespace perigee
