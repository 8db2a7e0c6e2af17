// SPDX-License-Identifier: Apache-2.0
// How long, and how, a rank waits for others; the tags of what they tell each other meanwhile.
#pragma once

#include <cstdint>

namespace mpi {

// Tags of messages of the engine's own: in a group, where those of sums are below, and among all.
constexpr int kArrived = 32767, kMeet = 1, kLeft = 2;
constexpr double kFirstLook = 0.05, kNextLook = 0.2;  // seconds after which a call that waits looks around
constexpr double kGrace = 0.3;                        // seconds in which what others have sent arrives

double now();          // seconds
double roughly_now();  // the same some milliseconds ago, which costs little

// Between looks at a request. MPI can only be asked again and again; who asks for long takes the processor from those
// it waits for, and has used up its share of it when they are there. So the first looks follow each other, and behind
// them it sleeps for some microseconds at a time.
class Patience {
 public:
  explicit Patience(bool tired = false) : looks_(tired ? kTired : 0) {}
  ~Patience();
  void rest();
  bool wants_messages() const { return looks_ % 16 == 15 || looks_ > kShort; }
  // Whether the time may have come to look at the clock and at the others.
  bool wants_time() const { return looks_ % 64 == 63 || looks_ > kShort; }

 private:
  static constexpr uint64_t kShort = 500, kTired = 5500;
  uint64_t looks_;
  int slack_ = -1;  // nanoseconds by which the system let this thread sleep longer
};

}  // namespace mpi
