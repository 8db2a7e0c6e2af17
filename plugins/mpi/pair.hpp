// SPDX-License-Identifier: Apache-2.0
// Sums of two ranks that fit into one message each way, by requests of MPI that are made once and started for every
// call: MPI then takes nothing from what its threads share, which is an eighth of such a sum's time.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace mpi {

struct SumCall;

// Of one group. Its messages and those of plain requests with the same tag meet in the order of calls, so each rank
// uses it where it can.
class Pair {
 public:
  static constexpr int kTag = 131072;  // above those of other sums
  // The same on both ranks. What is smaller MPI sends without any request; what is larger is not worth a copy.
  static bool suits(int ranks, uint64_t bytes) { return ranks == 2 && bytes > 256 && bytes <= 3840; }

  // Whether it has begun: not where one is under way, nor where the last call was of another size. `code`: MPI's.
  bool begin(const SumCall& call, int& code);
  // True: the call's output has the sum.
  bool advance(const SumCall& call, int& code);
  void free();  // while MPI is at work

 private:
  int make(const SumCall& call);

  std::vector<char> mine_, theirs_;
  MPI_Request handles_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Datatype type_ = MPI_DATATYPE_NULL, last_type_ = MPI_DATATYPE_NULL;
  int count_ = 0, last_count_ = 0;
  bool busy_ = false;
};

}  // namespace mpi
