// SPDX-License-Identifier: Apache-2.0
// all_reduce made of MPI's messages and MPI's additions. MPI_Allreduce has no deadline, and MPI_Iallreduce takes up to
// twice as long.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "room.hpp"

namespace mpi {

struct SumCall {
  MPI_Comm comm;
  int rank, ranks;
  uint64_t number;  // of the group's calls
  const void* in;   // what this rank adds: `out` where it is summed in place
  void* out;
  int count;
  uint64_t item;  // bytes of an element
  Reduction reduction;
  uint64_t about;  // dtype and reduction, the same on all ranks
  Room* room;      // the group's, or nothing
};

// What one rank adds up with the others. Each element is added in the order of ranks, so that all get the same bits.
class Sum {
 public:
  // Whether MPI_Iallreduce is left aside for so much among so many: the same on all ranks.
  static bool suits(int ranks, uint64_t bytes);

  void begin(const SumCall& call);
  // Goes on as far as messages have arrived. True: `out` has the sum, and both are the caller's again.
  bool advance();
  // MPI's code of what has failed.
  int code() const { return code_; }
  // As text, of another rank that adds something else; "" where none is known.
  std::string difference(const std::vector<int>& ranks) const;

 private:
  // Ranks by powers of two, each of which exchanges what it has with one that is farther away each time.
  void begin_doubling();
  bool advance_doubling();
  void fold();  // those too many for a power of two first give theirs to a neighbour
  void own();
  void exchange(int peer);
  void join();
  void next_exchange();
  int rank_of(int place) const { return place < extra_ ? 2 * place + 1 : place + extra_; }
  // Two ranks, of which each adds up half of a chunk.
  bool advance_halves();
  void post_chunk();
  bool add_chunk();

  RoomSum room_sum() const;
  int tag_of(int part) const;
  void send(const void* from, uint64_t count, int peer, int part, MPI_Request* handle);
  void receive(void* into, uint64_t count, int peer, int part, MPI_Request* handle);
  bool are_over(MPI_Request* handles, int count);
  void add(const void* lower, void* upper, uint64_t count);
  char* room(uint64_t bytes);
  void note(int code) {
    if (code != MPI_SUCCESS) code_ = code;
  }

  enum class Step : uint8_t { give, get, fold, exchange, give_back };
  static constexpr int kChunks = 4;  // under way at a time
  struct Chunk {
    MPI_Request halves[2], sums[2];  // from the peer, and to it
  };
  struct Half {
    uint64_t first, count;
  };
  Half half(uint64_t chunk, int rank) const;

  SumCall call_{};
  uint64_t bytes_ = 0;
  int code_ = MPI_SUCCESS;
  bool halves_ = false, shared_ = false;
  uint64_t number_ = 0;  // of the room's
  std::vector<char> room_;
  // of doubling
  Step step_ = Step::exchange;
  int extra_ = 0, power_ = 1, place_ = 0, distance_ = 1, handle_count_ = 0;
  bool below_ = false;          // the peer has what stands below this rank's
  const char* held_ = nullptr;  // the sum so far
  char* into_ = nullptr;
  MPI_Request handles_[4];
  // of halves
  uint64_t chunk_ = 0;  // bytes
  uint64_t chunks_ = 0, posted_ = 0, added_ = 0, done_ = 0;
  Chunk under_way_[kChunks];
};

}  // namespace mpi
