// SPDX-License-Identifier: Apache-2.0
// Who is still there.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "perigee/plugin.hpp"

namespace mpi {

// A process of the world, as it tells the others when it joins.
struct Process {
  char machine[128];  // its name and its room of process numbers
  int32_t pid;
};
Process this_process();
// PG_PEER_*, from /proc; alive where it is of another machine.
uint32_t state_of(const Process& process);

// SIGTERM is how a launcher ends what is left of a job when one of its processes died. While this process waits for the
// others, or where one of them has ended, it shall say so instead of dying silently, at the latest in its next call; at
// all other times the signal does what it did before.
void watch_termination(const std::vector<Process>& processes);
class Waiting {
 public:
  Waiting();
  ~Waiting();
};
bool was_terminated();

// "rank 1", "ranks 1 and 3"
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace mpi
