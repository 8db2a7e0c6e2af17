// SPDX-License-Identifier: Apache-2.0
// Memory that the ranks of a group share where all are processes of one machine. Small sums go through it: what MPI
// takes for a message is more than the bytes take.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "reductions.hpp"

namespace mpi {

struct RoomSum {
  const void* in;  // what this rank adds: `out` where it is summed in place
  void* out;
  int count;
  uint64_t item;   // bytes of an element
  uint64_t about;  // dtype and reduction, the same on all ranks
  Combine combine;
};

// Each rank has some places in it. A sum is written to the rank's next place, which the others read as soon as its mark
// says so; a place is written to again once all have read what was there. Sums are made in the order of calls.
class Room {
 public:
  Room(int rank, int ranks) : rank_(rank), ranks_(ranks), seen_(static_cast<size_t>(ranks), 0) {}
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // A file of memory for the others to map, which stays open until `close_file`; -1: the system gives none.
  int make();
  bool open(int32_t pid, int file);  // the one that another process has made
  void close_file();

  // The same on all ranks.
  bool suits(uint64_t bytes) const;

  uint64_t begin(const RoomSum& sum);                 // its number, by which it goes on
  bool advance(const RoomSum& sum, uint64_t number);  // true: `out` has the sum, and both are the caller's again
  // Of another rank than this that has come to another sum, as text; "" where none has.
  std::string difference(const RoomSum& sum, uint64_t number, const std::vector<int>& ranks) const;

 private:
  static constexpr uint64_t kPlaces = 8, kMost = 16 * 1024;  // bytes of a sum
  static constexpr uint64_t kOfAll = 64 * 1024;              // bytes that a rank reads
  struct alignas(64) Place {
    std::atomic<uint64_t> number;  // of the sum that is here
    uint64_t count, about;
    alignas(64) char bytes[kMost];
  };
  struct alignas(64) Rank {
    std::atomic<uint64_t> done;  // sums that it has finished
    Place places[kPlaces];
  };

  bool map(int file);
  Place& place(int rank, uint64_t number) const { return all_[rank].places[number % kPlaces]; }
  bool has_place(uint64_t number);
  void post(const RoomSum& sum, uint64_t number);
  void add_all(const RoomSum& sum, uint64_t number);
  struct Tree;

  int rank_, ranks_;
  Rank* all_ = nullptr;
  int file_ = -1;
  uint64_t begun_ = 0, posted_ = 0, done_ = 0;
  std::vector<uint64_t> seen_;  // of each rank, what it has finished as far as is known
  std::vector<char> levels_;    // partial sums of more than two ranks
};

}  // namespace mpi
