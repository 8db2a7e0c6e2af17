// SPDX-License-Identifier: Apache-2.0
// How long, and how, a rank waits for others; the tags of what they tell each other meanwhile.
#pragma once

#include <cstdint>

namespace mpi {

// Tags of messages of the engine's own, above those of users.
constexpr int kArrived = 32768, kMeet = 32769, kLeft = 32770;
constexpr double kFirstLook = 0.05, kNextLook = 0.2;  // seconds after which a call that waits looks around
constexpr double kGrace = 0.3;                        // seconds in which what others have sent arrives

double now();  // seconds

// Called between two looks at a request: gives the processor to others once it has been in vain so many times, and
// rests once it has been for long.
void relax(uint64_t spins);
// Of how many looks in vain a rest follows the next one.
uint64_t looks_before_rest();
// Every rank of this machine has a processor of its own.
void expect_processors();

}  // namespace mpi
