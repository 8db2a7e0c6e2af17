// SPDX-License-Identifier: Apache-2.0
// The child of a process that has computed: its threads, and the locks that they held, stayed in the parent.
#pragma once

namespace perigee {

// From the first call on, forks are noticed; `in_child` runs in each child, and may do no more than a signal handler.
void watch_forks(void (*in_child)());
bool is_forked();     // this process is such a child
void check_forked();  // throws PG_E_FAILED_PRECONDITION in one

}  // namespace perigee
